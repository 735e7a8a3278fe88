"""Aggregation where a coupling is strong for one of its rows alone, as rounding makes it beside a threshold: set-ups end."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def at_the_threshold(n, seed):
    """Couplings of one direction are 0.04 of the diagonals, those of the other 0.45; scaled at random, in a random order."""
    rng = np.random.default_rng(seed)
    along = sp.diags_array([-np.ones(n - 1), -np.ones(n - 1)], offsets=[-1, 1], shape=(n, n))
    one = sp.eye_array(n)
    A = sp.kron(one, one) + 0.45 * sp.kron(one, along) + 0.04 * sp.kron(along, one)
    d = sp.diags_array(1 + rng.random(n * n))
    A = sp.csr_array(d @ A @ d)
    A = sp.csr_array((A + A.T) / 2)
    order = rng.permutation(n * n)
    return A[order][:, order]


@pytest.mark.parametrize("seed", range(6))
def test_couplings_at_the_threshold(seed):
    A = at_the_threshold(24, seed)
    assert abs(A - A.T).max() == 0
    s = am.Solver(A, "-pc_amg_coarse_size 50", ksp="cg", pc="amg", rtol=1e-8)
    x = s.solve(np.ones(576))
    assert np.linalg.norm(A @ x - 1) <= 1e-8 * 24 * 1.01 and s.info.iterations <= 25


@pytest.mark.parametrize("size", [1e-17, 1e-14])
def test_entries_of_one_direction(size):
    """Hermitian but for rounding, and every entry is strong."""
    rng = np.random.default_rng(3)
    A = am.gallery.poisson((40, 40)).to_scipy()
    noise = sp.random_array((1600, 1600), density=2e-3, rng=rng, format="csr") * size
    B = sp.csr_array(A + noise)
    order = rng.permutation(1600)
    B = B[order][:, order]
    s = am.Solver(B, "-pc_amg_threshold 0 -pc_amg_agg_type mis2 -pc_amg_coarse_size 50", ksp="cg", pc="amg", rtol=1e-8)
    s.solve(np.ones(1600))
    assert s.info.iterations <= 70


@pytest.mark.parametrize("cells", [(5, 5, 5), (6, 6, 6)])
@pytest.mark.parametrize("options", ["-pc_amg_block_size 1", "-pc_amg_block_size 2", "-pc_amg_agg_type mis2"])
def test_no_threshold_in_elasticity(cells, options):
    A = am.gallery.elasticity(cells)
    s = am.Solver(A, f"-pc_amg_threshold 0 -pc_amg_coarse_size 100 {options}", ksp="cg", pc="amg", rtol=1e-8)
    s.solve(np.ones(A.local_shape[0]))
    assert s.info.iterations <= 80
