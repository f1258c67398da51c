"""Partitions' folders that are made once, and are there only when they are whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unfinished(partition: Path) -> Iterator[Path]:
    """Where to make what becomes `partition`, with the folder around it, in the end."""
    around = partition.parent
    part = around.with_name(f"{around.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    (part / partition.name).mkdir(parents=True)
    yield part / partition.name
    part.rename(around)
