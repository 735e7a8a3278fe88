"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..errors import FileError, InputError

__all__ = ["cache_folder", "check_apart", "check_target", "is_text", "replacing", "write_figure"]


def cache_folder() -> Path:
    """Return where the library keeps what it can make again: in XDG_CACHE_HOME, or the user's home."""
    try:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:  # a user whom the system does not know, as in containers
        raise FileError("there is no home folder for caches. Set HOME, or XDG_CACHE_HOME.") from error
    return Path(root) / "asterism"


def is_text(name: str) -> bool:
    """Tell whether a name is UTF-8. On Linux any bytes may name a file; Python has surrogates for the others."""
    return not any("\ud800" <= c <= "\udfff" for c in name)


def check_target(path: str | Path, what: str) -> None:
    """Raise where no file could be written: before the work whose result is to lie there."""
    if not str(path):
        raise FileError(f"{what} has an empty name. Give that of a file.")
    target = _behind_links(path)
    if target.is_dir():
        raise FileError(f"{what} '{path}' is a folder. Give the name of a file in it.")
    if not target.parent.is_dir():
        raise FileError(f"{what} '{path}': the folder '{target.parent}' does not exist. Make it first.")
    if not os.access(target.parent, os.W_OK):
        raise FileError(f"{what} '{path}': the folder '{target.parent}' cannot be written to.")


def _behind_links(path: str | Path) -> Path:
    """Return where a file is to lie; raise for links in a circle, and where what lies there would be lost, such as /dev/null."""
    target = Path(path)
    try:
        target = Path(os.path.realpath(path))  # which says nothing of links in a circle
        target.stat()
    except OSError as error:
        if error.errno == errno.ELOOP or not target.is_absolute():  # of others the writer tells
            raise FileError(f"'{path}' cannot be written: {error.strerror}.") from error
    if target.exists() and not target.is_file() and not target.is_dir():
        raise FileError(f"'{path}' is a device or a pipe, which no file can replace. Give the name of a file.")
    return target


def check_apart(written: dict[str, str | None], read: dict[str, str | None]) -> None:
    """Raise where a file that is to be written is one of those that are read, or is written twice.

    Parameters
    ----------
    written, read : dict
        What the user calls each file, and its path; None: not given.
    """
    seen = {_place(path): name for name, path in read.items() if path}
    for name, path in written.items():
        if not path:
            continue
        other = seen.setdefault(_place(path), name)
        if other is not name:
            raise FileError(f"{name} '{path}' is also {other}: it would be lost. Give another name.")


def _place(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # the current folder was removed
        return path


@contextmanager
def replacing(path: str | Path, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file beside `path` that takes its place when the block ends, and is dropped if the block fails."""
    target = _behind_links(path)
    try:
        part = target.parent / f".{secrets.token_hex(8)}.part"
        # as any file of the user's: the umask decides who may read it
        out = open(part, "xb" if binary else "x", encoding=None if binary else "utf-8")
        try:
            with out:
                yield out
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
    except FileError:
        raise
    except OSError as error:
        said = FileError(f"'{path}' cannot be written: {error.strerror or error}.")
        said.shared = getattr(error, "shared", False)
        raise said from error


def write_figure(path: str | Path, figure: Any) -> None:
    """Write a figure of Matplotlib, whole or not at all, in the format that the ending says; without one as PNG."""
    kind = Path(path).suffix[1:] or "png"
    formats = figure.canvas.get_supported_filetypes()
    if kind.lower() not in formats:
        raise InputError(f"'{path}': Matplotlib writes no {kind}. It writes {', '.join(sorted(formats))}.")
    with replacing(path, binary=True) as out:
        figure.savefig(out, dpi=120, format=kind)
