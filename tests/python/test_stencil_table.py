"""Stencils that a kernel of the library reads from a table: without a compiler they equal the interpreter."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from stencil_cases import Case

import asterism as am
from asterism import stencil as st
from asterism.stencil.kernels import kernel, table

ROUNDING = 500.0  # units of rounding of the largest value; a wrong value is off by millions


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(kernel, "_said", set())


def five_points():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    return st.assign(out(i, j), u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - st.constant("c", 4.0) * u(i, j))


@pytest.mark.filterwarnings("ignore:A table replaces")
@pytest.mark.parametrize("seed", range(60))
def test_random_stencils_equal_the_interpreter(seed):
    assert Case(seed).compare() < ROUNDING


@pytest.mark.filterwarnings("ignore:A table replaces")
@pytest.mark.parametrize("seed", range(40))
def test_random_stencils_of_complex_numbers_equal_the_interpreter(seed):
    assert Case(seed, of_complex=True).compare() < ROUNDING


def test_the_random_stencils_find_a_fault_in_complex_numbers(monkeypatch):
    right = table._Writer._add
    monkeypatch.setattr(
        table._Writer, "_add", lambda *a, value=0.0, **n: right(*a, value=complex(value).conjugate(), **n)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert any(Case(seed, of_complex=True).compare() > 1000 * ROUNDING for seed in range(20))


def planted_offset(writer, n, right=table._Writer._write):
    """A sum of three terms or more reads its last value one point further."""
    right(writer, n)
    if n.op == "sum" and len(n.args) > 4 and writer.terms[-1][1] >= 0:
        scalar, grid, register, (p, r, k) = writer.terms[-1]
        writer.terms[-1] = (scalar, grid, register, (p, r, k + 1))


def test_the_random_stencils_find_a_planted_fault(monkeypatch):
    monkeypatch.setattr(table._Writer, "_write", planted_offset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert any(Case(seed).compare() > 1000 * ROUNDING for seed in range(10))


def test_it_says_so_once():
    x = np.arange(64.0).reshape(8, 8)
    with pytest.warns(RuntimeWarning, match="A table replaces .* no C\\+\\+ compiler was found"):
        first = st.compile(five_points(), (8, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        st.compile(five_points(), (8, 8), periodic=True)
    assert not first.compiled and "from a table" in repr(first)
    np.testing.assert_allclose(first(u=x), five_points().interpret(u=x)["out"], rtol=1e-14)


@pytest.mark.filterwarnings("ignore:A table replaces")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 3), (7, 13, 5), (8, 8, 8), (17, 3, 9)])
def test_awkward_shapes_and_long_reaches(shape, dtype):
    """Reads further than a brick, at ends where there is nothing."""
    at = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    far = u(at[0] - 9, at[1], at[2] + 11) + 2.0 * u(at[0] + 1, at[1] - 5, at[2])
    s = st.assign(out(*at), far + st.laplacian(u, at, accuracy=4))
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    if x.dtype.kind == "c":
        x *= np.exp(1j * np.arange(x.size).reshape(shape)).astype(dtype)
    got = st.compile(s, shape, dtype=dtype, brick=(4, 4, 4))(u=x)
    want = s.interpret(u=x, dtype=dtype)["out"]
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, atol=100 * np.finfo(dtype).eps * np.abs(want).max())


def test_numbers_that_are_out_of_range_are_refused():
    good = {
        "dtype": "float64", "brick": (1, 1, 4), "missing": 2, "fine": False, "registers": 1, "grids": 2, "constants": 0,
        "scalars": [("number", 0, 0, 0, 1.0)], "code": [("sum", 0, 0, 0, 0, 0, 1, (0, 0, 0))],
        "terms": [(0, 1, 0, (0, 0, 0))], "wholes": [], "stores": [(0, 0, 0, 1, (0, 0, 0))], "reductions": [],
    }  # fmt: skip
    am._core.StencilTable(**good)
    for change, text in (
        ({"scalars": [("nonsense", 0, 0, 0, 1.0)]}, "nonsense"),
        ({"scalars": [("+", 0, 0, 0, 1.0)]}, "scalar 0 of 0"),
        ({"terms": [(0, 2, 0, (0, 0, 0))]}, "grid 2 of 2"),
        ({"terms": [(0, -1, 1, (0, 0, 0))]}, "register 1 of 1"),
        ({"code": [("sum", 0, 0, 0, 0, 0, 2, (0, 0, 0))]}, "number of terms"),
        ({"code": [("index", 0, 0, 0, 0, 0, 0, (0, 0, 0))]}, "whole number"),
        ({"code": [("where", 0, 0, 0, 5, 0, 0, (0, 0, 0))]}, "register 5 of 1"),
        ({"stores": [(0, -1, 0, 1, (0, 0, 0))]}, "reduction 0 of 0"),
        ({"stores": [(0, 0, 0, 1, (0, 0, 1))]}, "parity"),
        ({"brick": (2, 1, 4)}, "missing axis"),
        ({"brick": (1, 1, 0)}, "without points"),
    ):
        with pytest.raises(am.errors.InternalError, match=text):
            am._core.StencilTable(**{**good, **change})


@pytest.mark.filterwarnings("ignore:A table replaces")
def test_numbers_that_come_together_do_not_overflow_in_silence():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    kernel = st.compile(st.assign(out(i, j), u(i, j) / 1e-310), (8, 8))
    np.testing.assert_allclose(kernel(u=np.full((8, 8), 3e-310)), 3)
    with pytest.raises(am.InputError, match="come together to inf, and the largest of float64"):
        st.compile(st.assign(out(i, j), u(i, j) * 1e200 * 1e200), (8, 8))


def test_without_the_compiled_library_numpy_interprets():
    script = (
        "import sys, warnings; sys.modules['asterism._core'] = None; import numpy as np; from asterism import stencil as st\n"
        "i, = st.indices(1); u, out = st.grid('u', 1), st.grid('out', 1); s = st.assign(out(i), u(i + 1))\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always'); k = st.compile(s, 4); k = st.compile(s, 4)\n"
        "print(k(u=np.arange(4.0)).tolist(), len(said), 'NumPy interprets' in str(said[0].message), 'interpreted' in repr(k))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[1.0, 2.0, 3.0, 0.0] 1 True True", done.stderr
