"""Records → the lines of `kafkajit tail`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.cli.look import END, OFFSET, PLACE, is_coloured, start_of
from kafkajit.cli.sql.table import escaped
from kafkajit.errors import RecordDeserializationError
from kafkajit.values.arrow_text import TEXT, join, scalar, text_of
from kafkajit.values.status import Decoded

if TYPE_CHECKING:
    from kafkajit.cli.dump_values import DumpedValues

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers", "controlType")
_IN_JSON = COLUMNS[:-1]
_SIDES = ("key", "value")


class TailLines:
    """Makes the lines of records, with keys and values decoded if the options ask for it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._is_json = options.format == "json"
        self._decoded = [side for side in _SIDES if getattr(options, f"{side}_decoder")]
        self._values = _values(options) if self._decoded else None
        # The folders of logs, by their paths, whose partition is in other folders, too.
        self.folders: Mapping[str, str] = {}

    def text(self, rows: pa.RecordBatch, path: str) -> str:
        """The lines of some records of the log at a path, without markers of transactions."""
        rows = rows.filter(rows["controlType"].is_null())  # a transaction's marker is nobody's
        return "".join(f"{line}\n" for line in self.lines(rows, path))

    def lines(self, rows: pa.RecordBatch, path: str) -> list[str]:
        """A line for each of some records of the log at a path."""
        lines = self._objects(rows, path) if self._is_json else self._texts(rows, path)
        return lines.to_pylist()  # type: ignore[no-any-return]

    def _texts(self, rows: pa.RecordBatch, path: str) -> pa.Array:
        topic, partition, offset, time = (text_of(rows[name]) for name in COLUMNS[:4])
        place = join(topic, partition, between="-")
        if path in self.folders:
            place = pa.array([escaped(self.folders[path])] * len(rows), TEXT)
        sides = (self._side(side, rows, path) for side in _SIDES)
        if is_coloured():
            place, offset = _painted(place, PLACE), _painted(offset, OFFSET)
        return join(place, offset, time, *sides, between="\t", null="null")

    def _side(self, side: str, rows: pa.RecordBatch, path: str) -> pa.Array:
        """Keys or values as text in one line."""
        return self._made(side, rows, path) if side in self._decoded else _shown(rows[side])

    def _objects(self, rows: pa.RecordBatch, path: str) -> pa.Array:
        pieces: list[pa.Array | pa.Scalar] = []
        for name in _IN_JSON:
            # What a decoder has made is JSON already.
            is_made = name in self._decoded
            text = self._made(name, rows, path) if is_made else text_of(rows[name], as_json=True)
            if name == "headers":
                text = pc.fill_null(text, "[]")
            pieces += [scalar(f'{"," if pieces else "{"}"{name}":'), text]
        if path in self.folders:
            pieces.append(scalar(f',"path":{json.dumps(self.folders[path])}'))
        return join(*pieces, scalar("}"), null="null")

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
