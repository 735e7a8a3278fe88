"""Singular matrices of several connected components: a null vector for each component that has one."""

# ruff: noqa: F821  (names of PARTS, which scripts on ranks have too)

import re

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import QUEUES
from test_null_space import SPRINGS

import asterism as am

PARTS = """
def neumann(*shape):
    '''The Laplacian of a grid of these lengths without flux through its ends.'''
    A = sp.csr_array((1, 1))
    for n in shape:
        end = np.r_[1, 2 * np.ones(n - 2), 1]
        d = sp.diags_array([-np.ones(n - 1), end, -np.ones(n - 1)], offsets=[-1, 0, 1])
        A = sp.kron(A, sp.eye_array(n)) + sp.kron(sp.eye_array(A.shape[0]), d)
    return sp.csr_array(A)
def dirichlet(n):
    return sp.csr_array(sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]))
def together(parts, mixed=False, dtype="float64"):
    '''A matrix of these parts; mixed: its rows in a random order, so that parts cross ranks.'''
    S = sp.csr_array(sp.block_diag(parts))
    if mixed:
        p = np.random.default_rng(5).permutation(S.shape[0])
        S = sp.csr_array(S[p][:, p])
    return S.astype(dtype)
def right_side(S, consistent, dtype="float64"):
    rng = np.random.default_rng(7)
    v = rng.standard_normal(S.shape[0])
    if np.dtype(dtype).kind == "c":
        v = v + 1j * rng.standard_normal(S.shape[0])
    return (S @ v if consistent else v).astype(dtype)
def least(S, b):
    '''The solution of least norm of the nearest consistent system.'''
    wide = np.result_type(S.dtype, "float64")
    return np.linalg.lstsq(S.toarray().astype(wide), b.astype(wide), rcond=1e-6)[0]
"""
exec(PARTS)
METHODS = ["cg amg", "cg jacobi", "minres jacobi", "gmres amg", "preonly lu", "preonly cholesky", "auto auto"]
CASES = {
    "two": lambda: [neumann(9, 8), neumann(20)],
    "five": lambda: [neumann(12, 5), neumann(7), neumann(4, 3, 5), neumann(2), neumann(31)],
    "with Dirichlet": lambda: [neumann(9, 8), dirichlet(13), neumann(20), sp.eye_array(3)],
    "one beside Dirichlet": lambda: [dirichlet(40), neumann(11, 4)],
    "of other sizes": lambda: [neumann(9, 8), 1e-14 * dirichlet(5), 1e6 * neumann(17)],
}


def solved(S, b, method, rtol=1e-10, options=None, **keywords):
    ksp, pc = method.split()
    return am.solve(S, b, ksp=ksp, pc=pc, rtol=rtol, options=options, **keywords)


def note_of(info):
    return next((note for note in info.notes if "null space" in note and "removed" not in note), "")


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["two", "five", "with Dirichlet", "one beside Dirichlet"])
def test_the_solution_of_least_norm(name, method, consistent, mixed):
    S = together(CASES[name](), mixed)
    b = right_side(S, consistent)
    x, info = solved(S, b, method)
    want = least(S, b)
    assert info.converged and np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want), info
    assert any("not in the range" in note for note in info.notes) != consistent


@pytest.mark.parametrize(
    ("name", "dimensions", "parts"),
    [("two", 2, "2 of the 2"), ("with Dirichlet", 2, "2 of the 6"), ("one beside Dirichlet", 1, "1 of the 2")],
)
def test_what_is_said(name, dimensions, parts):
    S = together(CASES[name](), True)
    solver = am.Solver(S, ksp="cg", pc="amg", rtol=1e-8)
    said = f"a null space of {dimensions} dimension(s), in {parts} connected components of the matrix, is projected out"
    assert said in solver.view()
    solver.solve(right_side(S, False))
    assert said in solver.info.notes


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("method", ["cg amg", "cg jacobi", "minres jacobi", "preonly lu", "preonly cholesky"])
def test_dtypes(dtype, method):
    S = together(CASES["five"]() + [dirichlet(6)], True, dtype)
    b = right_side(S, False, dtype)
    single = np.finfo(dtype).eps > 1e-10
    x, info = solved(S, b, method, 1e-5 if single else 1e-10)
    want = least(S, b)
    assert x.dtype == dtype and np.linalg.norm(x - want) <= (2e-2 if single else 1e-6) * np.linalg.norm(want)
    assert "in 5 of the 6" in note_of(info)


