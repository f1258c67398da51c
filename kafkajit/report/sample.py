"""Figures of records that only reading them gives: keys, values, sizes. From a sample, or from all.

A sample is of whole batches, in stretches that are spread evenly over a topic's bytes: the same
folder gives the same sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.log.segment import Segment
from kafkajit.reader import SegmentReader
from kafkajit.report.keys import Keys
from kafkajit.report.tally import Sizes
from kafkajit.schema import record_schema, with_corruption
from kafkajit.storage.source import Int64s
from kafkajit.walk.damage import PERMISSIVE, Gap
from kafkajit.walk.selection import Selection

_SCHEMA = with_corruption(record_schema(["timestamp", "key", "value", "headers", "controlType"]))
_HOTTEST = 20
# Standard errors around the number of keys: in 99.7 % of all cases it is between them.
_ERRORS = 3
_MARKER = 78  # bytes of the batch of a transaction's marker
# A key is shown up to this number of characters.
_SHOWN = 100


@dataclass
class Others:
    """Damaged batches and the markers of transactions, and the bytes of all of them."""

    gaps: list[Gap] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True)
class Part:
    """A stretch of a segment, from the start of one batch to the start of another."""

    segment: Segment
    start: int
    end: int
    owner: int = 0  # the number of its partition's copy among the topic's

    @property
    def size(self) -> int:
        return self.end - self.start

    def records(self, others: Others) -> Iterator[pa.RecordBatch]:
        """The sound records in it, without markers: timestamp, key, value and headers.

        What else there is, goes to `others`.
        """
        try:
            yield from self._records(others)
        except (FileNotFoundError, EOFError):  # a running broker has deleted or truncated it
            return

    def _records(self, others: Others) -> Iterator[pa.RecordBatch]:
        reader = SegmentReader(
            self.segment.log.open(self.start, self.end),
            mode=PERMISSIVE,
            selection=Selection(offsets=self.segment.cut),
            start=self.start,
            end=self.end,
        )
        for rows in reader.records(_SCHEMA):
            damage = rows["corruption"]
            if damage.null_count < rows.num_rows:  # a row by itself
                gaps = [Gap(**each) for each in damage.to_pylist() if each is not None]
                others.gaps += gaps
                others.bytes += sum(gap.length for gap in gaps)
                continue
            is_marker = rows["controlType"].is_valid()
            rows = rows.drop_columns(["controlType", "corruption"])
            if is_marker.true_count:
                others.bytes += _MARKER * is_marker.true_count
                rows = rows.filter(pc.invert(is_marker))
            if rows.num_rows:
                yield rows


def spread(
    marks: Sequence[tuple[Segment, Int64s]],
    most_bytes: int,
    most_parts: int | None = None,
    owners: Sequence[int] | None = None,
) -> list[Part]:
    """About this number of bytes, in one part or up to `most_parts`, spread evenly.

    `marks` has each segment with the positions of some of its batches, and of the last one's end;
    `owners` the number of the partition's copy for each.

    >>> log = (None, np.arange(0, 100, 10))
    >>> [part.start for part in spread([log], 30)]
    [10, 40, 70]
    """
    sizes = [np.diff(positions) for _, positions in marks]
    counts = np.array([size.size for size in sizes])
    total, number = sum(int(size.sum()) for size in sizes), int(counts.sum())
    if not number:
        return []
    wanted = number if total <= most_bytes else max(1, most_bytes * number // total)
    wanted = min(wanted, most_parts or wanted)
    rows = ((np.arange(wanted) + 0.5) * number / wanted).astype(np.int64)
    behind = np.cumsum(counts)
    found = []
    for mark, row in zip(
        np.searchsorted(behind, rows, side="right").tolist(), rows.tolist(), strict=True
    ):
        segment, positions = marks[mark]
        at = row - int(behind[mark] - counts[mark])
        owner = 0 if owners is None else owners[mark]
        found.append(Part(segment, int(positions[at]), int(positions[at + 1]), owner))
    return found


class RecordFigures:
    """Adds up the figures of records."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0  # of the batches on disk
        self.others = Others()
        self._null_keys = self._tombstones = self._with_headers = 0
        self._key_bytes, self._value_bytes = Sizes(), Sizes()
        self._keys = Keys()

    def read(self, part: Part) -> None:
        """Add the records of a part."""
        self.bytes += part.size
        for rows in part.records(self.others):
            self.add(rows, part.owner)

    def add(self, rows: pa.RecordBatch, owner: int) -> None:
        """Add records of a partition's copy."""
        keys, values = rows["key"], rows["value"]
        self.records += rows.num_rows
        self._null_keys += keys.null_count
        self._tombstones += values.null_count
        for sizes, column in ((self._key_bytes, keys), (self._value_bytes, values)):
            lengths = pc.binary_length(column).drop_null()
            sizes.add(lengths.to_numpy(zero_copy_only=False))
        headers = pc.list_value_length(rows["headers"])
        self._with_headers += pc.sum(pc.greater(headers, 0)).as_py() or 0
        self._keys.add(keys, owner)

    def add_all(self, other: RecordFigures) -> None:
        """Add the figures of other records."""
        self.records += other.records
        self.bytes += other.bytes
        self.others.gaps += other.others.gaps
        self.others.bytes += other.others.bytes
        self._null_keys += other._null_keys
        self._tombstones += other._tombstones
        self._with_headers += other._with_headers
        self._key_bytes.add_all(other._key_bytes)
        self._value_bytes.add_all(other._value_bytes)
        self._keys.add_all(other._keys)

    def compaction(self, of_records: int) -> dict[str, float] | None:
        """The records with a key of which their partition has a newer one, and their number.

        Their bytes are a share of those of batches with records. The share of all records of the
        topic, `of_records`, lies between two if the topic is alike everywhere: a sample has a
        larger share of the keys than of the records. And the topic has no fewer keys.
        """
        keyed = self.records - self._null_keys
        if not keyed:
            return None
        distinct = self._keys.by_partition
        superseded = max(0, keyed - distinct.number)
        error = _ERRORS * distinct.error
        all_keyed = keyed * max(of_records, self.records) / self.records
        return {
            "records": superseded,
            "recordsError": round(distinct.number * distinct.error),
            "ofRecords": keyed,
            "bytes": max(0, self.bytes - self.others.bytes) * superseded // self.records,
            "leastShare": round(max(0.0, 1 - distinct.number * (1 + error) / keyed), 4),
            "mostShare": round(max(0.0, 1 - distinct.number * (1 - error) / all_keyed), 4),
        }

    def document(self) -> dict[str, Any] | None:
        """The topic's sample in the document."""
        if not self.records:
            return None
        return {
            "records": self.records,
            "bytes": self.bytes,
            "nullKeys": self._null_keys,
            "tombstones": self._tombstones,
            "withHeaders": self._with_headers,
            "keyBytes": self._key_bytes.document(),
            "valueBytes": self._value_bytes.document(),
            "distinctKeys": self._keys.all.number,
            "distinctKeysError": self._keys.all.error,
            "hottestKeys": [
                {"key": shown(key), "records": count} for key, count in self._keys.hottest(_HOTTEST)
            ],
        }


def shown(key: bytes) -> str:
    r"""A key as text: bytes that are not UTF-8, and control characters, as escapes.

    >>> shown(b"order-1"), shown(b"\x00\x07"), shown(b"\xff")
    ('order-1', '\\x00\\x07', '\\xff')
    """
    text = key[: 4 * _SHOWN].decode("utf-8", "backslashreplace")
    text = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
