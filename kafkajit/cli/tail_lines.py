"""Records → the lines of `kafkajit tail`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.cli.look import END, OFFSET, PLACE, is_coloured, start_of
from kafkajit.cli.pieces import LARGE, content_of, header_pieces, json_pieces, shown_pieces
from kafkajit.cli.sql.table import escaped
from kafkajit.errors import RecordDeserializationError
from kafkajit.values.arrow_text import TEXT, join, scalar, text_of
from kafkajit.values.status import Decoded

if TYPE_CHECKING:
    from kafkajit.cli.dump_values import DumpedValues

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers", "controlType")
_IN_JSON = COLUMNS[:-1]
_SIDES = ("key", "value")
_TAB = scalar("\t")
_AT_ONCE = 16 << 20  # bytes of records that become text at once

Part = tuple[str, "pa.Array | pa.Scalar"]


class TailLines:
    """Makes the lines of records, with keys and values decoded if the options ask for it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._is_json = options.format == "json"
        self._decoded = [side for side in _SIDES if getattr(options, f"{side}_decoder")]
        self._values = _values(options) if self._decoded else None
        # The folders of logs, by their paths, whose partition is in other folders, too.
        self.folders: Mapping[str, str] = {}

    def texts(self, rows: pa.RecordBatch, path: str) -> Iterator[str]:
        """The lines of some records of the log at a path, without markers of transactions."""
        return self.pieces(_without_markers(rows), path)

    def pieces(self, rows: pa.RecordBatch, path: str) -> Iterator[str]:
        """The lines of some records of the log at a path, a large one in pieces."""
        if rows.nbytes <= _AT_ONCE:
            yield "".join(f"{line}\n" for line in self.lines(rows, path))
        elif len(rows) > 1:
            half = len(rows) // 2
            yield from self.pieces(rows.slice(0, half), path)
            yield from self.pieces(rows.slice(half), path)
        else:
            yield from self._large(rows, path)
            yield "\n"

    def lines(self, rows: pa.RecordBatch, path: str) -> list[str]:
        """A line for each of some records of the log at a path."""
        lines = self._objects(rows, path) if self._is_json else self._texts(rows, path)
        return lines.to_pylist()  # type: ignore[no-any-return]

    def _large(self, row: pa.RecordBatch, path: str) -> Iterator[str]:
        """The line of a large record, without its end."""
        large = {
            name
            for name in (*_SIDES, "headers")
            if not row[name].null_count and row[name].nbytes > LARGE and self._may_stream(name)
        }
        if not large:
            yield from self.lines(row, path)
            return
        # A text without the large fields has nothing in their places.
        small = row
        for name in large:
            at = row.schema.get_field_index(name)
            small = small.set_column(at, row.schema.field(at), pa.nulls(1, row[name].type))
        parts = self._object_parts(small, path) if self._is_json else self._text_parts(small, path)
        for name, part in parts:
            if name not in large:
                text = part.as_py() if isinstance(part, pa.Scalar) else part[0].as_py()
                yield "null" if text is None else text
            elif name == "headers":
                yield from header_pieces(row[name].flatten())
            else:
                content = content_of(row[name], 0)
                yield from json_pieces(content) if self._is_json else shown_pieces(content)

    def _may_stream(self, name: str) -> bool:
        """Whether a field of a large record may be written in pieces."""
        return name not in self._decoded

    def _texts(self, rows: pa.RecordBatch, path: str) -> pa.Array:
        return join(*(part for _, part in self._text_parts(rows, path)), null="null")

    def _text_parts(self, rows: pa.RecordBatch, path: str) -> list[Part]:
        """The parts of a line, those of keys and values with their names."""
        topic, partition, offset, time = (text_of(rows[name]) for name in COLUMNS[:4])
        place = join(topic, partition, between="-")
        if path in self.folders:
            place = pa.array([escaped(self.folders[path])] * len(rows), TEXT)
        parts: list[Part] = [("topic", place), ("", _TAB), ("offset", offset), ("", _TAB)]
        parts.append(("timestamp", time))
        for side in _SIDES:
            parts += [("", _TAB), (side, self._side(side, rows, path))]
        if is_coloured():
            parts[0] = "topic", _painted(place, PLACE)
            parts[2] = "offset", _painted(offset, OFFSET)
        return parts

    def _side(self, side: str, rows: pa.RecordBatch, path: str) -> pa.Array:
        """Keys or values as text in one line."""
        return self._made(side, rows, path) if side in self._decoded else _shown(rows[side])

    def _objects(self, rows: pa.RecordBatch, path: str) -> pa.Array:
        return join(*(part for _, part in self._object_parts(rows, path)), null="null")

    def _object_parts(self, rows: pa.RecordBatch, path: str) -> list[Part]:
        """The parts of a JSON object, those of fields with their names."""
        parts: list[Part] = []
        for name in _IN_JSON:
            # What a decoder has made is JSON already.
            is_made = name in self._decoded
            text = self._made(name, rows, path) if is_made else text_of(rows[name], as_json=True)
            if name == "headers":
                text = pc.fill_null(text, "[]")
            parts += [("", scalar(f'{"," if parts else "{"}"{name}":')), (name, text)]
        if path in self.folders:
            parts.append(("", scalar(f',"path":{json.dumps(self.folders[path])}')))
        return [*parts, ("", scalar("}"))]

    def decodes(self, side: str) -> bool:
        """Whether keys or values have a decoder."""
        return side in self._decoded

    def decoded(self, side: str, values: pa.Array, path: str) -> Decoded:
        """Keys or values of the log at a path as JSON, NULL if they are malformed."""
        assert self._values is not None
        return self._values.decoder(side, path).decode(values)

    def _made(self, side: str, rows: pa.RecordBatch, path: str) -> pa.Array:
        """Keys or values as JSON; the reason for one that is malformed."""
        decoded = self.decoded(side, rows[side], path)
        if not decoded.bad.size:
            return decoded.values
        texts = decoded.values.to_pylist()
        for row in decoded.bad.tolist():
            words = f"{RecordDeserializationError.__name__}: {decoded.words(row)}"
            texts[row] = json.dumps({"error": words}) if self._is_json else words
        return pa.array(texts, TEXT)


def _without_markers(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without markers of transactions, which are nobody's."""
    types = rows["controlType"]
    return rows if types.null_count == len(types) else rows.filter(types.is_null())


def _painted(texts: pa.Array, meaning: str) -> pa.Array:
    return join(scalar(start_of(meaning)), texts, scalar(END), null="null")


def _values(options: argparse.Namespace) -> DumpedValues:
    from kafkajit.cli.dump_values import DumpedValues

    return DumpedValues(options)


def _shown(contents: pa.Array) -> pa.Array:
    """Bytes as text in one line, whatever they are."""
    texts = [None if content is None else shown(content) for content in contents.to_pylist()]
    return pa.array(texts, TEXT)


def shown(content: bytes) -> str:
    r"""Bytes as text in one line, whatever they are.

    >>> shown(b"a\n\xff")
    'a\\n\\xff'
    """
    return escaped(content.decode(errors="backslashreplace"))
