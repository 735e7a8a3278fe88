"""Stencils with long one-sided differences at the ends of the domain: kernels with rows in a loop, and how far they read."""

import numpy as np
import pytest

import asterism as am
from asterism import stencil as st
from asterism.stencil.codegen import edge_body
from asterism.stencil.codegen.sources import TARGETS, native_target
from asterism.stencil.language.reach import bricks_away, default_brick

HERE = list(TARGETS)[: list(TARGETS).index(native_target()) + 1]


def closed(d, accuracy, border=True, weights=(1.0, 2.0, 3.0)):
    """Second derivatives with closures and other weights along each axis; at the border the value itself."""
    at = st.indices(d)
    u, out = st.grid("u", d), st.grid("out", d)
    total = sum(w * st.derivative(u, at, a, 2, accuracy, closure=True) for a, w in zip(range(d), weights, strict=False))
    if border:
        on = at[0] == 0
        for i in at:
            on = on | (i == 0) | (i == i.extent - 1)
        total = st.where(on, u(*at), total)
    return st.assign(out(*at), total)


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)


def error(got, want):
    return np.abs(got - want).max() / (np.finfo(got.dtype).eps * np.abs(want).max())


@pytest.mark.parametrize(
    ("dtype", "target"),
    [(t, HERE[-1]) for t in (np.float32, np.float64, np.complex64, np.complex128)]
    + [(np.float64, t) for t in HERE[:-1]],
)
@pytest.mark.parametrize(
    ("shape", "brick", "accuracy", "border"),
    [((23,), (8,), 8, False), ((17, 25), (6, 8), 4, True), ((13, 9, 21), (4, 3, 8), 4, False)],
)
def test_kernels_equal_the_interpreter(shape, brick, accuracy, border, dtype, target):
    s, x = closed(len(shape), accuracy, border), random(shape, dtype)
    kernel = st.compile(s, shape, brick=brick, target=target, dtype=dtype)
    assert kernel.compiled and "for (int j = 0; j < rows; ++j)" in kernel.source.text
    assert error(kernel(u=x), s.interpret(u=x, dtype=dtype)["out"]) < 50


def test_mixed_conditions_reductions_and_coefficients_equal_the_interpreter():
    i, j = st.indices(2)
    u, c, out = (st.grid(n, 2) for n in ("u", "c", "out"))
    steep = st.derivative(u, (i, j), 0, 2, 6, closure=True) + st.derivative(u, (i, j), 1, 1, 6, closure=True)
    value = c(i, j) * steep + st.where((i < 3) & ~(j >= j.extent - 2), u(i, j) * st.where(j == 1, c(i, j), 0.5), steep)
    value = value + st.where(u(i, j) > 0, st.where(i == 2, 3.0, 1.0) * u(i, j), i * 0.25) + st.where(i == j, 7.0, 0.0)
    s = st.fuse(st.assign(out(i, j), value), st.reduce("max", "top", abs(steep)), st.reduce("sum", "total", steep))
    given = {"u": random((29, 18), np.float64, 1), "c": random((29, 18), np.float64, 2)}
    kernel = st.compile(s, (29, 18))
    assert "int const rows" in kernel.source.text
    got, want = kernel(**given), s.interpret(**given)
    for name, w in want.items():
        assert np.abs(got[name] - w).max() < 1e-11 * max(1.0, np.abs(w).max()), name


def test_numbers_that_conditions_choose_and_remainders_equal_the_interpreter():
    i, j = st.indices(2)
    u, c, out = (st.grid(n, 2) for n in ("u", "c", "out"))
    long = st.derivative(u, (i, j), 0, 2, 8, closure=True) + st.derivative(u, (i, j), 1, 2, 8, closure=True)
    end = i.extent - 1
    values = [
        long + (i % 3) * u(i, j) + (j % 3) * c(i, j) + ((i + j) % 3) * 0.5 + ((i + 2 * j) % 11) * u(i, j),
        st.where(i % 2 == 0, long, 2.0 * long),
        st.where((i == 0) | (i == end), 0.0, long),
        long + st.where(i == 0, 1.0, u(i, j)) + long * st.where(i == 0, 0.0, c(i, j)),
        long
        + u(i, j)
        * st.where(i == 0, 1.0, st.where(j == 0, 2.0, 3.0))
        * st.where(i == 4, st.where(i == end, 4.0, 5.0), 6.0),
        st.where(i == 0, u(i, j), st.where(j == 3, c(i, j), long)),
    ]
    for dtype in (np.float64, np.complex128):
        given = {"u": random((23, 18), dtype, 1), "c": random((23, 18), dtype, 2)}
        for value in values if dtype == np.float64 else values[::3]:
            s = st.fuse(st.assign(out(i, j), value), st.reduce("sum", "total", st.where(i == 2, 5.0, u(i, j))))
            kernel = st.compile(s, (23, 18), dtype=dtype)
            assert "int const rows" in kernel.source.text
            used = {n: given[n] for n in s.facts.inputs}
            got, want = kernel(**used), s.interpret(dtype=dtype, **used)
            for name, w in want.items():
                assert np.abs(got[name] - w).max() < 1e-11 * max(1.0, np.abs(w).max()), (name, str(value))


