"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import FileError

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | Path, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file beside `path` that takes its place when the block ends, and is dropped if the block fails."""
    target = Path(path).resolve()
    try:
        mode, encoding = ("wb", None) if binary else ("w", "utf-8")
        with tempfile.NamedTemporaryFile(
            mode, dir=target.parent, suffix=".part", delete=False, encoding=encoding
        ) as out:
            try:
                yield out.file
            except BaseException:
                os.unlink(out.name)
                raise
        os.chmod(out.name, 0o644)
        os.replace(out.name, target)
    except OSError as error:
        raise FileError(f"'{path}' cannot be written: {error.strerror or error}.") from error
