"""Stencils as distributed operators: products equal the interpreter on any number of ranks, and solvers work with them."""

from pathlib import Path

import numpy as np
import pytest
from stencil_cases import Linear

import asterism as am
from asterism import stencil as st
from asterism.base.aligned import aligned
from asterism.bricks import stencil_operator


def laplacian(d, sign=1.0):
    at = st.indices(d)
    u, out = st.grid("u", d), st.grid("out", d)
    total = 2.0 * d * u(*at)
    for axis in range(d):
        for step in (-1, 1):
            total = total - u(*(i + step * (a == axis) for a, i in enumerate(at)))
    return st.assign(out(*at), sign * total)


RANDOM = """
from stencil_cases import OnBricks
from asterism.stencil.language.reach import bricks_away
import warnings; warnings.simplefilter("ignore")
worst, transposed = 0.0, 0
for seed in range(SEEDS):
    case = OnBricks(seed, comm)
    if not case.fits: continue
    L, x, stencil, given, dtype, shape = case.L, case.x, case.stencil, case.given, case.dtype, case.shape
    assert L.compiled == COMPILED and np.prod(L.ranks) == size and L.shape == (x.size, x.size)
    mine = x[L.owned]
    got = L @ mine
    assert got.dtype == dtype and got.shape == mine.shape
    worst = max(worst, np.abs(got - case.want[L.owned]).max(initial=0) / case.rounding)
    T = stencil.transpose(of="u", periodic=case.periodic)
    far = max(bricks_away(T.statements, shape, case.brick, case.periodic)) > 1
    if far or any(p and n < m for p, n, m in zip(case.periodic, shape, T.least_periodic)):
        assert "no transposed product" in message(lambda: L.rmatvec(mine))
        continue
    transposed += 1
    known = {n: v for n, v in given.items() if n in T.facts.inputs or n in dict(T.facts.constants)}
    for conjugate in (False, True):
        to = x.conj() if conjugate else x
        back = T.interpret(case.periodic, case.wide, o=to, **known)["u"]
        back = back.conj() if conjugate else back
        off = np.abs(L.rmatvec(mine, conjugate) - back[L.owned]).max(initial=0)
        worst = max(worst, off / (np.finfo(dtype).eps * max(1.0, np.abs(back).max())))
    # flat, several columns, vectors
    assert (L @ mine.ravel() == got.ravel()).all()
    both = L @ np.stack([mine, 2 * mine], axis=-1)
    assert (both[..., 0] == got).all() and (both[..., 1] == 2 * got).all()
    v = L.make_vector(mine)
    assert (L.from_bricks(L @ v) == got).all() and (L.from_bricks(v) == mine).all()
    ones = am.Vector(L, fill=1.0)
    assert abs(float(ones.dot(ones)) - x.size) < 1e-3, "padding is no point"
assert worst < 500 and transposed > SEEDS / 4, (worst, transposed)
print("done", flush=True)
"""


@pytest.mark.parametrize(("ranks", "seeds"), [(1, 40), (2, 24), (3, 24), (4, 24), (8, 16)])
def test_random_stencils_from_tables_equal_the_interpreter(on_ranks, ranks, seeds):
    script = RANDOM.replace("SEEDS", str(seeds)).replace("COMPILED", "False")
    assert on_ranks(ranks, script, CXX="/there/is/none").count("done") == ranks


def test_random_stencils_that_one_rank_compiles_equal_the_interpreter(on_ranks, tmp_path):
    script = RANDOM.replace("SEEDS", "8").replace("COMPILED", "True")
    cache = tmp_path / "cache"
    assert on_ranks(4, script, ASTERISM_STENCIL_CACHE=str(cache)).count("done") == 4
    files = list(cache.iterdir())
    assert files and {f.suffix for f in files} == {".so", ".size"}


def test_the_random_stencils_find_a_planted_fault(monkeypatch):
    """Constants of a kernel in the wrong order of its names."""
    case = next(
        c for c in map(lambda s: Linear(s, small=False), range(40)) if "c" in c.stencil.facts.inputs and c.d == 2
    )
    rng = np.random.default_rng(3)
    x, c = rng.standard_normal(case.shape), rng.standard_normal(case.shape)
    made = stencil_operator.coefficient
    monkeypatch.setattr(stencil_operator, "coefficient", lambda n, v, how, domain: -made(n, v, how, domain))
    L = st.operator(case.stencil, case.shape, case.periodic, brick=case.brick, c=c, **case.constants(case.stencil))
    want = case.stencil.interpret(case.periodic, u=x, c=c, **case.constants(case.stencil))["o"]
    assert np.abs(L @ x - want).max() > 1e-3


