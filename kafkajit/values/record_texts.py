"""Keys and values of records → JSON for dump-log, and the reason if one is malformed."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import RecordDeserializationError
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.records.gather import copy_binary, plan_binary, write_validity
from kafkajit.storage.source import Bytes, Int64s
from kafkajit.values.own_schemas import OwnSchemasDecoder

_NAME = RecordDeserializationError.__name__


@dataclass(frozen=True)
class RecordTexts:
    """Makes text of the keys or of the values of chunks.

    A malformed one becomes the error. In JSON it is null, and `error_field` has the reason.
    """

    decoder: OwnSchemasDecoder
    error_field: str | None = None

    def __call__(self, content: Bytes, starts: Int64s, sizes: Int64s) -> tuple[Bytes, Int64s]:
        decoded = self.decoder.decode(_binary(content, starts, sizes))
        # A value that is not NULL may be Avro's null.
        texts = pc.fill_null(decoded.values, "null")
        if decoded.bad.size:
            is_bad = np.zeros(len(texts), dtype=bool)
            is_bad[decoded.bad] = True
            errors = [self._error(decoded.words(row)) for row in decoded.bad.tolist()]
            texts = pc.replace_with_mask(texts, pa.array(is_bad), pa.array(errors, texts.type))
        _, offsets, data = texts.buffers()
        places = np.frombuffer(offsets, dtype=np.int64)[texts.offset :][: len(texts) + 1]
        return np.frombuffer(data or b"", dtype=np.uint8), places

    def _error(self, words: str) -> str:
        text = f"{_NAME}: {words}"
        if self.error_field is None:
            return text
        return f'null,"{self.error_field}":{json.dumps(text, ensure_ascii=False)}'


def _binary(content: Bytes, starts: Int64s, sizes: Int64s) -> pa.Array:
    """The fields at these places as an array; a negative size is NULL."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    total, nulls = plan_binary(sizes, offsets)
    data = np.empty(int(total) + WIDE, dtype=np.uint8)
    copy_binary(content, starts, offsets, data)
    validity = None
    if nulls:
        bits = np.zeros(len(sizes) // 8 + 1, dtype=np.uint8)
        write_validity(sizes, bits)
        validity = pa.py_buffer(bits)
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)
