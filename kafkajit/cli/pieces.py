"""Large keys, values and headers as text, piece by piece: a text may be six times as large."""

from __future__ import annotations

import codecs
import json
from base64 import b64encode
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafkajit.cli.sql.table import escaped
from kafkajit.values.arrow_text import text_of

LARGE = 1 << 20  # bytes from which on a value is written in pieces
_STEP = 3 << 18  # bytes of a piece: a multiple of 3, as base64 needs
_HEADERS = 1 << 13  # at once


def shown_pieces(content: memoryview) -> Iterator[str]:
    r"""Bytes as text in one line, whatever they are.

    >>> "".join(shown_pieces(memoryview(b"a\n\xff")))
    'a\\n\\xff'
    """
    return map(escaped, _decoded(content, "backslashreplace"))


def json_pieces(content: memoryview) -> Iterator[str]:
    r"""Bytes as a JSON string, or as an object with base64 if they are not UTF-8.

    >>> "".join(json_pieces(memoryview(b"a\n"))), "".join(json_pieces(memoryview(b"\xff")))
    ('"a\\n"', '{"base64":"/w=="}')
    """
    try:
        for _ in _decoded(content, "strict"):
            pass
    except UnicodeDecodeError:
        yield '{"base64":"'
        for start in range(0, len(content), _STEP):
            yield b64encode(content[start : start + _STEP]).decode()
        yield '"}'
        return
    yield '"'
    for text in _decoded(content, "strict"):
        yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield '"'


def header_pieces(headers: pa.Array) -> Iterator[str]:
    """The headers of a record, an array of structs, as JSON."""
    for start in range(0, len(headers), _HEADERS):
        some = headers.slice(start, _HEADERS)
        before = "," if start else "["
        if some.nbytes <= LARGE:
            yield before + ",".join(text_of(some, as_json=True).to_pylist())
            continue
        keys, values = some.field("key"), some.field("value")
        is_valid = values.is_valid().to_pylist()
        for header in range(len(some)):
            yield before + '{"key":'
            yield from json_pieces(content_of(keys, header))
            yield ',"value":'
            if is_valid[header]:
                yield from json_pieces(content_of(values, header))
            else:
                yield "null"
            yield "}"
            before = ","
    yield "]" if len(headers) else "[]"


def content_of(column: pa.Array, row: int) -> memoryview:
    """A valid value of a column of bytes or text, which Arrow's scalar would copy."""
    _, offsets, data = column.buffers()
    start, end = np.frombuffer(offsets, np.int32)[column.offset + row :][:2].tolist()
    return memoryview(b"") if start == end else memoryview(data)[start:end]


def _decoded(content: memoryview, errors: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    for start in range(0, len(content), _STEP):
        yield decoder.decode(content[start : start + _STEP], start + _STEP >= len(content))