def test_complex_null_vectors():
    """Each unknown with a phase of its own: the null vectors are not constant, and the user gives the sum of all."""
    S = together([neumann(8, 7), neumann(15)], True)
    phase = np.exp(1j * np.arange(S.shape[0]))
    D = sp.diags_array(phase)
    S = sp.csr_array(D @ S @ D.conj())
    b = right_side(S, False, "complex128")
    x, info = solved(S, b, "cg jacobi", null_space=phase)
    want = least(S, b)
    assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want) and "2 dimension(s), in 2 of the 2" in note_of(info)


@pytest.mark.parametrize("method", ["cg amg", "cg jacobi", "preonly lu", "auto auto"])
def test_parts_are_judged_by_their_own_size(method):
    """Beside large entries, those of a Dirichlet part may be below rounding: it is regular all the same."""
    S = together(CASES["of other sizes"](), True)
    values = S @ np.random.default_rng(0).standard_normal(S.shape[0])
    ksp, pc = method.split()
    solver = am.Solver(S, ksp=ksp, pc=pc, rtol=1e-10)
    assert "in 2 of the 3" in solver.view()
    solver.solve(values)


@pytest.mark.parametrize("method", ["cg amg", "cg jacobi", "preonly lu"])
def test_as_many_components_as_are_taken_apart(method):
    S = together([neumann(3 + k % 4) for k in range(64)], True)
    b = right_side(S, False)
    x, info = solved(S, b, method)
    want = least(S, b)
    assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want) and "64 dimension(s), in 64 of the 64" in note_of(
        info
    )


def test_more_components_than_are_taken_apart():
    """As before: the constant vector alone; a note says why. Parts without a null vector do not count."""
    S = together([neumann(3 + k % 4) for k in range(65)], True)
    solver = am.Solver(S, ksp="cg", pc="jacobi", rtol=1e-10)
    assert "65 connected components of the matrix have null vectors of their own, more than the 64" in solver.view()
    assert "the constant vector is in the null space" in solver.view()
    b = right_side(S, True)
    x = solver.solve(b)
    assert np.linalg.norm(S @ x - b) <= 1e-8 * np.linalg.norm(b)
    b = right_side(S, False)
    with pytest.raises(
        am.ConvergenceError, match="65 connected components of the matrix are singular, too many to take apart"
    ):
        solver.solve(b)
    assert np.allclose(am.least_squares(S, b)[0], least(S, b), atol=1e-6)
    S = together([neumann(3), neumann(4)] + [dirichlet(2 + k % 5) for k in range(100)] + [sp.eye_array(100)], True)
    b = right_side(S, False)
    x, info = solved(S, b, "cg amg")
    assert "in 2 of the 202" in note_of(info) and np.allclose(x, least(S, b), atol=1e-7)


def test_given_vectors_are_taken_apart():
    S = together(CASES["two"](), True)
    b = right_side(S, False)
    want = least(S, b)
    n = S.shape[0]
    first = (sp.csgraph.connected_components(S)[1] == 0).astype(float)
    for given in (np.ones(n), np.stack([first, 1 - first], 1), np.stack([np.ones(n), first], 1)):
        x, info = solved(S, b, "cg jacobi", null_space=given)
        assert "2 dimension(s), in 2 of the 2" in note_of(info)
        assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want)
    x, info = solved(S, b, "cg jacobi", options="-ksp_null_space constant")
    assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want)
    one = am.Solver(S, ksp="cg", pc="jacobi", null_space=first)  # of one component: the other one keeps its null vector
    assert "1 dimension(s), in 1 of the 2" in one.view()
    with pytest.raises(am.InputError, match="A times column 0"):
        am.Solver(together(CASES["with Dirichlet"]()), null_space=np.ones(108))


def test_not_hermitian():
    """Rows sum to zero, columns do not: x is free by a constant in each part."""
    parts = []
    for n in (20, 31):
        T = sp.diags_array([-1.3 * np.ones(n - 1), np.zeros(n), -0.7 * np.ones(n - 1)], offsets=[-1, 0, 1]).tolil()
        T.setdiag(-T.sum(1))
        parts.append(T.tocsr())
    S = together(parts)
    b = S @ np.cos(np.arange(51.0))
    x, info = solved(S, b, "gmres jacobi", 1e-9, null_space=np.ones(51))
    assert np.linalg.norm(b - S @ x) <= 1.1e-9 * np.linalg.norm(b)
    assert abs(x[:20].sum()) < 1e-8 and abs(x[20:].sum()) < 1e-8 and "in 2 of the 2" in note_of(info)


