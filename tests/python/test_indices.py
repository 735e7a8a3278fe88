"""Indices are integers: nothing is rounded, and masks are not taken for numbers."""

import numpy as np
import pytest

import asterism as am

WHOLE, REAL = np.array([0, 1]), np.array([0.0, 1.0])
PAIRS = np.array([[0, 0], [0, 1]])


def poisson():
    return am.gallery.poisson((3, 3))


def forest():
    return am.StarForest(None, 2, None, PAIRS)


ARRAYS = {
    "coo: i": lambda a: am.Matrix.coo((2, 2), a, WHOLE, [1.0, 2.0]),
    "coo: j": lambda a: am.Matrix.coo((2, 2), WHOLE, a, [1.0, 2.0]),
    "Assembly: i": lambda a: am.Assembly((2, 2), a, WHOLE),
    "Assembly: j": lambda a: am.Assembly((2, 2), WHOLE, a),
    "VectorAssembly: i": lambda a: am.VectorAssembly(2, a),
    "Builder.add: i": lambda a: am.Builder((2, 2)).add(a, WHOLE, np.ones(2)),
    "Builder.insert: j": lambda a: am.Builder((2, 2)).insert(WHOLE, a, np.ones(2)),
    "rows": lambda a: poisson().submatrix(a, WHOLE),
    "cols": lambda a: am.Submatrix(poisson(), WHOLE, a),
    "Redistribution: owners": lambda a: am.Redistribution(am.gallery.poisson((2,)), 0 * a),
    "StarForest: local": lambda a: am.StarForest(None, 2, a, PAIRS),
    "StarForest: remote": lambda a: am.StarForest(None, 2, None, np.stack([a * 0, a], 1)),
    "embed_roots: selected": lambda a: forest().embed_roots(a),
    "embed_leaves: selected": lambda a: forest().embed_leaves(a),
    "section: root_dofs": lambda a: forest().section(a),
    "from_sizes: indices": lambda a: am.StarForest.from_sizes(None, 2, a),
    "matching: root_ids": lambda a: am.StarForest.matching(None, a, WHOLE),
    "matching: leaf_ids": lambda a: am.StarForest.matching(None, WHOLE, a),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_of_other_types_are_refused(what):
    take = ARRAYS[what]
    for good in (WHOLE, WHOLE.astype("int32"), WHOLE.astype("uint8"), WHOLE.astype("uint64")):
        take(good)
    for bad in (REAL, REAL + 0.5, REAL.astype("float32"), REAL.astype(complex)):
        with pytest.raises(
            am.DtypeError, match=rf"{what}: dtype {bad.dtype}; int64, or another integer type, is needed"
        ):
            take(bad)
    if what != "StarForest: remote":
        with pytest.raises(am.InputError, match=f"{what} has 1 masked values of 2"):
            take(np.ma.array(WHOLE, mask=[False, True]))
    if what not in ("StarForest: remote", "Redistribution: owners"):
        with pytest.raises(am.DtypeError, match=r"dtype bool.*np.flatnonzero\(mask\)"):
            take(np.array([True, False]))


def test_what_is_empty_has_no_type():
    assert am.Matrix.coo((2, 2), [], [], []).nnz == 0
    assert am.StarForest(None, 2, [], np.zeros((0, 2))).nleaves == 0


def test_what_does_not_fit_into_int64():
    with pytest.raises(am.OutOfMemoryError, match=r"rows of one rank: 2147483648 local indices do not fit in 32 bits"):
        am.Matrix.coo((2**31, 2), [0], [0], [1.0])
    with pytest.raises(am.InputError, match="coo: i: 18446744073709551615 is above 9223372036854775807"):
        am.Matrix.coo((2, 2), np.array([2**64 - 1], dtype="uint64"), [0], [1.0])


COUNTS = {
    "coo: shape": lambda n: am.Matrix.coo((n, n), [0], [0], [1.0]),
    "coo: local_rows": lambda n: am.Matrix.coo((2, 2), [0], [0], [1.0], local_rows=n),
    "Assembly: shape": lambda n: am.Assembly((n, n), [0], [0]),
    "Builder: shape": lambda n: am.Builder((n, n)),
    "VectorAssembly: size": lambda n: am.VectorAssembly(n, [0]),
    "StarForest: nroots": lambda n: am.StarForest(None, n, None, PAIRS),
    "StarForest: nleafspace": lambda n: am.StarForest(None, 2, None, PAIRS, n),
    "strided: k": lambda n: forest().strided(n),
    "from_sizes: local_size": lambda n: am.StarForest.from_sizes(None, n, WHOLE),
    "all_gather: nroots": lambda n: am.StarForest.all_gather(None, n),
    "all_to_all: n": lambda n: am.StarForest.all_to_all(None, n),
    "Grid: shape": lambda n: am.grid.Grid((n, 4)),
    "Grid: width": lambda n: am.grid.Grid((4, 4), width=n),
    "Operator: rows": lambda n: am.Operator(lambda x: x, n),
    "shape": lambda n: am.gallery.poisson((n,)),
    "cells": lambda n: am.gallery.elasticity((n, 2, 2)),
}


@pytest.mark.parametrize("what", COUNTS)
def test_counts_are_integers(what):
    COUNTS[what](2)
    COUNTS[what](np.int32(2))
    for bad in (2.0, 2.5, "2", None if what != "StarForest: nleafspace" and what != "coo: local_rows" else 1.5):
        with pytest.raises(am.DtypeError, match=f"{what} is .*; an integer is needed"):
            COUNTS[what](bad)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(dtype, bad):
    v = np.ones(10_000, dtype=dtype)
    i = np.arange(10_000)
    v[7777] = bad if np.dtype(dtype).kind == "f" else complex(0, bad)
    with pytest.raises(am.InputError, match=r"coo: entry 7777, at \(7777, 7777\), is NaN or infinite"):
        am.Matrix.coo((10_000, 10_000), i, i, v)
    A = poisson()
    v = np.ones(A.nnz, dtype=dtype)
    v[A.to_scipy().indptr[5] + 1] = bad
    with pytest.raises(am.InputError, match=r"with_values: value \d+ is NaN or infinite; it belongs to row 5"):
        A.with_values(v)
    plan = am.Assembly((9, 9), np.arange(9), np.arange(9))
    v = np.ones(9, dtype=dtype)
    v[4] = bad
    with pytest.raises(
        am.InputError, match="NaN or infinite in row 4"
    ):  # found where it is used: sums are made many times
        am.Solver(plan.matrix(v), pc="jacobi")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("row", [0, 255, 256, 257, 511, 998, 999])
def test_a_bad_row_is_found_wherever_it_is(dtype, row):
    """The look at a matrix takes rows together."""
    n = 1000
    i = np.arange(n)
    j = np.minimum(i + 1, n - 1)
    plan = am.Assembly((n, n), np.concatenate([i, i]), np.concatenate([i, j]))

    def solver(diagonal, beside):
        return am.Solver(plan.matrix(np.concatenate([diagonal, beside]).astype(dtype)), pc="jacobi")

    def with_value(v):
        out = np.ones(n)
        out[row] = v
        return out

    for bad in (np.nan, np.inf):
        with pytest.raises(am.InputError, match=rf"NaN or infinite in row {row}\."):
            solver(np.ones(n), with_value(bad))
    with pytest.raises(am.InputError, match=rf"row {row} of the matrix is empty"):
        solver(with_value(0), with_value(0))
    solver(np.ones(n), with_value(0))  # a zero beside the diagonal