SOLVES = """
sys.path.append(HERE)
from test_stencil_operator import laplacian
for shape, brick in (((40,), (8,)), ((23, 30), None), ((11, 9, 13), (4, 4, 4))):
    d = len(shape)
    L = am.stencil.operator(laplacian(d), shape, False, comm, brick=brick)
    want = np.random.default_rng(7).standard_normal(shape)
    b = laplacian(d).interpret(False, u=want)["out"][L.owned]
    A = am.gallery.poisson(shape)
    for ksp, pc in (("cg", "none"), ("cg", "jacobi"), ("cg", "chebyshev"), ("gmres", "jacobi"), ("bicg", "none")):
        x, info = am.solve(L, b, ksp=ksp, pc=pc, rtol=1e-10, restart=200)
        assert x.shape == b.shape and np.abs(x - want[L.owned]).max(initial=0) < 1e-7, (shape, ksp, pc)
        if pc == "none" and ksp == "cg":
            _, whole = am.solve(A, (A @ want.ravel()), ksp="cg", pc="none", rtol=1e-10)
            assert abs(info.iterations - whole.iterations) <= 1, "a matrix takes as many"
    solver = am.Solver(L, ksp="gmres", pc="none", rtol=1e-10, restart=200)
    assert np.abs(solver.solve_transpose(b.ravel()) - want[L.owned].ravel()).max(initial=0) < 1e-7
    z = solver.solve(b * (1 + 2j))
    assert np.abs(z - want[L.owned] * (1 + 2j)).max(initial=0) < 1e-6
    two = am.solve(L, np.stack([b, -b], axis=-1), x0=np.stack([0 * b, 0 * b], axis=-1), ksp="cg", pc="jacobi", rtol=1e-10)[0]
    assert np.abs(two[..., 0] + two[..., 1]).max(initial=0) < 1e-9
    try: am.solve(L, b, ksp="cg", pc="none", maxiter=2)
    except am.ConvergenceError as e: assert e.x.shape == b.shape
    else: raise AssertionError("no error")
    # a vector is in the order of bricks, and so is its solution
    v = solver.solve(L.make_vector(b))
    assert isinstance(v, am.Vector) and np.abs(L.from_bricks(v) - want[L.owned]).max(initial=0) < 1e-7
    again = solver.solve(L.make_vector(b), x0=v)
    assert solver.info.iterations == 0 and np.abs(L.from_bricks(again) - want[L.owned]).max(initial=0) < 1e-7
    stranger = am.stencil.operator(laplacian(1), (9 * size,), False, comm, brick=(4,)).make_vector()
    assert "L.make_vector makes one" in message(lambda: solver.solve(stranger))
    assert "UnsupportedError" in message(lambda: solver.solve(b, checkpoint="there.ast"))
    assert "ShapeError" in message(lambda: solver.solve(np.ones((3, 3, 3, 3, 3))))
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_solvers_take_stencils(on_ranks, ranks):
    script = SOLVES.replace("HERE", repr(str(Path(__file__).parent)))
    assert on_ranks(ranks, script).count("done") == ranks


HELMHOLTZ = """
sys.path.append(HERE)
from test_stencil_operator import damped_waves
for shape, periodic, dtype in (((31, 23), False, "complex128"), ((15, 16, 15), (False, True, False), "complex128"), ((5,), False, "complex64"), ((31, 31), False, "complex64")):
    s, given = damped_waves(len(shape))
    L = am.stencil.operator(s, shape, periodic, comm, dtype=dtype, **given)
    rng = np.random.default_rng(7)
    want = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    at = np.meshgrid(*[(np.arange(n) + (0 if p else 1)) / (n + (not p)) for n, p in zip(shape, np.broadcast_to(periodic, len(shape)))], indexing="ij")
    numbers = {n: v(*at) if callable(v) else v for n, v in given.items()}
    b = s.interpret(periodic, "complex128", u=want, **numbers)["out"].astype(dtype)
    rtol, most = (1e-11, 1e-7) if dtype == "complex128" else (1e-5, 2e-2)
    for ksp, pc in (("gmres", "none"), ("gmres", "jacobi"), ("bicgstab", "jacobi"), ("gmres", "chebyshev"), ("bicg", "none"), ("gmres", "gmg")):
        more = {"restart": 300} if ksp == "gmres" else {}
        x, info = am.solve(L, b[L.owned], ksp=ksp, pc=pc, rtol=rtol, maxiter=900, **more)
        assert x.dtype == dtype and np.abs(x - want[L.owned]).max(initial=0) < most, (shape, ksp, pc)
        assert pc != "gmg" or info.iterations < 15, info.iterations
    adjoint = s.transpose(of="u").interpret(periodic, "complex128", out=want.conj(), **numbers)["u"].conj()
    assert np.abs(L.rmatvec(want[L.owned]) - adjoint[L.owned]).max(initial=0) < 10 * rtol * np.abs(adjoint).max()
    solver = am.Solver(L, ksp="gmres", pc="none", rtol=rtol, restart=300)
    x = solver.solve_transpose(s.transpose(of="u").interpret(periodic, "complex128", out=want, **numbers)["u"].astype(dtype)[L.owned])
    assert np.abs(x - want[L.owned]).max(initial=0) < most
    assert L.make_vector(want[L.owned]).numpy().dtype == dtype
    assert "must be real" in message(lambda: am.stencil.operator(s, shape, periodic, comm, **given))