def test_isolated_unknowns():
    """An empty row is an error, as ever. Whoever switches the look off and gives the null space may have some."""
    S = together([neumann(9, 8), sp.csr_array((1, 1)), neumann(5), sp.csr_array((1, 1))])
    with pytest.raises(am.InputError, match="row 72 of the matrix is empty"):
        am.solve(S, np.ones(S.shape[0]), ksp="cg", pc="jacobi")
    b = right_side(S, False)
    options = "-ksp_check_input false"
    x, info = solved(S, b, "cg none", options=options, null_space=np.ones(S.shape[0]))
    want = least(S, b)
    assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want) and x[72] == x[78] == 0
    # entries that are stored and zero couple nothing
    T = together([neumann(9, 8), neumann(5)])
    full = sp.csr_array(
        (np.r_[T.data, 0.0, 0.0], (np.r_[T.tocoo().row, 3, 74], np.r_[T.tocoo().col, 74, 3])), shape=T.shape
    )
    assert full.nnz == T.nnz + 2
    solver = am.Solver(full, ksp="cg", pc="jacobi")
    assert "2 dimension(s), in 2 of the 2" in solver.view()


def test_a_connected_matrix_is_as_before():
    solver = am.Solver(neumann(12, 13), ksp="cg", pc="amg")
    assert "the constant vector is in the null space (a pure Neumann problem?): it is projected out" in solver.view()
    solver = am.Solver(together([dirichlet(30), dirichlet(20)]), ksp="cg", pc="jacobi")
    assert "null space" not in solver.view()


def test_updates_connect_and_part():
    """The values decide, not the pattern."""
    S = neumann(10, 4)
    parted = S.copy()
    cut = np.arange(40) >= 20
    rows = np.repeat(np.arange(40), np.diff(S.indptr))
    across = cut[rows] != cut[S.indices]
    parted.data[across] = 0
    diagonal = rows == S.indices
    parted.data[diagonal] = 0
    parted.data[diagonal] = -np.asarray(parted.sum(axis=1)).ravel()
    solver = am.Solver(S, ksp="cg", pc="amg", rtol=1e-10)
    b = right_side(S, False)
    for now, said in ((S, "the constant vector"), (parted, "in 2 of the 2"), (S, "the constant vector")):
        solver.update(now)
        assert said in solver.view()
        assert np.allclose(solver.solve(b), least(now, b), atol=1e-7)


SIZES = [(100, 90), (3,), (5,), (9,), (27,), (40,), (81,), (9, 9), (30, 31)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "options",
    [
        "",
        "-pc_amg_coarse_size 10",
        "-pc_amg_coarse_size 1",
        "-pc_amg_agg_type mis2 -pc_amg_coarse_size 5",
        "-pc_amg_type classical -pc_amg_coarse_size 5",
        "-pc_dtype float32 -pc_amg_coarse_size 5",
        "-mg_levels_pc_type sor -pc_amg_coarse_size 5",
        "-mg_levels_ksp_type chebyshev -pc_amg_coarse_size 5",
    ],
)
def test_small_components_do_not_harm_multigrid(options, dtype):
    """They become single nodes while others are still coarsened: 1 x 1 rows of rounding, which no smoother may divide by."""
    weights = [1, 0.1, 0.3, 0.7, 1 / 3, 1e-6, 1e6, 0.1, 0.3]
    S = together([w * neumann(*shape) for w, shape in zip(weights, SIZES, strict=True)], False, dtype)
    b = right_side(S, True, dtype)
    solver = am.Solver(S, options, ksp="cg", pc="amg", rtol=1e-5 if dtype == "float32" else 1e-8)
    for _ in range(3):  # with the same interpolation from the second update on
        solver.solve(b)
        assert solver.info.converged and solver.info.iterations <= 45, solver.info
        solver.update(S)


@pytest.mark.parametrize("options", ["", "-pc_amg_coarse_size 5", "-pc_amg_type classical -pc_amg_coarse_size 5"])
def test_small_components_on_ranks(on_ranks, options):
    """Coarse levels move to fewer ranks, with what is known of their rows; iterations are those of one rank."""
    script = f"""
S = together([neumann(*shape) for shape in {SIZES}])
A = am.Matrix.from_scipy(S, comm, distribute=True)
solver = am.Solver(A, "{options}", ksp="cg", pc="amg", rtol=1e-8)
for _ in range(3):
    solver.solve(right_side(S, True)[slice(*A.row_range)])
    solver.update(A)
if comm.rank == 0: print("ITERATIONS", solver.info.iterations)
"""
    found = {re.search(r"ITERATIONS (\d+)", on_ranks(n, PARTS + script))[1] for n in (1, 2, 4)}
    assert len(found) == 1 and int(found.pop()) <= 30, found