def test_adjoints_and_diagonals_of_numbers_that_conditions_choose():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    long = st.derivative(u, (i, j), 0, 2, 4, closure=True) + st.derivative(u, (i, j), 1, 2, 4, closure=True)
    k = st.constant("shape_of")
    for value in (
        st.where(i == 0, u(i, j), long) + (i % 2) * u(i, j),
        st.where(i == 0, u(i + 5, j), st.where(i == i.extent - 1, u(i - 7, j), u(i, j + 1))) + u(i, j),
        long + u(i, j) * st.where(i == 0, st.where(2 * j == 8, 5.0, 6.0), 7.0) * k,
        long + u(i, j) * st.where(i == 0, st.where(j == 2 * i + 3, 5.0, 6.0), st.where(j.extent == 24, 7.0, 8.0)),
    ):
        s = st.assign(out(i, j), value)
        more = {"shape_of": 2.0} if s.facts.constants else {}
        L = st.operator(s, (20, 24), **more)
        columns = [s.interpret(u=e.reshape(20, 24), **more)["out"].ravel() for e in np.eye(480)]
        A = np.column_stack(columns)
        main = np.zeros(L._h.rows.local_size)
        L._h.diagonal(main)
        assert np.abs(L.from_bricks(main).ravel() - A.diagonal()).max() < 1e-12
        y = random((20, 24), np.float64)
        assert np.abs(L.rmatvec(y).ravel() - A.T @ y.ravel()).max() < 1e-11 * np.abs(A).max()


def test_a_transpose_for_ends_stays_one():
    t = closed(2, 4).transpose(periodic=False)
    y = random((24, 24), np.float64)
    for s in (t, st.fuse(t), t.transpose(periodic=True)):
        with pytest.raises(am.InputError, match="not periodic"):
            s.interpret(periodic=True, **{s.facts.inputs[0]: y})


def test_transposes_of_many_choices_take_no_long():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    w = st.where(i == 0, 1.0, 2.0)
    for m in range(1, 24):  # each twice: 2^23 without sharing
        w = st.where(i == m, w, st.where(j == m, w, float(m)))
    t = st.assign(out(i, j), 2.0 * (w * u(i, j + 1))).transpose(periodic=False)
    assert t.facts.inputs == ("out",)


def test_what_is_not_read_does_not_matter():
    """An infinite value reaches only the points whose differences read it, also by transposes."""
    s, x = closed(2, 8, border=False), random((24, 24), np.float64)
    x[0, 0] = np.inf
    for t, given in ((s, {"u": x}), (s.transpose(periodic=False), {"out": x})):
        got, want = st.compile(t, x.shape)(**given), next(iter(t.interpret(**given).values()))
        assert (np.isfinite(got) == np.isfinite(want)).all() and 8 < np.count_nonzero(~np.isfinite(got)) < 30


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_operators_and_their_adjoints_on_ranks(on_ranks, ranks):
    script = """
import pytest
from test_stencil_ends import closed, error, random
from asterism import stencil as st
from asterism.bricks import diagonal
for shape, accuracy in (((40, 27), 10), ((20, 9, 19), 2), ((50,), 6)):
    s = closed(len(shape), accuracy)
    x, y = (random(shape, np.float64, seed) for seed in (1, 2))
    L = st.operator(s, shape, comm=comm)
    assert error(L @ x[L.owned], s.interpret(u=x)["out"][L.owned]) < 1e3 if x[L.owned].size else True
    T = s.transpose(periodic=False)
    want = T.interpret(out=y)["u"]
    assert abs(np.vdot(s.interpret(u=x)["out"], y) - np.vdot(x, want)) < 1e-11 * abs(np.vdot(x, want))
    main = np.zeros(L._h.rows.local_size)
    L._h.diagonal(main)
    with pytest.MonkeyPatch.context() as patch:  # at each point
        patch.setattr(diagonal, "_by_ends", lambda *_: None)
        each = np.zeros_like(main)
        st.operator(s, shape, comm=comm)._h.diagonal(each)
    assert (main == each).all()
    back = L.rmatvec(y[L.owned])
    assert np.abs(back - want[L.owned]).max(initial=0) < 1e-12 * np.abs(want).max()
print("done")
"""
    assert on_ranks(ranks, script).count("done") == ranks


