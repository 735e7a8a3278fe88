"""Sparse lu on random matrices of all patterns: the structural rank is right, and no matrix that is well conditioned is refused."""

import os
import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import structural_rank

import asterism as am

COUNT = int(os.environ.get("ASTERISM_TEST_RANDOM_MATRICES", "400"))  # 10000 take some minutes


def random_matrix(rng):
    """Return a square matrix of a random pattern, with values and a scaling."""
    n = int(rng.integers(1, 60) if rng.random() < 0.8 else rng.integers(60, 301))
    density = min(1.0, rng.choice([1.0, 2.0, 3.0, 5.0, 10.0]) / n)
    S = sp.random_array((n, n), density=density, rng=rng, data_sampler=lambda size: rng.standard_normal(size)).tolil()
    kind = rng.choice(
        ["plain", "diagonal", "zero diagonal", "permuted", "reducible", "empty row", "symmetric", "saddle"]
    )
    if kind == "diagonal":
        S.setdiag(rng.standard_normal(n) + 3)
    elif kind == "zero diagonal":
        S = (S + sp.eye_array(n, format="csr")[rng.permutation(n)]).tolil()
        S.setdiag(0)
    elif kind == "permuted":
        S = (S + sp.diags_array(rng.standard_normal(n))).tocsr()[rng.permutation(n)].tolil()
    elif kind == "reducible":
        cut = n // 2
        S = (S + sp.diags_array(rng.standard_normal(n))).tolil()
        S[cut:, :cut] = 0
    elif kind == "empty row":
        S[int(rng.integers(n))] = 0
    elif kind == "symmetric":
        S = (S + S.T + sp.diags_array(rng.standard_normal(n))).tolil()
    elif kind == "saddle":
        S = (S + S.T + sp.eye_array(n)).tolil()
        m = n // 3
        S[n - m :, n - m :] = 0
    S = S.tocsr()
    S.eliminate_zeros()
    if rng.random() < 0.3:  # values of very different sizes
        S.data *= 10.0 ** rng.uniform(-8, 8, S.nnz)
    if rng.random() < 0.3:
        S = S.astype(complex)
        S.data *= np.exp(2j * np.pi * rng.random(S.nnz))
    if rng.random() < 0.4:  # rows and columns of very different sizes; products stay within the range of numbers
        rows, columns = 10.0 ** rng.uniform(-100, 100, n), 10.0 ** rng.uniform(-50, 50, n)
        S = (sp.diags_array(rows) @ S @ sp.diags_array(columns)).tocsr()
    return S, str(kind)


def equilibrated(S):
    """S with rows and columns scaled until their largest entries are about 1 (Ruiz 2001), and both scales."""
    A = S.toarray()
    with np.errstate(divide="ignore", invalid="ignore"):
        log, phase = np.log2(np.abs(A)), np.where(A != 0, A / np.abs(A), 0)
    rows, columns = np.zeros(len(A)), np.zeros(len(A))
    for _ in range(20):
        r = -log.max(1) / 2
        log, rows = log + r[:, None], rows + r
        c = -log.max(0) / 2
        log, columns = log + c[None, :], columns + c
    return np.exp2(log) * phase, np.exp2(rows), np.exp2(columns)


def backward_error(A, x, b):
    """By rows: |b - A x| beside the norms of the row and of x. What the library tells is stricter, in a scaling of its own."""
    return np.max(np.abs(b - A @ x) / (np.abs(A).sum(1) * np.abs(x).max() + np.abs(b)))


@pytest.mark.parametrize("part", range(8))
def test_random_matrices(part):
    for seed in range(part * COUNT // 8, (part + 1) * COUNT // 8):
        rng = np.random.default_rng((11, seed))
        S, kind = random_matrix(rng)
        n = S.shape[0]
        where = f"seed {seed}: {kind}, {n} rows, {S.nnz} entries, {S.dtype}"
        b = S @ rng.standard_normal(n)
        rank = structural_rank(S)
        if rank < n:
            with pytest.raises(am.InputError, match="is empty|structurally singular") as refused:
                am.solve(S, b, ksp="preonly", pc="lu", pc_lu_type="sparse")
            if empty := re.search(r"(row|column) (\d+) of the matrix is empty", str(refused.value)):
                lines = S.tocsr() if empty[1] == "row" else S.tocsc()
                assert lines.indptr[int(empty[2])] == lines.indptr[int(empty[2]) + 1], where
            else:
                found = re.search(r"structural rank is (\d+) of (\d+)", str(refused.value))
                assert found and (int(found[1]), int(found[2])) == (rank, n), (where, str(refused.value))
            continue
        A, r, c = equilibrated(S)
        condition = np.linalg.cond(A)
        try:
            x, info = am.solve(S, b, ksp="preonly", pc="lu", pc_lu_type="sparse")
        except am.AsterismError as refused:
            assert condition > 1e12, (where, condition, str(refused))
            continue
        assert info.converged and np.isfinite(x).all()
        if condition <= 1e12:
            assert info.backward_error < 1e-13, (where, condition, info.notes)
            assert backward_error(A, x / c, r * b) < 1e-11, (where, condition, info.notes)


@pytest.mark.parametrize("seed", [26, 87, *range(12)])
def test_indefinite_matrices_of_many_magnitudes(seed):
    """Blocks of two pivots take rows that were set aside before: elimination went on for ever in the first two."""
    r = np.random.default_rng(seed)
    n = int(r.integers(15, 60))
    m = int(r.integers(5, n))
    H, W, B = np.diag(10.0 ** r.uniform(-8, 8, n) * (r.random(n) < 0.8)), np.zeros((n, n)), np.eye(m, n)
    W[r.integers(0, n, 2 * n), r.integers(0, n, 2 * n)] = r.random(2 * n)
    H = H + (W + W.T) * 10.0 ** r.uniform(-3, 3)
    B[r.integers(0, m, 3 * m), r.integers(0, n, 3 * m)] += r.random(3 * m)
    B *= 10.0 ** r.uniform(-4, 4, (m, 1))
    K = sp.csr_array(np.block([[H, B.T], [B, -(10.0 ** r.uniform(-12, -2)) * np.eye(m)]]))
    b = K @ np.ones(n + m)
    x, info = am.solve(K, b, options="-pc_cholesky_type indefinite", ksp="preonly", pc="cholesky", rtol=1e-8)
    assert info.converged and np.linalg.norm(b - K @ x) <= 1e-8 * np.linalg.norm(b)
