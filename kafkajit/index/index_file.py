"""An index's file: its entries where they lie, and Kafka's ways of adding to them and cutting them.

Answers to AbstractIndex. An active segment's index is preallocated: its entries end where only
zeros are left. Kafka takes those for entries until a clean shutdown has trimmed the file.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from kafkajit.errors import CorruptIndexError, InvalidOffsetError
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.log_path import parse_log_path
from kafkajit.storage.source import Bytes, Source, as_bytes

MAX_INDEX_SIZE = 10 << 20  # segment.index.bytes


class IndexFile:
    """An index, mapped into memory; only the pages that a lookup needs are read.

    `base_offset` is that of the name where the source is a path. A writable one is a path; where
    there is no file, one of `max_index_size` is made.
    """

    ENTRY: ClassVar[np.dtype[np.void]]
    NAME: ClassVar[str]  # in errors

    def __init__(
        self,
        source: Any,
        base_offset: int | None = None,
        *,
        writable: bool = False,
        max_index_size: int = MAX_INDEX_SIZE,
    ) -> None:
        self._max_index_size = max_index_size
        self._file: int | None = None
        if writable:
            self.path: str | None = os.fspath(source)
            self._content = self._open(Path(source))
        else:
            opened = source if isinstance(source, Source) else Source(source)
            self.path, self._content = opened.path, opened.content
        if base_offset is None:
            base_offset = base_offset_of(self.path)
        self.base_offset = base_offset
        self._count = count_entries(self._content, self.ENTRY)

    def __len__(self) -> int:
        return self._count

    @property
    def entries(self) -> npt.NDArray[np.void]:
        """As they stand there, offsets relative to the base offset; a view."""
        return self._content[: self._count * self.ENTRY.itemsize].view(self.ENTRY)

    @property
    def length(self) -> int:
        """The file's, in bytes."""
        return self._content.size

    @property
    def max_entries(self) -> int:
        return self.length // self.ENTRY.itemsize

    @property
    def is_full(self) -> bool:
        return self._count >= self.max_entries

    def truncate_to(self, offset: int) -> None:
        """Forget the entries of this offset and of those behind it.

        Of several entries of this offset, as a time index may have, Kafka forgets only some.
        """
        # They grow with their offsets, in every kind of index.
        kept = bisect_left(self.entries["relativeOffset"], offset - self.base_offset)
        self.truncate_to_entries(int(kept))

    def truncate_to_entries(self, count: int) -> None:
        """Keep the first so many entries; the file keeps its size."""
        self._must_be_writable()
        if not 0 <= count <= self._count:
            raise ValueError(f"cannot truncate to {count} of {self._count} entries")
        size = self.ENTRY.itemsize
        # Kafka leaves the bytes there. Whoever opens the file after a crash would take them for
        # entries, so here they go.
        self._mapped[count * size : self._count * size] = bytes((self._count - count) * size)
        self._count = count

    def resize(self, size: int) -> bool:
        """Make the file as large as entries fit into so many bytes; whether it was not before."""
        self._must_be_writable()
        rounded = size // self.ENTRY.itemsize * self.ENTRY.itemsize
        if rounded < self._count * self.ENTRY.itemsize:
            raise ValueError(f"{self._count} entries do not fit into {size} bytes")
        if rounded == self.length:
            return False
        self._map(rounded)
        return True

    def trim_to_valid_size(self) -> None:
        """Cut the file behind its last entry, as a broker does when it closes it."""
        self.resize(self._count * self.ENTRY.itemsize)

    def make_read_only(self) -> None:
        """What a broker does with a segment's index when it rolls the next one."""
        self.trim_to_valid_size()
        self.close()

    def flush(self) -> None:
        """See to it that the disk has what was appended."""
        if self._file is not None:
            if self.length:
                self._mapped.flush()
            os.fsync(self._file)

    def close(self) -> None:
        """Write no more; what is there can still be read."""
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _kind(self) -> str:
        return self.NAME.lower().removesuffix(" file")

    def _row(self, row: int) -> tuple[int, ...]:
        """The fields of the entry of that row."""
        if not 0 <= row < self._count:
            raise IndexError(
                f"Attempt to fetch the {row}th entry from {self._kind} "
                f"{self.path or 'given'}, which has size {self._count}"
            )
        fields: tuple[int, ...] = self.entries[row].tolist()
        return fields

    def _append(self, *fields: int) -> None:
        """An entry behind the last."""
        if self._count >= self.max_entries:
            raise ValueError(f"Attempt to append to a full {self._kind} (size = {self._count}).")
        try:
            entry = np.array([fields], self.ENTRY).tobytes()
        except OverflowError:
            names = ", ".join(self.ENTRY.names or ())
            raise ValueError(f"{fields} do not fit into an entry: {names}") from None
        self._mapped[self._count * len(entry) : (self._count + 1) * len(entry)] = entry
        self._count += 1

    def _relative(self, offset: int) -> int:
        relative = offset - self.base_offset
        if not 0 <= relative <= MAX_INT32:
            raise InvalidOffsetError(
                f"Integer overflow for offset: {offset}",
                path=self.path,
                base_offset=self.base_offset,
            )
        return relative

    def _must_be_writable(self) -> None:
        if self._file is None:
            raise ValueError(f"{self.path or 'the index'} is not open for writing")

    def _open(self, path: Path) -> Bytes:
        is_new = not path.exists()
        size = self.ENTRY.itemsize
        if is_new and self._max_index_size < size:
            raise ValueError(f"Invalid max index size: {self._max_index_size}")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._map(self._max_index_size // size * size if is_new else os.fstat(self._file).st_size)
        return self._content

    def _map(self, size: int) -> None:
        assert self._file is not None
        os.ftruncate(self._file, size)
        # A file without bytes cannot be mapped.
        self._mapped: Any = mmap.mmap(self._file, size) if size else bytearray()
        self._content = as_bytes(self._mapped)

    def check_size(self) -> None:
        """Raise where the file ends inside an entry."""
        if self.length % self.ENTRY.itemsize:
            raise CorruptIndexError(
                f"{self.NAME} {self.path or 'given'} is corrupt, found {self.length} bytes which "
                f"is neither positive nor a multiple of {self.ENTRY.itemsize}"
            )

    @property
    def whole_file(self) -> npt.NDArray[np.void]:
        """What Kafka takes for entries: of a preallocated file that it finds the zeros too."""
        if self._file is not None:
            return self.entries
        return self._content[: self.max_entries * self.ENTRY.itemsize].view(self.ENTRY)


def base_offset_of(path: str | None) -> int:
    """What the name of an index's file says.

    >>> base_offset_of("orders-0/00000000000000000042.index")
    42
    """
    base_offset = parse_log_path(path).base_offset if path else None
    if base_offset is None:
        missing = "base_offset is missing: an index has offsets relative to it, and"
        if path is None:
            raise ValueError(f"{missing} bare bytes have no name that says it")
        raise CorruptIndexError(f"{missing} a name without 20 digits does not say it", path=path)
    return base_offset


def sound_entries(
    content: Bytes, entry: np.dtype[np.void], path: str | None, **least_steps: int
) -> npt.NDArray[np.void]:
    """All entries, each looked at: from one to the next these fields grow by so much at least.

    What is wrong with one is an error that names it.
    """
    if content.size % entry.itemsize:
        raise CorruptIndexError(
            f"found {content.size} bytes which is not a multiple of {entry.itemsize}", path=path
        )
    entries = whole_entries(content, entry)
    for name, least in least_steps.items():
        values = entries[name].astype(np.int64)
        wrong = values < 0
        wrong[1:] |= values[1:] - least < values[:-1]
        if wrong.any():
            row = int(np.argmax(wrong))
            before = f" behind {values[row - 1]}" if row else ""
            raise CorruptIndexError(
                f"entries out of order: entry {row} has {name} {values[row]}{before}",
                path=path,
                position=row * entry.itemsize,
            )
    return entries


def whole_entries(content: Bytes, entry: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Whole entries before the zeros that a preallocated file ends in, whatever is among them.

    >>> whole_entries(as_bytes(bytes([1, 0, 0, 0, 0, 1, 0, 0])), np.dtype("V2")).size
    3
    """
    count = count_entries(content, entry)
    if content[count * entry.itemsize :].any():  # zeros in the midst misled the bisection
        count = content.size // entry.itemsize
    return content[: count * entry.itemsize].view(entry)


def count_entries(content: Bytes, entry: np.dtype[np.void]) -> int:
    """Entries before the zeros that a preallocated file ends in, found by bisection.

    >>> count_entries(as_bytes(bytes([1] * 24 + [0] * 800)), np.dtype("V8"))
    3
    """
    whole = content.size // entry.itemsize
    entries = content[: whole * entry.itemsize].reshape(whole, entry.itemsize)
    return bisect_left(range(whole), True, key=lambda row: not entries[row].any())
