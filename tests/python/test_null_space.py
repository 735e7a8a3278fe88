"""Singular systems: what is projected out by itself, and what the user gives (null_space=)."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

SPRINGS = """
def springs(length):
    '''A cube of elastic springs that nothing holds, and where its points are.'''
    grid = np.stack(np.meshgrid(*[np.arange(float(length))] * 3, indexing="ij"), -1).reshape(-1, 3)
    n = len(grid)
    S = sp.lil_array((3 * n, 3 * n))
    for i in range(n):
        for j in range(i + 1, n):
            d = grid[j] - grid[i]
            if d @ d > 3.1: continue
            K = np.outer(d, d) / (d @ d)
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                S[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += sign * K
    return S, grid
"""
FREE_BODY = (
    SPRINGS
    + """
def free_body(dtype="float64"):
    '''A body of elastic springs that nothing holds: six rigid-body modes, and coordinates.'''
    S, grid = springs(4)
    n = len(grid)
    x, y, z = grid.T
    modes = np.zeros((n, 3, 6))
    modes[:, 0, 0] = modes[:, 1, 1] = modes[:, 2, 2] = 1
    modes[:, 0, 3], modes[:, 1, 3] = -y, x
    modes[:, 1, 4], modes[:, 2, 4] = -z, y
    modes[:, 0, 5], modes[:, 2, 5] = z, -x
    return S.tocsr().astype(dtype), modes.reshape(3 * n, 6).astype(dtype), grid
S, Z, grid = free_body()
Q = np.linalg.qr(Z)[0]
f = np.cos(np.arange(len(Z)))
"""
)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_free_body(on_ranks, n):
    on_ranks(
        n,
        FREE_BODY
        + """
A = am.Matrix.from_scipy(S, comm, distribute=True, block_size=3)
mine = slice(*A.row_range)
inside = f - Q @ (Q.T @ f)
for pc in ("amg", "jacobi", "none"):
    for b in (inside, f):                            # f has a part that no x reaches: it is left out, and said
        solver = am.Solver(A, ksp="cg", pc=pc, rtol=1e-9, null_space=Z[mine])
        x = np.concatenate(comm.allgather(solver.solve(b[mine])))
        assert solver.info.converged and np.linalg.norm(inside - S @ x) <= 2e-9 * np.linalg.norm(f), (pc, solver.info)
        assert np.abs(Q.T @ x).max() < 1e-8 * np.linalg.norm(x), pc
        assert any("null space of 6 dimension(s)" in note for note in solver.info.notes), (pc, solver.info.notes)
    two = am.Solver(A, ksp="cg", pc=pc, rtol=1e-9, null_space=Z[mine])
    X = two.solve(np.stack([f, -2 * f], 1)[mine])
    assert np.allclose(X[:, 1], -2 * X[:, 0], rtol=1e-6, atol=1e-6 * np.abs(X).max()), pc
# the coordinates are enough: rigid-body modes are tried
B = am.Matrix.from_scipy(S, comm, distribute=True, coordinates=grid)
x, info = am.solve(B, inside[mine], ksp="cg", pc="amg", rtol=1e-9)
assert info.converged and any("null space of 6" in note for note in info.notes), info.notes
""",
    )


@pytest.mark.parametrize("n", [1, 2])
def test_what_is_no_null_space_is_refused(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.poisson((9, 9), comm, neumann=True)
m = A.local_shape[0]
rng = np.random.default_rng(rank)
text = message(lambda: am.Solver(A, null_space=rng.standard_normal(m)))
assert "null_space: A times column 0" in text and "near_null_space" in text, text
z = np.ones((m, 2)); z[:, 1] = np.arange(m)
assert "column 1" in message(lambda: am.Solver(A, null_space=z))
bad = np.ones(m)
if rank == size - 1: bad[2] = np.nan
assert "NaN" in message(lambda: am.Solver(A, null_space=bad))
assert "null_space" in message(lambda: am.Solver(A, null_space=np.ones(m + (rank == size - 1))))
x, info = am.solve(A, np.cos(np.arange(m)), null_space=np.ones((m, 2)), ksp="cg", pc="amg")  # one of two is enough
assert info.converged
""",
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_not_hermitian(dtype):
    """Rows sum to zero, columns do not: x is free by a constant, and b must be in the range."""
    n = 40
    S = (sp.diags_array([-1.3 * np.ones(n - 1), np.zeros(n), -0.7 * np.ones(n - 1)], offsets=[-1, 0, 1])).tolil()
    S.setdiag(-S.sum(1))
    S = S.tocsr().astype(dtype)
    want = np.cos(np.arange(n)).astype(dtype)
    b = S @ want
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-9
    x, info = am.solve(S, b, ksp="gmres", pc="jacobi", rtol=tolerance, null_space=np.ones(n, dtype))
    assert info.converged and np.linalg.norm(b - S @ x) <= 1.1 * tolerance * np.linalg.norm(b)
    assert any("kept out of x" in note for note in info.notes)
    assert abs(x.sum()) < 1e-3 * np.abs(x).sum()


NEUMANN = """
def neumann(*shape):
    A = sp.csr_array((1, 1))
    for n in shape:
        d = sp.diags_array([-np.ones(n - 1), np.r_[1, 2 * np.ones(n - 2), 1], -np.ones(n - 1)], offsets=[-1, 0, 1])
        A = sp.kron(A, sp.eye_array(n)) + sp.kron(sp.eye_array(A.shape[0]), d)
    return sp.csr_array(A)
def check(S, most, options="", comm=None):
    A = am.Matrix.from_scipy(S, comm, distribute=comm is not None)
    b = (S @ np.random.default_rng(0).standard_normal(S.shape[0]))[slice(*A.row_range)]
    solver = am.Solver(A, f"-ksp_type cg -pc_type amg -ksp_rtol 1e-8 {options}")
    for _ in range(2):
        solver.solve(b)
        assert solver.info.converged and solver.info.iterations <= most, (S.shape, options, solver.info)
        solver.update(A)
"""


@pytest.mark.parametrize("options", ["", "-pc_amg_type classical", "-pc_amg_agg_type mis2"])
@pytest.mark.parametrize("shape", [(256, 256), (303, 211), (3, 10007), (100003,), (27, 25, 31)])
def test_neumann_problems_of_any_size_by_amg(shape, options):
    names = {"am": am, "np": np, "sp": sp}
    exec(NEUMANN, names)
    names["check"](names["neumann"](*shape), 30, options)


@pytest.mark.parametrize("options", ["", "-pc_amg_type classical"])
def test_the_last_level_of_a_neumann_problem_has_few_rows(options):
    names = {"am": am, "np": np, "sp": sp}
    exec(NEUMANN, names)
    for n in (4, 9, 17, 33, 50, 500, 3000):
        for rows in (1, 2, 3, 4, 10):
            names["check"](names["neumann"](n), 25, f"-pc_amg_coarse_size {rows} {options}")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_neumann_problems_that_are_not_connected(on_ranks, ranks):
    script = """
S = sp.csr_array(sp.block_diag([neumann(120, 130), neumann(7), sp.eye_array(3), neumann(200), neumann(31, 41)]))
check(S, 25, comm=comm)
check(neumann(256, 256), 20, comm=comm)
# vectors of the user, and a rank without rows
S = neumann(90, 80)
mine = S.shape[0] if comm.rank == 0 else 0
A = am.Matrix.from_scipy(S if comm.rank == 0 else S[:0], comm, near_null_space=np.ones((mine, 1))) if comm.size > 1 else am.Matrix.from_scipy(S)
b = (S @ np.random.default_rng(0).standard_normal(S.shape[0]))[:mine]
solver = am.Solver(A, "-ksp_type cg -pc_type amg -ksp_rtol 1e-8")
solver.solve(b)
assert solver.info.iterations <= 20, solver.info
check(neumann(40, 40).astype(complex), 20, comm=comm)
print("done", flush=True)
"""
    assert on_ranks(ranks, NEUMANN + script).count("done") == ranks


METHODS = ["cg amg", "gmres amg", "minres jacobi", "cg jacobi", "preonly lu", "preonly cholesky", "gmres lu"]


def insulated(n=30):
    """A grid of n x n points without flux through the ends."""
    L = sp.diags_array([-np.ones(n - 1), np.r_[1, 2 * np.ones(n - 2), 1], -np.ones(n - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.kron(L, sp.eye_array(n)) + sp.kron(sp.eye_array(n), L))


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("size", [1, 50])
def test_weak_couplings_of_coarse_levels_leave_the_null_space(parts, size):
    """Lumped as they were, they made the coarse matrix regular: its inverse had the null vector with a factor of 1e5."""
    one = am.gallery.poisson((17, 13), neumann=True).to_scipy()
    A = sp.block_diag([one] * parts).tocsr()
    b = np.random.default_rng(3).standard_normal((parts, 221))
    b = (b - b.mean(axis=1, keepdims=True)).ravel()
    solver = am.Solver(A, f"-pc_type amg -pc_amg_agg_type mis2 -pc_amg_coarse_size {size}", ksp="cg", rtol=1e-10)
    x = solver.solve(b)
    assert f"{parts} singular direction(s) left out" in solver.view()
    assert np.linalg.norm(A @ x - b) <= 1e-10 * np.linalg.norm(b)
    assert abs(x.reshape(parts, 221).mean(axis=1)).max() < 1, "of the size of x"


@pytest.mark.parametrize("method", METHODS)
def test_right_hand_sides_near_the_null_space(method):
    """What is left of b has the rounding of all of it."""
    S = insulated()
    ksp, pc = method.split()
    r = np.random.default_rng(0).standard_normal(900)
    r -= r.mean()
    for part in (0.03, 1e-7, 1e-10, 1e-14):
        b = 1 + part * r
        x, info = am.solve(S, b, ksp=ksp, pc=pc, rtol=1e-8)
        left = b - 1.0  # exact
        left -= left.mean()
        assert np.linalg.norm(left - S @ x) <= 2e-8 * np.linalg.norm(left) + 1e-14
        assert any("not in the range" in note for note in info.notes)
    x, info = am.solve(S, np.ones(900), ksp=ksp, pc=pc, rtol=1e-8)
    assert (
        info.converged
        and np.linalg.norm(x) < 1e-12
        and any("1.0 of ||b||" in note or "1 of ||b||" in note for note in info.notes)
    )
    both, info = am.solve(S, np.stack([r, np.ones(900)], 1), ksp=ksp, pc=pc, rtol=1e-8)
    assert info.converged and np.linalg.norm(S @ both[:, 0] - r) <= 2e-8 * np.linalg.norm(r)


@pytest.mark.parametrize("method", ["cg jacobi", "gmres none", "preonly lu"])
def test_constants_that_are_no_null_vector_are_refused(method):
    ksp, pc = method.split()
    with pytest.raises(am.InputError, match="A times column 0 is"):
        am.Solver(am.gallery.poisson((30, 30)), "-ksp_null_space constant", ksp=ksp, pc=pc)
    assert am.Solver(insulated(), "-ksp_null_space constant", ksp=ksp, pc=pc).solve(np.ones(900)).max() < 1e-12


def periodic(n, shift, dtype):
    """u - laplace(u) and the like on the periodic unit square: the shift is far below ||A||, and the matrix regular."""
    T = 2 * sp.eye_array(n, format="lil")
    for i in range(n):
        T[i, (i + 1) % n] = T[i, (i - 1) % n] = -1
    T, one = T.tocsr(), sp.eye_array(n)
    return sp.csr_array((sp.kron(T, one) + sp.kron(one, T)) * n * n + shift * sp.eye_array(n * n)).astype(dtype)


@pytest.mark.parametrize("pc", ["lu", "cholesky", "amg", "jacobi", "icc"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_regular_matrix_is_not_taken_for_singular(pc, dtype):
    """||A 1|| is 64 epsilon ||A||, in all rows alike; the condition number is 1e5."""
    S = periodic(128, 1, dtype)
    b = np.ones(128**2, dtype)
    ksp = "preonly" if pc in ("lu", "cholesky") else "cg"
    x, info = am.solve(S, b, ksp=ksp, pc=pc, rtol=2e-2)
    assert abs(x - 1).max() < 0.05 and not any("null space" in note for note in info.notes), info.notes


def test_a_regular_matrix_in_float64():
    S = am.gallery.poisson((64, 64), neumann=True).to_scipy() + 3e-14 * sp.eye_array(4096)
    for pc in ("lu", "cholesky"):
        x = am.solve(S, 3e-14 * np.ones(4096), ksp="preonly", pc=pc, rtol=1e-3)[0]
        assert abs(x - 1).max() < 0.5
    small = periodic(24, 0, "float64") + 2e-11 * sp.eye_array(576)
    x = am.solve(small, 2e-11 * np.ones(576), ksp="preonly", pc="lu", options="-pc_lu_type dense", rtol=1e-3)[0]
    assert abs(x - 1).max() < 0.5


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_regular_stencil(on_ranks, ranks):
    script = """
i, j = am.stencil.indices(2)
u, out = (am.stencil.grid(n, 2) for n in ("u", "out"))
h = am.stencil.constant("h")
near = u(i + 1, j) + u(i - 1, j) + u(i, j + 1) + u(i, j - 1)
screened = am.stencil.assign(out(i, j), (4 * u(i, j) - near) / (h * h) + u(i, j))
L = am.stencil.operator(screened, (128, 128), True, comm, h=1 / 128, dtype="float32")
x, info = am.solve(L, np.ones(L.local_grid_shape, "f"), ksp="cg", pc="gmg", rtol=2e-2)
assert abs(x - 1).max() < 0.05, (x.min(), x.max())
print("REGULAR")
"""
    assert on_ranks(ranks, script).count("REGULAR") == ranks


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("pc", ["lu", "cholesky", "amg"])
def test_rounding_in_the_rows_is_no_shift(pc, dtype):
    """Couplings that differ by six orders of magnitude, each diagonal entry the sum of the rounded ones."""
    S = am.gallery.diffusion((40, 40), contrast=1e6).to_scipy()
    S = sp.csr_array(S - sp.diags_array(S.diagonal())).astype(dtype)
    S = S - sp.diags_array(np.asarray(S.sum(axis=1)).ravel().astype(dtype))
    notes = am.Solver(S.astype(dtype), ksp="cg" if pc == "amg" else "preonly", pc=pc)._h.notes()
    assert any("null space" in note for note in notes), notes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "weight"), [(700, 0.1), (1000, 0.3)])
def test_sums_of_many_equal_entries_are_biased(dtype, n, weight):
    """Each row's sum is rounded in the same direction: the matrix is singular all the same."""
    S = np.full((n, n), -weight, dtype)
    np.fill_diagonal(S, (n - 1) * weight)
    for pc, options in (("lu", "-pc_lu_type dense"), ("lu", "-pc_lu_type sparse"), ("jacobi", "")):
        notes = am.Solver(S, options, ksp="gmres", pc=pc)._h.notes()
        assert any("null space" in note for note in notes), (pc, options, notes)
