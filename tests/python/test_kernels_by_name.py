"""Kernels made at run time: in their turn on every queue, in every dtype; wrong arguments are errors. The core is tested in C++."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import asterism as am

QUEUES = ["inline", "thread", "strict", "shuffle"]
SOURCE = """
#include <complex.h>
#include <stdint.h>
#define KERNEL(name, T) \\
    void name(int64_t begin, int64_t end, void *const *arrays, const int64_t *integers, const double *reals) { \\
        const T *x = arrays[0]; \\
        T *y = arrays[1]; \\
        for (int64_t i = begin; i < end; ++i) y[i] = y[i] * reals[0] + x[i] + integers[0]; \\
    }
KERNEL(f_float32, float)
KERNEL(f_float64, double)
KERNEL(f_complex64, float complex)
KERNEL(f_complex128, double complex)
"""


def compiled(folder, source):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "kernels.c").write_text(source)
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "kernels.c", "-o", "kernels.so"], cwd=folder, check=True, timeout=120
    )
    return ctypes.CDLL(str(folder / "kernels.so"))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("kernels"), SOURCE)


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_it_runs_in_its_turn(library, dtype, kind):
    name = f"f_{dtype}"
    kernel = am.Kernel(name, [f"read {dtype}", f"update {dtype}", "integer", "real"], library[name])
    assert am.Kernel.named(name).arguments == kernel.arguments
    for n in [1, 7, 20_000]:
        A = am.gallery.poisson((n,)).astype(dtype)
        q = am.Queue(kind)
        x, y = am.Vector(A, q, fill=2.0), am.Vector(A, q, fill=1.0)
        want = np.ones(n)
        for i in range(20):
            kernel(q, n, x, y, i, 0.5)
            want = want * 0.5 + 2 + i
            if i == 10:  # between the library's own kernels
                y.axpy(3.0, x)
                want += 6
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-5 if dtype.endswith(("32", "64")) else 1e-13)


def test_only_a_part_of_the_indices(library):
    kernel = am.Kernel("f_float64", ["read float64", "update float64", "integer", "real"], library.f_float64)
    A = am.gallery.poisson((5,))
    x, y = am.Vector(A, am.Queue(), fill=1.0), am.Vector(A, am.Queue(), fill=0.0)
    kernel(am.Queue(), 0, x, y, 0, 1.0)
    kernel(am.Queue(), 2, x, y, 0, 1.0)
    assert y.numpy().tolist() == [1, 1, 0, 0, 0]


def test_new_forms_leave_a_kernel_that_is_held_alone(library):
    arguments = ["read float64", "update float64", "integer", "real"]
    first = am.Kernel("twice", arguments, library.f_float64)

    @ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 3)
    def nothing(*given):
        pass

    second = am.Kernel("twice", arguments, nothing)
    A = am.gallery.poisson((3,))
    q = am.Queue("inline")
    x, y = am.Vector(A, q, fill=1.0), am.Vector(A, q, fill=0.0)
    second(q, 3, x, y, 0, 1.0)
    assert y.numpy().tolist() == [0, 0, 0]
    first(q, 3, x, y, 0, 1.0)
    assert y.numpy().tolist() == [1, 1, 1]
    assert am.Kernel.names().count("twice") == 1 and "twice" in repr(second)


def test_misuse_is_an_error(library):
    arguments = ["read float64", "update float64", "integer", "real"]
    form = library.f_float64
    kernel = am.Kernel("misused", arguments, form)
    A = am.gallery.poisson((3,))
    q = am.Queue("inline")
    x, y = am.Vector(A, q, fill=1.0), am.Vector(A, q, fill=0.0)
    single = am.Vector(A.astype("float32"), q, fill=0.0)
    for call, kind, text in [
        (
            lambda: kernel(q, 3, x, y),
            am.InputError,
            r"takes 4 arguments \(read float64, update float64, integer, real\), not 2",
        ),
        (lambda: kernel(q, 3, x, single, 0, 1.0), am.InputError, "argument 1 is float32, not update float64"),
        (lambda: kernel(q, 3, x, x, 0, 1.0), am.InputError, "argument 1 is given twice"),
        (lambda: kernel(q, -1, x, y, 0, 1.0), (am.InputError, ValueError), "n"),
        (lambda: kernel(q, 3, x, y, 0.5, 1.0), TypeError, "integer"),
        (lambda: am.Kernel.named(3), TypeError, "name is a int; a str is needed"),
        (lambda: kernel(q, 3, x, np.zeros(3), 0, 1.0), TypeError, "Vector"),
        (lambda: am.Kernel("misused", arguments[:2], form), am.InputError, "with another signature already"),
        (lambda: am.Kernel("a", ["integer", "read float64"], form), am.InputError, "vectors first"),
        (
            lambda: am.Kernel("a", ["reads float64"], form),
            am.InputError,
            "'reads float64' is not read, update or write",
        ),
        (lambda: am.Kernel("a", ["read float16"], form), am.AsterismError, "float16"),
        (lambda: am.Kernel("a", ["integer"], form), am.InputError, "no array"),
        (lambda: am.Kernel("a", "read float64", form), TypeError, "a list"),
        (lambda: am.Kernel("a", arguments, lambda: None), TypeError, "an address"),
        (lambda: am.Kernel("a", arguments, None), am.InputError, "form for the host"),
        (lambda: am.Kernel("", arguments, form), am.InputError, "needs a name"),
        (lambda: am.Kernel.named("misuse"), am.InputError, "Did you mean 'misused'"),
    ]:
        with pytest.raises(kind, match=text):
            call()
    assert "a" not in am.Kernel.names()
