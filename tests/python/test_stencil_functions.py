"""Functions of numbers in stencils: NumPy's in every kind of kernel, for all dtypes."""

import math

import numpy as np
import pytest
from emulated_gpu import EmulatedKernel

import asterism as am
from asterism import stencil as st

FUNCTIONS = {"exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt}
DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", ["native", "generic", "table", "cuda", "hip"])
@pytest.mark.filterwarnings("ignore:A table replaces")
def test_functions_are_those_of_numpy(dtype, how, monkeypatch, tmp_path, rng):
    """Of values that differ from point to point, of constants, and of an index."""
    if how == "table":
        monkeypatch.setenv("CXX", "no-such-compiler")
    i, j = st.indices(2)
    u, k = st.grid("u", 2), st.constant("k")
    x = rng.uniform(0.1, 2, (11, 10)).astype(dtype)
    constant = 0.75
    if dtype.startswith("complex"):
        x, constant = x + 1j * rng.uniform(-2, 2, x.shape).astype(x.real.dtype), 0.75 - 0.5j
    right = np.concatenate([x[:, 1:], np.full((11, 1), 1, dtype)], axis=1)  # what the stencil puts beyond the end
    row = np.arange(11.0)[:, None].astype(dtype)
    outputs = [st.grid(name, 2)(i, j) for name in FUNCTIONS]
    parts = []
    for name, out in zip(FUNCTIONS, outputs, strict=True):
        f = getattr(st, name)
        neighbour = st.where(j == j.extent - 1, 1.0, u(i, j + 1))
        parts.append(st.assign(out, f(u(i, j)) - 2 * f(neighbour) + f(k) * f(1.0 + i) + f(0.5)))
    s = st.fuse(*parts)
    given = {"u": x, "k": constant}
    if how in ("cuda", "hip"):
        got = EmulatedKernel(s, x.shape, (False, False), how, (8, 8), dtype, tmp_path, 1, 1)(**given)
    else:
        target = "generic" if how == "generic" else None
        got = st.compile(s, x.shape, dtype=dtype, target=target, brick=(4, 4))(**given)
    for name, f in FUNCTIONS.items():
        want = f(x) - 2 * f(right) + f(np.array(constant, dtype)) * f(1 + row) + f(0.5)
        accuracy = 200 * np.finfo(dtype).eps * abs(want).max()
        np.testing.assert_allclose(s.interpret(dtype=dtype, **given)[name], want, rtol=0, atol=accuracy)
        np.testing.assert_allclose(got[name], want, rtol=0, atol=accuracy)


@pytest.mark.parametrize("how", ["native", "table"])
@pytest.mark.filterwarnings("ignore:A table replaces")
def test_poles_and_overflow_are_those_of_numpy(how, monkeypatch):
    if how == "table":
        monkeypatch.setenv("CXX", "no-such-compiler")
    (i,) = st.indices(1)
    u, low, high = (st.grid(name, 1) for name in ("u", "low", "high"))
    s = st.fuse(
        st.assign(low(i), st.log(u(i)) + 0 * st.log(2.0)),
        st.assign(high(i), st.exp(1000 * u(i)) + st.log(st.constant("k")) + st.exp(-1e9)),
    )
    x = np.array([0.0, -1, 1, np.inf, np.nan, 3])
    got = st.compile(s, 6)(u=x, k=1.0)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got["low"], np.log(x))
        np.testing.assert_array_equal(got["high"], np.exp(1000 * x))
    assert np.isneginf(st.compile(st.assign(low(i), u(i) + st.log(0.0)), 6)(u=np.ones(6))).all()
    assert np.isposinf(st.compile(st.assign(low(i), u(i) + st.exp(1e4)), 6)(u=np.ones(6))).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_large_complex_arguments(dtype):
    """Neither part overflows before it must, and real and imaginary numbers stay so."""
    (i,) = st.indices(1)
    u, e, s, c = (st.grid(name, 1) for name in ("u", "e", "s", "c"))
    large = np.log(np.finfo(dtype).max)
    x = np.array([large + 0.2 + 1.5j, 2 * large, -2 * large + 1j, 1j * (large + 0.2), 1j * 2 * large, large / 2], dtype)
    got = st.compile(
        st.fuse(*(st.assign(o(i), f(u(i))) for o, f in ((e, st.exp), (s, st.sin), (c, st.cos)))), 6, dtype=dtype
    )(u=x)
    assert not np.isnan(np.concatenate([got[n] for n in "esc"]).view(got["e"].real.dtype)).any()
    with np.errstate(all="ignore"):
        for name, at, f in (("e", [0, 2, 3, 5], np.exp), ("s", [5], np.sin), ("c", [5], np.cos)):
            for part in ("real", "imag"):
                want = getattr(f(x[at]), part)
                np.testing.assert_allclose(
                    getattr(got[name][at], part), want, rtol=1e3 * np.finfo(dtype).eps, atol=1e-30
                )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("how", ["native", "generic", "table"])