def test_components_that_are_nearly_singular_are_not_taken_for_rounding():
    """Single nodes too, whose rows are small but right: multigrid corrects them."""
    S = together([neumann(60, 50)] + [neumann(3 + k) for k in range(40)])
    S = sp.csr_array(S + 1e-8 * sp.eye_array(S.shape[0]))
    x = np.random.default_rng(3).standard_normal(S.shape[0])
    for options in ("", "-pc_amg_coarse_size 10", "-pc_dtype float64 -pc_amg_coarse_size 10"):
        found, info = solved(S, S @ x, "cg amg", 1e-9, options)
        assert info.iterations <= 60 and "null space" not in " ".join(info.notes), (options, info)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_queues(queue, dtype):
    S = together(CASES["with Dirichlet"](), True, dtype)
    b = right_side(S, False, dtype)
    single = np.finfo(dtype).eps > 1e-10
    where = "-device cuda" if queue == "cuda" else f"-queue {queue}"
    for options in ("", "-ksp_asynchronous -ksp_check_every 5"):
        x, info = solved(S, b, "cg jacobi", 1e-5 if single else 1e-10, f"{where} {options}")
        want = least(S, b)
        assert np.linalg.norm(x - want) <= (2e-2 if single else 1e-6) * np.linalg.norm(want)
        if queue == "cuda":
            assert not any("without a form" in note for note in info.notes), info.notes


@pytest.mark.parametrize("pc", ["jacobi", "amg"])
def test_a_matrix_that_holds_half(pc):
    S = together(CASES["five"](), True)
    b = right_side(S, False)
    A = am.Matrix.from_scipy(S).with_storage("symmetric")
    solver = am.Solver(A, ksp="cg", pc=pc, rtol=1e-10)
    assert "5 dimension(s), in 5 of the 5" in solver.view()
    assert np.allclose(solver.solve(b), least(S, b), atol=1e-6) and A.storage == "symmetric"


def test_several_right_hand_sides_and_the_transpose():
    S = together(CASES["with Dirichlet"](), True, "complex128")
    phase = sp.diags_array(np.exp(1j * np.arange(S.shape[0])))
    S = sp.csr_array(phase @ S @ phase.conj())
    b = right_side(S, False, "complex128")
    B = np.stack([b, np.conj(b), 1e-3 * b.imag], 1)
    solver = am.Solver(S, ksp="cg", pc="jacobi", rtol=1e-11, null_space=singular_rows(S) * phase.diagonal())
    assert "in 2 of the 6" in solver.view()
    assert np.allclose(solver.solve(B), least(S, B), atol=1e-6)
    assert np.allclose(solver.solve_transpose(b), least(sp.csr_array(S.T), b), atol=1e-6)


def singular_rows(S):
    """1 in the rows of components that constants, up to phases, are null vectors of; else 0."""
    label = sp.csgraph.connected_components(abs(S))[1]
    sizes = np.array(
        [np.linalg.eigvalsh(S.toarray()[np.ix_(label == c, label == c)]).min() for c in range(label.max() + 1)]
    )
    return (sizes < 1e-10)[label].astype(float)


def test_rigid_bodies():
    """Two bodies that nothing holds, of different sizes: six rigid-body modes each."""
    names = {"np": np, "sp": sp}
    exec(BODIES, names)
    S, grid = names["bodies"]([4, 3])
    b = np.cos(np.arange(S.shape[0]))
    want = np.linalg.lstsq(S.toarray(), b, rcond=1e-9)[0]
    A = am.Matrix.from_scipy(S, coordinates=grid)
    for method in ("cg amg", "cg jacobi", "preonly cholesky"):
        for options in (None, "-pc_amg_coarse_size 6") if method == "cg amg" else (None,):
            x, info = solved(A, b, method, options=options)
            assert "12 dimension(s), in 2 of the 2" in note_of(info)
            assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want), (method, options)