print("done", flush=True)
"""


def damped_waves(d):
    """-div grad u - k^2 (1 + 0.5 i) c u, with c from 1 to 2: absorbing, and not symmetric with the flow along the first axis."""
    at = st.indices(d)
    u, c, out, h = st.grid("u", d), st.grid("c", d), st.grid("out", d), st.constant("h")
    total = 2.0 * d * u(*at)
    for axis in range(d):
        for step in (-1, 1):
            total = total - u(*(i + step * (a == axis) for a, i in enumerate(at)))
    first = u(at[0] + 1, *at[1:]) - u(at[0] - 1, *at[1:])
    value = total / (h * h) + 0.5j * first / h - st.constant("k2") * c(*at) * u(*at)
    return st.assign(out(*at), value), {"h": 1 / 32, "k2": 9 * (1 + 0.5j), "c": lambda *x: 1 + x[0] + 0 * sum(x)}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_solvers_take_stencils_of_complex_numbers(on_ranks, ranks):
    """On 4 ranks some have no points of the smallest grid."""
    script = HELMHOLTZ.replace("HERE", repr(str(Path(__file__).parent)))
    assert on_ranks(ranks, script).count("done") == ranks


def test_a_complex_stencil_is_its_matrix():
    """Diagonal, bound, transpose and adjoint."""
    s, given = damped_waves(2)
    given["c"] = np.ones((6, 7))
    L = st.operator(s, (6, 7), dtype=complex, **given)
    A = np.stack([(L @ e.reshape(6, 7)).ravel() for e in np.eye(42)], axis=1)
    d = aligned((L._h.rows.local_size,), complex)
    L._h.diagonal(d)
    np.testing.assert_allclose(L.from_bricks(d).ravel(), A.diagonal(), rtol=1e-13)
    assert L._h.bound >= np.abs(np.linalg.eigvals(A / A.diagonal()[:, None])).max()
    np.testing.assert_allclose(L.rmatvec(np.ones((6, 7))).ravel(), A.conj().sum(0), rtol=1e-12)
    np.testing.assert_allclose(L.rmatvec(np.ones((6, 7)), conjugate=False).ravel(), A.sum(0), rtol=1e-12)
    with pytest.raises(am.DtypeError, match="real numbers are needed, or a complex dtype"):
        st.operator(coefficient(), (8, 8), a=np.full((8, 8), 1j))


def test_diagonal_and_bound_come_from_the_stencil():
    i, j = st.indices(2)
    u, a, out = (st.grid(n, 2) for n in ("u", "a", "out"))
    s = st.assign(out(i, j), st.where(i == 0, 5.0 * u(i, j), a(i, j) * (3.0 * u(i, j) - u(i, j + 1)) - u(i - 1, j)))
    L = st.operator(s, (9, 7), a=lambda x, y: 1 + x + 0 * y)
    x = np.arange(1, 10)[:, None] / 10.0
    want = np.where(np.arange(9)[:, None] == 0, 5.0, 3 * (1 + x)) * np.ones((9, 7))
    d = aligned((L._h.rows.local_size,), np.float64)
    L._h.diagonal(d)
    np.testing.assert_allclose(L.from_bricks(d), want, rtol=1e-14)
    assert (d > 0).all(), "also in the padding"
    assert L._h.bound == pytest.approx(np.max((4 * (1 + x[1:]) + 1) / (3 * (1 + x[1:]))))


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (am.ShapeError, "2 dimensions", lambda s: st.operator(s, (8, 8, 8))),
        (am.ShapeError, "multiple of the 8 points", lambda s: st.operator(s, (202, 8), True)),
        (am.InputError, "no constant 'h'", lambda s: st.operator(s, (8, 8), h=1.0)),
        (am.InputError, "or leave it out", lambda s: st.operator(st.fuse(far()), (8, 8), brick=(2, 2))),
        (am.InputError, "not linear", lambda s: st.operator(square(), (8, 8))),
        (am.InputError, "no stencil", lambda s: st.operator("laplace", (8, 8))),
        (am.InputError, "has no value", lambda s: st.operator(constant(), (8, 8))),
        (am.InputError, "give all of these but", lambda s: st.operator(coefficient(), (8, 8))),
        (am.ShapeError, "my points have", lambda s: st.operator(coefficient(), (8, 8), a=np.ones((4, 4)))),
        (
            am.ShapeError,
            r"'a' has the shape \(3, 4\); my points have \(8, 8\)",
            lambda s: st.operator(coefficient(), (8, 8), a=lambda x, y: np.ones((3, 4))),
        ),
        (am.InputError, "not finite", lambda s: st.operator(coefficient(), (8, 8), a=np.full((8, 8), np.nan))),
        (am.DtypeError, "'c' is 1j; in float64", lambda s: st.operator(constant(), (8, 8), c=1j)),
        (am.DtypeError, "ranks is 1.5", lambda s: st.operator(s, (8, 8), ranks=(1.5, 1))),
        (am.ShapeError, "ranks is .* 2 integers are needed", lambda s: st.operator(s, (8, 8), ranks=(1,))),
        (am.InputError, "spacing=3: the name of a constant", lambda s: st.operator(s, (8, 8), spacing=3)),
        (am.DtypeError, "'float16' is none of", lambda s: st.operator(s, (8, 8), dtype=np.float16)),
        (am.ShapeError, "my points have", lambda s: st.operator(s, (8, 8)) @ np.ones((4, 4))),
        (am.DtypeError, "Make A with dtype='complex128'", lambda s: st.operator(s, (8, 8)) @ np.ones((8, 8), complex)),
        (TypeError, "by its products alone", lambda s: am.Matrix.from_scipy(st.operator(s, (8, 8)))),
    ],
)
def test_errors_say_what_is_wrong(error, text, call):
    with pytest.raises(error, match=text):
        call(laplacian(2))


def two():
    return (*st.indices(2), *(st.grid(n, 2) for n in ("u", "a", "out")))


def far():
    i, j, u, _, out = two()
    return st.assign(out(i, j), u(i - 3, j))


def square():
    i, j, u, _, out = two()
    return st.assign(out(i, j), u(i, j) * u(i, j))


def constant():
    i, j, u, _, out = two()
    return st.assign(out(i, j), st.constant("c") * u(i, j))


def coefficient():
    i, j, u, a, out = two()
    return st.assign(out(i, j), a(i, j) * u(i, j))


def test_a_compiler_that_fails_on_one_rank_is_an_error_on_all(on_ranks, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho the disk is full >&2\nexit $(test $1 = --version; echo $?)\n")
    broken.chmod(0o700)
    script = f"""
