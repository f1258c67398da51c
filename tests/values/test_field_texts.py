"""The texts in a field of columns are those that a loop over their JSON finds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.values.field_texts import field_texts
from kafkajit.values.json_text import json_text

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.text('ab"\\\né\x00', max_size=3)
LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.int64(), st.integers(-3, 3)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.sampled_from([0.5, float("nan"), float("-inf")])),
    (pa.binary(), st.binary(max_size=3)),
    (pa.date32(), st.just(date(2026, 1, 1))),
    (pa.timestamp("us", "UTC"), st.just(datetime(2026, 1, 1, tzinfo=UTC))),
    (pa.decimal128(9, 2), st.just(Decimal("1.50"))),
    (pa.null(), st.none()),
]
Typed = tuple[pa.DataType, st.SearchStrategy[Any]]


def nested(inside: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def list_of(item: Typed) -> Typed:
        return pa.list_(item[0]), st.lists(st.none() | item[1], max_size=3)

    def map_of(item: Typed) -> Typed:
        entries = st.dictionaries(NAMES, st.none() | item[1], max_size=2)
        return pa.map_(pa.string(), item[0]), entries.map(lambda found: list(found.items()))

    def struct_of(fields: dict[str, Typed]) -> Typed:
        parts = {name: st.none() | values for name, (_, values) in fields.items()}
        types = [(name, type_) for name, (type_, _) in fields.items()]
        return pa.struct(types), st.fixed_dictionaries(parts)

    structs = st.dictionaries(NAMES, inside, min_size=1, max_size=3).map(struct_of)
    return structs | inside.map(list_of) | inside.map(map_of)


TYPES = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=6)


def items(node: Any) -> Iterator[Any]:
    if isinstance(node, list):
        for item in node:
            yield from items(item)
    else:
        yield node


def leaves(node: Any) -> Iterator[str]:
    if isinstance(node, (dict, list)):
        for part in node.values() if isinstance(node, dict) else node:
            yield from leaves(part)
    elif node is not None:
        yield json.dumps(node) if isinstance(node, bool) else node


def looped(text: str | None, names: list[str]) -> tuple[Counter[bytes], bool]:
    """The texts in a field of JSON, and whether it has the field."""
    if text is None:
        return Counter(), False
    nodes = [json.loads(text, parse_int=str, parse_float=str)]
    for name in names:
        objects = [node for all_ in nodes for node in items(all_)]
        nodes = [node[name] for node in objects if isinstance(node, dict) and name in node]
    return Counter(leaf.encode() for node in nodes for leaf in leaves(node)), bool(nodes)


@given(st.data(), TYPES, st.lists(NAMES, min_size=1, max_size=3), st.integers(0, 2))
def test_the_texts_are_those_of_the_json(
    data: st.DataObject, typed: Typed, names: list[str], start: int
) -> None:
    type_, values = typed
    rows = data.draw(st.lists(st.none() | values, max_size=6))
    array = pa.array(rows, type_).slice(min(start, len(rows)))
    found = field_texts(array, names)
    wanted = [looped(text, names) for text in json_text(array).to_pylist()]
    assert [Counter(texts) for texts in found.texts.to_pylist()] == [texts for texts, _ in wanted]
    assert found.has_field == any(has_it for _, has_it in wanted)


@pytest.mark.parametrize("type_", [pa.null(), pa.int32(), pa.struct([("b", pa.string())])])
def test_columns_without_the_field_have_a_list_for_each_row(type_: pa.DataType) -> None:
    found = field_texts(pa.nulls(2, type_), ["a", "b"])
    assert found.texts.to_pylist() == [[], []]
    assert found.texts.type == pa.list_(pa.large_binary())
    assert not found.has_field


def test_fields_of_a_row_are_in_one_list() -> None:
    array = pa.array([{"a": {"b": 1, "c": "x"}}, {"a": {"b": 2, "c": None}}])
    assert field_texts(array, ["a"]).texts.to_pylist() == [[b"1", b"x"], [b"2"]]
