"""Aggregation beside rows with very many entries: coarse levels stay sparse."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def with_dense_rows(n, rows):
    """Poisson with some unknowns that are each coupled to a part of the others; positive definite."""
    A = am.gallery.poisson((n, n)).to_scipy()
    couplings = np.zeros((n * n, rows))
    for r in range(rows):
        couplings[r::rows, r] = -0.5
    corner = np.diag(1 - couplings.sum(axis=0))
    B = sp.csr_array(sp.block_array([[A + 0.5 * sp.eye_array(n * n), couplings], [couplings.T, corner]]))
    # in the middle, so that a later rank has them
    order = np.r_[0 : n * n // 2, n * n : n * n + rows, n * n // 2 : n * n]
    return B[order][:, order]


def entries_of_levels(solver):
    return [entries for _, entries in solver._h.levels()]


STRENGTHS = ["", "-pc_amg_strength classical", "-pc_amg_strength evolution", "-pc_amg_agg_type mis2"]


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_levels_stay_sparse(strength, dtype):
    S = with_dense_rows(60, 3).astype(dtype)
    s = am.Solver(S, f"-pc_amg_coarse_size 60 {strength}", ksp="cg", pc="amg", rtol=1e-8)
    x = s.solve(np.ones(3603, dtype))
    assert np.linalg.norm(1 - S @ x) <= 1.01e-8 * 3603**0.5 and s.info.iterations <= 30
    assert sum(entries_of_levels(s)) <= 1.6 * S.nnz


def test_blocks_of_unknowns():
    A = am.gallery.elasticity((9, 9, 9)).to_scipy()
    n = A.shape[0]
    couplings = np.zeros((n, 3))
    for c in range(3):
        couplings[c::3, c] = -1e-3
    S = sp.csr_array(sp.block_array([[A, couplings], [couplings.T, sp.diags_array(np.full(3, 100.0))]]))
    s = am.Solver(S, "-pc_amg_block_size 3 -pc_amg_coarse_size 60", ksp="cg", pc="amg", rtol=1e-8)
    s.solve(np.ones(n + 3))
    assert s.info.iterations <= 40 and sum(entries_of_levels(s)) <= 2 * S.nnz


def test_ranks_change_nothing(on_ranks):
    script = """
from test_dense_rows import STRENGTHS, with_dense_rows
A = am.Matrix.from_scipy(with_dense_rows(50, 2), comm, distribute=True)
for strength in STRENGTHS:
    s = am.Solver(A, "-pc_amg_coarse_size 60 " + strength, ksp="cg", pc="amg", rtol=1e-8)
    s.solve(np.ones(A.local_shape[0]))
    assert 9 <= s.info.iterations <= 12  # a dense row's product is summed in other orders
    if rank == 0: print("RESULT", s._h.levels())
"""
    seen = [[line for line in on_ranks(n, script).splitlines() if line.startswith("RESULT")] for n in (1, 2, 3, 4)]
    assert len(seen[0]) == len(STRENGTHS)
    assert seen[0] == seen[1] == seen[2] == seen[3]
