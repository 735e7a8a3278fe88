"""The number of unknowns of a node: found in the pattern, by all ranks together."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am
from asterism.cli.main import main


def blocks(b, n=21, m=23):
    """b unknowns at each point of a grid, all coupled."""
    R = np.random.default_rng(b).standard_normal((b, b))
    return sp.kron(am.gallery.poisson((n, m)).to_scipy(), R @ R.T + b * np.eye(b)).tocsr()


def band(n, width):
    offsets = range(-width, width + 1)
    return sp.diags_array(
        [np.full(n - abs(k), 0.1 if k else 2 * width) for k in offsets], offsets=list(offsets)
    ).tocsr()


def detected(S):
    return am.Matrix.from_scipy(sp.csr_array(S))._h.detected_block_size()


@pytest.mark.parametrize("b", [1, 2, 3, 4, 5, 6])
def test_what_is_found(b):
    assert detected(blocks(b)) == b


def test_zeros_that_were_dropped_do_not_hide_nodes():
    S = am.gallery.elasticity((6, 6, 6)).to_scipy()
    S.data[abs(S.data) < 1e-12] = 0
    S.eliminate_zeros()
    assert detected(S) == 3
    S = blocks(4)
    S.data[np.random.default_rng(0).random(S.nnz) < 0.25] = 0
    S.eliminate_zeros()
    assert detected(S) == 4


@pytest.mark.parametrize("width", [1, 2, 3, 10, 30])
def test_bands_and_dense_matrices_have_no_nodes(width):
    assert detected(band(600, width)) == 1
    assert detected(np.ones((60, 60))) == 1
    assert detected(np.ones((6, 6))) == 1


@pytest.mark.parametrize(
    ("name", "b"), [("bcsstk16", 3), ("bar", 3), ("sherman5", 3), ("mhd1280b", 4), ("qc324", 1), ("bcsstk38", 1)]
)
def test_real_matrices(data, name, b):
    assert am.read_matrix(data / f"{name}.mtx.gz")._h.detected_block_size() == b


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_detection_is_global(on_ranks, n):
    """Also where ranks begin and end within nodes, or have less than one."""
    on_ranks(
        n,
        """
from test_block_size import blocks, band
for b in (2, 3, 4, 5, 6):
    S = blocks(b, 5, 7)
    N = S.shape[0]
    cuts = {
        "even": [N * r // size for r in range(size + 1)],
        "small ranks": [0] + [min(N, 2 * r) for r in range(1, size)] + [N],
        "most on the first": [0] + [N - size + r for r in range(1, size)] + [N],
        "empty ranks": [0] + [N - 1] * (size - 1) + [N],
    }
    for name, c in cuts.items():
        mine = S[c[rank]:c[rank + 1]]
        A = am.Matrix.from_scipy(mine, comm) if size > 1 else am.Matrix.from_scipy(S)
        assert A._h.detected_block_size() == b, (b, name)
A = band(600, 2)
lo, hi = 600 * rank // size, 600 * (rank + 1) // size
A = am.Matrix.from_scipy(A[lo:hi], comm) if size > 1 else am.Matrix.from_scipy(A)
assert A._h.detected_block_size() == 1
""",
        PYTHONPATH="tests/python",
    )


def test_multigrid_is_the_same_wherever_ranks_begin(on_ranks, tmp_path):
    am.write_matrix(tmp_path / "elasticity.mtx", am.gallery.elasticity((6, 6, 6)))
    am.write_matrix(tmp_path / "six.mtx", am.Matrix.from_scipy(blocks(6)))
    am.write_matrix(tmp_path / "one.mtx", am.gallery.poisson((31, 33)))
    script = f"""
for name in ("elasticity", "six", "one"):
    A = am.read_matrix("{tmp_path}/" + name + ".mtx", comm)
    b = np.sin(1.0 + np.arange(*A.row_range))
    s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8, options="-pc_amg_coarse_size 100")
    x = s.solve(b)
    first = s.info.iterations
    columns = s.solve(np.stack([b, 2 * b], 1))  # (n, k)
    assert np.allclose(columns[:, 0], x, rtol=1e-5) and np.allclose(columns[:, 1], 2 * x, rtol=1e-5)
    for factor in (3, 5, 7):  # the first keeps what the others use
        s.update(A.with_values(factor * A.to_scipy().data))
        assert np.allclose(factor * s.solve(b), x, rtol=1e-5), factor
        assert s.reused or factor == 3
    levels = [" ".join(l.split()[:4]) for l in s.view().splitlines() if l.strip()[:1].isdigit()]
    found = s.view().split("block size ")[1].split(",")[0]
    moved = "nodes on two ranks moved to one" in s.view()
    queued, info = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-8, options="-pc_amg_coarse_size 100 -queue thread")
    assert info.iterations == first and np.array_equal(queued, x)
    cuts = comm.allgather(A.row_range[0])
    assert moved == any(c % int(found.split()[0]) for c in cuts), (moved, cuts)
    if rank == 0: print("RESULT", name, first, found, levels)
"""
    seen = {
        n: [line for line in on_ranks(n, script).splitlines() if line.startswith("RESULT")] for n in (1, 2, 3, 4, 5)
    }
    assert "block size" not in seen[1] and "3 (found in the pattern)" in seen[1][0] and "6 (found" in seen[1][1]
    assert len(seen[1]) == 3
    for n in (2, 3, 4, 5):
        assert seen[n] == seen[1], n


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_block_size_that_is_given_may_straddle_ranks(on_ranks, n):
    on_ranks(
        n,
        """
from test_block_size import blocks
S = blocks(3)
N = S.shape[0]
lo, hi = (N * r // size // 3 * 3 + (1 if 0 < r < size else 0) for r in (rank, rank + 1))
A = am.Matrix.from_scipy(S[lo:hi], comm)
A.near_null_space = np.kron(np.ones((N // 3, 1)), np.eye(3))[lo:hi]
s = am.Solver(A, "-pc_amg_block_size 3 -pc_amg_coarse_size 100", ksp="cg", pc="amg", rtol=1e-8)
b = np.cos(np.arange(lo, hi))
x = s.solve(b)
assert "nodes on two ranks moved to one" in s.view()
alone = am.Solver(S, "-pc_amg_block_size 3 -pc_amg_coarse_size 100", ksp="cg", pc="amg", rtol=1e-8)
assert np.allclose(alone.solve(np.cos(np.arange(N)))[lo:hi], x, rtol=1e-5)
assert alone.info.iterations == s.info.iterations
def give(): A.block_size = 3
text = message(give)  # on all ranks, also those with whole nodes
assert "block size 3 does not divide the" in text and "-pc_amg_block_size" in text, text
text = message(lambda: am.Solver(A, "-pc_amg_block_size 5", ksp="cg", pc="amg"))
assert "amg: block size 5 does not divide the 1449 rows" in text, text
""",
        PYTHONPATH="tests/python",
    )


def test_inspect_shows_what_amg_finds(tmp_path, capsys):
    for name, S, b in (("el", am.gallery.elasticity((6, 6, 6)).to_scipy(), 3), ("band", band(600, 2), 1)):
        path = str(tmp_path / f"{name}.mtx")
        am.write_matrix(path, am.Matrix.from_scipy(S))
        assert main(["inspect", path, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["block_size_of_the_pattern"] == b
        assert f"block size {b}" in am.Solver(S, ksp="cg", pc="amg").view()