sys.path.append({str(Path(__file__).parent)!r})
from test_stencil_operator import laplacian
if rank == 0: os.environ["CXX"] = {str(broken)!r}
text = message(lambda: am.stencil.operator(laplacian(2), (8, 8), comm=comm))
assert "the disk is full" in text, text
print("done", flush=True)
"""
    assert on_ranks(3, script, ASTERISM_STENCIL_CACHE=str(tmp_path / "cache")).count("done") == 3


def test_a_matrix_in_another_order_is_refused():
    n = 16
    L = st.operator(laplacian(2), (n, n))
    P = am.gallery.poisson((n, n))
    with pytest.raises(am.UnsupportedError, match=r"order of its bricks.*adjoint=A\.rmatvec"):
        am.solve(L, np.ones(n * n), P=P, ksp="bicg", pc="lu")
    A = am.Operator(lambda v: L @ v, rows=L.local_shape[0], adjoint=L.rmatvec)
    x, info = am.solve(A, np.ones(n * n), P=P, ksp="bicg", pc="lu", rtol=1e-10)
    assert info.iterations <= 2 and np.abs(L @ x - 1).max() < 1e-8


def test_one_sided_differences_need_points_enough(rng):
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    for order, accuracy in ((1, 2), (2, 4), (2, 10)):
        s = st.assign(out(i), st.derivative(u, (i,), 0, order, accuracy, closure=True))
        least = order + accuracy
        for n in (least, least + 1, least + 7):
            x = np.linspace(0, 1, n)
            degree = order + accuracy - 1
            want = np.polyder(np.poly1d([1.0] + [0.0] * degree), order)(x)
            h = x[1]
            got = s.interpret(u=x**degree)["out"] / h**order
            np.testing.assert_allclose(got, want, atol=1e-6 * np.abs(want).max())
            np.testing.assert_allclose(st.compile(s, n)(u=x**degree) / h**order, got, atol=1e-8 * np.abs(want).max())
        for n in (1, least - 1):
            for make in (st.compile, st.operator, lambda s, n: s.interpret(u=np.ones(n))):
                with pytest.raises(am.ShapeError, match=f"axis 0 has {n} points.*need {least}"):
                    make(s, n)


def test_a_number_is_the_brick_of_each_axis():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    s = st.assign(out(i, j), u(i + 1, j) - u(i, j - 1))
    assert st.operator(s, (16, 16), brick=4).brick == (4, 4)
    assert st.compile(s, (16, 16), brick=4).source.brick == st.generate(s, brick=4).brick == (4, 4)
    assert s.source(brick=4) == s.source(brick=(4, 4))
    with pytest.raises(am.InputError, match="2 positive sizes"):
        st.operator(s, (16, 16), brick=[4])


@pytest.mark.parametrize("value", [np.nan, np.inf, complex(0, np.nan)])
def test_constants_are_numbers(value):
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    with pytest.raises(am.InputError, match="constant 'h' is"):
        st.operator(st.assign(out(i), u(i) * st.constant("h")), 16, h=value, dtype=np.complex128)


@pytest.mark.parametrize(
    "difference",
    [
        "h=1.0 + comm.rank",
        "h=1.0, points=('nodes', 'cells')[comm.rank]",
        "h=1.0, points='cells', interpolation=('linear', 'constant')[comm.rank]",
        "h=1.0, dtype=('f4', 'f8')[comm.rank]",
        "h=1.0, c=(np.ones((8, 8)), lambda i, j: 1.0)[comm.rank]",
    ],
)
def test_ranks_that_make_different_operators_are_told(on_ranks, difference):
    script = f"""
