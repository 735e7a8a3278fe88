"""The stencil language: what it means, what it refuses and where, what a stencil costs, weights of differences."""

import inspect
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import asterism as am
from asterism import stencil as st


def seven_points(alpha, beta, name="x"):
    i, j, k = st.indices(3)
    x = st.grid(name, 3)
    around = x(i + 1, j, k) + x(i - 1, j, k) + x(i, j + 1, k) + x(i, j - 1, k) + x(i, j, k + 1) + x(i, j, k - 1)
    return alpha * x(i, j, k) + beta * around


def operations_of_the_paper():
    """The five operations of the multigrid cycle of Antepara et al., 2024."""
    i, j, k = st.indices(3)
    x, b, r, Ax, fine, coarse = (st.grid(n, 3) for n in ("x", "b", "r", "Ax", "fine", "coarse"))
    alpha, beta, gamma = (st.constant(n) for n in ("alpha", "beta", "gamma"))
    apply = st.assign(Ax(i, j, k), seven_points(alpha, beta))
    smooth = st.assign(x(i, j, k), x(i, j, k) + gamma * (Ax(i, j, k) - b(i, j, k)))
    residual = st.assign(r(i, j, k), b(i, j, k) - Ax(i, j, k))
    children = [fine(2 * i + a, 2 * j + c, 2 * k + d) for a in (0, 1) for c in (0, 1) for d in (0, 1)]
    restriction = st.assign(coarse(i, j, k), 0.125 * sum(children[1:], children[0]))
    interpolation = st.assign(fine(i, j, k), fine(i, j, k) + coarse(i // 2, j // 2, k // 2))
    return apply, smooth, st.fuse(residual, smooth), restriction, interpolation


def test_cost_is_table_iv_of_the_paper():
    costs = [s.cost() for s in operations_of_the_paper()]
    assert [(c.flops, c.bytes) for c in costs] == [(8, 16), (4, 32), (6, 40), (8, 72), (8, 136)]
    assert [round(c.intensity, 3) for c in costs] == [0.5, 0.125, 0.15, 0.111, 0.059]
    assert operations_of_the_paper()[0].cost(np.float32).intensity == 1.0
    assert costs[0].loads == 7 and costs[0].stores == 1


def test_cost_of_what_is_no_linear_sum():
    i, j = st.indices(2)
    u, a, out = st.grid("u", 2), st.grid("a", 2), st.grid("out", 2)
    flux = a(i, j) * (u(i + 1, j) - u(i, j))
    c = st.assign(out(i, j), flux * flux + st.sqrt(flux)).cost()
    assert (c.flops, c.loads, c.bytes) == (5, 3, 24)  # the flux once: 2, and product, root, sum


def test_interpreter_of_one_space_against_numpy():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5, 4, 6))
    i, j, k = st.indices(3)
    apply = st.assign(st.grid("y", 3)(i, j, k), seven_points(st.constant("alpha"), st.constant("beta", 2.0)))
    want = -3.0 * x + 2.0 * sum(np.roll(x, s, a) for a in range(3) for s in (1, -1))
    np.testing.assert_allclose(apply.interpret(periodic=True, x=x, alpha=-3.0)["y"], want, rtol=1e-13)
    p = np.pad(x, 1)
    inner = [slice(1, -1)] * 3
    want = -3.0 * x + 2.0 * sum(np.roll(p, s, a)[tuple(inner)] for a in range(3) for s in (1, -1))
    np.testing.assert_allclose(apply.interpret(x=x, alpha=-3.0)["y"], want, rtol=1e-13)


def test_interpreter_of_two_spaces():
    _, _, _, restriction, interpolation = operations_of_the_paper()
    rng = np.random.default_rng(2)
    fine, coarse = rng.standard_normal((4, 6, 8)), rng.standard_normal((2, 3, 4))
    want = fine.reshape(2, 2, 3, 2, 4, 2).mean(axis=(1, 3, 5))
    np.testing.assert_allclose(restriction.interpret(fine=fine)["coarse"], want, rtol=1e-13)
    want = fine + np.kron(coarse, np.ones((2, 2, 2)))
    np.testing.assert_allclose(interpolation.interpret(fine=fine, coarse=coarse)["fine"], want, rtol=1e-13)


