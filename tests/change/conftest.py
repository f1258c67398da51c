from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from changes import A, place


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if possible: for thousands of small files."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


@pytest.fixture
def folder(memory: Path) -> Path:
    """A partition of one small segment."""
    place(memory, {f"{A}/{0:020d}.log": b"old log", f"{A}/{0:020d}.index": b"old index"})
    return memory / A
