"""What the checkpoints of a log.dirs folder say of one partition, and saying something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.log_path import parse_log_path
from kafkajit.source import as_bytes
from kafkajit.state.checkpoints import offsets_text, parse_offsets


class PartitionOffsets:
    """A checkpoint beside a partition's folder.

    >>> PartitionOffsets(Path("/no/such/folder/orders-0"), "cleaner-offset-checkpoint").offset
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder.parent / name
        self.problem: str | None = None  # why it cannot be read; then it says nothing
        named = parse_log_path(folder / "any")
        self._key = (named.topic, named.partition)
        self._rows: list[dict[str, Any]] = []
        if self.path.is_file() and not folder.name.endswith("-future"):
            content = as_bytes(self.path.read_bytes())
            try:
                self._rows = parse_offsets(content, str(self.path)).to_pylist()
            except CorruptCheckpointError as error:
                self.problem = f"{type(error).__name__}: {error.message}"

    @property
    def offset(self) -> int | None:
        """The partition's; None where it is not named."""
        found = (int(row["offset"]) for row in self._rows if self._is_ours(row))
        return next(found, None)

    def with_offset(self, offset: int | None) -> bytes:
        """The file with another offset for the partition, or without it."""
        rows: list[tuple[str, int, int]] = []
        for row in self._rows:
            if not self._is_ours(row):
                rows.append((row["topic"], row["partition"], row["offset"]))
            elif offset is not None:
                rows.append((row["topic"], row["partition"], offset))
        return offsets_text(rows)

    def _is_ours(self, row: dict[str, Any]) -> bool:
        return (row["topic"], row["partition"]) == self._key