def test_interpreter_of_conditions_indices_and_reductions():
    i, j = st.indices(2)
    u, v = st.grid("u", 2), st.grid("v", 2)
    inside = (i > 0) & ~(i == i.extent - 1) | (j * 2 - 3 >= i)
    s = st.fuse(
        st.assign(v(i, j), st.where(inside, abs(u(i, j)), i + 0.5 * ((i + j) % 3))),
        st.reduce("sum", "total", v(i, j)),
        st.reduce("min", "least", st.minimum(v(i, j), st.maximum(0.25, u(i, j)))),
    )
    a = np.random.default_rng(3).standard_normal((4, 5))
    rows, columns = np.indices(a.shape)
    v = np.where((rows > 0) & (rows != 3) | (2 * columns - 3 >= rows), abs(a), rows + 0.5 * ((rows + columns) % 3))
    got = s.interpret(u=a)
    np.testing.assert_array_equal(got["v"], v)
    assert got["total"] == v.sum() and got["least"] == np.minimum(v, np.maximum(0.25, a)).min()


def test_red_black_updates_are_allowed_and_others_not():
    i, j = st.indices(2)
    u = st.grid("u", 2)
    mean = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1))
    st.assign(u(i, j), st.where((i + j) % 2 == 1, mean, u(i, j)))
    st.assign(u(i, j), st.where((i + j) % 2 == st.constant("colour"), mean, u(i, j)))
    st.assign(u(i, j), st.where((i + j) % 2 != 0, mean, u(i, j)))
    for wrong in (
        mean,
        st.where(i % 2 == 1, mean, u(i, j)),
        st.where((i + j) % 2 == 1, mean + u(i - 1, j - 1), u(i, j)),
        st.where((i + j) % 2 != 2, mean, u(i, j)),
        st.where((i + j) % 2 != 0.5, mean, u(i, j)),
        st.where((i + j) % 2 != st.constant("colour"), mean, u(i, j)),
    ):
        with pytest.raises(am.InputError, match="order of the points"):
            st.assign(u(i, j), wrong)


def test_red_black_updates_go_around_even_numbers_of_points_only():
    i, j = st.indices(2)
    u = st.grid("u", 2)
    along = st.assign(u(i, j), st.where((i + j) % 2 == 0, u(i, j - 1) + u(i, j + 1), u(i, j)))
    with pytest.raises(am.ShapeError, match="axis 1 is periodic with 5 points, an odd number.*Take 6 points"):
        along.interpret((False, True), u=np.ones((4, 5)))
    with pytest.raises(am.ShapeError, match="axis 1 is periodic with 5 points, an odd number"):
        st.compile(along, (5, 5), True, brick=5)
    for shape, periodic in (((5, 4), True), ((5, 5), (True, False))):
        want = np.ones(shape)
        want[np.indices(shape).sum(0) % 2 == 0] = 2
        want[:, [0, -1]] -= 0 if shape[1] == 4 else (want[:, [0, -1]] == 2)
        np.testing.assert_array_equal(along.interpret(periodic, u=np.ones(shape))["u"], want)


