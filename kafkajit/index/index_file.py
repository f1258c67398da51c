"""The file of an offset or time index: its entries, and the checks that both kinds share.

Answers to AbstractIndex. Kafka preallocates the index of an active segment: its entries end where
only zeros are left. Until a clean shutdown has trimmed the file, Kafka takes those zeros for
entries when it opens it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kafkajit.errors import CorruptIndexError
from kafkajit.format.log_path import parse_log_path
from kafkajit.storage.source import Bytes, Source


class IndexFile:
    """An index mapped into memory; a lookup reads only the pages that it needs.

    `base_offset` defaults to the one in the file's name, if the source is a path.
    """

    ENTRY: ClassVar[np.dtype[np.void]]
    NAME: ClassVar[str]  # in errors

    def __init__(self, source: Any, base_offset: int | None = None) -> None:
        opened = source if isinstance(source, Source) else Source(source)
        self.path, self._content = opened.path, opened.content
        self.base_offset = base_offset_of(self.path) if base_offset is None else base_offset
        self._count = count_entries(self._content, self.ENTRY)

    def __len__(self) -> int:
        return self._count

    @property
    def entries(self) -> npt.NDArray[np.void]:
        """A view of the entries as stored: their offsets are relative to the base offset."""
        return self._content[: self._count * self.ENTRY.itemsize].view(self.ENTRY)

    @property
    def length(self) -> int:
        """The file's size in bytes."""
        return self._content.size

    @property
    def max_entries(self) -> int:
        """The number of entries that the file has room for."""
        return self.length // self.ENTRY.itemsize

    @property
    def whole_file(self) -> npt.NDArray[np.void]:
        """All that Kafka takes for entries when it opens the file, preallocated zeros included."""
        return self._content[: self.max_entries * self.ENTRY.itemsize].view(self.ENTRY)

    def check_size(self) -> None:
        """Raise an error if the file ends inside an entry."""
        if self.length % self.ENTRY.itemsize:
            raise CorruptIndexError(
                f"{self.NAME} {self.path or 'given'} is corrupt, found {self.length} bytes which "
                f"is neither positive nor a multiple of {self.ENTRY.itemsize}"
            )

    def _row(self, row: int) -> tuple[int, ...]:
        """The fields of the entry in that row."""
        if not 0 <= row < self._count:
            kind = self.NAME.lower().removesuffix(" file")
            raise IndexError(
                f"Attempt to fetch the {row}th entry from {kind} {self.path or 'given'}, "
                f"which has size {self._count}"
            )
        fields: tuple[int, ...] = self.entries[row].tolist()
        return fields


def base_offset_of(path: str | None) -> int:
    """The base offset in the name of an index's file.

    >>> base_offset_of("orders-0/00000000000000000042.index")
    42
    """
    base_offset = parse_log_path(path).base_offset if path else None
    if base_offset is None:
        if path is None:
            raise ValueError("base_offset is missing: pass it with bytes, which have no file name")
        raise CorruptIndexError(
            "base_offset is missing: pass it, or name the file after it, in 20 digits", path=path
        )
    return base_offset


def sound_entries(
    content: Bytes, entry: np.dtype[np.void], path: str | None, **least_steps: int
) -> npt.NDArray[np.void]:
    """All entries, after a check of each one; an error names the first that fails.

    `least_steps` names fields, and by how much each must at least grow from entry to entry.
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
    """The entries before the zeros that end a preallocated file, sound or not.

    >>> whole_entries(np.array([1, 0, 0, 0, 0, 1, 0, 0], np.uint8), np.dtype("V2")).size
    3
    """
    count = count_entries(content, entry)
    if content[count * entry.itemsize :].any():  # zeros in the middle misled the bisection
        count = content.size // entry.itemsize
    return content[: count * entry.itemsize].view(entry)


def count_entries(content: Bytes, entry: np.dtype[np.void]) -> int:
    """Count the entries before the zeros that end a preallocated file, by bisection.

    >>> count_entries(np.array([1] * 24 + [0] * 800, np.uint8), np.dtype("V8"))
    3
    """
    whole = content.size // entry.itemsize
    entries = content[: whole * entry.itemsize].reshape(whole, entry.itemsize)
    return bisect_left(range(whole), True, key=lambda row: not entries[row].any())
