import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]


def random_matrix(rng, n, m, dtype, density=0.2):
    S = sp.random_array((n, m), density=density, rng=rng).tocsr().astype(dtype)
    if np.dtype(dtype).kind == "c":
        S.data += 1j * rng.standard_normal(S.nnz)
    return S


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (30, 30), (7, 100), (100, 7), (0, 0), (5, 0)])
@pytest.mark.parametrize("k", [None, 1, 4])
def test_products_match_scipy(rng, dtype, shape, k):
    S = random_matrix(rng, *shape, dtype)
    A = am.Matrix.from_scipy(S)
    assert A.shape == shape and A.dtype == dtype and A.nnz == S.nnz
    x = rng.standard_normal((shape[1],) if k is None else (shape[1], k)).astype(dtype)
    y = rng.standard_normal((shape[0],) if k is None else (shape[0], k)).astype(dtype)
    tol = 1e-5 if np.dtype(dtype).itemsize in (4,) or dtype == "complex64" else 1e-12
    np.testing.assert_allclose(A @ x, S @ x, rtol=tol, atol=tol)
    np.testing.assert_allclose(A.T @ y, S.T @ y, rtol=tol, atol=tol)
    np.testing.assert_allclose(A.H @ y, S.conj().T @ y, rtol=tol, atol=tol)
    assert abs(A.to_scipy() - S).sum() == 0


def stored_as(storage, rng, dtype):
    """Return a matrix that has this storage."""
    if storage == "row_pattern":
        S = sp.diags_array([rng.standard_normal(90) for _ in range(5)], offsets=[-9, -1, 0, 1, 9], shape=(90, 90))
    elif storage == "row_pattern, equal rows":
        S = sp.diags_array([-1.0, -1, 4, -1, -2], offsets=[-9, -1, 0, 1, 9], shape=(90, 90))
    elif storage == "bcsr":
        S = sp.kron(sp.random_array((30, 30), density=0.3, rng=rng), rng.standard_normal((3, 3)) + 9)
    else:
        S = random_matrix(rng, 900 if storage == "sell" else 40, 90, dtype)
    return am.Matrix.from_scipy(S.tocsr().astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", ["csr", "sell", "bcsr", "row_pattern", "row_pattern, equal rows"])
def test_products_with_any_number_of_columns_match_scipy(rng, dtype, storage):
    A = stored_as(storage, rng, dtype)
    if np.dtype(dtype).kind != "c":  # row_pattern and bcsr are for real matrices
        assert A.storage == storage.split(",")[0]
    S, tol = A.to_scipy(), 50 * np.finfo(dtype).eps
    for k in (*range(1, 18), 24):
        x = rng.standard_normal((A.shape[1], k)).astype(dtype)
        np.testing.assert_allclose(A @ x, S @ x, atol=tol * abs(S @ x).max(), err_msg=f"{k} columns")


def test_integers_become_float64_and_the_input_is_not_changed(rng):
    S = sp.csr_array(np.arange(9).reshape(3, 3))
    before = S.toarray().copy()
    A = am.Matrix.from_scipy(S)
    assert A.dtype == np.float64
    assert (S.toarray() == before).all()
    np.testing.assert_array_equal(A @ np.ones(3, dtype=int), before.sum(axis=1))


def test_unsorted_columns_and_repeats_are_summed():
    S = sp.csr_array((np.array([1.0, 2, 3, 4]), np.array([2, 0, 2, 1]), np.array([0, 3, 4, 4])), shape=(3, 3))
    np.testing.assert_array_equal(am.Matrix.from_scipy(S).to_scipy().toarray(), [[2, 0, 4], [0, 4, 0], [0, 0, 0]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_rows_in_any_order_are_summed_in_the_order_of_their_entries(dtype, index, rng):
    lengths = np.concatenate([rng.integers(0, 40, 2000), [0, 1, 700, 64, 65, 0]])
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = rng.integers(0, 90, ptr[-1])
    values = rng.standard_normal(ptr[-1]).astype(dtype)
    S = sp.csr_array((values, columns.astype(index), ptr.astype(index)), shape=(len(lengths), 90))
    found = am.Matrix.from_scipy(S).to_scipy()
    wanted = np.zeros(S.shape, dtype)  # the first value of an entry is not added to zero, which changes no bit
    for row, (begin, end) in enumerate(zip(ptr[:-1], ptr[1:], strict=True)):
        for p in range(begin, end):
            wanted[row, columns[p]] += values[p]
    assert found.nnz == len(set(zip(np.repeat(np.arange(len(lengths)), lengths), columns, strict=True)))
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), wanted)
    np.testing.assert_array_equal(S.indices, columns)  # what was given is as it was


UNSORTED_ON_A_RANK = """
rng = np.random.default_rng(comm.rank)
whole = sp.random(50, 70, 0.3, format="csr", random_state=1)
begin, end = 50 * comm.rank // comm.size, 50 * (comm.rank + 1) // comm.size
mine = sp.csr_array(whole[begin:end])
mine.sort_indices()
given = mine.copy()
if comm.rank == comm.size - 1:
    order = np.lexsort((rng.random(mine.nnz), np.repeat(np.arange(end - begin), np.diff(mine.indptr))))
    given = sp.csr_array((mine.data[order], mine.indices[order], mine.indptr), shape=mine.shape)
found = am.Matrix.from_scipy(given, comm).to_scipy()
assert (found.indices == mine.indices).all() and (found.data == mine.data).all()
far = 2**32 + 99  # columns too far apart for half of a word
wide = sp.csr_array((np.arange(1.0, 5), np.array([far, 0, far, 7]), np.array([0, 4])), shape=(1, far + 1))
found = am.Matrix.from_scipy(wide, comm).to_scipy()
assert found.indices.tolist() == [0, 7, far] and found.data.tolist() == [2, 4, 4]
print("done", flush=True)
"""


def test_one_rank_alone_may_have_rows_in_any_order(on_ranks):
    assert on_ranks(3, UNSORTED_ON_A_RANK).count("done") == 3


def test_the_result_of_a_transposed_product_is_another_vector():
    A, x = am.gallery.poisson((20, 20)), np.ones(400)
    with pytest.raises(am.InputError, match="transposed product: x and y are the same vector"):
        A._h.apply_transpose(x, x, False)


def test_coo_sums_repeats_and_ignores_negatives(rng):
    i, j = rng.integers(0, 20, 300), rng.integers(0, 15, 300)
    v = rng.standard_normal(300)
    i[::10] = -1
    A = am.Matrix.coo((20, 15), i, j, v)
    keep = i >= 0
    S = sp.coo_array((v[keep], (i[keep], j[keep])), shape=(20, 15)).toarray()
    np.testing.assert_allclose(A.to_scipy().toarray(), S, atol=1e-13)
    with pytest.raises(am.InputError, match=r"entry 1 is at \(99, 0\), outside the 20 x 15"):
        am.Matrix.coo((20, 15), [0, 99], [0, 0], [1.0, 1.0])


def test_row_pattern_storage_is_found_on_grids():
    assert am.gallery.poisson((40, 40)).storage == "row_pattern"
    assert am.gallery.poisson((40, 40), dtype="complex128").storage == "csr"


@pytest.mark.parametrize("dtype", DTYPES)
def test_gallery_poisson_is_the_kronecker_sum(dtype):
    shape = (4, 5, 6)
    one = [sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]) for n in shape]
    K = (
        sp.kron(sp.kron(one[0], sp.eye_array(5)), sp.eye_array(6))
        + sp.kron(sp.kron(sp.eye_array(4), one[1]), sp.eye_array(6))
        + sp.kron(sp.kron(sp.eye_array(4), sp.eye_array(5)), one[2])
    )
    assert abs(am.gallery.poisson(shape, dtype=dtype).to_scipy() - K).max() == 0


