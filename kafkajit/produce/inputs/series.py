"""Files → series of records: those that are read one after the other, in the order of offsets.

With offsets, the files of an exported partition are one series, because dates may divide them, and
every other file is a series of its own. Without, all files are one series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import KafkaJitError
from kafkajit.produce.inputs.input_files import InputFile

Read = Callable[[InputFile], Iterator[pa.RecordBatch]]
# An export writes records without a date, and those of years beyond 9999, a chunk of the log at a
# time: this part of their file is sorted at once.
_WINDOW_BYTES = 128 << 20


@dataclass
class Series:
    """Files whose records are read one after the other, or merged by their offsets."""

    files: list[InputFile]
    read: Read
    is_merged: bool
    _current: InputFile | None = None

    @property
    def path(self) -> str:
        """The first file."""
        return self.files[0].path

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add the files to an error about their records."""
        try:
            yield
        except ValueError as error:
            where = self.path if self._current is None else self._current.path
            if self._current is None and self.files[1:]:
                where += f" or {len(self.files) - 1:,} more of its partition"
            if isinstance(error, KafkaJitError):
                error.message = f"{where}: {error.message}"
                raise
            raise ValueError(f"{where}: {error}") from None

    def records(self) -> Iterator[pa.RecordBatch]:
        """The records of all files."""
        if not self.is_merged:
            for file in self.files:
                self._current = file
                yield from self.read(file)
            return
        heads: list[tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]] = []
        waiting = list(reversed(self.files))
        while heads or waiting:
            last = min((_last(rows) for rows, _ in heads), default=-1)
            while waiting and (not heads or _first_of(waiting[-1]) <= last):
                reader = self._in_order(waiting.pop())
                first = next(reader, None)
                if first is not None:
                    heads.append((first, reader))
                    last = min(last, _last(first)) if len(heads) > 1 else _last(first)
            if not heads:
                return
            parts, left = [], []
            for rows, reader in heads:
                count = pc.sum(pc.less_equal(rows["offset"], last)).as_py() or 0
                parts.append(rows.slice(0, count))
                rest = rows.slice(count) if count < rows.num_rows else next(reader, None)
                if rest is not None:
                    left.append((rest, reader))
            heads = left
            if len(parts) == 1:
                yield parts[0]
            else:
                yield pa.concat_batches(parts).sort_by("offset")

    def _in_order(self, file: InputFile) -> Iterator[pa.RecordBatch]:
        """The records of a file in the order of offsets."""
        if not file.has_no_date:
            yield from self.read(file)
            return
        held: list[pa.RecordBatch] = []
        for records in self.read(file):
            held.append(records)
            if sum(part.nbytes for part in held) > _WINDOW_BYTES:
                rows = pa.concat_batches(held).sort_by("offset")
                half = rows.num_rows // 2
                yield rows.slice(0, half)
                held = [rows.slice(half)]
        if held:
            yield pa.concat_batches(held).sort_by("offset")


def series_of(files: list[InputFile], read: Read, *, by_offset: bool) -> list[Series]:
    """The series of files, in which `read` finds the records of each."""
    if not by_offset:
        return [Series(files, read, is_merged=False)]
    exported: dict[tuple[str | None, str], list[InputFile]] = {}
    found = []
    for file in files:
        if file.series is None:
            found.append(Series([file], read, is_merged=False))
        else:
            exported.setdefault((file.folders.get("topic"), file.series[0]), []).append(file)
    for some in exported.values():
        some.sort(key=lambda file: (_first_of(file), file.path))
        found.append(Series(some, read, is_merged=True))
    return found


def _first_of(file: InputFile) -> int:
    """The first offset, by the file's name."""
    assert file.series is not None
    return file.series[1]


def _last(rows: pa.RecordBatch) -> int:
    return int(rows["offset"][-1].as_py())
