"""Read and change one partition's offset in a checkpoint of a log.dirs folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from kafkajit.change.files import Identity, identity
from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.log_path import partition_of
from kafkajit.state.checkpoints import offsets_text, parse_offsets
from kafkajit.storage.source import check_regular, whole

_Partition = tuple[str | None, int | None]


class PartitionOffsets:
    """A checkpoint beside a partition's folder.

    >>> PartitionOffsets(Path("/no/such/folder/orders-0"), "cleaner-offset-checkpoint").offset
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder.parent / name
        self.problem: str | None = None  # why the file cannot be read; it has no offset then
        named = partition_of(folder)
        self._partition: _Partition = (named.topic, named.partition)
        self._offsets: dict[_Partition, int] = {}
        self._is_there = self.path.exists() and not folder.name.endswith("-future")
        if self._is_there:
            try:
                check_regular(self.path)
            except OSError as error:
                self.problem = str(error).removeprefix(f"{self.path} ")
                return
            try:
                self._offsets = _read_once(self.path, identity(self.path))
            except CorruptCheckpointError as error:
                self.problem = f"{type(error).__name__}: {error.message}"

    @property
    def offset(self) -> int | None:
        """The partition's offset; None if the file has no entry for it."""
        return self._offsets.get(self._partition)

    def with_offset(self, offset: int | None) -> bytes:
        """The present file with another offset for the partition, or without its entry."""
        offsets = _read(self.path) if self._is_there else {}
        if offset is not None:
            offsets[self._partition] = offset  # at its place in the file
        else:
            offsets.pop(self._partition, None)
        return offsets_text((*name, value) for name, value in offsets.items())  # type: ignore[misc]


def offset_in(folder: Path, name: str) -> int | None:
    """The offset that a checkpoint has for a partition; an unreadable file is an error."""
    offsets = PartitionOffsets(folder, name)
    if offsets.problem is not None:
        message = offsets.problem.removeprefix(f"{CorruptCheckpointError.__name__}: ")
        advice = "`kafkajit repair` describes what to do about it"
        raise CorruptCheckpointError(message, path=str(offsets.path), advice=advice)
    return offsets.offset


# All partitions of a log.dirs folder read the same few files.
@lru_cache(maxsize=16)
def _read_once(path: Path, _: Identity | None) -> dict[_Partition, int]:
    return _read(path)


def _read(path: Path) -> dict[_Partition, int]:
    rows = parse_offsets(*whole(str(path))).to_pylist()
    return {(row["topic"], row["partition"]): row["offset"] for row in rows}
