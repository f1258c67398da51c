"""Arrow arrays → the text of tables, CSV and JSON, a whole array at a time.

Bytes become text if they are printable UTF-8, and X'0AFF' if they are not. In JSON they become a
string if they are UTF-8, and {"base64":"Cv8="} if they are not, as in dump-log. Timestamps are
ISO 8601 in UTC. Nested values are JSON in CSV and JSON; in a table they have fewer quotes.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import suppress
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXT = pa.large_string()

# Bytes with any of these are shown in hex, because they are not text.
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
# Text that looks like hex is shown in hex too.
_LIKE_HEX = r"X'(?:[0-9A-F]*')?"
_NEEDS_ESCAPE = r'["\\]'
_NEEDS_HEX = r"[\x00-\x1f]"
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NANOSECONDS_OF_DAY = 86_400_000_000_000
# Seconds from year 1 to year 9999. Arrow's years are 16 bits wide, and wrap beyond.
_FIRST, _LAST = -62_135_596_800, 253_402_300_799


def text_of(array: pa.Array, *, as_json: bool = False) -> pa.Array:
    r"""Each value's text, NULL for NULL.

    >>> text_of(pa.array([b"key", b"\xff", None])).to_pylist()
    ['key', "X'FF'", None]
    >>> text_of(pa.array([[{"key": "a", "value": b"b"}]])).to_pylist()
    ['[{key: a, value: b}]']
    >>> text_of(pa.array([[{"key": "a", "value": b"b"}]]), as_json=True).to_pylist()
    ['[{"key":"a","value":"b"}]']
    >>> text_of(pa.array([b"key", b"\xff", b"X'FF'"]), as_json=True).to_pylist()
    ['"key"', '{"base64":"/w=="}', '"X\'FF\'"']
    """
    kind = array.type
    if as_json and _is_binary(kind):
        return _json_of_bytes(array)
    if pa.types.is_map(kind):
        return _maps(array, as_json)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(array, as_json)
    if pa.types.is_struct(kind):
        return _structs(array, as_json)
    text = _scalars(array)
    return _quoted(text) if as_json and not _is_number(kind) else _finite(text, kind, as_json)


def scalar(text: str) -> pa.Scalar:
    """A constant text to join with."""
    return pa.scalar(text, TEXT)


def join(*pieces: pa.Array | pa.Scalar, between: str = "", null: str | None = "") -> pa.Array:
    """Concatenate the pieces row by row; NULL becomes `null`, or stays NULL if that is None."""
    return pc.binary_join_element_wise(
        *pieces,
        scalar(between),
        null_handling="emit_null" if null is None else "replace",
        null_replacement=null or "",
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _finite(text: pa.Array, kind: pa.DataType, as_json: bool) -> pa.Array:
    """Quote NaN and infinities in JSON, which has no such numbers; Spark writes them so too."""
    if not (as_json and pa.types.is_floating(kind)):
        return text
    odd = pc.match_substring_regex(text, "n")  # nan, inf, -inf
    names = pc.replace_substring(pc.replace_substring(text, "nan", "NaN"), "inf", "Infinity")
    return pc.if_else(odd, _quoted(names), text)


def _scalars(array: pa.Array) -> pa.Array:
    kind = array.type
    if _is_binary(kind):
        return _bytes(array)
    if pa.types.is_timestamp(kind):
        return _timestamps(array)
    if pa.types.is_date(kind):
        return _dates(array.cast(pa.date32()))
    try:
        return array.cast(TEXT)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # intervals
        return pa.array([None if value is None else str(value) for value in _values(array)], TEXT)


def _values(array: pa.Array) -> list[Any]:
    return array.to_pylist()  # type: ignore[no-any-return]


def _bytes(array: pa.Array) -> pa.Array:
    with suppress(pa.ArrowInvalid):  # some values are not UTF-8
        text = array.cast(TEXT)
        if not _any_match(text, f"{_CONTROL}|^(?:{_LIKE_HEX})$"):
            return text
    return pa.array([_as_text(value) for value in _values(array)], TEXT)


def _as_text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return in_hex(value)
    is_odd = re.search(_CONTROL, text) or re.fullmatch(_LIKE_HEX, text)
    return in_hex(value) if is_odd else text


def _json_of_bytes(array: pa.Array) -> pa.Array:
    """A JSON string, or an object for bytes that are not text."""
    with suppress(pa.ArrowInvalid):  # some values are not UTF-8, which JSON needs
        return _quoted(array.cast(TEXT))
    return pa.array([_as_json(value) for value in _values(array)], TEXT)


def _as_json(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return json.dumps(value.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return f'{{"base64":"{b64encode(value).decode()}"}}'


def in_hex(value: bytes) -> str:
    """Bytes as a literal of SQL: X'0AFF'."""
    return f"X'{value.hex().upper()}'"


def _timestamps(array: pa.Array) -> pa.Array:
    """ISO 8601 with milliseconds, or with the microseconds or nanoseconds that a value has."""
    zone = "Z" if array.type.tz else ""
    per_second = _PER_SECOND[array.type.unit]
    numbers = array.cast(pa.int64())
    lowest, highest = (pc.min_max(numbers)[name].as_py() for name in ("min", "max"))
    if lowest is None:
        return pa.nulls(len(array), TEXT)
    if lowest < _FIRST * per_second or highest >= (_LAST + 1) * per_second:
        nanos = 1_000_000_000 // per_second
        texts = [None if n is None else _iso(n * nanos) + zone for n in _values(numbers)]
        return pa.array(texts, TEXT)
    moments = array.cast(pa.timestamp(_unit_of(numbers, array.type.unit)))
    # This takes a tenth of the time of strftime.
    text = pc.binary_replace_slice(moments.cast(pa.string()), 10, 11, "T").cast(TEXT)
    return join(text, scalar(zone), null=None) if zone else text


def _dates(array: pa.Array) -> pa.Array:
    """ISO 8601; Arrow has no text for days far from now."""
    days = array.cast(pa.int32())
    lowest, highest = (pc.min_max(days)[name].as_py() for name in ("min", "max"))
    if lowest is None or (lowest >= _FIRST // 86_400 and highest <= _LAST // 86_400):
        return array.cast(TEXT)
    moments = (None if day is None else _iso(day * _NANOSECONDS_OF_DAY) for day in _values(days))
    return pa.array([one and one.partition("T")[0] for one in moments], TEXT)


def _unit_of(numbers: pa.Array, unit: str) -> str:
    """The unit that has all digits of some timestamps: milliseconds if they are enough."""
    for coarser in ("ms", "us"):
        times = _PER_SECOND[unit] // _PER_SECOND[coarser]
        if times <= 1:
            return coarser
        if pc.all(pc.equal(pc.multiply(pc.divide(numbers, times), times), numbers)).as_py():
            return coarser
    return unit


def _iso(nanos: int) -> str:
    """Format any number of nanoseconds; years beyond 9999 have a sign, as in Java."""
    days, rest = divmod(nanos, _NANOSECONDS_OF_DAY)
    cycles, day = divmod(days + date(1970, 1, 1).toordinal() - 1, 146_097)  # days of 400 years
    within = date.fromordinal(day + 1)
    year = within.year + 400 * cycles
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    seconds, fraction = divmod(rest, 1_000_000_000)
    digits = f"{fraction:09}"
    while len(digits) > 3 and digits.endswith("000"):
        digits = digits[:-3]
    return (
        f"{sign}{abs(year):04}-{within.month:02}-{within.day:02}T{seconds // 3600:02}:"
        f"{seconds // 60 % 60:02}:{seconds % 60:02}.{digits}"
    )


def _quoted(text: pa.Array) -> pa.Array:
    """JSON's strings."""
    if _any_match(text, _NEEDS_HEX):
        texts = [
            None if value is None else json.dumps(value, ensure_ascii=False)
            for value in _values(text)
        ]
        return pa.array(texts, TEXT)
    if _any_match(text, _NEEDS_ESCAPE):
        text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return join(scalar('"'), text, scalar('"'), null=None)


