"""Partitions' folders that are made once, and appear only when they are complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unfinished(partition: Path) -> Iterator[Path]:
    """A temporary folder that becomes `partition`, with the folder around it, at the end."""
    around = partition.parent
    part = around.with_name(f"{around.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    (part / partition.name).mkdir(parents=True)
    yield part / partition.name
    part.rename(around)
