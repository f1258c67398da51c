"""Records → the lines of `kafkajit tail`."""

from __future__ import annotations

import argparse
import base64
import json
from datetime import datetime
from typing import Any

import pyarrow as pa

from kafkajit.cli.dump_values import DumpedValues

_SIDES = ("key", "value")
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers", "controlType")
Texts = dict[str, list[str | None]]  # what decoders have made, by side


class TailLines:
    """Makes the lines of records, with keys and values decoded if the options ask for it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._is_json = options.format == "json"
        self._values = DumpedValues(options)
        self._decoded = [side for side in _SIDES if getattr(options, f"{side}_decoder")]

    def text(self, rows: pa.RecordBatch, path: str) -> str:
        """The lines of some records of the log at a path."""
        columns = {name: rows[name].to_pylist() for name in rows.schema.names}
        texts: Texts = {side: self._texts(side, rows[side], path) for side in self._decoded}
        made = [
            self._line({name: column[row] for name, column in columns.items()}, texts, row)
            for row in range(rows.num_rows)
            if columns["controlType"][row] is None  # a transaction's marker is nobody's record
        ]
        return "".join(made)

    def _texts(self, side: str, values: pa.Array, path: str) -> list[str | None]:
        """Keys or values as JSON; the reason for one that is malformed."""
        decoded = self._values.decoder(side, path).decode(values)
        texts: list[str | None] = decoded.values.to_pylist()
        for row in decoded.bad.tolist():
            words = f"RecordDeserializationError: {decoded.words(row)}"
            texts[row] = json.dumps({"error": words}) if self._is_json else words
        return texts

    def _line(self, record: dict[str, Any], texts: Texts, row: int) -> str:
        if self._is_json:
            return self._object(record, texts, row)
        shown = [
            _shown(record[side])
            if side not in texts
            else ("null" if texts[side][row] is None else str(texts[side][row]))
            for side in _SIDES
        ]
        place = f"{record['topic']}-{record['partition']}"
        return "\t".join([place, str(record["offset"]), _time(record["timestamp"]), *shown]) + "\n"

    def _object(self, record: dict[str, Any], texts: Texts, row: int) -> str:
        fields: dict[str, str] = {
            "topic": json.dumps(record["topic"]),
            "partition": str(record["partition"]),
            "offset": str(record["offset"]),
            "timestamp": json.dumps(_time(record["timestamp"])),
        }
        for side in _SIDES:
            # What a decoder has made is JSON already.
            made = texts[side][row] if side in texts else _bytes(record[side])
            fields[side] = "null" if made is None else made
        headers = [
            f'{{"key":{json.dumps(header["key"])},"value":{_bytes(header["value"])}}}'
            for header in record["headers"] or ()
        ]
        fields["headers"] = f"[{','.join(headers)}]"
        return "{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}\n"


def _time(moment: datetime | None) -> str:
    if moment is None:
        return "null"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(content: bytes | None) -> str:
    r"""Bytes as text in one line.

    >>> _shown("naïve\ta".encode()), _shown(b"\xff"), _shown(None)
    ('naïve\\ta', '\\xff', 'null')
    """
    if content is None:
        return "null"
    text = content.decode(errors="backslashreplace")
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def _bytes(content: bytes | None) -> str:
    """Bytes as JSON: text, or an object with base64 if they are not UTF-8."""
    if content is None:
        return "null"
    try:
        return json.dumps(content.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return json.dumps({"base64": base64.b64encode(content).decode()}, separators=(",", ":"))
