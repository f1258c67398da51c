"""Keys and values with a schema → what `kafkajit grep` searches instead of their bytes.

That is their JSON, or the texts in one field of it. A malformed one is searched as bytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.cli.tail_lines import TailLines
from kafkajit.scan.search import Texts


class SearchedTexts:
    """Makes the texts of decoded keys and values, and remembers what was odd."""

    def __init__(self, options: argparse.Namespace, lines: TailLines) -> None:
        self._field = options.field
        self._lines = lines
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
        decoded = self._lines.decoded(side, values, path)
        self._malformed += decoded.bad.size
        texts = decoded.values.view(pa.large_binary())
        if decoded.bad.size:
            is_bad = np.zeros(len(values), dtype=np.bool_)
            is_bad[decoded.bad] = True
            raw = values.take(pa.array(decoded.bad)).cast(pa.large_binary())
            texts = pc.replace_with_mask(texts, pa.array(is_bad), raw)
        if side != "value" or self._field is None:
            return texts
        names = self._field.split(".")
        malformed = set(decoded.bad.tolist())
        found = [
            [text] if row in malformed else self._in_field(text, names)
            for row, text in enumerate(texts.to_pylist())
        ]
        return pa.array(found, pa.list_(pa.large_binary()))

    def _in_field(self, text: bytes | None, names: list[str]) -> list[bytes]:
        """The texts in a field of JSON."""
        if text is None:
            return []
        self._values += 1
        # Numbers stay as they are printed.
        nodes = [json.loads(text, parse_int=str, parse_float=str, parse_constant=str)]
        for name in names:
            objects = (node for all_ in nodes for node in _items(all_))
            nodes = [node[name] for node in objects if isinstance(node, dict) and name in node]
        self._has_field |= bool(nodes)
        return [leaf.encode() for node in nodes for leaf in _leaves(node)]


def _items(node: Any) -> Iterator[Any]:
    """The items of lists in lists, or the node itself."""
    if isinstance(node, list):
        for item in node:
            yield from _items(item)
    else:
        yield node


def _leaves(node: Any) -> Iterator[str]:
    """The texts in a node; null has none.

    >>> list(_leaves({"a": ["x", None], "b": {"c": True}}))
    ['x', 'true']
    """
    if isinstance(node, dict):
        for part in node.values():
            yield from _leaves(part)
    elif isinstance(node, list):
        for item in node:
            yield from _leaves(item)
    elif node is not None:
        yield json.dumps(node) if isinstance(node, bool) else node