def test_default_bricks_fit_the_shape():
    """Five points of one-sided differences of order 10 read 11 far, but from an end: within 8 points where an end is within its brick."""
    s = closed(1, 10)
    assert s.facts.reach == ((11, 11),)
    for n, brick in ((96, 8), (100, 8), (97, 12), (98, 12), (49, 12), (24, 8)):
        assert default_brick(s.statements, (n,), (False,)) == (brick,), n
    assert bricks_away(s.statements, (96,), (4,), (False,)) == (2,)
    i = st.indices(1)[0]
    u, out = st.grid("u", 1), st.grid("out", 1)
    never = st.assign(out(i), st.where((i == 3) & (i == 4), u(i + 20), st.where(i == -1, u(i - 30), u(i + 1))))
    assert bricks_away(never.statements, (64,), (8,), (False,)) == (1,)
    beyond = st.assign(out(i), st.where(i == 63, u(i + 20), st.where(2 * i == 8, u(i + 9), u(i))))
    assert bricks_away(beyond.statements, (64,), (8,), (False,)) == (2,)  # 2 * i == 8 is not looked into
    assert bricks_away(beyond.statements, (64,), (8,), (True,)) == (3,)
    with pytest.raises(
        am.InputError, match="reads 11 points far along axis 0, which is beyond the next brick of 8.*or leave it out"
    ):
        st.operator(s, 97, brick=8)
    assert st.operator(s, 97).brick == (12,)
    far = st.assign(out(i), u(i + 9) + u(i))
    assert default_brick(far.statements, (32,), (True,)) == (16,) and default_brick(
        far.statements, (32,), (False,)
    ) == (12,)
    with pytest.raises(am.InputError, match="reads 300 points far.*Give larger bricks as brick=[.]"):
        st.operator(st.assign(out(i), u(i + 300) + u(i)), 1000)


def test_default_bricks_of_short_and_of_periodic_axes():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    s = st.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    for shape, brick in (
        ((3, 4000), (3, 8)),
        ((1, 9), (1, 8)),
        ((100, 7), (10, 7)),
        ((90, 12), (9, 6)),
        ((98, 64), (7, 8)),
    ):
        L = st.operator(s, shape, periodic=shape[0] > 50)
        assert L.brick == brick, shape
        x = np.random.default_rng(0).standard_normal(shape)
        around = "wrap" if shape[0] > 50 else "constant"
        p = np.pad(x, 1, mode=around)
        want = 4 * x - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:]
        assert np.allclose(L @ x, want, atol=1e-13)
    wide = st.assign(out(i, j), u(i + 5, j) + u(i, j))
    assert st.operator(wide, (3, 16)).brick == (8, 8)
    with pytest.raises(am.ShapeError, match="periodic with 202 points"):
        st.operator(s, (202, 64), True)


def test_smoothing_steps_with_far_reads():
    """Several steps in one pass wait for all planes that the differences read."""
    shape = (24, 16, 16)
    s = closed(3, 8)
    L = st.operator(s, shape)
    assert L.brick == (8, 8, 8) and s.facts.reach[0] == (9, 9)
    b, x = (random(shape, np.float64, seed) for seed in (3, 4))
    w = 1e-3
    xs, bs = L.to_bricks(x).copy(), L.to_bricks(b)
    weights = L.to_bricks(np.full(shape, w))
    other = np.zeros_like(xs)
    steps = L._h.steps([(weights, 1.0)] * 3, 3)
    assert steps is not None
    steps.run(L._h, bs, xs, other, False, None)
    want = x
    for _ in range(3):
        want = want + w * (b - s.interpret(u=want)["out"])
    assert np.abs(L.from_bricks(xs) - want).max() < 1e-12 * np.abs(want).max()


def test_a_planted_fault_is_found(monkeypatch, own_kernels):
    """A point is far from the ends one place too early."""
    right = edge_body.EdgeBody.far_text
    monkeypatch.setattr(
        edge_body.EdgeBody,
        "far_text",
        lambda self, axis, low, high, lane=0: right(self, axis, max(0, low - 1), high, lane),
    )
    s, x = closed(2, 6), random((24, 24), np.float64)
    assert error(st.compile(s, x.shape)(u=x), s.interpret(u=x)["out"]) > 1e3
