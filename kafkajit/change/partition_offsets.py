"""Read and change one partition's offset in a checkpoint of a log.dirs folder."""

from __future__ import annotations

from pathlib import Path

from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.log_path import partition_of
from kafkajit.state.checkpoints import Offsets, offsets_in, offsets_text, with_offset
from kafkajit.storage.source import check_regular
from kafkajit.storage.stored_file import file_at


class PartitionOffsets:
    """A checkpoint beside a partition's folder.

    >>> PartitionOffsets(Path("/no/such/folder/orders-0"), "cleaner-offset-checkpoint").offset
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder.parent / name
        self.problem: str | None = None  # why the file cannot be read; it has no offset then
        named = partition_of(folder)
        self._partition = named.topic, named.partition
        self._offsets: Offsets = {}
        self._is_there = not folder.name.endswith("-future")
        if self._is_there:
            try:
                check_regular(self.path)
            except FileNotFoundError:
                self._is_there = False
                return
            except OSError as error:
                self.problem = str(error).removeprefix(f"{self.path} ")
                return
            try:
                self._offsets = offsets_in(file_at(str(self.path)))
            except CorruptCheckpointError as error:
                self.problem = f"{type(error).__name__}: {error.message}"

    @property
    def offset(self) -> int | None:
        """The partition's offset; None if the file has no entry for it."""
        return self._offsets.get(self._partition)

    def with_offset(self, offset: int | None) -> bytes:
        """The present file with another offset for the partition, or without its entry."""
        topic, partition = self._partition
        assert topic is not None
        assert partition is not None
        if self._is_there:
            return with_offset(file_at(str(self.path)), topic, partition, offset)
        return offsets_text([] if offset is None else [(topic, partition, offset)])


def offset_in(folder: Path, name: str) -> int | None:
    """The offset that a checkpoint has for a partition; an unreadable file is an error."""
    offsets = PartitionOffsets(folder, name)
    if offsets.problem is not None:
        message = offsets.problem.removeprefix(f"{CorruptCheckpointError.__name__}: ")
        advice = "`kafkajit repair` describes what to do about it"
        raise CorruptCheckpointError(message, path=str(offsets.path), advice=advice)
    return offsets.offset
