"""Incomplete Cholesky and additive Schwarz against their definitions in NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]


def hermitian(rng, n, dtype):
    S = sp.random_array((n, n), density=0.08, rng=rng)
    if np.dtype(dtype).kind == "c":
        S = S + 1j * sp.random_array((n, n), density=0.08, rng=rng)
    S = S + S.conj().T
    return (S + sp.diags_array(abs(S).sum(axis=1) + 0.5)).tocsr().astype(dtype)


def operator(A, options):
    """Return the preconditioner itself."""
    solver = am.Solver(A, options, ksp="gmres")
    return solver.preconditioner


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_icc_is_the_factorisation_in_the_pattern(rng, n, dtype):
    A = hermitian(rng, n, dtype)
    dense = A.toarray().astype("complex128")
    L, d = np.eye(n, dtype="complex128"), np.zeros(n)
    for i in range(n):
        for k in range(i):
            if dense[i, k] != 0:
                L[i, k] = (dense[i, k] - (L[i, :k] * d[:k]) @ L[k, :k].conj()) / d[k]
        d[i] = (dense[i, i] - (abs(L[i, :i]) ** 2) @ d[:i]).real
    M = np.linalg.inv(L @ np.diag(d) @ L.conj().T)
    got = operator(A, "-pc_type icc")
    x = rng.standard_normal((n, 2)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        x = x + np.dtype(dtype).type(1j) * rng.standard_normal((n, 2)).astype(dtype)
    tol = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    assert np.allclose(got @ x, M @ x, rtol=tol, atol=tol)
    assert np.allclose(got.rmatvec(x), M @ x, rtol=tol, atol=tol)
    assert np.allclose(got @ x[:, 0], M @ x[:, 0], rtol=tol, atol=tol)


def test_icc_equals_ilu_in_iterations_and_takes_half():
    A = am.gallery.poisson((30, 30))
    b = np.ones(900)
    infos = {}
    for pc in ("ilu", "icc"):
        x, infos[pc] = am.solve(A, b, ksp="cg", pc=pc, rtol=1e-9)
    assert infos["icc"].iterations == infos["ilu"].iterations
    solver = am.Solver(A, ksp="cg", pc="icc", rtol=1e-9)
    S = A.to_scipy()
    for factor in (2.0, 3.0):
        solver.update(A.with_values(factor * S.data))
        assert solver.reused and np.allclose(solver.solve(b), x / factor, rtol=1e-7)


KERSHAW = np.array([[3.0, -2, 0, 2], [-2, 3, -2, 0], [0, -2, 3, -2], [2, 0, -2, 3]])


@pytest.mark.parametrize("pc", ["icc", "ilu"])
def test_the_diagonal_is_enlarged_until_pivots_are_positive(pc, caplog):
    """Kershaw's example (1978): positive definite, but its factorisation without fill is not."""
    A = sp.csr_array(KERSHAW)
    assert np.linalg.eigvalsh(KERSHAW).min() > 0
    with pytest.raises(
        am.ConvergenceError, match="DIVERGED_INDEFINITE_PC.*icc -pc_factor_shift_type positive_definite"
    ):
        am.solve(A, np.array([0.0, 0, 0, 1]), ksp="cg", pc=pc)
    with caplog.at_level("INFO", "asterism"):
        x, info = am.solve(
            A, np.array([0.0, 0, 0, 1]), ksp="cg", pc=pc, rtol=1e-10, options="-pc_factor_shift_type positive_definite"
        )
    assert np.allclose(KERSHAW @ x, [0, 0, 0, 1]) and "shifted" in info.preconditioner
    assert any("the diagonal was enlarged by up to" in r.message for r in caplog.records)
    with pytest.raises(am.InputError, match="pivot of row 0 is 0 even with a diagonal that is"):
        am.solve(
            sp.csr_array(KERSHAW - 3 * np.eye(4)),
            np.ones(4),
            ksp="gmres",
            pc=pc,
            options="-pc_factor_shift_type positive_definite",
        )


