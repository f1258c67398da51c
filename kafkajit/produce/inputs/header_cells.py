"""Cells → headers: a list of keys and values, in order; keys may repeat.

The cells are lists of structs of key and value, in either order, or maps; in CSV and JSON lines
arrays of such objects, or objects. `valueBase64` holds a value in base64.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from kafkajit.produce.inputs.numbers import is_text, shown
from kafkajit.produce.inputs.plain_arrays import bytes_of, is_list, plain, unwrapped
from kafkajit.produce.inputs.rows import MISSING, NULL, BadInputError, Column, JsonCells, refuse
from kafkajit.schema import HEADERS_TYPE

SUFFIX = "Base64"
_NAMES = ("key", "value", f"value{SUFFIX}")
_MOST_KNOWN = 10_000  # texts whose headers are remembered
_Headers = list[dict[str, Any]]


def headers(column: Column) -> pa.Array:
    """The headers of each row, NULL if it has none."""
    if isinstance(column, JsonCells):
        letters = column.letters
        is_good = (letters == ord("[")) | (letters == ord("{"))
        is_good |= (letters == NULL) | (letters == MISSING)
        refuse(~is_good, lambda _: "headers must be an array of objects with key and value")
        return _of_text(column.texts)
    array = unwrapped(column)
    kind = array.type
    if pt.is_null(kind):
        return pa.nulls(len(array), HEADERS_TYPE)
    if is_text(kind):
        return _of_text(array.cast(pa.large_binary()))
    if pt.is_map(kind):
        array = _as_list(array)
    elif not (is_list(kind) and pt.is_struct(kind.value_type)):
        raise BadInputError(f"headers must be a list of structs of key and value, not {kind}")
    _check_fields(array)
    lists = plain(array)
    entries = lists.values
    _check_entries(lists, entries.is_null())
    parts = dict(zip([field.name for field in entries.type], entries.flatten(), strict=True))
    keys = parts["key"]
    _check_entries(lists, keys.is_null())
    values = _values(lists, parts)
    fields = HEADERS_TYPE.value_type
    new = pa.StructArray.from_arrays([keys, values], fields=list(fields))
    return pa.Array.from_buffers(
        HEADERS_TYPE, len(lists), lists.buffers()[:2], offset=lists.offset, children=[new]
    )


def _as_list(array: pa.Array) -> pa.Array:
    """A map as a list of its entries."""
    names = (array.type.key_field.name, array.type.item_field.name)
    entries = array.values
    entries = pa.StructArray.from_arrays(
        [entries.field(0), entries.field(1)], names=_NAMES[: len(names)]
    )
    return pa.Array.from_buffers(
        pa.list_(entries.type), len(array), array.buffers()[:2], offset=array.offset,
        children=[entries],
    )  # fmt: skip


def _check_fields(array: pa.Array) -> None:
    parts = {field.name: field.type for field in array.type.value_type}
    for name in parts:
        if name not in _NAMES:
            raise BadInputError(f"a header has a key and a value, and these have {name!r}, too")
    if "key" not in parts or len(parts) < 2:
        raise BadInputError(f"headers must have a key and a value, not {array.type}")
    for name, kind in parts.items():
        while pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
            kind = kind.value_type
        is_bytes = pt.is_null(kind) or pt.is_string_view(kind) or is_text(kind)
        if name == "value" and not is_bytes:
            is_bytes = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
            is_bytes = is_bytes or pt.is_fixed_size_binary(kind)
        if not is_bytes:
            raise BadInputError(f"the {name} of a header cannot be {kind}")


def _check_entries(lists: pa.Array, is_null: pa.Array) -> None:
    """Raise an error for the first row with a header that is NULL, or has no key."""
    if is_null.true_count:
        at = is_null.index(True).as_py()
        offsets = lists.offsets.to_numpy()
        row = int((offsets <= at).sum()) - 1
        raise BadInputError("a header has no key", row=row)


def _values(lists: pa.Array, parts: dict[str, pa.Array]) -> pa.Array:
    plain_values = parts.get("value")
    encoded = parts.get(f"value{SUFFIX}")
    if encoded is None or pt.is_null(encoded.type):
        assert plain_values is not None or encoded is not None
        return bytes_of(plain_values if plain_values is not None else encoded).cast(pa.binary())
    found: list[bytes | None] = []
    others = plain_values.to_pylist() if plain_values is not None else [None] * len(encoded)
    offsets = lists.offsets.to_numpy()
    for at, (text, other) in enumerate(zip(encoded.to_pylist(), others, strict=True)):
        row = int((offsets <= at).sum()) - 1
        if text is not None and other is not None:
            raise BadInputError(f"a header has both value and value{SUFFIX}", row=row)
        if text is None:
            found.append(other.encode() if isinstance(other, str) else other)
        else:
            found.append(of_base64(text, row))
    return pa.array(found, pa.binary())


def of_base64(text: str | bytes, row: int) -> bytes:
    """The bytes that a text in base64 stands for."""
    try:
        return b64decode(text, validate=True)
    except (Error, ValueError):
        content = text.encode(errors="replace") if isinstance(text, str) else text
        raise BadInputError(f"{shown(content)} is not base64", row=row) from None


def _of_text(texts: pa.Array) -> pa.Array:
    known: dict[bytes, _Headers | None] = {}
    found: list[_Headers | None] = []
    for row, text in enumerate(texts.to_pylist()):
        if text is None:
            found.append(None)
            continue
        if text not in known:
            if len(known) == _MOST_KNOWN:
                known.clear()
            known[text] = _parsed(text, row)
        found.append(known[text])
    try:
        return pa.array(found, HEADERS_TYPE)
    except UnicodeEncodeError:
        for row, pairs in enumerate(found):
            if any("\ud800" <= letter <= "\udfff" for letter in str(pairs)):
                raise BadInputError("a header has half a surrogate pair", row=row) from None
        raise


def _parsed(text: bytes, row: int) -> _Headers | None:
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        raise BadInputError(f"headers are not JSON: {shown(text)}", row=row) from None
    if value is None:
        return None
    if isinstance(value, _Pairs):
        return [{"key": _as_key(key, row), "value": _as_bytes(item, row)} for key, item in value]
    if not isinstance(value, list):
        raise BadInputError("headers must be an array of objects with key and value", row=row)
    return [_header(pairs, row) for pairs in value]


class _Pairs(list[tuple[str, Any]]):
    """An object, of which a name may come twice."""


def _header(pairs: Any, row: int) -> dict[str, Any]:
    names = [name for name, _ in pairs] if isinstance(pairs, _Pairs) else []
    if sorted(names) not in (["key", "value"], ["key", f"value{SUFFIX}"]):
        raise BadInputError(
            f"a header must be an object with key, and value or value{SUFFIX}", row=row
        )
    parts = dict(pairs)
    if not isinstance(parts["key"], str):
        raise BadInputError("the key of a header must be a string", row=row)
    key = _as_key(parts["key"], row)
    if "value" in parts:
        return {"key": key, "value": _as_bytes(parts["value"], row)}
    encoded = parts[f"value{SUFFIX}"]
    if encoded is not None and not isinstance(encoded, str):
        raise BadInputError(f"the value{SUFFIX} of a header must be a string", row=row)
    return {"key": key, "value": None if encoded is None else of_base64(encoded, row)}


def _as_key(key: str, row: int) -> str:
    _as_bytes(key, row)
    return key


def _as_bytes(value: Any, row: int) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadInputError("the value of a header must be a string or null", row=row)
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadInputError("a header has half a surrogate pair", row=row) from None
