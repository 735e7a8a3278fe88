"""With -reproducible the answers are the same bits on any number of ranks and threads."""

import re

import pytest

SCRIPT = """
import hashlib
from asterism import _core
def say(name, local, extra=""):
    whole = b"".join(comm.allgather(np.ascontiguousarray(local).tobytes()))
    if rank == 0: print("BITS", name, hashlib.sha256(whole).hexdigest()[:16], extra, flush=True)
def rhs(A, k=None):
    lo, hi = A.row_range
    i = np.arange(lo, hi, dtype=float)
    b = np.sin(0.37 * i) * 10.0 ** (i % 7 - 3)
    if A.dtype.kind == "c": b = b + 1j * np.cos(0.11 * i)
    if k: b = b[:, None] * np.arange(1.0, k + 1)
    return b.astype(A.dtype)
def given(S): return am.Matrix.from_scipy(S.tocsr(), comm, distribute=True)
rng = np.random.default_rng(5)
n = 701
S = sp.random(n, n, density=0.02, random_state=rng) + sp.diags_array(20.0 + rng.random(n))
C = (S + 1j * sp.random(n, n, density=0.02, random_state=rng)).tocsr()
poisson = am.gallery.poisson((17, 18, 19), comm=comm)
p = rng.permutation(6000)
whole = am.gallery.poisson((20, 20, 15)).to_scipy().tocsr()[p][:, p]
unordered = given(whole)
general, hermitian = given(S), given(C @ C.conj().T)
for name, A, options in [
    ("cg amg", poisson, "-ksp_type cg -pc_type amg"),
    ("cg amg float64", poisson, "-ksp_type cg -pc_type amg -pc_dtype float64"),
    ("cg amg unordered", unordered, "-ksp_type cg -pc_type amg -pc_amg_coarse_size 50"),
    ("cg amg color_sor", poisson, "-ksp_type cg -pc_type amg -mg_levels_pc_type color_sor"),
    ("cg amg color_sor float64", unordered, "-ksp_type cg -pc_type amg -mg_levels_pc_type color_sor -pc_dtype float64"),
    ("gmres amg color_sor", general, "-ksp_type gmres -pc_type amg -mg_levels_pc_type color_sor -mg_levels_ksp_max_it 2"),
    ("cg amg color_sor complex", hermitian, "-ksp_type cg -pc_type amg -mg_levels_pc_type color_sor"),
    ("cg amg color_sor float32", poisson.astype("float32"), "-ksp_type cg -pc_type amg -mg_levels_pc_type color_sor -ksp_rtol 1e-4"),
    ("cg chebyshev", poisson, "-ksp_type cg -pc_type chebyshev"),
    ("gcr", general, "-ksp_type gcr -pc_type jacobi"),
    ("cg jacobi", poisson, "-ksp_type cg -pc_type jacobi"),
    ("minres", poisson, "-ksp_type minres -pc_type none"),
    ("gmres", general, "-ksp_type gmres -pc_type jacobi"),
    ("bicgstab", general, "-ksp_type bicgstab -pc_type jacobi"),
    ("float32", poisson.astype("float32"), "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-4"),
    ("complex", hermitian, "-ksp_type cg -pc_type jacobi"),
    ("complex gmres", given(C), "-ksp_type gmres -pc_type jacobi"),
    ("gmres lu", given(S[:300, :300]), "-ksp_type gmres -pc_type lu"),
    ("chebyshev", poisson, "-ksp_type chebyshev -pc_type jacobi -ksp_rtol 1e-3"),
]:
    s = am.Solver(A, options)
    say(name, s.solve(rhs(A)), s.info.iterations)
s = am.Solver(poisson, "-ksp_type cg -pc_type amg")
say("three columns", s.solve(rhs(poisson, 3)), s.info.iterations)
say("product", general @ rhs(general)); say("transposed", general.T @ rhs(general)); say("adjoint", hermitian.H @ rhs(hermitian, 2))
"""


@pytest.mark.parametrize("queue", ["inline", "shuffle"])
def test_the_same_bits_on_any_ranks_and_threads(on_ranks, queue):
    want = None
    runs = [(1, 1), (2, 1), (3, 1), (4, 1), (1, 3), (2, 2)] if queue == "inline" else [(1, 1), (3, 1)]
    for ranks, threads in runs:
        out = on_ranks(
            ranks, SCRIPT, ASTERISM_NUM_THREADS=str(threads), ASTERISM_OPTIONS=f"-reproducible -queue {queue}"
        )
        got = re.findall(r"BITS (.*)", out)
        assert len(got) == 23, out
        want = want or got
        assert got == want, (ranks, threads, [pair for pair in zip(got, want, strict=True) if pair[0] != pair[1]])
