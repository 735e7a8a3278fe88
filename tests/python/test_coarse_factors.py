"""amg's last level by sparse factors, where a dense inverse would be too large."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def last_level(s):
    return [line for line in s.view().splitlines() if line.strip()[:1].isdigit()][-1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("ksp, problem", [("cg", "poisson"), ("gmres", "convection")])
def test_the_factors_solve_the_last_level(dtype, ksp, problem, rng):
    A = (
        am.gallery.poisson((150, 150), dtype=dtype)
        if problem == "poisson"
        else am.gallery.convection_diffusion((150, 150), (40.0, -9.0), dtype=dtype)
    )
    b = rng.standard_normal((22500, 2)).astype(dtype)
    rtol = 1e-3 if dtype in ("float32", "complex64") else 1e-10
    its = {}
    for size in (500, 20000):
        s = am.Solver(A, ksp=ksp, pc="amg", rtol=rtol, pc_amg_coarse_size=size)
        assert ("lu (sparse, " in last_level(s)) == (size == 20000), s.view()
        for _ in range(2):
            x = s.solve(b)
            assert s.info.converged
            assert np.linalg.norm(b - A.to_scipy() @ x) <= 1.1 * rtol * np.linalg.norm(b)
            its[size] = s.info.iterations
            s.update(A.with_values(A.to_scipy().data * 1))
        if ksp == "gmres":
            s.solve_transpose(b[:, 0].copy(), conjugate=True)
            assert s.info.converged
    assert its[20000] <= its[500] + 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_one_level_is_a_direct_solve(dtype):
    A = am.gallery.poisson((50, 50), dtype=dtype)
    s = am.Solver(A, ksp="richardson", pc="amg", rtol=1e-3, pc_amg_max_levels=1)
    s.solve(np.ones(2500, dtype))
    assert "lu (sparse, 2500 rows" in last_level(s) and s.info.iterations <= 2


def test_ill_conditioned_levels_are_factored_as_wide_as_needed():
    more = {"ksp": "cg", "pc": "amg", "rtol": 1e-8, "pc_amg_coarse_size": 8000, "pc_amg_max_levels": 2}
    its = []
    for size, wide, levels in (((150, 147), False, "auto"), ((14000,), True, "auto"), ((14000,), False, "float64")):
        A = am.gallery.poisson(size)
        s = am.Solver(A, **more, pc_amg_dtype=levels)
        s.solve(np.ones(A.shape[0]))
        its.append(s.info.iterations)
        assert ("in float64" in last_level(s)) == wide and "lu (sparse" in last_level(s), s.view()
    assert abs(its[1] - its[2]) <= 3  # the condition number of the last level is about 1e7


def test_singular_levels_leave_constants_out():
    S = am.gallery.poisson((55, 50)).to_scipy()
    A = sp.csr_array(S - sp.diags_array(np.asarray(S.sum(axis=1)).ravel()))
    b = np.arange(2750) - 2749 / 2
    s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-10, pc_amg_max_levels=1)
    x = s.solve(b)
    assert s.info.converged and np.linalg.norm(b - A @ x) <= 1e-9 * np.linalg.norm(b)
    n = 2500  # and what is not constant: D A D, whose null vector is 1 / d
    A = A[:n][:, :n]
    A = sp.csr_array(A - sp.diags_array(np.asarray(A.sum(axis=1)).ravel()))
    d = sp.diags_array(1 + 0.5 * np.cos(np.arange(n)))
    B = sp.csr_array(d @ A @ d)
    z = 1 / d.diagonal()
    b = np.sin(np.arange(n))
    b -= z * (z @ b) / (z @ z)
    s = am.Solver(B, ksp="cg", pc="amg", rtol=1e-8, pc_amg_max_levels=1, null_space=z)
    x = s.solve(b)
    assert s.info.converged and np.linalg.norm(b - B @ x) <= 1e-7 * np.linalg.norm(b)


@pytest.mark.parametrize("n", [2, 3])
def test_on_ranks(on_ranks, n):
    on_ranks(
        n,
        """
for dtype in ("float32", "float64", "complex64", "complex128"):
    for rows_per_rank in (0, 50):
        A = am.gallery.poisson((120, 120), comm, dtype=dtype)
        b = A.make_vector(fill=1.0)
        rtol = 1e-3 if dtype in ("float32", "complex64") else 1e-9
        s = am.Solver(A, ksp="cg", pc="amg", rtol=rtol, pc_amg_max_levels=2, pc_amg_coarse_size=20000,
                      pc_amg_coarse_rows_per_rank=rows_per_rank, pc_amg_threshold=0.0)
        s.solve(b)
        assert s.info.converged
    # on one level, and with a rank that has no rows
    S = am.gallery.poisson((50, 50)).to_scipy().astype(dtype)
    ends = [0, *([0] if size == 2 else [900, 900]), 2500][: size + 1]
    lo, hi = ends[rank], ends[rank + 1]
    A = am.Matrix.from_scipy(S[lo:hi], comm=comm)
    s = am.Solver(A, ksp="richardson", pc="amg", rtol=1e-3, pc_amg_max_levels=1)
    s.solve(np.ones(hi - lo, dtype))
    assert "lu (sparse, 2500 rows" in s.view() and s.info.iterations <= 2, s.view()
""",
    )
