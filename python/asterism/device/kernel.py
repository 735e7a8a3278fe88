"""Kernels made at run time."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..base.indices import as_count
from ..errors import InputError
from .queue import Queue, handle_of

if TYPE_CHECKING:
    from ..la.vector import Vector

__all__ = ["Kernel"]

_Function: Any = ctypes.CFUNCTYPE(None).__base__  # of all functions of ctypes
_INTENTS = ("read", "update", "write")
_NUMBERS = ("integer", "real")


def _address(function: Any, what: str) -> int:
    """Return the address of a compiled function: an integer, or one of ctypes, cffi, or numba (``.address``)."""
    if function is None:
        return 0
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if isinstance(function, _Function):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    address = getattr(function, "address", None)
    if isinstance(address, int):
        return address
    raise TypeError(
        f"Kernel: {what} is a {type(function).__name__}; an address, or a function of ctypes or numba is needed."
    )


class Kernel:
    """A compiled kernel made at run time, registered under a name with a form for each memory.

    Use it for what a compiler of your own makes, or for functions of ctypes and numba. A Python function is a task of `Queue.submit`.

    Parameters
    ----------
    name : str
        Under which `Kernel.named` finds it. The same name with the same arguments replaces the forms.
    arguments : sequence of str
        One for each argument: first ``"read float64"``, ``"update float32"``, ``"write complex128"``, ... for each `Vector`, then
        ``"integer"`` for each int64, then ``"real"`` for each double. ``write`` means all of the vector, whose old values may be anything.
    host : address, or function of ctypes or numba
        ``void f(int64_t begin, int64_t end, void *const *arrays, const int64_t *integers, const double *reals)``: does the indices
        begin <= i < end. Each thread calls it with a piece of [0, n). It must not call Python.
    gpu : the same, optional
        ``int f(int64_t n, void *const *arrays, const int64_t *integers, const double *reals, void *stream)``: launches into the stream and
        does not wait. It returns 0, or an error code of the GPU's runtime. Without it a GPU's queue copies the data to the host and
        counts that (`gpu_state`).

    Raises
    ------
    InputError
        If the name is another kernel's, with other arguments.

    Notes
    -----
    The functions are kept as long as the kernel is registered, that is, until the process ends or the name gets other forms. Lengths are
    the caller's care: only the kernel knows which entries belong to an index.

    Examples
    --------
    >>> import asterism as am, ctypes
    >>> P, N = ctypes.POINTER, ctypes.c_int64
    >>> form = ctypes.CFUNCTYPE(None, N, N, P(P(ctypes.c_double)), P(N), P(ctypes.c_double))
    >>> @form  # in earnest a function of a shared library, which needs no Python
    ... def add(begin, end, arrays, integers, reals):
    ...     for i in range(begin, end):
    ...         arrays[1][i] += reals[0] * arrays[0][i]
    >>> axpy = am.Kernel("axpy", ["read float64", "update float64", "real"], add)
    >>> A = am.gallery.poisson((3,))
    >>> q = am.Queue("inline")
    >>> x, y = am.Vector(A, q, fill=1.0), am.Vector(A, q, fill=2.0)
    >>> axpy(q, 3, x, y, 0.5)
    >>> y.numpy().tolist()
    [2.5, 2.5, 2.5]
    """

    def __init__(self, name: str, arguments: Sequence[str], host: Any, gpu: Any = None) -> None:
        if isinstance(arguments, str):
            raise TypeError("Kernel: arguments is a str; a list with one for each argument is needed.")
        for argument in arguments:
            intent, _, dtype = argument.partition(" ")
            if argument not in _NUMBERS and (intent not in _INTENTS or not dtype):
                raise InputError(
                    f"Kernel '{name}': the argument '{argument}' is not read, update or write with a dtype, integer, or real."
                )
        places = [0 if " " in a else 1 + _NUMBERS.index(a) for a in arguments]
        if places != sorted(places):
            raise InputError(
                f"Kernel '{name}': arguments are vectors first, then integers, then reals; not {', '.join(arguments)}."
            )
        arrays = [tuple(a.split(" ", 1)) for a in arguments if " " in a]
        integers, reals = (places.count(1 + i) for i in range(2))
        self._h = _core.register_kernel(
            name, (arrays, integers, reals), _address(host, "host"), _address(gpu, "gpu"), (host, gpu)
        )

    @classmethod
    def named(cls, name: str) -> Kernel:
        """Return the kernel of a name.

        Parameters
        ----------
        name : str
            As it was registered.

        Returns
        -------
        Kernel

        Raises
        ------
        InputError
            There is none of that name. The text names the nearest.
        """
        if not isinstance(name, str):
            raise TypeError(f"Kernel.named: name is a {type(name).__name__}; a str is needed.")
        kernel = cls.__new__(cls)
        kernel._h = _core.named_kernel(name)
        return kernel

    @staticmethod
    def names() -> list[str]:
        """Return the names of all that were registered, in order."""
        return list(_core.kernel_names())

    def __repr__(self) -> str:
        forms = "host, gpu" if self._h.has_gpu_form else "host"
        return f"<asterism.Kernel '{self.name}' ({', '.join(self.arguments)}); forms: {forms}>"

    @property
    def name(self) -> str:
        """Under which it is registered."""
        return str(self._h.name)

    @property
    def arguments(self) -> list[str]:
        """What it takes, in order."""
        arrays, integers, reals = self._h.signature
        return [*(f"{intent} {dtype}" for intent, dtype in arrays), *["integer"] * integers, *["real"] * reals]

    def __call__(self, queue: Queue, n: int, *arguments: Vector | float) -> None:
        """Submit it over the indices 0 to n - 1.

        Parameters
        ----------
        queue : Queue
        n : int
        *arguments : Vector, int or float
            As `arguments` says. The queue finds from them which tasks come before.

        Raises
        ------
        InputError
            There are more or fewer arguments, a vector has another dtype, or is given twice.
        TypeError
            An argument is of another type.

        Notes
        -----
        Returns at once, but on an inline queue. Not collective: it works on this rank's parts.
        """
        wanted = self.arguments
        if len(arguments) != len(wanted):
            raise InputError(
                f"the kernel '{self.name}' takes {len(wanted)} arguments ({', '.join(wanted)}), not {len(arguments)}."
            )
        vectors: list[Any] = []
        integers: list[int] = []
        reals: list[float] = []
        for i, (kind, given) in enumerate(zip(wanted, arguments, strict=True)):
            if kind == "integer":
                integers.append(operator.index(given))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            elif kind == "real":
                reals.append(float(given))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            else:
                vectors.append(handle_of(given, f"the kernel '{self.name}': argument {i}"))
                if kind.partition(" ")[2] != str(given.dtype):  # type: ignore[union-attr]
                    raise InputError(f"the kernel '{self.name}': argument {i} is {given.dtype}, not {kind}.")  # type: ignore[union-attr]
                if any(given is other for other in arguments[:i]):
                    raise InputError(
                        f"the kernel '{self.name}': argument {i} is given twice. Take update for what is read and written."
                    )
        self._h.submit(queue._h, as_count(n, f"the kernel '{self.name}': n"), vectors, integers, reals)
