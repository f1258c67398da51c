"""Records that were found → lines, with the matches in colour on a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafkajit.cli.look import MATCH, SEPARATOR, is_coloured, painted
from kafkajit.cli.tail_lines import COLUMNS, TailLines, shown
from kafkajit.scan.patterns import Pattern
from kafkajit.scan.search import Found
from kafkajit.values.arrow_text import TEXT, join

RECORD_COLUMNS = COLUMNS[:-1]  # controlType has told markers from records


class GrepLines(TailLines):
    """Makes the lines of records; those of text have headers behind the value, if searched."""

    def __init__(
        self, options: argparse.Namespace, patterns: tuple[Pattern, ...], sides: tuple[str, ...]
    ) -> None:
        super().__init__(options)
        self._has_headers = "headers" in sides
        # An inverted search finds records without a match.
        is_marked = is_coloured() and not options.invert_match
        self._marked = dict.fromkeys(sides, patterns if is_marked else ())

    @property
    def separator(self) -> str:
        """The line between records that do not follow each other."""
        return painted("--", SEPARATOR)

    def _may_stream(self, name: str) -> bool:
        return super()._may_stream(name) and not self._has_headers and not self._marked.get(name)

    def _texts(self, rows: pa.RecordBatch, path: str) -> pa.Array:
        lines = super()._texts(rows, path)
        if not self._has_headers:
            return lines
        ends = [
            "" if headers is None else f"\t{self._headers(headers)}"
            for headers in rows["headers"].to_pylist()
        ]
        return join(lines, pa.array(ends, TEXT))

    def _side(self, side: str, rows: pa.RecordBatch, path: str) -> pa.Array:
        if not self._marked.get(side):
            return super()._side(side, rows, path)
        values = self._made(side, rows, path) if self.decodes(side) else rows[side]
        contents = values.cast(pa.large_binary()).to_pylist()
        texts = [None if content is None else self._mark(side, content) for content in contents]
        return pa.array(texts, TEXT)

    def _headers(self, headers: list[dict[str, bytes | str | None]]) -> str:
        """Headers as kafka-console-consumer.sh prints them."""
        return ",".join(
            ":".join(self._text_of_header(header[part]) for part in ("key", "value"))
            for header in headers
        )

    def _text_of_header(self, content: bytes | str | None) -> str:
        if content is None:
            return "null"
        return self._mark("headers", content if isinstance(content, bytes) else content.encode())

    def _mark(self, side: str, content: bytes) -> str:
        """A key, a value or a part of a header in one line, with the matches in colour."""
        is_in = np.zeros(len(content) + 2, dtype=np.bool_)
        for pattern in self._marked.get(side, ()):
            for start, end in pattern.spans(content):
                is_in[start + 1 : end + 1] = True
        bounds = np.flatnonzero(np.diff(is_in)).tolist()
        texts = []
        for number, (start, end) in enumerate(
            zip([0, *bounds], [*bounds, len(content)], strict=True)
        ):
            text = shown(content[start:end])
            texts.append(painted(text, MATCH) if number % 2 else text)
        return "".join(texts)


class Neighbours:
    """Finds the records around those that match, in a partition whose records come in order."""

    def __init__(self, before: int, after: int) -> None:
        self._before = before
        self._after = after
        self._held: pa.RecordBatch | None = None  # the last records, not shown so far
        self._left = 0  # how many come after the last match
        self._count = 0  # of records that have come
        self._behind = -1  # the number of the record behind the last one that was shown

    @property
    def is_complete(self) -> bool:
        """Whether all records after the last match have come."""
        return self._left == 0

    def around(self, found: Found) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Runs of records to show, and whether each follows the one before it."""
        records, matches = found
        held = 0 if self._held is None else self._held.num_rows
        if held:
            table = pa.Table.from_batches([self._held, records]).combine_chunks()
            (records,) = table.to_batches()
        first, size = self._count - held, records.num_rows
        self._count = first + size
        places = np.flatnonzero(matches) + held
        shown_from = np.concatenate(([held], np.maximum(places - self._before, 0)))
        shown_to = np.concatenate(([held + self._left], places + self._after + 1))
        self._left = max(int(shown_to.max()) - size, 0)
        edges = np.zeros(size + 1, dtype=np.int64)
        np.add.at(edges, shown_from, 1)
        np.add.at(edges, np.minimum(shown_to, size), -1)
        rows = np.flatnonzero(np.cumsum(edges[:-1]))
        kept_from = max(size - self._before, 0)
        for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
            if run.size:
                start = int(run[0])
                yield records.slice(start, run.size), first + start == self._behind
                self._behind = first + start + run.size
                kept_from = max(kept_from, start + run.size)
        self._held = records.slice(kept_from)
