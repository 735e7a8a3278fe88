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
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from ...base.files import cache_folder
from ...errors import FileError

__all__ = ["Identity", "cached", "drop", "folder", "identity"]

Identity = tuple[int, int, int]  # of a file: another one has another
_LOOKED_AT = 2**20  # bytes of a file of which there is a sum, a millisecond's work
_PATIENCE = 300.0  # seconds, as one compilation may take


def folder() -> Path:
    """Return the folder, made with mode 0700 if need be.

    ``ASTERISM_STENCIL_CACHE``, or ``asterism/stencils`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    given = os.environ.get("ASTERISM_STENCIL_CACHE")
    path = Path(given) if given else cache_folder() / "stencils"
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
def _locked(path: Path, is_made: Callable[[], bool]) -> Iterator[None]:
    """Hold a lock that no other process of the machine has. Go on without it when the file is there, or after five minutes.

    A process that was forked while a thread of its parent compiled holds the lock too, and would wait for itself.
    """
    handle = _lock_file(path)
    try:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if is_made():
                    break
                if not _is_there(path, handle):  # who has it is done, and made no file
                    os.close(handle)
                    handle = -1
                    handle = _lock_file(path)
                    continue
                time.sleep(0.05)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        path.unlink(missing_ok=True)  # who waits for it finds the file, and so does who comes later
        if handle >= 0:
            os.close(handle)


def _lock_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error


def _is_there(path: Path, handle: int) -> bool:
    """Tell whether the name is still that of the open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except OSError:
        return False


def cached(
    key: str, make: Callable[[Path], None], suffix: str = ".so", damaged: Identity | None = None
) -> tuple[Path, bool]:
    """Return the file of that key, and whether it was made now.

    It is written beside its place and renamed, so that others see it whole or not at all. Other processes that want it
    meanwhile wait for the first one, if the file system has locks; else the last one wins, with the same content. Its
    size and sum are noted in a file beside it: what a machine that went down has left in its place is made again.

    Parameters
    ----------
    key : str
    make : callable
        Writes the file at a path.
    suffix : str
    damaged : Identity, optional
        Of a file that could not be loaded: it is made again too.
    """
    where = folder()
    target, note = where / f"{key}{suffix}", where / f"{key}.size"
    if _is_whole(target, note, damaged):
        return target, False
    with _locked(where / f"{key}.lock", lambda: _is_whole(target, note, damaged)):
        if _is_whole(target, note, damaged):
            return target, False
        with _part(where, key) as part:
            make(part)
            try:
                _settle(part)
                with _part(where, key) as words:
                    words.write_bytes(_size_and_sum(part))
                    os.replace(words, note)  # first: who sees the file finds its note
                os.chmod(part, 0o700)
                os.replace(part, target)
            except FileError:
                raise
            except OSError as error:
                raise _unwritable(target, error) from error
        return target, True


def drop(path: Path) -> None:
    """Remove a file that cannot be loaded, and its note."""
    path.unlink(missing_ok=True)
    path.with_suffix(".size").unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> FileError:
    return FileError(f"'{path}' cannot be written: {error.strerror}. {_HINT}")


def identity(path: Path) -> Identity | None:
    """Return what tells a file from another that takes its place; None without one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


@contextlib.contextmanager
def _part(where: Path, key: str) -> Iterator[Path]:
    """Make an empty file, which is gone at the end if it was not renamed."""
    try:
        handle, name = tempfile.mkstemp(prefix=f"{key}.", suffix=".part", dir=where)
    except OSError as error:
        raise _unwritable(where / key, error) from error
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Wait until a file is on the disk: a name that is there before its content outlives a machine that goes down."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _size_and_sum(path: Path) -> bytes:
    with path.open("rb") as file:
        return b"%d %d\n" % (os.fstat(file.fileno()).st_size, zlib.crc32(file.read(_LOOKED_AT)))


def _is_whole(path: Path, note: Path, damaged: Identity | None) -> bool:
    """Tell whether there is such a file, which must be the user's own, as it was written."""
    if not path.exists() and not path.is_symlink():
        return False
    try:
        _trust(path)
    except FileNotFoundError:  # another process has just removed it
        return False
    if damaged is not None and identity(path) == damaged:
        return False
    try:
        return note.read_bytes() == _size_and_sum(path)
    except OSError:
        return False
