"""Cells → timestamps in milliseconds since 1970.

Digits behind the millisecond are cut off, towards the past: 23:59:59.999999 is 23:59:59.999 of the
same day, before 1970, too. A time without a zone is UTC.
"""

from __future__ import annotations

import datetime
import re
from contextlib import suppress

import pyarrow as pa
import pyarrow.types as pt

from kafkajit.arrow.arrays import column_of
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.moment import milliseconds
from kafkajit.produce.inputs.numbers import (
    all_small_integers,
    check_scalars,
    integer_of,
    integers,
    is_text,
    lacks_digits,
    shown,
)
from kafkajit.produce.inputs.plain_arrays import unwrapped
from kafkajit.produce.inputs.rows import BadInputError, Column, JsonCells, refuse
from kafkajit.schema import TIMESTAMP_TYPE

_DAY = 86_400_000
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
# For each of Arrow's units: (milliseconds per unit, units per millisecond); one of them is 1.
_MILLISECONDS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
# Java and kafkajit's own exports write years before 0 and after 9999 with a sign.
_TIME = re.compile(
    r"([+-]?\d{4,9})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)? ?(?:([Zz])|([+-])(\d\d):?(\d\d)?)?)?",
    re.ASCII,
)


def times(column: Column) -> pa.Array:
    """Timestamps, from times, dates, text in ISO 8601, and whole milliseconds.

    >>> times(pa.array([-1, 1_999], pa.timestamp("us"))).cast(pa.int64()).to_pylist()
    [-1, 1]
    """
    if isinstance(column, JsonCells):
        check_scalars(column, "a time")
        return _of_text(column.texts)
    array = unwrapped(column)
    kind = array.type
    if is_text(kind):
        return _of_text(array.cast(pa.large_binary()))
    if pt.is_timestamp(kind):
        return _of_units(array.view(pa.int64()), *_MILLISECONDS[kind.unit])
    if pt.is_date64(kind):
        return array.view(pa.int64()).cast(TIMESTAMP_TYPE)
    if pt.is_date32(kind):
        return _of_units(array.view(pa.int32()).cast(pa.int64()), _DAY, 1)
    try:
        return integers(array).cast(TIMESTAMP_TYPE)
    except BadInputError as error:
        if error.row is not None:
            raise
        raise BadInputError(
            f"a timestamp must be a time, text in ISO 8601 or milliseconds, not {kind}"
        ) from None


def _of_units(array: pa.Array, times: int, over: int) -> pa.Array:
    values = array.fill_null(0).to_numpy()
    refuse(
        (values > MAX_INT64 // times) | (values < -(-MIN_INT64 // times)),
        lambda _: "the time is out of the range of milliseconds of 64 bits",
    )
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    return column_of(values // over * times, is_null).cast(TIMESTAMP_TYPE)


def _of_text(texts: pa.Array) -> pa.Array:
    text = texts.cast(pa.large_string())
    if all_small_integers(texts):
        return text.cast(pa.int64()).cast(TIMESTAMP_TYPE)
    with suppress(pa.ArrowInvalid):  # without a zone, with finer digits, or no such time
        return text.cast(TIMESTAMP_TYPE)
    found = []
    for row, cell in enumerate(text.to_pylist()):
        time = None if cell is None else millisecond_of(cell)
        if time is None and cell is not None:
            what = lacks_digits(cell.encode()) or (
                "neither a time in ISO 8601, such as 2025-11-22T01:00:00Z, nor milliseconds"
            )
            raise BadInputError(f"{shown(cell.encode())} is {what}", row=row)
        found.append(time)
    return pa.array(found, pa.int64()).cast(TIMESTAMP_TYPE)


def millisecond_of(text: str) -> int | None:
    """The millisecond in which a time is, None if the text is neither a time nor milliseconds.

    >>> millisecond_of("1969-12-31T23:59:59.999999Z"), millisecond_of("+10000-01-01")
    (-1, 253402300800000)
    """
    text = text.strip()
    number = integer_of(text.encode())
    if number is not None:
        return number
    found = _TIME.fullmatch(text)
    if found is None:
        try:
            return milliseconds(text, is_now=True)
        except (ValueError, OverflowError):
            return None
    year, month, day, hour, minute, second, fraction = found.groups()[:7]
    cycles, of_cycle = divmod(int(year), _CYCLE_YEARS)
    try:
        date = datetime.date(of_cycle + _CYCLE_YEARS, int(month), int(day))
        clock = datetime.time(int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError:
        return None
    days = date.toordinal() - _EPOCH + (cycles - 1) * _CYCLE_DAYS
    seconds = clock.hour * 3600 + clock.minute * 60 + clock.second
    offset = _offset(*found.groups()[8:])
    if offset is None:
        return None
    time = days * _DAY + (seconds - offset) * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    return time if MIN_INT64 <= time <= MAX_INT64 else None


def _offset(sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    """The seconds by which a zone is ahead of UTC, None if it cannot be."""
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        return None
    seconds = int(hours or 0) * 3600 + int(minutes or 0) * 60
    return -seconds if sign == "-" else seconds


_EPOCH = datetime.date(1970, 1, 1).toordinal()