@pytest.mark.parametrize("name", ["bcsstk13", "bcsstk38", "ex15"])
def test_real_matrices_that_need_it(data, name):
    A = am.read_matrix(data / f"{name}.mtx.gz")
    b = A @ np.ones(A.shape[0])
    _, info = am.solve(A, b, ksp="cg", pc="icc", rtol=1e-8, options="-pc_factor_shift_type positive_definite")
    assert info.converged and info.iterations < 500


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_schwarz_is_the_sum_of_its_subdomains(on_ranks, n):
    on_ranks(
        n,
        """
def check(S, cuts, dtype):
    N = S.shape[0]
    lo, hi = cuts[rank], cuts[rank + 1]
    A = am.Matrix.from_scipy(S[lo:hi].astype(dtype), comm)
    tol = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    r = np.random.default_rng(1)
    x = (r.standard_normal((N, 2)) + 1j * r.standard_normal((N, 2))).astype(dtype)
    for overlap in (0, 1, 2, 5):
        for kind in ("restrict", "basic"):
            M = np.zeros((N, N), complex)
            for k in range(size):
                inside = np.zeros(N, bool)
                inside[cuts[k]:cuts[k + 1]] = True
                own = inside.copy()
                for _ in range(overlap):
                    inside |= (abs(S[inside]).sum(axis=0) != 0) if inside.any() else False
                at = np.flatnonzero(inside)
                if not len(at): continue
                local = np.zeros((N, N), complex)
                local[np.ix_(at, at)] = np.linalg.inv(S[at][:, at].toarray().astype(complex))
                if kind == "restrict": local[~own] = 0
                M += local
            solver = am.Solver(A, f"-pc_type asm -pc_asm_overlap {overlap} -pc_asm_type {kind} -sub_pc_type lu", ksp="gmres")
            got = solver.preconditioner
            for v in (x, x[:, 0]):
                assert np.allclose(got @ v[lo:hi], (M @ v)[lo:hi], rtol=tol, atol=tol), (overlap, kind)
                assert np.allclose(got.rmatvec(v[lo:hi]), (M.conj().T @ v)[lo:hi], rtol=tol, atol=tol), ("adjoint", overlap, kind)
            b = (A @ x[lo:hi, 0]).astype(dtype)
            y = solver.solve(b)
            queued = am.Solver(A, f"-pc_type asm -pc_asm_overlap {overlap} -pc_asm_type {kind} -sub_pc_type lu -queue thread", ksp="gmres").solve(b)
            assert np.array_equal(y, queued)
S = sp.random_array((40, 40), density=0.06, rng=np.random.default_rng(3))
S = (S + sp.diags_array(np.full(40, 3.0))).tocsr()
even = [40 * k // size for k in range(size + 1)]
for dtype in ("float32", "float64", "complex64", "complex128"):
    check(S, even, dtype)
check((S * (1 + 0.5j)).tocsr(), even, "complex128")
check(S, [0] + [40] * size, "float64")  # empty ranks
# iterations fall with the overlap, and the values may change
A = am.gallery.poisson((40, 40), comm)
b = np.ones(A.local_shape[0])
its = []
for overlap in (0, 1, 4):
    solver = am.Solver(A, f"-pc_type asm -pc_asm_overlap {overlap} -sub_pc_type lu", ksp="gmres", rtol=1e-8)
    solver.solve(b)
    its.append(solver.info.iterations)
assert size == 1 or its[0] > its[1] > its[2], its
ilu = am.Solver(A, "-pc_type asm", ksp="gmres", rtol=1e-8)
x = ilu.solve(b)
ilu.update(A.with_values(2 * A.to_scipy().data))
assert ilu.reused and np.allclose(2 * ilu.solve(b), x, rtol=1e-6)
x, info = am.solve(A, b, options="-pc_type asm -pc_asm_type basic -sub_pc_type icc", ksp="cg", rtol=1e-8)
assert info.converged
text = message(lambda: am.Solver(am.gallery.poisson((4, 4), comm), "-pc_type asm -pc_asm_overlap -1"))
assert "pc_asm_overlap" in text
""",
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        "ilu",
        "ilu -pc_factor_levels 2",
        "icc",
        "ilut -pc_ilut_drop 0.01",
        "sor",
        "sor -pc_sor_symmetric 0 -pc_sor_its 2",
    ],
)
def test_levels_of_rows_give_the_same_bits(rng, dtype, columns, options):
    # patterns that are not symmetric, rows that need nothing, and matrices whose every row needs the one before
    chain = sp.diags_array([np.full(49, -1.0), np.full(50, 4.0)], offsets=[-1, 0])
    scattered = sp.random_array((300, 300), density=0.02, rng=rng) + 5 * sp.eye_array(300)
    for S in (
        chain,
        scattered,
        am.gallery.convection_diffusion((15, 16), (8.0, -3.0)).to_scipy(),
        sp.eye_array(7),
        sp.csr_array((0, 0)),
    ):
        A = S.tocsr().astype(dtype)
        if np.dtype(dtype).kind == "c":
            A.data *= np.exp(1j * rng.uniform(0, 0.3, A.nnz)).astype(dtype)
        M = am.Matrix.from_scipy(A)
        b = rng.standard_normal((A.shape[0], columns)).astype(dtype)
        name = "pc_sor_order" if options.startswith("sor") else "pc_factor_order"
        natural, levels = (operator(M, f"-pc_type {options} -{name} {order}") for order in ("natural", "levels"))
        assert np.array_equal(natural @ b, levels @ b), (S.shape, options)
        assert np.allclose(natural.rmatvec(b), levels.rmatvec(b))
        told = am.Solver(M, f"-pc_type {options} -{name} levels", ksp="gmres").view()
        assert A.shape[0] == 0 or ", by " in told, told


