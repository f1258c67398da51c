"""The outcome of an import: the records of each partition, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from kafkajit.format.amounts import number_of, offsets_text
from kafkajit.format.printable import printable
from kafkajit.produce.router import TopicPartition

_SHOWN = 5


@dataclass
class ImportedPartition:
    """The records for a partition."""

    partition: TopicPartition
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    open_transactions: dict[int, int] = field(default_factory=dict)  # first offsets by producers

    @property
    def notes(self) -> list[str]:
        """Lines about its open transactions."""
        return [
            f"{self.partition}: the transaction of producer {producer} that begins at offset "
            f"{offset} has no marker, and read_committed consumers stop before it: import the "
            "markers, too (export them with --columns all), or ignore the column isTransactional"
            for producer, offset in sorted(self.open_transactions.items(), key=itemgetter(1))[:1]
        ]

    def document(self) -> dict[str, Any]:
        """The partition as a JSON object."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "records": self.records,
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
            "openTransactions": [
                {"producerId": producer, "firstOffset": offset}
                for producer, offset in self.open_transactions.items()
            ],
        }

    def __str__(self) -> str:
        return (
            f"{self.partition}: {number_of(self.records, 'record')}, "
            f"{offsets_text(self.first_offset or 0, self.last_offset or 0)}"
        )


@dataclass
class LeftOut:
    """The parts of the files that are not imported.

    Args:
        columns: the names of columns.
        files: skipped files that may hold records.
        damaged: the rows of each file that are not records, but damage that an export has found.
        control: the rows of each file that are control records, if their column is ignored.
    """

    columns: set[str] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    damaged: dict[str, int] = field(default_factory=dict)
    control: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.columns or self.files or self.damaged or self.control)

    def add_rows(self, path: str, damaged: int, control: int) -> None:
        """Count rows of a file."""
        for counts, count in ((self.damaged, damaged), (self.control, control)):
            if count:
                counts[path] = counts.get(path, 0) + count

    def forget_rows(self) -> None:
        """Begin to count rows anew, as files are read once more."""
        self.damaged.clear()
        self.control.clear()

    def document(self) -> dict[str, Any]:
        """All of it as a JSON object."""
        return {
            "columns": sorted(self.columns),
            "files": self.files,
            "damagedRows": dict(sorted(self.damaged.items())),
            "controlRows": dict(sorted(self.control.items())),
        }

    def lines(self) -> list[str]:
        """A line for each kind."""
        lines = []
        if self.columns:
            names = [printable(name) if name.strip() else repr(name) for name in self.columns]
            lines.append(f"columns that are not imported: {', '.join(sorted(names))}")
        for counts, of, column in (
            (self.damaged, "of damage", "column corruption"),
            (self.control, "of control records", "ignored column controlType"),
        ):
            if counts:
                rows = number_of(sum(counts.values()), "row")
                lines.append(f"{rows} {of}, in the {column}, not imported: {_few(counts)}")
        if self.files:
            lines.append(f"files that are not imported: {_few(self.files)}")
        return lines


def _few(names: Iterable[str]) -> str:
    """The first of some names, and how many others there are."""
    first, *others = names
    shown = [first, *others[: _SHOWN - 1]]
    more = len(others) + 1 - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
