"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[str]]:
    """Open a text file beside `path` that takes its place when the block ends, and is dropped if the block fails."""
    target = Path(path).resolve()
    with tempfile.NamedTemporaryFile("w", dir=target.parent, suffix=".part", delete=False, encoding="utf-8") as out:
        try:
            yield out.file
        except BaseException:
            os.unlink(out.name)
            raise
    os.chmod(out.name, 0o644)
    os.replace(out.name, target)
