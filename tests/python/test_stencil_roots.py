"""Square roots of complex numbers in stencils: one branch for the interpreter, compiled kernels and the table."""

import numpy as np
import pytest

import asterism as am
from asterism import stencil as st

K = np.array([0, 1, 2, 3, 4, -5, 0.5, 7, 9])


def roots():
    (i,) = st.indices(1)
    k = st.grid("k", 1)
    return [
        st.sqrt(2.0 - k(i) * k(i)),
        st.sqrt(-1.0 * k(i)),
        st.sqrt(-k(i)),
        st.sqrt(0 - k(i)),
        st.sqrt(k(i) / 2 - 8),
        st.sqrt(k(i) * k(i) - 9.0),
        st.sqrt(-k(i) + 0j),
    ]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("how", ["native", "generic", "table"])
@pytest.mark.filterwarnings("ignore:A table replaces")
def test_the_imaginary_part_of_a_root_is_not_negative(monkeypatch, dtype, how):
    """Of real numbers as complex ones: what decays must not grow, whatever sign a zero has."""
    if how == "table":
        monkeypatch.setenv("CXX", "no-such-compiler")
    (i,) = st.indices(1)
    out = st.grid("out", 1)
    for root in roots():
        s = st.assign(out(i), root)
        for k in (K.astype(dtype), np.conj(K.astype(dtype))):
            want = s.interpret(dtype=dtype, k=k)["out"]
            got = st.compile(s, len(K), dtype=dtype, target="generic" if how == "generic" else None)(k=k)
            assert (want.imag >= 0).all() and np.allclose(got, want, rtol=1e-6, atol=1e-6), (root, got, want)


def test_mistakes_show_the_line():
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    with pytest.raises(am.InputError, match=r"round brackets: u\(i, ...\).*\n.*test_stencil_roots.py:\d+: u\[i\]"):
        u[i]
    for far in (st.assign(out(i), u(i + 100_000)), st.assign(out(i), u(i - 1001))):
        with pytest.raises(am.InputError, match="points far: the kernel would be too long to compile"):
            st.compile(far, 8, periodic=True)
    for name in ("spacing", "points", "ranks", "comm"):
        h = st.constant(name)
        laplace = st.assign(out(i), (2 * u(i) - u(i - 1) - u(i + 1)) / (h * h))
        with pytest.raises(am.InputError, match=f"'{name}' is an argument of stencil.operator.*another name"):
            st.operator(laplace, (31,))
    # none of these needs to be given by its name
    target, points = st.grid("target", 1), st.constant("points", 1.0)
    L = st.operator(st.assign(out(i), 2 * target(i) - points * target(i - 1) - target(i + 1)), (31,))
    assert np.allclose(L @ np.ones(31), [1] + [0] * 29 + [1])
