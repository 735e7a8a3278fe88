"""Compiled kernels in the user's own folder, found by their content.

Input: a key and a function that writes the file. Output: the path of a file that nobody else can have written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import FileError

__all__ = ["cached", "folder"]

_PATIENCE = 300.0  # seconds, as one compilation may take


def folder() -> Path:
    """Return the folder, made with mode 0700 if need be.

    ``ASTERISM_STENCIL_CACHE``, or ``asterism/stencils`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    given = os.environ.get("ASTERISM_STENCIL_CACHE")
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(given) if given else Path(root) / "asterism" / "stencils"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"the folder '{path}' for compiled stencils cannot be made: {error.strerror}. {_HINT}"
        ) from error
    _trust(path)
    return path


_HINT = "Set ASTERISM_STENCIL_CACHE to a folder of your own."


def _trust(path: Path) -> None:
    """Raise where another user owns a file or folder, or can write it."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise FileError(f"'{path}' is a symbolic link; compiled stencils are not loaded through one. {_HINT}")
    if found.st_uid != os.geteuid():
        raise FileError(
            f"'{path}' belongs to user {found.st_uid}, not to you ({os.geteuid()}): it is not loaded. {_HINT}"
        )
    if found.st_mode & 0o022:
        raise FileError(
            f"'{path}' can be written by other users (mode {stat.S_IMODE(found.st_mode):o}): it is not loaded. Run chmod go-w on it, or remove it."
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that no other process of the machine has. After five minutes go on without it: the content is the same."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        path.unlink(missing_ok=True)  # who waits for it finds the file, and so does who comes later
        os.close(handle)


def cached(key: str, make: Callable[[Path], None], suffix: str = ".so") -> tuple[Path, bool]:
    """Return the file of that key, and whether it was made now.

    It is written beside its place and renamed, so that others see it whole or not at all. Other processes that want it meanwhile wait for
    the first one, if the file system has locks; else the last one wins, with the same content.
    """
    where = folder()
    target = where / f"{key}{suffix}"
    if _is_there(target):
        return target, False
    with _locked(where / f"{key}.lock"):
        if _is_there(target):
            return target, False
        handle, part = tempfile.mkstemp(prefix=f"{key}.", suffix=".part", dir=where)
        os.close(handle)
        try:
            make(Path(part))
            os.chmod(part, 0o700)
            os.replace(part, target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
        return target, True


def _is_there(path: Path) -> bool:
    """Tell whether there is such a file, which must be the user's own."""
    if not path.exists() and not path.is_symlink():
        return False
    _trust(path)
    return True
