"""Cells → the integers and booleans of records, exactly or not at all."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from kafkajit.arrow.arrays import column_of
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.produce.inputs.plain_arrays import unwrapped
from kafkajit.produce.inputs.rows import (
    ARRAY,
    FALSE,
    OBJECT,
    TRUE,
    BadInputError,
    Column,
    JsonCells,
    refuse,
)
from kafkajit.values.json.careful import number_parts

# By the bytes of a float: from this integer on one may have been rounded before it came here.
_INEXACT = {2: 2**11, 4: 2**24, 8: 2**53}
_INT64 = pa.int64()
_QUICK = "^-?[0-9]{1,18}$"
_NUMBER = re.compile(rb"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_BOOLEANS = {b"true": True, b"1": True, b"false": False, b"0": False}
_MOST_SHOWN = 40


def integers(column: Column, kind: pa.DataType = _INT64) -> pa.Array:
    """Whole numbers of a type, from numbers or text: 5, "5", 5.0 and 5e0 are all 5.

    >>> integers(pa.array(["5", "5.0", None])).to_pylist()
    [5, 5, None]
    """
    numbers = _int64s(column)
    if kind == numbers.type:
        return numbers
    most = 2 ** (kind.bit_width - 1)
    values = numbers.fill_null(0).to_numpy()
    refuse(
        (values >= most) | (values < -most),
        lambda row: f"{values[row]} does not fit {kind}",
    )
    return numbers.cast(kind)


def booleans(column: Column) -> pa.Array:
    """True or false, from booleans, the numbers 1 and 0, or text in any case of letters."""
    if isinstance(column, JsonCells):
        return _booleans_of_text(column.texts)
    array = unwrapped(column)
    if pt.is_boolean(array.type):
        return array
    if is_text(array.type):
        return _booleans_of_text(array.cast(pa.large_binary()))
    numbers = _int64s(array)
    values = numbers.fill_null(0).to_numpy()
    refuse((values < 0) | (values > 1), lambda row: f"{values[row]} is neither true nor false")
    return numbers.cast(pa.bool_())


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def shown(content: bytes) -> str:
    """The text of a cell for an error."""
    text = content[: 4 * _MOST_SHOWN].decode(errors="backslashreplace")
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…")


def _booleans_of_text(texts: pa.Array) -> pa.Array:
    found: list[bool | None] = []
    for row, text in enumerate(texts.to_pylist()):
        value = None if text is None else _BOOLEANS.get(text.lower())
        if value is None and text is not None:
            raise BadInputError(f"{shown(text)} is neither true nor false", row=row)
        found.append(value)
    return pa.array(found, pa.bool_())


def _int64s(column: Column) -> pa.Array:
    if isinstance(column, JsonCells):
        check_scalars(column, "an integer")
        return _int64s_of_text(column.texts)
    array = unwrapped(column)
    kind = array.type
    if pt.is_null(kind):
        return pa.nulls(len(array), pa.int64())
    if is_text(kind):
        return _int64s_of_text(array.cast(pa.large_binary()))
    if pt.is_uint64(kind):
        values = array.fill_null(0).to_numpy()
        refuse(values > MAX_INT64, lambda row: f"{values[row]} does not fit int64")
    if pt.is_integer(kind):
        return array.cast(pa.int64())
    if pt.is_floating(kind):
        return _int64s_of_floats(array)
    if pt.is_decimal(kind):
        texts = array.cast(pa.large_string())
        if kind.scale < 0:  # Arrow writes an exponent, but no digit is lacking
            whole = [text and f"{Decimal(text):f}" for text in texts.to_pylist()]
            texts = pa.array(whole, pa.large_string())
        return _int64s_of_text(texts.cast(pa.large_binary()))
    raise BadInputError(f"{kind} is not a column of integers")


def check_scalars(cells: JsonCells, words: str) -> None:
    """Raise unless all cells are numbers, strings or null."""
    kinds = {TRUE: "true", FALSE: "false", OBJECT: "an object", ARRAY: "an array"}
    is_bad = np.isin(cells.letters, list(kinds))
    refuse(is_bad, lambda row: f"{kinds[int(cells.letters[row])]} is not {words}")


def _int64s_of_floats(array: pa.Array) -> pa.Array:
    size = array.type.bit_width // 8
    inexact = _INEXACT[size]
    values = array.cast(pa.float64()).fill_null(0).to_numpy()
    with np.errstate(invalid="ignore"):
        refuse(values != np.floor(values), lambda row: f"{values[row]} is not an integer")
        refuse(
            np.abs(values) >= inexact,
            lambda row: (
                f"{values[row]} is a number of {8 * size} bits that may have been rounded: those "
                f"from {inexact} on are"
            ),
        )
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    return column_of(values.astype(np.int64), is_null)


def _int64s_of_text(texts: pa.Array) -> pa.Array:
    if all_small_integers(texts):
        return texts.cast(pa.large_string()).cast(pa.int64())
    numbers = []
    for row, text in enumerate(texts.to_pylist()):
        number = None if text is None else integer_of(text)
        if number is None and text is not None:
            lacking = lacks_digits(text)
            what = "not an integer of 64 bits" if lacking is None else lacking
            raise BadInputError(f"{shown(text)} is {what}", row=row)
        numbers.append(number)
    return pa.array(numbers, pa.int64())


def all_small_integers(texts: pa.Array) -> bool:
    """Whether all texts are integers of at most 18 digits."""
    return pc.all(pc.match_substring_regex(texts, _QUICK)).as_py() is not False


def integer_of(text: bytes) -> int | None:
    """The integer of 64 bits that a text is exactly, None if it is another text.

    >>> integer_of(b"5.04e2"), integer_of(b"5.5"), integer_of(b"9223372036854775808")
    (504, None, None)
    """
    found = _NUMBER.fullmatch(text)
    if found is None or lacks_digits(text) is not None:
        return None
    sign, digits, exponent = number_parts(found)
    if not digits:
        return 0
    if exponent < 0 or len(digits) + exponent > 19:
        return None
    number = sign * int(digits) * 10**exponent
    return number if MIN_INT64 <= number <= MAX_INT64 else None


def lacks_digits(text: bytes) -> str | None:
    """The words about an integer with fewer digits than it has, as spreadsheets write large ones.

    >>> lacks_digits(b"1.70041E+12")
    'a number that may have been rounded: it has 6 of its 13 digits'
    >>> lacks_digits(b"1.7E+1")
    """
    found = _NUMBER.fullmatch(text)
    if found is None or found[4] is None:
        return None
    _, whole, fraction, power = found.groups()
    digits, exponent = whole + (fraction or b""), power.lstrip(b"+0") or b"0"
    if exponent[:1] == b"-" or len(exponent) > 18 or not digits.strip(b"0"):
        return None
    has = len(whole) + int(exponent)
    if len(digits) >= has:
        return None
    return f"a number that may have been rounded: it has {len(digits)} of its {has} digits"