BODIES = (
    SPRINGS
    + """
def bodies(lengths, held=0):
    '''Cubes of elastic springs, far apart, and where their points are; the first points of the last body may be held.'''
    grids, blocks = [], []
    for k, length in enumerate(lengths):
        S, grid = springs(length)
        if k == len(lengths) - 1:
            for i in range(3 * held): S[i, i] += 1
        grids.append(grid + 10.0 * k)
        blocks.append(S.tocsr())
    return sp.csr_array(sp.block_diag(blocks)), np.concatenate(grids)
"""
)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_on_ranks(on_ranks, ranks):
    """Parts that cross ranks, ranks without rows, all dtypes: the same null space, and the solution of least norm."""
    script = """
def check(S, said, counts=None, dtype="float64", methods=("cg amg", "cg jacobi", "preonly lu")):
    b, n = right_side(S, False, dtype), S.shape[0]
    want = least(S, b)
    if counts is None: counts = np.diff(np.linspace(0, n, comm.size + 1).astype(int))
    first = int(sum(counts[: comm.rank])); last = first + int(counts[comm.rank])
    A = am.Matrix.from_scipy(S[first:last], comm) if comm.size > 1 else am.Matrix.from_scipy(S)
    single = np.finfo(dtype).eps > 1e-10
    for method in methods:
        ksp, pc = method.split()
        solver = am.Solver(A, ksp=ksp, pc=pc, rtol=1e-5 if single else 1e-10)
        assert said in solver.view(), solver.view()
        x = np.concatenate(comm.allgather(solver.solve(b[first:last])))
        assert np.linalg.norm(x - want) <= (2e-2 if single else 1e-6) * np.linalg.norm(want), (method, dtype)
for mixed in (False, True):
    for dtype in ("float32", "float64", "complex64", "complex128"):
        S = together([neumann(9, 8), dirichlet(13), neumann(20), neumann(2), sp.eye_array(3)], mixed, dtype)
        check(S, "a null space of 3 dimension(s), in 3 of the 7 connected components", dtype=dtype)
    n = S.shape[0]
    for empty in {0, comm.size - 1}:  # a rank without rows; all on one rank
        counts = [0] * comm.size
        counts[(empty + 1) % comm.size] = n
        check(S.real.astype(float), "in 3 of the 7", counts, methods=("cg amg", "cg jacobi"))
    check(together([neumann(3 + k % 3) for k in range(64)], mixed), "64 dimension(s), in 64 of the 64")
    many = am.Matrix.from_scipy(together([neumann(3)] * 65, mixed), comm, distribute=True)
    assert "65 connected components" in am.Solver(many, ksp="cg", pc="jacobi").view()
# a part that is one by way of another rank alone: a ring of which each rank has the ends of several pieces
n = 24
ring = sp.lil_array((n, n))
for i in range(n): ring[i, (i + 8) % n] = ring[(i + 8) % n, i] = -1
ring = sp.csr_array(sp.csr_array(ring) + sp.diags_array(-np.asarray(ring.sum(axis=1)).ravel()))
check(ring, "in 8 of the 8")
print("DONE")
"""
    assert on_ranks(ranks, PARTS + script).count("DONE") == ranks


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_bodies_on_ranks(on_ranks, ranks):
    script = """
S, grid = bodies([3, 4, 3], held=4)
b = np.cos(np.arange(S.shape[0]))
want = np.linalg.lstsq(S.toarray(), b, rcond=1e-9)[0]
A = am.Matrix.from_scipy(S, comm, distribute=True, coordinates=grid)
for pc in ("amg", "jacobi"):
    solver = am.Solver(A, ksp="cg", pc=pc, rtol=1e-10)
    assert "12 dimension(s), in 2 of the 3" in solver.view(), solver.view()
    x = np.concatenate(comm.allgather(solver.solve(b[slice(*A.row_range)])))
    assert np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want), pc
print("DONE")
"""
    assert on_ranks(ranks, BODIES + script).count("DONE") == ranks


def test_the_same_bits_on_any_number_of_ranks(on_ranks):
    script = """
am.configure(reproducible=True)
S = together([neumann(9, 8), dirichlet(13), neumann(20), neumann(31)], True)
A = am.Matrix.from_scipy(S, comm, distribute=True)
x, info = am.solve(A, right_side(S, False)[slice(*A.row_range)], ksp="cg", pc="jacobi", rtol=1e-10)
x = np.concatenate(comm.allgather(x))
if comm.rank == 0: print("BITS", x.tobytes().hex())
"""
    found = [
        [line for line in on_ranks(n, PARTS + script, alone=True).splitlines() if "BITS" in line][0].split("BITS")[1]
        for n in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]