def test_integers_and_spacings_of_numpy():
    (i,) = st.indices(np.int64(1))
    u, c = st.grid("u", np.int32(1)), st.grid("c", 1)
    one, two = np.int64(1), np.uint8(2)
    assert u(i + one).offsets == u(one + i).offsets == u(two * i - i + 1).offsets == (1,)
    assert c(i // two + one).offsets == (2,) and u(i * two).scale == 2
    value = u(i) ** two * ((i + one) % two) + st.laplacian(u, (i,), spacing=np.array([0.5]))
    same = u(i) ** 2 * ((i + 1) % 2) + st.derivative(u, (i,), np.int64(0), two, two, 0.5)
    out, x = st.grid("out", 1), np.arange(5.0)
    got, want = (st.assign(out(i), v).interpret(u=x)["out"] for v in (value, same))
    np.testing.assert_array_equal(got, want)
    assert st.weights(one, np.arange(-1, 2)) == st.weights(1, (-1, 0, 1))


I1, (I3, J3, K3) = st.indices(1)[0], st.indices(3)
U1, U3 = st.grid("u", 1), st.grid("u", 3)
V3 = st.grid("v", 3)
MISTAKES = [
    (lambda: U3(I3, J3), "has 3 dimensions; 2 indices"),
    (lambda: U3(J3, I3, K3), "made of the index 'i'"),
    (lambda: U3(3 * I3, J3, K3), "factor 3"),
    (lambda: U3(2 * I3, J3, K3), "different spaces"),
    (lambda: U3(I3 * 0.5, J3, K3), "is a Operation"),
    (lambda: I3 // 3, "// 3 is not"),
    (lambda: U3(I3, J3, K3) ** 0.5, "a power must be"),
    (lambda: 1.0 if U3(I3, J3, K3) > 0 else 0.0, "known at run time"),
    (lambda: U3(I3, J3, K3) + (U3(I3, J3, K3) > 0), "a condition is no number"),
    (lambda: (I3 > 0) & U3(I3, J3, K3), "between a condition and a number"),
    (lambda: st.where(True, 1.0, 2.0), "where needs a condition"),
    (lambda: st.where(I3 == 0, 1.0, J3 == 1), "a condition is no number"),
    (lambda: U3(I3, J3, K3) + U3, "Call it with indices"),
    (lambda: st.grid("a b", 2), "identifier"),
    (lambda: st.grid("a", 4), "1, 2 or 3"),
    (lambda: st.assign(V3, 1.0), "left side"),
    (lambda: st.assign(V3(I3 + 1, J3, K3), U3(I3, J3, K3)), "left side"),
    (lambda: st.assign(V3(I3, J3, K3), I3 > 0), "a condition is no number"),
    (lambda: st.assign(V3(I3, J3, K3), U1(I1)), "All grids of a stencil"),
    (lambda: st.assign(V3(I3, J3, K3), U3(I3, J3, K3) * (I3 // 2)), "not a number"),
    (lambda: st.assign(V3(I3, J3, K3), U3(I3, J3, K3) + U3(2 * I3, 2 * J3, 2 * K3)), "two index spaces"),
    (lambda: st.reduce("mean", "m", U3(I3, J3, K3)), "sum, max or min"),
    (lambda: st.fuse(st.assign(V3(I3, J3, K3), 1.0), st.assign(V3(I3, J3, K3), 2.0)), "assigned twice"),
    (lambda: st.weights(2, (0, 1)), "at least"),
    (lambda: st.weights(1, (0, 1, 1)), "not distinct"),
    (lambda: st.derivative(U3, (I3, J3, K3), 0, 2, accuracy=3), "even"),
    (lambda: U1(I1) * 10**400, "an integer of about 401 digits"),
    (lambda: U1(I1 + 10**400), "at most 2147483647"),
    (lambda: I1 % 10**400, "an integer of about 401 digits"),
    (lambda: U1(I1) * Fraction(10**400), "a Fraction beyond any float"),
    (lambda: st.constant("c", 10**400), "an integer of about 401 digits"),
    (lambda: I1 // J3, "i // 2 is there"),
    (lambda: st.indices(2.0), "1, 2 or 3 dimensions, not 2.0"),
    (lambda: st.grid("a", 2.0), "1, 2 or 3 dimensions, not 2.0"),
    (lambda: st.fuse(), "at least one stencil"),
    (lambda: st.fuse(1), "not a int"),
    (lambda: st.weights(1, [0, 1j]), "an offset is 1j"),
    (lambda: st.weights(0, ["a"]), "an offset is 'a'"),
    (lambda: st.weights(1, [0, float("nan"), 1]), "an offset is nan"),
    (lambda: st.weights(1, 3), "offsets is 3"),
    (lambda: st.weights(1, (0, 1), float("inf")), "at is inf"),
    (lambda: st.derivative(U1, (I1,), 0, 1, 2, 0), "the spacing is 0.0"),
    (lambda: st.derivative(U1, (I1,), 0, 2, 2, 1e-200), "the spacing is 1e-200"),
    (lambda: st.derivative(U1, (I1,), 0, 1, 2, "h"), "the spacing is 'h'"),
    (lambda: st.derivative(U1, (I1 + 1,), 0, 1, closure=True), "the index of axis 0 itself"),
    (lambda: st.derivative(U1, I1, 0, 1), "at is a Index"),
    (lambda: st.laplacian(U1, (0.5,)), "at has float"),
    (lambda: st.laplacian("u", (I1,)), "a str is no grid"),
    (lambda: st.derivative(U1, (I1,), 0.0, 1), "axis 0.0"),
]


@pytest.mark.parametrize("case", range(len(MISTAKES)))
def test_errors_show_the_line_of_the_user(case):
    mistake, text = MISTAKES[case]
    with pytest.raises(am.InputError) as error:
        mistake()
    line = inspect.getsourcelines(mistake)[1]
    assert text in str(error.value) and f"{__file__}:{line}: (lambda" in str(error.value), error.value


def test_missing_and_unknown_arguments():
    i, j, k = st.indices(3)
    s = st.assign(st.grid("y", 3)(i, j, k), seven_points(st.constant("alpha"), 1.0))
    x = np.zeros((2, 2, 2))
    for given, text in (
        ({}, "'alpha' has no value"),
        ({"alpha": 1, "c": 2}, "no constant 'c'"),
        ({"alpha": 1, "x": x[0]}, "dimensions"),
    ):
        with pytest.raises((am.InputError, am.ShapeError), match=text):
            s.interpret(**{"x": x, **given})
    with pytest.raises(am.DtypeError, match="'int64' is none of float32"):
        s.interpret(dtype=int, x=x, alpha=1.0)


def test_arrays_that_tell_no_shape():
    i, j = st.indices(2)
    u, c, out = st.grid("u", 2), st.grid("c", 2), st.grid("out", 2)
    coarse, fine = st.assign(out(i, j), u(2 * i, 2 * j)), st.assign(out(i, j), c(i // 2, j // 2) + u(i, j))
    for shape in ((), (4,), (4, 4, 4)):
        with pytest.raises(am.ShapeError, match=f"'u' has {len(shape)} dimensions; the stencil has 2"):
            coarse.interpret(u=np.ones(shape))
        with pytest.raises(am.ShapeError, match=f"'c' has {len(shape)} dimensions; the stencil has 2"):
            fine.interpret(u=np.ones((4, 4)), c=np.ones(shape))
    with pytest.raises(am.ShapeError, match=r"cannot be known. Give one of that shape, such as out=np.zeros"):
        st.assign(out(i, j), 1.5).interpret()
    assert st.assign(out(i, j), 1.5).interpret(out=np.zeros((2, 3)))["out"].tolist() == [[1.5] * 3] * 2
    with pytest.raises(am.ShapeError, match=r"shape \(0, 3\): without points there is no max 'm'"):
        st.reduce("max", "m", u(i, j)).interpret(u=np.ones((0, 3)))
    assert st.reduce("sum", "m", u(i, j)).interpret(u=np.ones((0, 3))) == {"m": 0.0}
    with pytest.raises(am.ShapeError, match="the array 'u' is not one"):
        coarse.interpret(u=[[1.0, 2.0], [3.0]])
    with pytest.raises(am.InputError, match="the constant 'k' is an integer of about 401 digits"):
        st.assign(out(i, j), st.constant("k") * u(i, j)).interpret(u=np.ones((2, 2)), k=10**400)


def test_weights_against_fornbergs_tables():
    half = Fraction(1, 2)
    assert st.weights(1, (-4, -3, -2, -1, 0, 1, 2, 3, 4)) == [
        Fraction(*p) for p in ((1, 280), (-4, 105), (1, 5), (-4, 5), (0, 1), (4, 5), (-1, 5), (4, 105), (-1, 280))
    ]
    assert st.weights(4, range(-3, 4)) == [
        Fraction(*p) for p in ((-1, 6), (2, 1), (-13, 2), (28, 3), (-13, 2), (2, 1), (-1, 6))
    ]
    assert st.weights(2, range(6)) == [Fraction(*p) for p in ((15, 4), (-77, 6), (107, 6), (-13, 1), (61, 12), (-5, 6))]
    assert st.weights(1, (-3 * half, -half, half, 3 * half)) == [
        Fraction(*p) for p in ((1, 24), (-9, 8), (9, 8), (-1, 24))
    ]
    assert st.weights(0, (0, 1), half) == [half, half]


@pytest.mark.parametrize("order", range(5))
def test_weights_are_exact_for_polynomials(order):
    rng = np.random.default_rng(order)
    points = sorted({Fraction(int(p), 7) for p in rng.integers(-40, 40, 9 + order)})
    at = Fraction(3, 5)
    w = st.weights(order, points, at)
    for degree in range(len(points)):
        factor = 1
        for m in range(order):
            factor *= degree - m
        want = factor * at ** (degree - order) if degree >= order else 0
        assert sum(a * p**degree for a, p in zip(w, points, strict=True)) == want
    floats = st.weights(order, [float(p) for p in points], float(at))
    np.testing.assert_allclose(floats, [float(a) for a in w], rtol=1e-9)


@pytest.mark.parametrize(("order", "accuracy"), [(1, 2), (1, 4), (2, 2), (2, 6), (2, 10), (3, 4)])
def test_derivatives_with_closures_are_exact_for_polynomials(order, accuracy):
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    s = st.assign(out(i), st.derivative(u, (i,), 0, order, accuracy, spacing=0.5, closure=True))
    n, degree = 3 * (order + accuracy), order + accuracy - 1
    x = 0.5 * np.arange(n) / n
    polynomial = np.polynomial.Polynomial(np.random.default_rng(0).standard_normal(degree + 1))
    got = s.interpret(u=polynomial(x * n))["out"]
    want = polynomial.deriv(order)(x * n)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9 * abs(want).max())


def test_the_language_needs_no_compiled_library():
    script = """
import sys; sys.modules['asterism._core'] = None
import asterism as am
i, = am.stencil.indices(1)
u, out = am.stencil.grid("u", 1), am.stencil.grid("out", 1)
print(am.stencil.assign(out(i), u(i + 1)).interpret(u=[1, 2])["out"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[2. 0.]\n", done.stderr


def test_names_of_arguments_are_names_of_grids_and_constants_too():
    (i,) = st.indices(1)
    for name in ("self", "out"):
        u, k = st.grid("u", 1), st.constant(name)
        s = st.assign(st.grid("y", 1)(i), k * u(i))
        x = np.arange(5.0)
        assert np.array_equal(st.compile(s, 5)(u=x, **{name: 3.0}), 3 * x)
        assert np.array_equal(s.interpret(u=x, **{name: 3.0})["y"], 3 * x)
    me = st.grid("self", 1)
    assert np.array_equal(st.compile(st.assign(st.grid("y", 1)(i), 2.0 * me(i)), 5)(self=x), 2 * x)


def test_a_nan_in_a_minimum_of_numbers_stays():
    (i,) = st.indices(1)
    u = st.grid("u", 1)
    for f in (st.minimum, st.maximum):
        for pair in ((1.0, np.nan), (np.nan, 1.0)):
            s = st.assign(st.grid("y", 1)(i), u(i) + f(*pair))
            assert np.isnan(st.compile(s, 4)(u=np.ones(4))).all() and np.isnan(s.interpret(u=np.ones(4))["y"]).all()


@pytest.mark.parametrize("order", [2.0, -1, True, "2"])
def test_orders_of_derivatives_are_integers(order):
    with pytest.raises(am.InputError, match="order is .*an integer from 0 is needed"):
        st.weights(order, (-1, 0, 1))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda u: st.generate(u), "stencil.generate: a Grid is no stencil; am.stencil.assign makes one"),
        (lambda u: st.compile(u, (8, 8)), "stencil.compile: a Grid is no stencil; am.stencil.assign makes one"),
        (lambda u: st.Stencil([]), r"\[\] is no list of statements"),
        (lambda u: st.Stencil([u]), "is no list of statements"),
        (lambda u: st.Stencil(3), "3 is no list of statements"),
    ],
)
def test_what_is_no_stencil_is_refused(call, text):
    with pytest.raises(am.InputError, match=text):
        call(st.grid("u", 2))


def test_values_are_shown_as_they_are_written():
    i, j = st.indices(2)
    u, c, h = st.grid("u", 2), st.grid("c", 2), st.constant("h")
    names = {
        "i": i,
        "j": j,
        "u": u,
        "c": c,
        "h": h,
        "where": st.where,
        "sqrt": st.sqrt,
        "minimum": st.minimum,
        "abs": abs,
    }
    for text in (
        "u(i, j) - (u(i + 1, j) - 2 * u(i, j - 1)) / (h * h)",
        "where((i > 0) & (j < j.extent - 1), -u(i, j) + 1.5, c(i // 2, j // 2))",
        "~((i > 0) | ((i + j) % 2 == 0))",
        "sqrt(abs(u(2 * i + 1, 2 * j))) * minimum(h, 0)",
        "u(i, j) / (u(i, j) / 2) - -u(i, j) * (1+2j)",
        "2 * i - 3",
        "-i + 3",
        "i // 2 + 1",
    ):
        assert repr(eval(text, names)) == f"<asterism.stencil.Expr {text}>"
    long = u(i, j)
    for _ in range(3000):
        long = long + long * 0.5
    assert repr(long).startswith("<asterism.stencil.Expr u(i, j) + u(i, j) * 0.5 + ") and len(repr(long)) < 200
