"""Functions and numbers of NumPy in stencils: those that the language has, and an error at the user's line for others."""

import math

import numpy as np
import pytest

import asterism as am
from asterism import stencil as st


def test_functions_of_numpy_are_those_of_the_language():
    i, j = st.indices(2)
    u, w, out = (st.grid(name, 2) for name in ("u", "w", "out"))
    a, b = u(i, j), w(i + 1, j)
    value = (
        np.sqrt(np.abs(a))
        + np.minimum(a, 0.25) * np.maximum(b, a)
        - np.square(b) / np.power(np.float64(2) + a, np.int64(3))
    )
    value = (
        np.where(False, 0.0, 1.0) * value + np.reciprocal(np.add(np.multiply(b, b), 1)) - np.negative(np.subtract(a, b))
    )
    value = value + np.exp(a) * np.sin(b) - np.cos(a) * np.log(2 + b)
    inside = np.logical_and(np.less(i, 3), np.logical_not(np.equal(j, np.int32(2))))
    kernel = st.assign(out(i, j), st.where(inside | np.greater_equal(a, np.float32(0.5)), value, np.divide(a, 4)))
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, (7, 6)), rng.uniform(-1, 1, (7, 6))
    below = np.vstack([y[1:], np.zeros((1, 6))])
    row, column = np.meshgrid(np.arange(7), np.arange(6), indexing="ij")
    full = np.sqrt(abs(x)) + np.minimum(x, 0.25) * np.maximum(below, x) - below**2 / (2 + x) ** 3
    full += 1 / (below * below + 1) + (x - below) + np.exp(x) * np.sin(below) - np.cos(x) * np.log(2 + below)
    want = np.where(((row < 3) & (column != 2)) | (x >= 0.5), full, x / 4)
    np.testing.assert_allclose(kernel.interpret(u=x, w=y)["out"], want, rtol=1e-14)


def test_integers_of_numpy_stay_integers_in_indices():
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    kernel = st.assign(out(i), u(np.int64(2) * i + np.int32(1)) - u(np.add(i, i)))
    x = np.arange(12.0) ** 2
    np.testing.assert_array_equal(kernel.interpret(u=x)["out"], x[1::2] - x[::2])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda u, i: np.tan(u(i)), r"numpy\.tan is not in the stencil language"),
        (lambda u, i: np.add.reduce(u(i)), r"numpy\.add"),
        (lambda u, i: np.multiply(u(i), 2.0, dtype=float), r"numpy\.multiply with dtype="),
        (lambda u, i: np.power(u(i), 0.5), "power must be an integer from 1 to 16, not 0.5"),
        (lambda u, i: np.remainder(u(i), 2), r"numpy\.remainder does not take"),
        (lambda u, i: math.exp(u(i)), "functions of Python's math"),
        (lambda u, i: np.ones(3) * u(i), "ndarray is no value of a stencil"),
        (lambda u, i: u(i) ** u(i), "not a value of the stencil"),
        (lambda u, i: ~u(i), "take conditions; this is a number"),
        (lambda u, i: np.logical_not(u(i)), "take conditions; this is a number"),
    ],
)
def test_others_are_refused_at_the_line_of_the_user(make, words):
    (i,) = st.indices(1)
    with pytest.raises(am.InputError, match=words) as caught:
        make(st.grid("u", 1), i)
    assert "test_stencil_numpy.py:" in str(caught.value)