def _any_match(text: pa.Array, regex: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, regex)).as_py())


def _null(as_json: bool) -> str:
    return "null" if as_json else "NULL"


def _lists(array: pa.Array, as_json: bool) -> pa.Array:
    items = pc.fill_null(text_of(array.flatten(), as_json=as_json), _null(as_json))
    return _joined(array, items, as_json, "[", "]")


def _maps(array: pa.Array, as_json: bool) -> pa.Array:
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    keys, values = (part.slice(first, last - first) for part in (array.keys, array.items))
    # JSON's names are strings, whatever the keys are.
    key = text_of(keys, as_json=as_json)
    if as_json and (_is_number(keys.type) or _is_binary(keys.type)):
        key = _quoted(text_of(keys))
    elif as_json and pa.types.is_nested(keys.type):
        key = _quoted(key)
    value = text_of(values, as_json=as_json)
    entries = join(key, value, between=":" if as_json else ": ", null=_null(as_json))
    return _joined(array, entries, as_json, "{", "}")


def _joined(array: pa.Array, items: pa.Array, as_json: bool, begin: str, end: str) -> pa.Array:
    """Join the texts of items into the texts of their lists."""
    counts = _counts(array)
    offsets = pa.array([0], pa.int64())
    if len(array):
        offsets = pa.concat_arrays([offsets, pc.cumulative_sum(counts)])
    lists = pa.LargeListArray.from_arrays(offsets, items)
    inside = pc.binary_join(lists, scalar("," if as_json else ", "))
    return _where_valid(array, join(scalar(begin), inside, scalar(end)))


def _counts(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        offsets = array.offsets.cast(pa.int64())
        counts = pc.subtract(offsets.slice(1), offsets.slice(0, len(array)))
        return pc.if_else(pc.is_valid(array), counts, 0)
    return pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())


def _structs(array: pa.Array, as_json: bool) -> pa.Array:
    if not array.type.num_fields:
        return _where_valid(array, pa.array(["{}"] * len(array), TEXT))
    pieces = [
        piece
        for field, values in zip(array.type, array.flatten(), strict=True)
        for piece in (
            scalar(("," if as_json else ", ") + named(field.name, as_json=as_json)),
            pc.fill_null(text_of(values, as_json=as_json), _null(as_json)),
        )
    ]
    pieces[0] = scalar(named(array.type[0].name, as_json=as_json))
    return _where_valid(array, join(scalar("{"), *pieces, scalar("}")))


def named(name: str, *, as_json: bool) -> str:
    """The text before a field's value."""
    return f"{json.dumps(name, ensure_ascii=False)}:" if as_json else f"{name}: "


def _where_valid(array: pa.Array, text: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), text, pa.scalar(None, TEXT))
