"""A solver goes on with other values at the same places."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def changed(A, factor=0.3, seed=3):
    """Return A with each off-diagonal pair weakened by its own share: still an M-matrix."""
    S = A.to_scipy().tocoo()
    i, j = S.coords
    pair = np.minimum(i, j) * S.shape[0] + np.maximum(i, j)
    share = 1 - factor * np.modf(np.sin((pair + seed) * 12.9898) * 43758.5453)[0] ** 2
    return A.with_values((np.where(i == j, 1.0, share) * S.data).astype(A.dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "options",
    [
        "-pc_type none",
        "-pc_type jacobi",
        "-pc_type jacobi -pc_jacobi_type rowl1",
        "-pc_type chebyshev",
        "-pc_type sor -pc_sor_symmetric",
        "-pc_type sor -pc_sor_order levels",
        "-pc_type ilu",
        "-pc_type ilu -pc_factor_levels 2",
        "-pc_type ilut",
        "-pc_type bjacobi",
        "-pc_type icc",
        "-pc_type asm -sub_pc_type icc",
        "-pc_type ilut -pc_factor_order levels",
        "-pc_type lu",
        "-pc_type ksp -ksp_ksp_type richardson -ksp_pc_type sor",
        "-pc_type amg -pc_amg_coarse_size 30 -pc_amg_reuse_interpolation false",
        "-pc_type ilu -pc_dtype float32",
    ],
)
def test_an_update_is_a_new_solver(options, dtype):
    A = am.gallery.poisson((17, 13)).astype(dtype)
    b = np.cos(np.arange(A.shape[0])).astype(dtype)
    solver = am.Solver(A, options, ksp="gmres", rtol=1e-4)
    before = solver.explain()
    for seed in range(3):
        B = changed(A, seed=seed)
        solver.update(B)
        x = solver.solve(b)
        assert np.array_equal(x, am.Solver(B, options, ksp="gmres", rtol=1e-4).solve(b))
        assert np.linalg.norm(b - B.to_scipy() @ x) <= 2e-4 * np.linalg.norm(b)
        # amg keeps what it has found from the first update on
        assert solver.reused == ("reuse_interpolation false" not in options and (seed > 0 or "amg" not in options))
        assert solver.explain() == before


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "smoother",
    ["", "-mg_levels_ksp_type chebyshev -pc_amg_cycle_type w", "-mg_levels_pc_type icc", "-mg_levels_pc_type ilu"],
)
def test_amg_keeps_its_prolongation(dtype, smoother):
    A = am.gallery.poisson((40, 40)).astype(dtype)
    b = np.ones(1600, dtype)
    rtol, near = (1e-4, 3e-2) if dtype == "float32" else (1e-9, 1e-6)
    solver = am.Solver(A, f"-pc_amg_coarse_size 50 {smoother}", ksp="cg", pc="amg", rtol=rtol)
    plain = solver.solve(b)
    first = solver.info
    solver.update(A)
    solver.solve(b)
    kept = solver.info.memory_bytes
    assert not solver.reused and kept > first.memory_bytes and solver.info.iterations == first.iterations
    solver.update(A.with_values(2 * A.to_scipy().data))  # what is kept does not depend on a factor
    x = solver.solve(b)
    assert solver.reused and solver.info.memory_bytes == kept
    assert np.allclose(2 * x, plain, rtol=near) and solver.info.iterations == first.iterations
    levels = solver.view().splitlines()
    for seed in range(2):
        B = changed(A, 0.5, seed)
        solver.update(B)
        x = solver.solve(b)
        fresh = am.Solver(B, "-pc_amg_coarse_size 50", ksp="cg", pc="amg", rtol=rtol)
        assert np.allclose(x, fresh.solve(b), rtol=near)
        assert solver.info.iterations <= 2 * fresh.info.iterations + 5
    assert len(solver.view().splitlines()) == len(levels)


@pytest.mark.parametrize("pc", ["amg", "auto"])
def test_preconditioners_of_levels_are_made_again_from_their_options(pc):
    """Also from options that the automatic choice merged, and holds no more."""
    A = am.gallery.poisson((60, 60))
    b = np.ones(3600)
    options = "-mg_levels_pc_type ilu -mg_levels_pc_factor_levels 1 -mg_levels_pc_dtype float64"
    solver = am.Solver(A, options, ksp="cg", pc=pc)
    solver.solve(b)
    if pc == "auto" and not solver.info.preconditioner.startswith("amg"):
        pytest.fail(f"auto took {solver.info.preconditioner}; choose a matrix that it solves with amg")
    before, iterations = solver.explain(), solver.info.iterations
    for update in range(3):
        solver.update(A.with_values((2.0 + update) * A.to_scipy().data))
        solver.solve(b)
        assert solver.reused == (update > 0) and solver.info.iterations == iterations
        assert "ilu(1)" in solver.view() and solver.explain() == before


def test_amg_is_made_of_the_values_themselves(rng):
    """Not of those in the float32 that its cycle has."""
    A = changed(am.gallery.poisson((30, 31)), 0.3)
    options = "-pc_amg_coarse_size 50"
    x = rng.standard_normal(930)
    fresh = am.Solver(A, options, ksp="cg", pc="amg")
    again = am.Solver(A, options, ksp="cg", pc="amg")
    for update in range(3):
        again.update(A)
        assert again.reused == (update > 0)
        a, b = (s.preconditioner @ x for s in (fresh, again))
        assert np.array_equal(a, b)


def test_an_adjoint_goes_with_the_symmetry():
    A = am.gallery.poisson((12, 12))
    solver = am.Solver(A, ksp="bicg", pc="amg", rtol=1e-8)
    solver.solve(np.ones(144))
    S = A.to_scipy()
    S.data[S.indices > np.repeat(np.arange(144), np.diff(S.indptr))] *= 0.5
    solver.update(A.with_values(S.data))
    assert not solver.reused  # what served a Hermitian matrix has kept no rows for its adjoint
    x = solver.solve(np.ones(144))
    assert solver.info.converged and np.linalg.norm(S @ x - 1) <= 1.1e-8 * 12
    solver.update(A)
    solver.solve(np.ones(144))
    assert solver.info.converged


def test_another_pattern_is_set_up_from_scratch():
    A = am.gallery.poisson((20, 20))
    S = A.to_scipy().tolil()
    S[0, 5] = S[5, 0] = -0.1
    B = am.Matrix.from_scipy(S.tocsr())
    b = np.ones(400)
    for pc in ("amg", "ilu"):
        solver = am.Solver(A, ksp="cg" if pc == "amg" else "gmres", pc=pc, rtol=1e-10)
        solver.update(A)
        assert solver.reused
        solver.update(B)
        assert not solver.reused
        x = solver.solve(b)
        assert np.linalg.norm(b - S @ x) <= 1e-10 * 20
        solver.update(S.tocsr())  # SciPy's, with the same pattern
        assert solver.reused


def test_what_the_look_at_the_matrix_chose_is_chosen_again(caplog):
    A = am.gallery.poisson((15, 15))
    solver = am.Solver(A, rtol=1e-9)
    solver.solve(np.ones(225))
    assert solver.info.method == "cg" and "amg" in solver.info.preconditioner
    S = A.to_scipy()
    S.data[1] *= 1.5  # no longer symmetric
    with caplog.at_level(logging.WARNING, "asterism"):
        solver.update(S)
    x = solver.solve(np.ones(225))
    assert solver.info.method == "gmres" and "ilu" in solver.info.preconditioner and not solver.reused
    assert np.linalg.norm(np.ones(225) - S @ x) <= 1e-9 * 15
    with caplog.at_level(logging.WARNING, "asterism"):
        once = am.Solver(A, "-pc_type amg -pc_amg_threshold 0.1", rtol=1e-9)
        once.update(A)
    assert not caplog.records


def test_an_update_gives_way_to_the_next_attempt_as_a_new_solver_does():
    S = sp.csr_array(np.array([[1.0, 2, 0, 0], [0.5, 1.5, 3, 0], [0, 1, 5, 1], [0, 0, 1, 4]]))
    solver = am.Solver(S, rtol=1e-10)
    assert "ilu" in solver.view()
    S[1, 1] = 1.0  # ilu meets a pivot of zero
    solver.update(S)
    assert np.allclose(S @ solver.solve(np.ones(4)), 1)
    assert any("pc auto: lu" in note and "pivot of row 1" in note for note in solver.info.notes)


def test_what_an_update_refuses():
    A = am.gallery.poisson((5, 5))
    solver = am.Solver(A, ksp="gmres", pc="ilu")
    for bad, text in (
        (am.gallery.poisson((5, 4)), "20 x 20 matrix.* instead of 25 x 25"),
        (A.astype("complex128"), "complex128.*float64.*must be the same"),
        (am.Operator(lambda x: x, 25), "a matrix is needed"),
    ):
        with pytest.raises(am.AsterismError, match=text):
            solver.update(bad)
    solver.solve(np.ones(25))  # as before
    singular = A.to_scipy()
    singular.data[:] = 1.0
    with pytest.raises(am.InputError, match="pivot of row"):
        solver.update(A.with_values(singular.data))
    with pytest.raises(am.InputError, match="the last update.. of this solver failed"):
        solver.solve(np.ones(25))
    with pytest.raises(am.InputError, match="the last update.. of this solver failed"):
        solver.view()
    solver.update(A)
    solver.solve(np.ones(25))
    assert solver.info.converged and "ilu" in solver.view()
    with pytest.raises(am.ShapeError, match="3 values for 105 entries"):
        A.with_values(np.ones(3))
    nan = A.to_scipy()
    nan.data[7] = np.nan
    with pytest.raises(am.InputError, match="NaN"):
        solver.update(am.Matrix.from_scipy(nan))
    with pytest.raises(
        am.InputError, match="the last update.. of this solver failed"
    ):  # not with the old preconditioner
        solver.solve(np.ones(25))
    for other in (
        am.Solver(am.Operator(lambda x: x, 25), ksp="cg"),
        am.Solver(A, P=A.with_values(A.to_scipy().data), ksp="cg"),
    ):
        with pytest.raises(am.UnsupportedError, match="Make a new one"):
            other.update(A)


def test_on_ranks(on_ranks):
    script = """
