"""From source to a function that can be called: the system's compiler, once for each content.

Input: `Source`. Output: `Library`.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.cpu import cpu_name
from ...errors import AsterismError, InputError, InternalError, OptionError, UnsupportedError
from ..codegen.emit_gpu import GPU_TARGETS
from ..codegen.passes import group
from ..codegen.sources import TARGETS, Source, generate
from ..language.stencil import Stencil
from .cache import cached, drop, identity

__all__ = ["Library", "build", "build_ahead", "compiler", "gpu_kernel"]

_FLAGS = (
    "-O2",
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-exceptions",
    "-Wno-psabi",
    "-ffp-contract=fast",
)
_LONG, _FLAGS_OF_LONG = 150_000, ("-O1",)  # characters; -O2 takes twice as long there, and the kernel is no faster
_GPU_FLAGS = ("-cubin", "-O3", "-std=c++17")
_LIMIT = 300  # seconds of one compilation
_THREADS = 128  # of a block on a GPU


@dataclass(frozen=True)
class Library:
    """A compiled kernel, made by `stencil.build`.

    Attributes
    ----------
    address : int
        Of the function in this process.
    path : Path
        The shared library in the cache.
    compiled : bool
        True if the compiler ran now, False if the kernel was found.
    seconds : float
        That the compilation, or finding it, took.
    handle : ctypes.CDLL
        The loaded library.
    """

    address: int
    path: Path
    compiled: bool
    seconds: float
    handle: Any


def compiler() -> list[str]:
    """Return the C++ compiler and its arguments: ``CXX`` if it is set, else g++, c++ or clang++."""
    return _command("CXX", ["g++", "c++", "clang++"], "no C++ compiler was found", "Install g++, or set CXX.")


def gpu_compiler() -> list[str]:
    """Return CUDA's compiler and its arguments: ``NVCC`` if it is set, else nvcc."""
    usual = ["nvcc", f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin/nvcc"]
    return _command("NVCC", usual, "nvcc was not found", "Put CUDA's bin on PATH, or set CUDA_HOME or NVCC.")


def _command(variable: str, usual: Sequence[str], missing: str, hint: str) -> list[str]:
    """Return a program and its arguments, as a variable says or else the first usual one that is there.

    Raises
    ------
    UnsupportedError
        Without one.
    """
    given = os.environ.get(variable)
    choices = [[name] for name in usual]
    if given:
        choices = [[given]]  # a path with blanks
        with contextlib.suppress(ValueError):  # quotes that do not close
            choices.append(shlex.split(given))
    for words in choices:
        if words and (path := shutil.which(words[0])):
            return [path, *words[1:]]
    named = f": {variable} is {given!r}, which names no program" if given else ""
    raise UnsupportedError(f"{missing}{named}. {hint}")


def _key(source: Source, program: str, *others: str) -> str:
    """Return what the compiled kernel is found by. A compiler is another one if its file changed; one behind a wrapper is not seen."""
    found = os.stat(program)
    parts = [source.digest, os.path.realpath(program), str(found.st_size), str(found.st_mtime_ns), *others]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _run(text: str, name: str, command: list[str], path: Path, hint: str) -> None:
    """Compile a text."""
    with contextlib.ExitStack() as made:
        try:
            folder = made.enter_context(tempfile.TemporaryDirectory())
            file = Path(folder) / name
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UnsupportedError(
                f"a kernel cannot be written to a temporary folder: {error.strerror or error}. Make room, or set TMPDIR."
            ) from error
        command = [*command, str(file), "-o", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
        except subprocess.TimeoutExpired as error:
            raise UnsupportedError(f"the compiler took more than {_LIMIT} s: take smaller bricks.") from error
        except OSError as error:
            raise UnsupportedError(f"the compiler '{command[0]}' cannot be run ({hint}): {error.strerror}") from error
        if done.returncode and "No space left on device" in done.stderr:
            raise UnsupportedError(
                f"no space is left in {path.parent} or {folder} for a kernel. Make room, or set ASTERISM_STENCIL_CACHE and TMPDIR."
            )
        if done.returncode:
            raise InternalError(
                f"the compiler refused a kernel ({hint}): {' '.join(command)}\n{(done.stderr or done.stdout)[:2000]}"
            )


_loaded: dict[str, Library] = {}


def build(source: Source) -> Library:
    """Compile a kernel, or take it from the cache.

    Parameters
    ----------
    source : Source
        For a target of the host: "generic", "avx2" or "avx512".

    Returns
    -------
    Library

    Raises
    ------
    UnsupportedError
        Without a compiler, without space for the kernel, or if the compiler takes more than 300 seconds.
    InternalError
        If the compiler refuses the text, or makes a file that cannot be loaded.
    InputError
        If bricks of this shape make the kernel too long to compile.
    FileError
        If the folder of the cache, or the file, is not the user's own.
    OptionError
        For text for a GPU.
    """
    command, key = _command_and_key(source)
    if future := _under_way.pop(key, None):
        return future.result()
    return _build(source, command, key)


def _command_and_key(source: Source) -> tuple[list[str], str]:
    if source.target not in TARGETS:
        raise OptionError(
            f"target='{source.target}' is for GPUs, where operators run whose vectors lie there (-device cuda). On the host take one of "
            f"{', '.join(TARGETS)}."
        )
    command = [*compiler(), *_FLAGS, *source.flags]
    return command, _key(source, *command, str(_LONG), *_FLAGS_OF_LONG, cpu_name())  # the text is not made for the key


def _build(source: Source, command: list[str], key: str) -> Library:
    start = time.perf_counter()
    known = _loaded.get(key)
    if known is not None and known.path.exists():
        return Library(known.address, known.path, False, time.perf_counter() - start, known.handle)

    def make(path: Path) -> None:
        _run(
            source.text,
            f"{source.name}.cpp",
            [*command, *(_FLAGS_OF_LONG if len(source.text) > _LONG else ())],
            path,
            "g++ 12 or clang 16 is needed, which CXX may name",
        )

    path, made, handle, address = _load(key, make, source.name)
    library = _loaded[key] = Library(address, path, made, time.perf_counter() - start, handle)
    return library


_under_way: dict[str, Future[Library]] = {}
os.register_at_fork(after_in_child=_under_way.clear)  # it has none of its parent's threads


def build_ahead(sources: Iterable[Source], busy: int = 0) -> None:
    """Begin to compile kernels that `build` will be asked for, several at a time; it waits for those, and raises what failed.

    Parameters
    ----------
    sources : iterable of Source
    busy : int
        Cores that other work keeps. Kernels for which no core is left are compiled when they are asked for.
    """
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        return
    for key, future in list(_under_way.items()):
        if future.done():
            _under_way.pop(key, None)  # if it is asked for, the cache has it; or it fails again
    for source in sources:
        try:
            command, key = _command_and_key(source)
        except (AsterismError, OSError):
            return
        if len(_under_way) >= cores - busy or key in _loaded or key in _under_way:
            continue
        future = Future()
        try:
            threading.Thread(target=_ahead, args=(future, source, command, key)).start()
        except RuntimeError:  # the system starts no more of them
            return
        _under_way[key] = future


def _ahead(future: Future[Library], source: Source, command: list[str], key: str) -> None:
    try:
        future.set_result(_build(source, command, key))
    except Exception as error:  # for who waits
        future.set_exception(error)


def _load(key: str, make: Callable[[Path], None], name: str) -> tuple[Path, bool, Any, int]:
    """Load a function from the cache. A file that cannot be loaded is made again, once."""
    path, made = cached(key, make)
    found = identity(path)
    try:
        return path, made, *_function(path, name)
    except (OSError, AttributeError) as error:
        why = error
    if not made:
        path, made = cached(key, make, damaged=found)
        try:
            return path, made, *_function(path, name)
        except (OSError, AttributeError) as error:
            why = error
    drop(path)
    raise InternalError(
        f"the kernel that the compiler made at '{path}' cannot be loaded: {why}. Set CXX to a compiler that works, and "
        "ASTERISM_STENCIL_CACHE to a folder from which programs can run."
    )


def _function(path: Path, name: str) -> tuple[Any, int]:
    handle = ctypes.CDLL(str(path))
    return handle, ctypes.cast(handle[name], ctypes.c_void_p).value or 0


def gpu_kernel(
    stencil: Stencil, brick: tuple[int, ...], dtype: str, runtime: str, architecture: str
) -> tuple[str, str, int, int]:
    """Compile a kernel for a GPU, or take it from the cache; one process of a machine compiles.

    Returns
    -------
    tuple
        The file, the name of the kernel, threads of a block, and how many planes of bricks a block computes at once. Without a compiler an
        empty path, and the reason.
    """
    try:
        if runtime != "cuda":
            raise UnsupportedError(f"kernels of stencils are loaded on CUDA's devices, not yet on those of {runtime}.")
        source = generate(stencil, runtime, brick, dtype)
        command = [*gpu_compiler(), *_GPU_FLAGS, f"-arch={architecture}"]
        key = _key(source, *command)
        hint = "NVCC may name another one"
        path, _ = cached(key, lambda to: _run(source.text, f"{source.name}.cu", command, to, hint), ".cubin")
    except (UnsupportedError, InternalError, InputError) as error:
        return "", str(error), 0, 0
    lanes = GPU_TARGETS[runtime].lanes
    return str(path), source.name, _THREADS, _THREADS // lanes * (lanes // group(lanes, brick[-1]))
