"""Matrices above 2^31 entries, where there is memory for them; the same made small runs everywhere."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import HAS_GPU

import asterism as am

LARGE = 2_200_000  # rows, of 1000 entries each: 17.6 GB in float32, and SciPy's 35 GB beside


def enough_memory():
    return (
        os.environ.get("ASTERISM_TEST_LARGE") == "1"
        and os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 100e9
    )


@pytest.mark.parametrize(
    "queue", ["inline", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no GPU"))]
)
@pytest.mark.parametrize(
    "rows",
    [
        2200,
        pytest.param(
            LARGE, marks=pytest.mark.skipif(not enough_memory(), reason="ASTERISM_TEST_LARGE=1 and 100 GB of memory")
        ),
    ],
)
def test_products_count_entries_in_64_bits(rows, queue):
    each, apart = 1000, rows // 1000
    columns = np.empty((rows, each), dtype=np.int32)
    columns[:] = np.arange(each, dtype=np.int32) * apart
    columns += (np.arange(rows, dtype=np.int32) % apart)[:, None]
    values = np.ones((rows, each), dtype=np.float32)
    values[-1] = 2.0  # behind all others
    offsets = np.arange(rows + 1, dtype=np.int64) * each
    S = sp.csr_array((values.reshape(-1), columns.reshape(-1), offsets), shape=(rows, rows))
    A = am.Matrix.from_scipy(S)
    assert A.nnz == rows * each and (rows < LARGE or A.nnz > 2**31)
    x = am.Vector(A, am.Queue(queue), fill=0.5)
    y = (A @ x).numpy()
    assert np.all(y[:-1] == 500) and y[-1] == 1000
