"""From source to a function that can be called: the system's compiler, once for each content.

Input: `Source`. Output: `Library`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.cpu import cpu_name
from ..errors import InternalError, OptionError, UnsupportedError
from .cache import cached
from .sources import TARGETS, Source

__all__ = ["Library", "build", "compiler"]

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
_LIMIT = 300  # seconds of one compilation


@dataclass(frozen=True)
class Library:
    """A compiled kernel. ``compiled`` tells whether that was done now, in ``seconds``, or found in the cache."""

    address: int
    path: Path
    compiled: bool
    seconds: float
    handle: Any


def compiler() -> str | None:
    """Return the C++ compiler: ``CXX`` if it is set, else g++, c++ or clang++; None if there is none."""
    given = os.environ.get("CXX")
    return next((p for p in map(shutil.which, [given] if given else ["g++", "c++", "clang++"]) if p), None)


@functools.cache
def _version(path: str, _changed: float) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    return done.stdout


_loaded: dict[str, Library] = {}


def build(source: Source) -> Library:
    """Compile a kernel, or take it from the cache.

    Raises
    ------
    UnsupportedError
        Without a compiler.
    FileError
        If the folder of the cache, or the file, is not the user's own.
    OptionError
        For text for a GPU.
    """
    if source.target not in TARGETS:
        raise OptionError(
            f"target='{source.target}': kernels for GPUs are texts, which this library does not run. Stencil.source returns them; to run a "
            f"stencil here take one of {', '.join(TARGETS)}."
        )
    start = time.perf_counter()
    program = compiler()
    if program is None:
        raise UnsupportedError("no C++ compiler was found: install g++, or set CXX.")
    version = _version(program, os.stat(program).st_mtime)
    key = hashlib.sha256("\0".join([source.text, version, *_FLAGS, *source.flags, cpu_name()]).encode()).hexdigest()
    known = _loaded.get(key)
    if known is not None and known.path.exists():
        return Library(known.address, known.path, False, time.perf_counter() - start, known.handle)

    def make(path: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder) / f"{source.name}.cpp"
            text.write_text(source.text, encoding="utf-8")
            command = [program, *_FLAGS, *source.flags, str(text), "-o", str(path)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
            except subprocess.TimeoutExpired as error:
                raise UnsupportedError(f"the compiler took more than {_LIMIT} s: take smaller bricks.") from error
            if done.returncode:
                raise InternalError(
                    f"the compiler refused a kernel (g++ 12 or clang 16 is needed, which CXX may name): {' '.join(command)}\n{done.stderr[:2000]}"
                )

    path, made = cached(key, make)
    handle = ctypes.CDLL(str(path))
    address = ctypes.cast(handle[source.name], ctypes.c_void_p).value or 0
    library = _loaded[key] = Library(address, path, made, time.perf_counter() - start, handle)
    return library
