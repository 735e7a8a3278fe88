"""Compiled stencils: random ones equal the interpreter, and faults in a pass are found."""

import os
import re

import numpy as np
import pytest
from stencil_cases import TARGETS, Case, five_points

import asterism as am
from asterism import stencil as st
from asterism.stencil.codegen import passes, prelude, sources

#: Random stencils; each is compiled, the largest for seconds. 15 and more are for changes of the code generator.
COUNT = int(os.environ.get("ASTERISM_TEST_RANDOM_STENCILS", "6"))
ROUNDING = 500.0  # units of rounding of the largest value; a wrong value is off by millions


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_stencils_equal_the_interpreter(seed):
    assert Case(seed).compare() < ROUNDING


@pytest.mark.parametrize("of_complex", [False, True])
@pytest.mark.parametrize("seed", range(max(1, COUNT // 2)))
def test_random_stencils_with_rows_in_a_loop_equal_the_interpreter(seed, of_complex, monkeypatch, own_kernels):
    monkeypatch.setattr(sources, "_MOST_UNROLLED", 0)  # as where many grids are read
    assert Case(seed, of_complex=of_complex).compare() < ROUNDING


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_a_grid_of_coefficients_for_each_neighbour(dimensions, dtype):
    at, steps = st.indices(dimensions), list(np.ndindex({1: (43,), 2: (7, 7), 3: (4, 4, 4)}[dimensions]))
    u, out, rng = st.grid("u", dimensions), st.grid("out", dimensions), np.random.default_rng(3)
    terms = [
        st.grid(f"c{m}", dimensions)(*at) * u(*(i + o - 2 for i, o in zip(at, by, strict=True)))
        for m, by in enumerate(steps)
    ]
    s = st.fuse(st.assign(out(*at), sum(terms[1:], terms[0])), st.reduce("max", "most", abs(u(*at))))
    shape = (70, 19, 13)[:dimensions]
    given = {n: rng.standard_normal(shape).astype(dtype) for n in s.facts.inputs}
    if np.dtype(dtype).kind == "c":
        given = {n: a + 1j * rng.standard_normal(shape) for n, a in given.items()}
    kernel = st.compile(s, shape, dtype=dtype)
    assert "for (int j" in kernel.source.text.split('extern "C"')[1]
    got, right = kernel(**given), s.interpret(False, dtype, **given)
    assert np.abs(got["out"] - right["out"]).max() < 100 * np.finfo(dtype).eps * np.abs(right["out"]).max()
    assert abs(got["most"] - right["most"]) < 4 * np.finfo(dtype).eps * right["most"]


@pytest.mark.parametrize("seed", [11, 14, 3, 8, 0, 10, 12, 16][: COUNT // 2])
def test_random_stencils_of_complex_numbers_equal_the_interpreter(seed):
    assert Case(seed, of_complex=True).compare() < ROUNDING


def test_the_random_stencils_find_a_fault_in_complex_products(monkeypatch, own_kernels):
    right = prelude.complex_numbers
    monkeypatch.setattr(prelude, "complex_numbers", lambda *a: right(*a).replace("- a.im * b.im", "+ a.im * b.im"))
    assert any(Case(seed, of_complex=True).compare() > 1000 * ROUNDING for seed in (11, 14))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("brick", [(2, 8), (2, 5), (3, 1)])
def test_each_operation_on_complex_numbers(brick, target, dtype):
    each_operation_on_complex_numbers(brick, target, dtype)


@pytest.mark.filterwarnings("ignore:A table replaces")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("brick", [(2, 8), (3, 1)])
def test_each_operation_on_complex_numbers_from_a_table(brick, dtype, monkeypatch):
    monkeypatch.setenv("CXX", "/no/such/compiler")
    each_operation_on_complex_numbers(brick, None, dtype)


def each_operation_on_complex_numbers(brick, target, dtype):
    i, j = st.indices(2)
    u, v, *outs = (st.grid(n, 2) for n in ("u", "v", "a", "b", "c", "d", "e", "f"))
    k, z, w = st.constant("k"), u(i, j + 1), v(i - 1, j - 1)
    values = [z / w + (2 - 1j) / w, st.sqrt(z) - k * st.sqrt(k), abs(z) * i + abs(k), st.where(abs(z) < abs(w), z, 0.5)]
    values += [st.where((u(i, j) == 0) | (v(i, j) != k), 1j * z, w), (0.25 - z) / k + st.where(j == 1, abs(w), 2.0)]
    parts = [st.assign(out(i, j), value) for out, value in zip(outs, values, strict=True)]
    parts += [st.reduce("sum", "total", z * w), st.reduce("min", "least", abs(z)), st.reduce("sum", "many", abs(w))]
    s, rng = st.fuse(*parts), np.random.default_rng(7)
    shape = tuple(2 * n for n in brick)
    given = {n: (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype) for n in "uv"}
    given["u"][0, 0], given["k"] = 0, -0.3 + 2j
    got = st.compile(s, shape, periodic=True, target=target, brick=brick, dtype=dtype)(**given)
    want = s.interpret(periodic=True, dtype=dtype, **given)
    assert isinstance(got["total"], complex) and isinstance(got["least"], float) and isinstance(got["many"], float)
    for name, value in want.items():
        error = np.abs(got[name] - value).max()
        assert error < 100 * np.finfo(dtype).eps * max(1.0, np.abs(value).max()), name


def test_what_has_no_meaning_for_complex_numbers():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    x = np.ones((8, 8)) + 1j
    least, low = st.assign(out(i, j), st.minimum(u(i, j), 1.0)), st.assign(out(i, j), st.where(u(i, j) < 1, 1.0, 2.0))
    for stencil, dtype, given, kind, text in (
        (least, complex, {"u": x}, am.InputError, r"no order \(min\)"),
        (low, complex, {"u": x}, am.InputError, r"no order \(<\).*\n.*test_stencil_kernels.py:"),
        (st.reduce("max", "top", u(i, j)), complex, {"u": x}, am.InputError, "no order .reduction max."),
        (st.assign(out(i, j), 1j * u(i, j)), float, {"u": x.real}, am.InputError, r"1j\) is not real|1j is not real"),
        (st.assign(out(i, j), st.constant("k") * u(i, j)), float, {"u": x.real, "k": 1j}, am.DtypeError, "'k' is 1j"),
    ):
        with pytest.raises(kind, match=text):
            stencil.interpret(dtype=dtype, **given)
        with pytest.raises(kind, match=text):
            st.compile(stencil, (8, 8), dtype=dtype)(**given)


def planted_margins(test, right=passes.known_far_from_ends):
    """The last points before a boundary count as points inside."""
    known = right(test)
    return known and (known[0], 0, 0, known[3])


def planted_columns(grid, weights, b, right=passes._weighted):
    """The coefficients of the lower and the upper planes are exchanged."""
    return right(grid, {(-p, r, k): c for (p, r, k), c in weights.items()}, b)


@pytest.mark.parametrize(("name", "fault"), [("known_far_from_ends", planted_margins), ("_weighted", planted_columns)])
def test_the_random_stencils_find_a_fault_in_a_pass(name, fault, monkeypatch, own_kernels):
    monkeypatch.setattr(passes, name, fault)
    assert any(Case(seed).compare() > 1000 * ROUNDING for seed in (10, 8, 4))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_boxes_in_gather_and_scatter_form(target, dtype):
    at = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    total = sum((1.0 + sum(o) % 4) * u(*(i + (x - 2) for i, x in zip(at, o, strict=True))) for o in np.ndindex(5, 5, 5))
    s = st.assign(out(*at), total)
    x = np.random.default_rng(5).standard_normal((16, 8, 24))
    kernel = st.compile(s, x.shape, periodic=True, target=target, dtype=dtype)
    want = s.interpret(periodic=True, u=x)["out"]
    assert np.abs(kernel(u=x) - want).max() < 1000 * np.finfo(dtype).eps * np.abs(want).max()
    assert kernel.source.plan.scatter and not st.generate(five_points(), target).plan.scatter


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("brick", [(8, 8), (4, 4), (3, 2), (2, 1), (2, 32)])
def test_stores_past_the_caches_are_the_same_stores(brick, target, dtype):
    x = (np.random.default_rng(3).standard_normal((27, 45)) * dtype(1)).astype(dtype)
    kernel = st.compile(five_points(), x.shape, target=target, brick=brick, dtype=dtype)
    usual = kernel(u=x)
    kernel._streams = True
    np.testing.assert_array_equal(kernel(u=x), usual)
    assert np.abs(usual).max() > 1
    assert "past_caches" in kernel.source.text


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_that_come_together_do_not_overflow_in_silence(dtype):
    large = float(np.finfo(dtype).max) / 4
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    for value in (u(i, j) * large * large, 3 * large * u(i, j) + 2 * large * u(i, j)):
        with pytest.raises(am.InputError, match=f"come together to .*, and the largest of {dtype} is"):
            st.compile(st.assign(out(i, j), value), (8, 8), dtype=dtype)
    small = 0.1 / large  # whose inverse is too large
    given = np.full((8, 8), 3 * small, dtype)
    for value, want in ((u(i, j) / small, 3), (u(i, j) / small / 3, 1), (st.maximum(u(i, j), -np.inf) / small, 3)):
        kernel = st.compile(st.assign(out(i, j), value), (8, 8), dtype=dtype)
        np.testing.assert_allclose(kernel(u=given), want, rtol=1e-5)


def test_arguments_and_results_of_a_kernel():
    s = five_points()
    kernel = st.compile(s, (16, 24), periodic=True)
    x = np.random.default_rng(6).standard_normal((16, 24))
    out = np.empty_like(x)
    assert kernel(u=x, out=out) is out and kernel.compiled
    np.testing.assert_allclose(kernel(u=x, c=1.0), out + 3 * x, rtol=1e-12, atol=1e-12)
    for wrong, given in ((am.ShapeError, {"u": x[:8]}), (am.InputError, {}), (am.InputError, {"u": x, "d": 1.0})):
        with pytest.raises(wrong):
            kernel(**given)
    with pytest.raises(am.ShapeError, match="periodic with 12 points"):
        st.compile(s, (12, 16), periodic=True)
    for call, text in (
        (lambda: s.source("sse9"), "sse9"), (lambda: s.source(brick=(8,)), "2 positive sizes"),
        (lambda: s.source(brick=(1024, 4096)), "too long to compile"), (lambda: st.compile(s, (8, 8, 8)), "2 dimensions"),
    ):  # fmt: skip
        with pytest.raises(am.AsterismError, match=text):
            call()
    with pytest.raises(am.DtypeError):
        st.compile(s, (8, 8), dtype=int)


def test_the_text_is_readable_and_needs_no_headers():
    text = five_points().source("avx2")
    assert "#include" not in text and "T const c_ = a->constants[0];" in text and "for (int i" not in text
    assert max(len(line) for line in text.splitlines()) < 200 and "u__0_r0_k4" in text


@pytest.mark.parametrize(
    ("last", "dtype"), [(1, np.float64), (3, np.complex128), (5, np.float64), (5, np.complex64), (7, np.float32)]
)
def test_conditions_in_vectors_of_one_lane(last, dtype):
    """g++ 12.2 makes wrong code of them without the line that switches a pass off."""
    (i,) = st.indices(1)
    u, n = st.grid("u", 1), i.extent
    conditions = [
        (~(i + 1 >= n) & (i + 2 >= n)) | (i > 70),
        ~((i >= 2) & ~(i < 1)),
        (i < 3) & ~((i >= n - 2) | (i < 2)),
    ]
    parts = [st.assign(st.grid(f"o{m}", 1)(i), st.where(c, 0.0, 7 * u(i))) for m, c in enumerate(conditions)]
    s, x = st.fuse(*parts), np.arange(1, 3 * last + 1).astype(dtype)
    kernel, want = st.compile(s, x.size, brick=last, dtype=dtype), s.interpret(u=x, dtype=dtype)
    for name, got in kernel(u=x).items():
        np.testing.assert_array_equal(got, want[name])
    assert "no-tree-reassoc" in kernel.source.text and "no-tree-reassoc" not in st.generate(s, brick=8).text


def test_indices_are_compared_with_numbers_of_any_size():
    (i,) = st.indices(1)
    u, out, x = st.grid("u", 1), st.grid("out", 1), np.arange(1.0, 9.0)
    inf, nan = float("inf"), float("nan")
    conditions = (i < inf, i > -inf, i < nan, i != nan, i < 1e300, 2 * i >= -(2**40), i % 2 < inf)
    s = st.fuse(*(st.assign(st.grid(f"o{m}", 1)(i), st.where(c, u(i), 0.0)) for m, c in enumerate(conditions)))
    want = s.interpret(u=x)
    assert [bool(want[f"o{m}"].any()) for m in range(7)] == [True, True, False, True, True, True, True]
    for name, got in st.compile(s, 8)(u=x).items():
        np.testing.assert_array_equal(got, want[name])
    assert st.assign(out(i), st.where(i < inf, u(i), 0.0)).transpose().interpret(out=x)["u"].tolist() == x.tolist()


def test_a_fine_grid_of_odd_size_from_coarse_points_alone(monkeypatch):
    i, j = st.indices(2)
    c, out = st.grid("c", 2), st.grid("out", 2)
    s, x = st.assign(out(i, j), c(i // 2, j // 2) + i), np.arange(16.0).reshape(4, 4)
    want = np.kron(x, np.ones((2, 2))) + np.arange(8)[:, None]
    assert (s.interpret(c=x)["out"] == want).all()
    for shape in ((7, 7), (8, 7)):
        kernel = st.compile(s, shape)
        assert (kernel(c=x) == want[: shape[0], : shape[1]]).all()
        with pytest.raises(am.ShapeError, match=r"'c' has the shape \(3, 4\); \(4, 4\) is that of the coarse grid"):
            kernel(c=x[:3])
    monkeypatch.setattr(kernel, "library", None)  # by the interpreter
    assert (kernel(c=x) == want[:, :7]).all()


NAMES = [
    "L",
    "T",
    "double",
    "nullptr",
    "shift1",
    "total0",
    "root",
    "clear",
    "w0",
    "lane",
    "u_0",
    "u_0_1",
    "u_b",
    "u_out",
]


def test_any_name_of_the_user_is_possible():
    i, j = st.indices(2)
    x = np.random.default_rng(4).random((16, 24))
    for name in NAMES:
        u, v, out, more = st.grid("u", 2), st.grid(name, 2), st.grid("out", 2), st.grid("out_b", 2)
        near = u(i + 1, j + 1) + u(i, j + 8) + 2 * v(i, j) + 3 * v(i + 1, j + 8) + v(i - 1, j)
        both = st.fuse(st.assign(out(i, j), near), st.assign(more(i, j), near * near), st.reduce("sum", "total", near))
        by_constant = st.fuse(
            st.assign(out(i, j), st.constant(name) * abs(u(i, j + 1))), st.reduce("max", "top", out(i, j))
        )
        for stencil, given in ((both, {"u": x, name: 1 - x}), (by_constant, {"u": x, name: 3.0})):
            kernel = st.compile(stencil, x.shape)
            assert kernel.compiled
            got, wanted = kernel(**given), stencil.interpret(**given)
            assert got.keys() == wanted.keys()
            for key, value in wanted.items():
                assert np.allclose(got[key], value, rtol=1e-12), (name, key)


@pytest.mark.parametrize("compiler", ["", "/no/such/compiler"])
def test_what_a_kernel_cannot_take(monkeypatch, compiler):
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    stencil = st.assign(out(i, j), st.constant("h") * u(i, j + 1))
    x = np.ones((16, 16))
    if compiler:
        monkeypatch.setenv("CXX", compiler)
        monkeypatch.setattr("asterism.stencil.kernels.kernel._said", set())
        with pytest.warns(RuntimeWarning, match="A table replaces"):
            kernel = st.compile(stencil, x.shape)
    else:
        kernel = st.compile(stencil, x.shape)
    for given, kind, text in (
        ({"u": x + 1j, "h": 1}, am.DtypeError, "'u' has the dtype complex128; real numbers"),
        ({"u": "abc", "h": 1}, am.DtypeError, "'u' has the dtype"),
        ({"u": np.ones((8, 8)), "h": 1}, am.ShapeError, r"for \(16, 16\) points; the arrays have \(8, 8\)"),
        ({"h": 1}, am.InputError, "array 'u' is missing: give u="),
        ({"u": x}, am.InputError, "constant 'h' has no value"),
        ({"u": x, "h": np.ones(3)}, am.InputError, "constant 'h' is a ndarray; a number"),
        ({"u": x, "h": 1, "v": x}, am.InputError, "no grid and no constant 'v'; it has out, u, h"),
        ({"u": x, "h": 1, "out": np.ones((1, 16, 16))}, am.ShapeError, r"out has the shape \(1, 16, 16\)"),
        ({"u": x, "h": 1, "out": np.ones((16, 16), int)}, am.DtypeError, "out has the dtype int64"),
    ):
        with pytest.raises(kind, match=text):
            kernel(**given)
    with pytest.raises(am.DtypeError, match="shape is 16.5"):
        st.compile(stencil, (16.5, 16))
    with pytest.raises(am.DtypeError, match="brick is 8.5"):
        st.compile(stencil, (16, 16), brick=(8.5, 8))
    with pytest.raises(am.InputError, match="periodic has 'a'"):
        st.compile(stencil, (16, 16), periodic="ab")
    with pytest.raises(am.InputError, match="the default of 'h' is 'x'"):
        st.constant("h", "x")


def test_a_grid_that_is_updated_in_place_must_be_given():
    i, j = st.indices(2)
    u = st.grid("u", 2)
    red = st.assign(u(i, j), st.where((i + j) % 2 == 0, u(i, j + 1), u(i, j)))
    for compute in (st.compile(red, (8, 8)), red.interpret):
        with pytest.raises(am.InputError, match="array 'u' is missing"):
            compute()


def test_more_bricks_than_are_numbered_or_fit_are_refused(monkeypatch):
    i, j = am.stencil.indices(2)
    u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
    mean = am.stencil.assign(out(i, j), u(i - 1, j) + u(i + 1, j))
    for shape, bricks in (((2**40, 1), 2**37), ((1, 2**31), 2**28), ((2**32, 2**32), 2**58)):
        with pytest.raises(am.ShapeError, match=re.escape(f"shape {shape}: {bricks} bricks of 8 x 8 points; a kernel")):
            am.stencil.compile(mean, shape)

    def no_memory(counts):
        raise MemoryError

    monkeypatch.setattr(np, "indices", no_memory)
    with pytest.raises(am.OutOfMemoryError, match=r"16 bricks of 8 x 8 points; their tables take 1.34 kB"):
        am.stencil.compile(mean, (32, 32))