i, j = am.stencil.indices(2)
u, o, c = (am.stencil.grid(n, 2) for n in ("u", "o", "c"))
h = am.stencil.constant("h")
value = (4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)) / h
if {"c=" in difference}: value = value * c(i, j)
try:
    am.stencil.operator(am.stencil.assign(o(i, j), value), (16, 16), comm=comm, {difference})
except am.CommError as e:
    assert "do not say the same" in str(e), e
    print("told", flush=True)
"""
    assert on_ranks(2, script).count("told") == 2


def test_ranks_with_different_stencils_are_told(on_ranks):
    script = """
i, j = am.stencil.indices(2)
u, o = am.stencil.grid("u", 2), am.stencil.grid("o", 2)
value = (4.0 + comm.rank) * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)
try:
    am.stencil.operator(am.stencil.assign(o(i, j), value), (16, 16), comm=comm)
except am.CommError as e:
    assert "the stencil is" in str(e), e
    print("told", flush=True)
"""
    assert on_ranks(2, script).count("told") == 2


@pytest.mark.parametrize("form", range(4))
def test_a_coefficient_that_falls_out_needs_no_array_for_the_diagonal(form):
    """It was refused, as if the array had not been given."""
    (i,) = st.indices(1)
    u, a, out = st.grid("u", 1), st.grid("a", 1), st.grid("out", 1)
    c = [a(i) - a(i) + 3.0, 0 * a(i) + 3.0, (i - i) * a(i) + 3.0, st.where((i * 2) % 2 == 1, a(i), 3.0)][form]
    L = st.operator(st.assign(out(i), c * u(i) - u(i + 1)), 20, of="u", a=np.full(20, 7.0))
    x = np.arange(20.0)
    assert np.array_equal(L @ x, 3 * x - np.append(x[1:], 0))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_no_columns(dtype):
    L = st.operator(laplacian(2), (20, 17), dtype=dtype)
    none = np.zeros((20, 17, 0))
    for product in (L.__matmul__, L.rmatvec, lambda x: L.rmatvec(x, conjugate=False)):
        assert product(none).shape == none.shape
    solver = am.Solver(L, ksp="gmres", pc="gmg")
    assert solver.solve(none).shape == none.shape and solver.solve_transpose(none, conjugate=True).shape == none.shape
