"""Transposes of linear stencils are those of the assembled operators; the interpreter and kernels of both agree."""

import numpy as np
import pytest
from stencil_cases import Linear

import asterism as am
from asterism import stencil as st
from asterism.stencil.language import transpose


def assembled(stencil, shape, periodic, **given):
    """The matrix, column by column."""
    size, (out,) = int(np.prod(shape)), stencil.facts.outputs
    name = next(n for n in ("u", "o") if n != out)
    dtype = np.result_type(float, *given.values())
    columns = [
        stencil.interpret(periodic, dtype, **{name: e.reshape(shape)}, **given)[out].ravel() for e in np.eye(size)
    ]
    return np.array(columns).T


def difference(case):
    """Of the transposed matrix and the matrix of the transpose, relative to the largest entry."""
    T = case.stencil.transpose(of="u")
    given = {n: case.rng.standard_normal(case.shape) for n in case.stencil.facts.inputs if n == "c"}
    if case.of_complex:
        given = {n: a + 1j * case.rng.standard_normal(case.shape) for n, a in given.items()}
    A = assembled(case.stencil, case.shape, case.periodic, **given, **case.constants(case.stencil))
    B = assembled(
        T, case.shape, case.periodic, **{n: given[n] for n in T.facts.inputs if n == "c"}, **case.constants(T)
    )
    assert np.isfinite(A).all() and np.isfinite(B).all()
    return float(np.abs(A.T - B).max() / max(1e-30, np.abs(A).max()))


@pytest.mark.parametrize("seed", range(60))
def test_the_transpose_is_that_of_the_assembled_operator(seed):
    assert difference(Linear(seed)) < 1e-13


@pytest.mark.parametrize("seed", range(20))
def test_the_transpose_of_complex_numbers_does_not_conjugate(seed):
    assert difference(Linear(seed, of_complex=True)) < 1e-13


@pytest.mark.parametrize("seed", range(20))
def test_twice_transposed_is_the_stencil(seed):
    case = Linear(seed)
    twice = case.stencil.transpose(of="u").transpose(of="o")
    given = {n: case.rng.standard_normal(case.shape) for n in case.stencil.facts.inputs}
    want = case.stencil.interpret(case.periodic, **given, **case.constants(case.stencil))["o"]
    got = twice.interpret(case.periodic, **{n: given[n] for n in twice.facts.inputs}, **case.constants(twice))["o"]
    np.testing.assert_allclose(got, want, atol=1e-13 * max(1.0, np.abs(want).max()))


def test_a_planted_fault_is_found(monkeypatch):
    """Indices in coefficients that are not taken around periodic ends."""
    monkeypatch.setattr(transpose._Shift, "_turns", lambda self, whole: [(None, {})])
    assert any(difference(Linear(seed)) > 1e-3 for seed in range(60))


@pytest.mark.parametrize("seed", range(12))
def test_kernels_of_transposes(seed):
    dtype = (np.float32, np.float64)[seed % 2]
    case = Linear(seed, small=False)
    T = case.stencil.transpose(of="u")
    given = {**{n: a.astype(dtype) for n, a in case.arrays(T).items()}, **case.constants(T)}
    got = st.compile(T, case.shape, case.periodic, brick=case.brick, dtype=dtype)(**given)
    want = T.interpret(case.periodic, dtype=np.float64, **given)["u"]
    assert np.abs(got - want).max() < 500 * np.finfo(dtype).eps * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("accuracy", [2, 6, 10])
def test_closures_at_boundaries_are_transposed(accuracy):
    (i,) = st.indices(1)
    u, o = st.grid("u", 1), st.grid("o", 1)
    s = st.assign(o(i), st.laplacian(u, (i,), accuracy=accuracy, closure=True))
    A, B = assembled(s, (27,), False), assembled(s.transpose(), (27,), False)
    np.testing.assert_allclose(B, A.T, atol=1e-13 * np.abs(A).max())
    assert np.abs(A - A.T).max() > 0.1  # one-sided differences are not symmetric
    with pytest.raises(am.ShapeError, match="periodic with 2 points"):
        s.transpose().interpret(periodic=True, o=np.ones(2))
    if accuracy == 10:
        with pytest.raises(am.ShapeError, match="periodic with 4 points"):
            st.compile(s.transpose(), 4, periodic=True, brick=(4,))


def test_a_choice_between_the_grid_and_zero_is_linear():
    (i,) = st.indices(1)
    u, c, o, h = st.grid("u", 1), st.grid("c", 1), st.grid("o", 1), st.constant("h", 0.5)
    chosen, x = st.where(i > 0, u(i - 1), 0.0), np.array([3.0, 5.0, 7.0])
    for value in (chosen, c(i) * chosen, chosen * c(i), h * chosen, chosen / h, u(i) + 0.0 * c(i) - c(i) * chosen):
        s = st.assign(o(i), value)
        given = {"c": x} if "c" in s.facts.inputs else {}
        A = assembled(s, (3,), False, **given)
        back = s.transpose("u").interpret(o=x, **{n: a for n, a in given.items() if n in s.transpose("u").facts.inputs})
        np.testing.assert_array_equal(back["u"], A.T @ x)
        np.testing.assert_array_equal(st.operator(s, 3, of="u", **given) @ x, A @ x)
    with pytest.raises(am.InputError, match="without 'u', so the stencil is not linear") as found:
        st.operator(st.assign(o(i), u(i) + 1.0), 3)
    assert "transpose" not in str(found.value).splitlines()[0]


def test_what_has_no_transpose():
    i, j = st.indices(2)
    u, c, o, f = st.grid("u", 2), st.grid("c", 2), st.grid("o", 2), st.grid("f", 2)
    for value, of, text in (
        (u(i, j) * u(i + 1, j), None, "not linear"),
        (abs(u(i, j)), None, "not linear"),
        (st.maximum(u(i, j), 0.0), None, "not linear"),
        (1.0 / u(i, j), None, "not linear"),
        (st.where(u(i, j) > 0, u(i, j), 0.0), None, "not linear"),
        (u(i, j) + 1.0, None, "without 'u'"),
        (u(i, j) + c(i, j), "u", "without 'u'"),
        (u(i, j) * c(i, j), None, "say of="),
        (u(i, j), "w", "does not read 'w'"),
    ):
        with pytest.raises(am.InputError, match=text) as found:
            st.assign(o(i, j), value).transpose(of)
        assert "test_stencil_transpose.py" in str(found.value)
    for stencil, text in (
        (st.assign(u(i, j), 2 * u(i, j)), "read and written"),
        (st.fuse(st.assign(o(i, j), u(i, j)), st.assign(c(i, j), u(i, j))), "one assignment"),
        (st.reduce("sum", "s", u(i, j)), "one assignment"),
        (st.assign(o(i, j), f(2 * i, 2 * j)), "fine and a coarse"),
    ):
        with pytest.raises(am.InputError, match=text):
            stencil.transpose()