def test_elasticity_is_symmetric_and_knows_its_modes():
    A = am.gallery.elasticity((3, 4, 5))
    S = A.to_scipy()
    assert abs(S - S.T).max() < 1e-14
    B = A.near_null_space
    assert A.block_size == 3 and B.shape == (A.shape[0], 6)
    # away from the clamped face every mode is in the null space
    free = (S @ B)[3 * 2 * 5 * 6 :]
    assert abs(free).max() < 1e-12
    assert np.linalg.eigvalsh(S.toarray())[0] > 0


def test_errors_carry_values(rng):
    A = am.gallery.poisson((5, 5))
    with pytest.raises(am.ShapeError, match="7 rows, but rank 0 owns 25"):
        A @ np.ones(7)
    with pytest.raises(am.DtypeError, match="complex128"):
        A @ np.ones(25, dtype=complex)
    with pytest.raises(am.DtypeError, match="<U1"):
        A @ np.array(["a"] * 25)
    with pytest.raises(am.ShapeError, match=r"near_null_space has shape \(3, 1\)"):
        A.near_null_space = np.ones(3)
    with pytest.raises(am.ShapeError, match="block size 3 does not divide the 25 rows"):
        A.block_size = 3
    S = sp.csr_array((np.ones(2), np.array([0, 9]), np.array([0, 2])), shape=(1, 10))
    S.indices = np.array([0, 99], dtype=np.int32)
    with pytest.raises(am.InputError, match=r"global row 0 has column 99 outside \[0, 10\)"):
        am.Matrix.from_scipy(S)
    with pytest.raises(TypeError, match="from_scipy"):
        am.Matrix(np.eye(3))
    with pytest.raises(am.CommError, match="comm is a str"):
        am.gallery.poisson((4,), comm="world")


def test_star_forest_in_python():
    sf = am.StarForest(None, 3, [4, 0, 2], [[0, 2], [0, 0], [0, 2]])
    assert sf.degree().tolist() == [1, 0, 2]
    leaf = np.full(5, -1.0)
    sf.bcast(np.array([10.0, 11, 12]), leaf)
    assert leaf.tolist() == [10, -1, 12, -1, 12]
    root = np.zeros(3, dtype=np.int64)
    sf.reduce(np.array([1, 2, 3, 4, 5]), root, op="sum")
    assert root.tolist() == [1, 0, 8]
    with pytest.raises(am.InputError, match="points at root 7 of rank 0, which has 3 roots"):
        am.StarForest(None, 3, None, [[0, 7]])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_rectangular_matrices_whose_parts_are_square(on_ranks, n):
    out = on_ranks(
        n,
        """
import scipy.sparse as sp
whole = sp.random(4 * size, 4, density=0.5, random_state=np.random.default_rng(5), format="csr")
mine = whole[4 * rank : 4 * rank + 4]
P = am.Matrix.from_scipy(mine, comm, shape=whole.shape)
assert P.shape == (4 * size, 4) and (P.to_scipy() != mine).nnz == 0
if size > 1: assert "shape=(rows, columns)" in message(lambda: am.Matrix.from_scipy(mine, comm))
for shape in ((4 * size, 5), (5 * size, 4)):
    assert f"shape is {shape}, but {4 * size} x 4 was given" in message(lambda: am.Matrix.from_scipy(mine, comm, shape=shape))
assert am.Matrix.from_scipy(whole, comm, distribute=True, shape=whole.shape).shape == whole.shape
if size > 1: assert "shape is (" in message(lambda: am.Matrix.from_scipy(mine, comm, shape=whole.shape if rank else None))
print("done", flush=True)
""",
    )
    assert out.count("done") == n
