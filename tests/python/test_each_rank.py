"""Preconditioners that each rank makes of its own block: bjacobi and asm with any other one inside."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

BLOCKS = ["-pc_type bjacobi", "-pc_type asm -pc_asm_type basic"]


@pytest.mark.parametrize("blocks", BLOCKS)
def test_ranks_take_the_same_method_where_their_blocks_differ(on_ranks, blocks):
    """A small block has one level, which is symmetric and the same in each iteration; the others have several."""
    script = f"""
S = am.gallery.poisson((60, 60)).to_scipy().tocsr()
b, e = (0, 200) if rank == 0 else (200, 3600)
A = am.Matrix.from_scipy(S[b:e], comm)
amg = "{blocks} -sub_pc_type amg -sub_pc_amg_coarse_size 400 -sub_pc_amg_cycle_type "
for cycle, method in (("v", "cg"), ("f", "gmres"), ("k", "fgmres")):
    s = am.Solver(A, amg + cycle, rtol=1e-8)
    s.solve(np.ones(e - b))
    print("METHOD", cycle, s.info.method == method, flush=True)
    s.update(A.with_values(2 * A.to_scipy().data))
    s.solve(np.ones(e - b))
    assert s.info.method == method, (cycle, s.info.method)
    if cycle == "v": continue
    try: am.Solver(A, amg + cycle + " -ksp_type cg")
    except am.OptionError as error: print("REFUSED", "cg needs a symmetric preconditioner" in str(error), flush=True)
"""
    out = on_ranks(2, script, limit=60)
    assert out.count("True") == 10 and "False" not in out, out


@pytest.mark.parametrize("blocks", BLOCKS)
def test_a_block_that_is_matched_makes_all_unsymmetric(on_ranks, blocks):
    """Only the last rank has rows without a diagonal entry, which ilu moves."""
    script = f"""
import scipy.sparse as sp
T = sp.diags_array([-1.0, 2, -1], offsets=[-1, 0, 1], shape=(100, 100)).tolil()
S = sp.block_diag([T, sp.kron(sp.eye_array(50), np.array([[0, 1.0], [1, 0]]))]).tocsr()
A = am.Matrix.from_scipy(S[100 * rank : 100 * rank + 100], comm)
try: am.Solver(A, "{blocks} -sub_pc_type ilu -sub_pc_factor_matching auto", ksp="minres")
except am.OptionError as error: print("REFUSED", "minres needs a symmetric preconditioner" in str(error), flush=True)
"""
    assert on_ranks(2, script, limit=60).count("REFUSED True") == 2


@pytest.mark.parametrize("blocks", BLOCKS)
def test_rows_and_options_in_messages_are_those_of_the_user(on_ranks, blocks):
    script = f"""
import scipy.sparse as sp
S = am.gallery.poisson((10, 10)).to_scipy().tolil()
S[77] = 0
S[77, 76] = S[77, 78] = 1
A = am.Matrix.from_scipy(S.tocsr()[50 * rank : 50 * rank + 50], comm)
none = " -sub_pc_factor_shift_type none -sub_pc_factor_zeropivot 1e300 -sub_pc_factor_matching false"
for sub, texts in (
    ("ilu" + none, ("ilu: the pivot of row ", "-sub_pc_factor_matching true, -sub_pc_type ilut, or -sub_pc_factor_shift_type nonzero.")),
    ("ilut" + none, ("ilut: the pivot of row ", "Use -sub_pc_factor_matching true, or -sub_pc_factor_shift_type nonzero.")),
    ("icc" + none.rsplit(" -", 1)[0], ("icc: the pivot of row ", "-sub_pc_type ilut, or -sub_pc_factor_shift_type positive_definite.")),
    ("sor", ("sor: the diagonal entry of row 77 is zero", "-sub_pc_type ilu")),
    ("jacobi", ("jacobi: the diagonal entry of row 77 is zero. Use -sub_pc_type lu", "-sub_pc_factor_matching true", "-sub_pc_jacobi_type rowl1")),
    ("chebyshev", ("chebyshev: the diagonal entry of row 77 is zero", "-sub_pc_type ilu")),
):
    try: am.Solver(A, "{blocks} -sub_pc_type " + sub, ksp="gmres")
    except am.InputError as error:
        assert all(t in str(error) for t in texts), error
        print("TOLD", flush=True)
S = sp.eye_array(100).tolil()
S[77, 77] = 0
S[77, 76] = 1
A = am.Matrix.from_scipy(S.tocsr()[50 * rank : 50 * rank + 50], comm)
try: am.Solver(A, "{blocks} -sub_pc_type ilu -sub_pc_factor_matching false", ksp="gmres")
except am.InputError as error: assert "pivot of row 77 is 0" in str(error), error
else: raise SystemExit("accepted")
"""
    assert on_ranks(2, script, limit=60).count("TOLD") == 12


def test_options_of_a_level_are_named_with_their_prefix():
    S = sp.block_diag([am.gallery.poisson((30, 30)).to_scipy(), np.array([[1.0, 1], [1, 1]])])
    with pytest.raises(am.InputError) as caught:
        am.Solver(S.tocsr(), "-mg_levels_pc_type ilu -pc_amg_coarse_size 50", ksp="gmres", pc="amg")
    assert str(caught.value).endswith(
        "Use -mg_levels_pc_factor_matching true, or -mg_levels_pc_factor_shift_type nonzero."
    ), caught.value


@pytest.mark.parametrize("blocks", BLOCKS)
def test_blocks_keep_nodes_coordinates_and_near_null_space(blocks):
    """On one rank amg in the block is amg."""
    A = am.gallery.elasticity((12, 8, 8))
    rigid = am.Matrix.from_scipy(A.to_scipy())
    x, y, z = A.coordinates.T
    zero = 0 * x
    turns = [[-y, x, zero], [zero, -z, y], [z, zero, -x]]
    modes = [np.eye(3)[c][:, None] + np.stack([zero] * 3) for c in range(3)] + turns
    rigid.near_null_space = np.stack([np.stack(m, axis=1).ravel() for m in modes], axis=1)
    bare = am.Matrix.from_scipy(A.to_scipy())
    b = np.ones(A.shape[0])
    counts = []
    for M in (A, rigid, bare):
        alone, inside = (am.Solver(M, o, ksp="cg", rtol=1e-8) for o in ("-pc_type amg", blocks + " -sub_pc_type amg"))
        for s in (alone, inside):
            s.solve(b)
        assert abs(alone.info.iterations - inside.info.iterations) <= 1  # sums of r^H z are rounded in another way
        counts.append(inside.info.iterations)
        inside.update(M.with_values(2 * A.to_scipy().data))
        inside.solve(b)
        assert inside.info.iterations == counts[-1]
    assert counts[0] < counts[2] and counts[1] < counts[2], counts


@pytest.mark.parametrize("blocks", BLOCKS)
def test_blocks_of_elasticity_on_ranks(on_ranks, blocks):
    """With them the blocks' amg takes fewer iterations than without."""
    script = f"""
A = am.gallery.elasticity((12, 8, 8), comm)
bare = am.Matrix.from_scipy(A.to_scipy(), comm)
counts = []
for M in (A, bare):
    s = am.Solver(M, "{blocks} -sub_pc_type amg -sub_pc_amg_coarse_size 100", ksp="cg", rtol=1e-8)
    s.solve(np.ones(M.local_shape[0]))
    counts.append(s.info.iterations)
assert counts[0] < counts[1], counts
print("FEWER", counts)
"""
    assert on_ranks(2, script, limit=60).count("FEWER") == 2