@pytest.mark.filterwarnings("ignore:A table replaces")
def test_the_imaginary_part_of_a_logarithm_is_pi_on_the_negative_axis(dtype, how, monkeypatch):
    """Whatever the sign of a zero."""
    if how == "table":
        monkeypatch.setenv("CXX", "no-such-compiler")
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    x = np.array([-1, complex(-2, -0.0), complex(-3, 0.0)], dtype)
    s = st.assign(out(i), st.log(u(i)) + st.log(complex(-1, -0.0) * st.constant("k")))
    got = st.compile(s, 3, dtype=dtype, target="generic" if how == "generic" else None)(u=x, k=1)
    want = s.interpret(dtype=dtype, u=x, k=1)["out"]
    np.testing.assert_allclose(want, np.log([1, 2, 3]) + 2j * math.pi, rtol=1e-6)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_operators_take_functions_of_coefficients(rng):
    """A diffusion coefficient that is the exponential of a grid; its transpose too, and a logarithm that is infinite beyond the end."""
    i, j = st.indices(2)
    u, a, out = (st.grid(name, 2) for name in ("u", "a", "out"))
    face = lambda di, dj: (st.exp(a(i, j)) + st.exp(a(i + di, j + dj))) / 2  # noqa: E731
    around = ((1, 0), (-1, 0), (0, 1), (0, -1))
    diffusion = sum(face(p, q) * (u(i, j) - u(i + p, j + q)) for p, q in around)
    values = rng.standard_normal((9, 10))
    s = st.assign(out(i, j), diffusion)
    L = st.operator(s, values.shape, of="u", a=values)
    full = np.pad(np.exp(np.pad(values, 1)), 0)
    x, y = rng.standard_normal(values.shape), rng.standard_normal(values.shape)
    want, padded = np.zeros_like(x), np.pad(x, 1)
    for p, q in around:
        other = (slice(1 + p, 10 + p), slice(1 + q, 11 + q))
        want += (full[1:-1, 1:-1] + full[other]) / 2 * (x - padded[other])
    np.testing.assert_allclose(L @ x, want, rtol=1e-12, atol=1e-12)
    T = st.operator(s.transpose(of="u"), values.shape, of="out", a=values)
    assert math.isclose(np.vdot(y, L @ x), np.vdot(T @ y, x), rel_tol=1e-12)
    b = L @ x
    found, info = am.solve(L, b, ksp="cg", pc="gmg", rtol=1e-10)
    assert info.converged and np.allclose(found, x, atol=1e-6)
    s = st.assign(out(i, j), st.log(a(i, j) * a(i, j)) * u(i, j + 1))
    L, T = (st.operator(k, values.shape, of=of, a=values) for k, of in ((s, "u"), (s.transpose(of="u"), "out")))
    assert math.isclose(np.vdot(y, L @ x), np.vdot(T @ y, x), rel_tol=1e-12)


def test_what_a_function_takes_is_checked():
    (i,) = st.indices(1)
    with pytest.raises(am.InputError, match=r"(?s)a condition is no number.*test_stencil_functions.py"):
        st.exp(i == 0)
    u, out = st.grid("u", 1), st.grid("out", 1)
    with pytest.raises(am.InputError, match="not linear"):
        st.operator(st.assign(out(i), st.exp(u(i))), 8)
    assert st.assign(out(i), st.exp(u(i)) * st.sin(u(i))).cost().flops == 3