def test_levels_on_ranks_and_after_an_update(on_ranks):
    on_ranks(
        3,
        """
import os
from asterism import _core
_core.set_team_size(2)
A = am.gallery.elasticity((6, 7, 8), comm)
for pc, name in (("ilu", "factor"), ("ilu -pc_factor_levels 1", "factor"), ("icc", "factor"), ("sor", "sor")):
    found = []
    for order in ("natural", "levels"):
        s = am.Solver(A, ksp="cg", rtol=1e-8, options=f"-pc_type {pc} -pc_{name}_order {order}")
        x = s.solve(np.ones(A.local_shape[0]))
        first = s.info.residual_norms
        B = A.with_values(2.5 * A.to_scipy().data)
        s.update(B)
        y = s.solve(np.ones(A.local_shape[0]))
        found.append((x, y, first, s.info.residual_norms))
    assert all(np.array_equal(p, q) for p, q in zip(*found)), pc
    assert np.allclose(found[0][0], 2.5 * found[0][1], rtol=1e-5)
""",
    )


def test_scipy_takes_matrices_and_preconditioners():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    A = am.gallery.poisson((30, 30))
    S, b = A.to_scipy(), np.random.default_rng(0).standard_normal((900, 2))
    M = am.Solver(A, ksp="cg", pc="amg").preconditioner
    steps = []
    x, info = linalg.cg(A, b[:, 0], rtol=1e-10, M=M, callback=steps.append)
    assert info == 0 and len(steps) < 20 and np.linalg.norm(S @ x - b[:, 0]) <= 1e-8
    want = np.sort(2 - 2 * np.cos(np.pi * np.arange(1, 31) / 31))
    want = np.sort(np.add.outer(want, want).ravel())
    got, _ = linalg.lobpcg(A, b, M=M, largest=False, tol=1e-8, maxiter=60)
    assert np.allclose(np.sort(got), want[:2], rtol=1e-6)
    assert np.allclose(linalg.eigsh(A, k=2, which="LM", return_eigenvectors=False), want[-2:])
    assert np.allclose(linalg.aslinearoperator(M).matmat(b), M @ b) and M.matmat(b).shape == (900, 2)


@pytest.mark.parametrize("pc", ["ilu", "sor"])
def test_a_preconditioner_has_the_adjoint(pc):
    S = sp.diags_array([1.0, 4.0, 2.0], offsets=[-1, 0, 1], shape=(60, 60))
    solver = am.Solver(S, ksp="gmres", pc=pc)
    M = solver.preconditioner
    dense = M @ np.eye(60)
    assert M.shape == (60, 60) and np.allclose(M.rmatvec(np.eye(60)), dense.T)
    solver.update(2 * solver.A)
    assert np.allclose(solver.preconditioner @ np.eye(60), dense / 2)


def test_the_preconditioner_of_a_stencil_takes_its_points():
    i, j = am.stencil.indices(2)
    u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
    value = 4 * u(i, j) - u(i + 1, j) - u(i - 1, j) - u(i, j + 1) - u(i, j - 1)
    L = am.stencil.operator(am.stencil.assign(out(i, j), value), shape=(21, 13))
    M = am.Solver(L, ksp="cg", pc="gmg").preconditioner
    b = np.random.default_rng(0).standard_normal((21, 13))
    assert M.shape == (273, 273) and (M @ b).shape == b.shape and np.array_equal((M @ b.ravel()), (M @ b).ravel())
    x, info = am.solve(L, b, M=M, ksp="cg", rtol=1e-10)
    assert info.iterations < 20 and np.linalg.norm(L @ x - b) <= 1e-9 * np.linalg.norm(b)
    assert np.isclose(np.vdot(M @ b, x), np.vdot(b, M.rmatvec(x)))
