"""Model problems against the same ones made by NumPy."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def two_points(shape, coefficient, widths):
    """Finite volumes for -div(k grad u), face by face."""
    n = int(np.prod(shape))
    number = np.arange(n).reshape(shape)
    volume = np.ones(shape)
    for axis, w in enumerate(widths):
        volume = volume * w.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    A = sp.lil_array((n, n))
    for axis, w in enumerate(widths):
        along = w.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        area = volume / along
        half = along / (2 * coefficient)
        lower, upper = [
            tuple(s if a == axis else slice(None) for a in range(len(shape))) for s in (slice(-1), slice(1, None))
        ]
        inner = area[lower] / (half[lower] + half[upper])
        for i, j, t in zip(number[lower].ravel(), number[upper].ravel(), inner.ravel(), strict=True):
            A[i, j] -= t
            A[j, i] -= t
            A[i, i] += t
            A[j, j] += t
        for end in (0, -1):
            side = tuple(end if a == axis else slice(None) for a in range(len(shape)))
            for i, t in zip(number[side].ravel(), (area / half)[side].ravel(), strict=True):
                A[i, i] += t
    return A.toarray()


@pytest.mark.parametrize("shape", [(9,), (5, 7), (3, 4, 5), (1, 1), (1, 6, 1)])
@pytest.mark.parametrize("stretch", [1.0, 1.3, 0.5])
def test_diffusion_on_stretched_cells(shape, stretch):
    A = am.gallery.diffusion(shape, stretch=stretch)
    want = two_points(shape, np.ones(shape), [stretch ** np.arange(s) for s in shape])
    assert np.allclose(A.to_scipy().toarray(), want, rtol=1e-14, atol=1e-14 * abs(want).max())


@pytest.mark.parametrize("contrast", [1e6, 1e-3])
def test_diffusion_with_jumps(contrast):
    """A block's coefficient is seen on a mesh of one cell a block: 2 d k_i on the diagonal of one cell alone."""
    shape, block = (12, 18), 3
    # t = 2 / (1/k + 1/k') of neighbours tells the coefficients apart: 1, contrast, or 2 / (1 + 1 / contrast)
    A = am.gallery.diffusion(shape, contrast=contrast, block=block).to_scipy().toarray()
    inside = [[(i + block // 2) * shape[1] + j + block // 2 for j in range(0, 18, block)] for i in range(0, 12, block)]
    k = np.array([[A[c, c] / 4 for c in row] for row in inside])  # the middle of a block has neighbours of its own
    assert set(np.round(k.ravel() / contrast, 9)) == {1.0, round(1 / contrast, 9)}
    assert 3 < (k == contrast).sum() < 21
    want = two_points(shape, np.kron(k, np.ones((block, block))), [np.ones(s) for s in shape])
    assert np.allclose(A, want, rtol=1e-13, atol=0)


@pytest.mark.parametrize("theta", [0.0, 0.4, math.pi / 4, math.pi / 2])
@pytest.mark.parametrize("shape", [(1, 1), (5, 4), (3, 8)])
def test_rotated_anisotropy_is_that_of_bilinear_elements(shape, theta):
    epsilon = 0.01
    A = am.gallery.rotated_anisotropy(shape, epsilon=epsilon, theta=theta)
    Q = np.array([[math.cos(theta), -math.sin(theta)], [math.sin(theta), math.cos(theta)]])
    K = Q @ np.diag([1, epsilon]) @ Q.T
    points = (0.5 - 0.5 / 3**0.5, 0.5 + 0.5 / 3**0.5)
    element = np.zeros((4, 4))
    for x in points:
        for y in points:
            G = np.array([[-(1 - y), -(1 - x)], [-y, 1 - x], [1 - y, -x], [y, x]])  # of corners (0,0) (0,1) (1,0) (1,1)
            element += 0.25 * G @ K @ G.T
    full = np.zeros(((shape[0] + 2) * (shape[1] + 2),) * 2)
    for i in range(shape[0] + 1):
        for j in range(shape[1] + 1):
            corners = [(i + a) * (shape[1] + 2) + j + b for a in (0, 1) for b in (0, 1)]
            full[np.ix_(corners, corners)] += element
    inner = [i * (shape[1] + 2) + j for i in range(1, shape[0] + 1) for j in range(1, shape[1] + 1)]
    assert np.allclose(A.to_scipy().toarray(), full[np.ix_(inner, inner)], rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_dtypes(dtype):
    for A in (
        am.gallery.diffusion((4, 5), contrast=10, dtype=dtype),
        am.gallery.poisson((4, 5), dtype=np.dtype(dtype)),
        am.gallery.rotated_anisotropy((4, 5), dtype=dtype),
    ):
        assert A.dtype == dtype
    assert np.allclose(A.to_scipy().toarray(), am.gallery.rotated_anisotropy((4, 5)).to_scipy().toarray(), atol=1e-6)


def test_bad_numbers_are_refused():
    with pytest.raises(am.InputError, match=r"contrast 0.* must be positive"):
        am.gallery.diffusion((4,), contrast=0)
    with pytest.raises(am.InputError, match="at least 1"):
        am.gallery.diffusion((4,), block=0)
    with pytest.raises(am.InputError, match="makes cells of width"):
        am.gallery.diffusion((400,), stretch=10)
    with pytest.raises(am.InputError, match="positive"):
        am.gallery.diffusion((4,), stretch=math.nan)
    with pytest.raises(am.ShapeError):
        am.gallery.rotated_anisotropy((4, 0))
    with pytest.raises(am.ShapeError, match="shape is 4; 2 integers are needed"):
        am.gallery.rotated_anisotropy(4)
    with pytest.raises(am.ShapeError, match=r"cells is \(2, 2\); 3 integers are needed"):
        am.gallery.elasticity((2, 2))
    with pytest.raises(am.InputError, match="a box has no coefficients of directions"):
        am.gallery.poisson((4, 4), stencil="box", epsilon=(1, 2))
    with pytest.raises(am.OptionError, match="stencil 'cross' is not one of star, box"):
        am.gallery.poisson((4, 4), stencil="cross")
    for call in (
        lambda: am.gallery.poisson((4, 4), epsilon=(1, math.nan)),
        lambda: am.gallery.convection_diffusion((4,), (math.inf,)),
        lambda: am.gallery.convection_diffusion((4,), (1,), math.nan),
        lambda: am.gallery.rotated_anisotropy((4, 4), epsilon=math.nan),
    ):
        with pytest.raises(am.InputError, match="a finite number is needed"):
            call()
    with pytest.raises(am.DtypeError, match="dtype .int64. is none of float32"):
        am.gallery.poisson((4,), dtype=np.int64)
    with pytest.raises(am.OutOfMemoryError, match="local indices do not fit in 32 bits"):
        am.gallery.elasticity((10**6,) * 3)


def test_entries_do_not_depend_on_the_ranks(on_ranks):
    on_ranks(
        3,
        """
for make in (lambda c: am.gallery.diffusion((7, 9, 5), c, contrast=1e6, block=2, stretch=1.1),
             lambda c: am.gallery.rotated_anisotropy((9, 11), c)):
    A, alone = make(comm), make(None).to_scipy()
    mine = A.to_scipy()
    first = comm.exscan(mine.shape[0]) or 0
    assert abs(mine - alone[first:first + mine.shape[0]]).max() == 0
""",
    )


def test_ranks_that_ask_for_different_problems_are_told(on_ranks):
    """Their rows fitted together to a matrix of no problem."""
    out = on_ranks(
        2,
        """
g, other = am.gallery, comm.rank == 1
for make, what in (
    (lambda: g.poisson((6, 6), comm, epsilon=(1, 3.0 if other else 2.0)), "epsilon"),
    (lambda: g.poisson((6, 6 + other), comm), "shape"),
    (lambda: g.poisson((6, 6), comm, neumann=other), "neumann"),
    (lambda: g.poisson((6, 6), comm, stencil="box" if other else "star"), "stencil"),
    (lambda: g.poisson((6, 6), comm, dtype="float32" if other else "float64"), "dtype"),
    (lambda: g.convection_diffusion((6, 6), (1.0, 1.0 + other), 1.0, comm), "velocity"),
    (lambda: g.convection_diffusion((6, 6), (1.0, 1.0), 1.0 + other, comm), "epsilon"),
    (lambda: g.diffusion((6, 6), comm, contrast=10.0 + other), "contrast"),
    (lambda: g.diffusion((6, 6), comm, block=2 + other), "block"),
    (lambda: g.diffusion((6, 6), comm, stretch=1.1 + other), "stretch"),
    (lambda: g.rotated_anisotropy((6, 6), comm, epsilon=0.1 + other), "epsilon"),
    (lambda: g.rotated_anisotropy((6, 6), comm, theta=0.1 + other), "theta"),
    (lambda: g.elasticity((3, 3, 3), comm, youngs_modulus=1.0 + other), "youngs_modulus"),
    (lambda: g.elasticity((3, 3, 3), comm, poisson_ratio=0.1 + 0.1 * other), "poisson_ratio"),
    (lambda: g.laplace_q2((3, 3, 3 + other), comm), "cells"),
    (lambda: g.laplace_q2((3, 3, 3), comm, processes=(2, 1, 1) if other else (1, 2, 1)), "processes"),
):
    said = message(make)
    assert "the ranks do not say the same" in said and what in said, said
assert g.poisson((6, 6), comm, epsilon=(1, 2)).nnz == 156
print("done", flush=True)
""",
    )
    assert out.count("done") == 2
