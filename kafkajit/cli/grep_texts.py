"""Keys and values with a schema → what `kafkajit grep` searches instead of their bytes.

That is their JSON, or the texts in one field of their columns. A malformed one is searched as
bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from kafkajit.cli.dump_values import DumpedValues
from kafkajit.cli.tail_lines import TailLines
from kafkajit.scan.search import Texts
from kafkajit.values.field_texts import field_texts


class SearchedTexts:
    """Makes the texts of decoded keys and values, and remembers what was odd."""

    def __init__(self, options: argparse.Namespace, lines: TailLines) -> None:
        self._field = options.field
        self._lines = lines
        self._fields = DumpedValues(options, self._in_field)
        self._malformed = 0
        self._values = 0
        self._has_field = False

    def of(self, sides: Sequence[str]) -> dict[str, Texts]:
        """A function for each of these sides that is decoded."""
        return {side: partial(self._texts, side) for side in sides if self._lines.decodes(side)}

    def notes(self) -> Iterator[str]:
        """Yield a line about values that were searched as bytes."""
        if self._malformed:
            were = "1 was" if self._malformed == 1 else f"{self._malformed:,} were"
            yield f"of the keys and values, {were} malformed and searched as bytes"

    def missing_field(self) -> str | None:
        """The error if no value has the field."""
        if self._field is None or self._has_field or not self._values:
            return None
        return f"none of {self._values:,} values has a field {self._field}: check --field"

    def _texts(self, side: str, values: pa.Array, path: str) -> pa.Array:
        if side == "value" and self._field is not None:
            decoded = self._fields.decoder(side, path).decode(values)
            texts = decoded.values
        else:
            decoded = self._lines.decoded(side, values, path)
            texts = decoded.values.view(pa.large_binary())
        self._malformed += decoded.bad.size
        if not decoded.bad.size:
            return texts
        raw = values.take(pa.array(decoded.bad)).cast(pa.large_binary())
        if pa.types.is_list(texts.type):
            raw = pa.ListArray.from_arrays(pa.array(np.arange(len(raw) + 1), pa.int32()), raw)
        # Malformed ones are taken from behind the others.
        rows = np.arange(len(values))
        rows[decoded.bad] = len(values) + np.arange(len(raw))
        return pa.concat_arrays([texts, raw]).take(pa.array(rows))

    def _in_field(self, columns: pa.Array) -> pa.Array:
        """The texts in the field, and whether a value has it."""
        self._values += len(columns) - columns.null_count
        found = field_texts(columns, self._field.split("."))
        self._has_field |= found.has_field
        return found.texts