P = am.gallery.poisson((24, 24), comm)
lo, hi = P.row_range
S = P.to_scipy().tocoo()
i, j = S.coords[0] + lo, S.coords[1]
pair = np.minimum(i, j) * 576 + np.maximum(i, j)
values = np.where(i == j, 1.0, 1 - 0.5 * np.modf(np.sin(pair * 12.9898) * 43758.5453)[0] ** 2) * S.data
Q = P.with_values(values)
x = np.sin(np.arange(lo, hi))
T = sp.csr_array((values, P.to_scipy().indices, P.to_scipy().indptr), shape=(hi - lo, 576))
last = rank == size - 1
for bad, text in ((values[:-1] if last else values, "values for"), (values.astype("float32") if last else values, "float64")):
    if size > 1 or text == "values for":
        assert text in message(lambda: P.with_values(bad)), text
assert np.array_equal(Q @ x, am.Matrix.from_scipy(T, comm) @ x) and abs(Q.to_scipy() - T).max() == 0
solver = am.Solver(P, "-pc_amg_coarse_size 20", ksp="cg", pc="amg", rtol=1e-9)
found = []
for A in (P, Q, P, Q):
    solver.update(A)
    solver.solve(np.ones(hi - lo))
    assert solver.reused == (len(found) > 0) and solver.info.converged
    found.append(solver.info.iterations)
# one rank alone has another pattern
R = T.copy()
if rank == size - 1: R.data[-1] = 0; R.eliminate_zeros()
solver.update(am.Matrix.from_scipy(R, comm) if rank == size - 1 else am.Matrix.from_scipy(T, comm))
assert not solver.reused
if rank == 0: print("FOUND", found)
"""
    seen = {n: on_ranks(n, script).split("FOUND")[1].split("]")[0] for n in (1, 2, 3, 4)}
    assert len(set(seen.values())) == 1, seen


@pytest.mark.parametrize(
    "outer",
    [
        "-pc_type bjacobi -sub_pc_type amg -sub_",
        "-pc_type asm -sub_pc_type amg -sub_",
        "-pc_type ksp -ksp_pc_type amg -ksp_",
    ],
)
def test_amg_within_another_one_tells_its_first_phase(outer):
    A = am.gallery.poisson((40, 40))
    s = am.Solver(A, f"{outer}pc_amg_coarse_size 50", ksp="fgmres")
    told = []
    for _ in range(3):
        s.update(A)
        told.append(s.reused)
    assert told == [False, True, True]
