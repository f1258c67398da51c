"""Counts, sizes, times and durations → text, in the same way for every command; sizes from text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000
_TO_THE_MINUTE = len("2025-11-05 00:00")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE = re.compile(r"(?P<number>-?[0-9]{1,100})(?P<unit>[kmgt]?)b?")
_BITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def size_text(size: int) -> str:
    """A number of bytes in three digits.

    >>> size_text(0), size_text(999), size_text(1000), size_text(123_456_789)
    ('0 bytes', '999 bytes', '1.00 kB', '123 MB')
    """
    value = float(size)
    for unit in _UNITS:
        # 999.5 has four digits once it is rounded.
        if value < _STEP - 0.5 or unit == _UNITS[-1]:
            break
        value /= _STEP
    if unit == _UNITS[0]:
        return number_of(size, "byte")
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}"


def parse_size(text: str, least: int, most: int) -> int:
    """Parse a number of bytes: 1024 of them are 1k, 1024k are 1m, and so on with g and t.

    >>> parse_size("128m", 1, 2**40), parse_size("1 GB", 0, 2**40), parse_size("7", 0, 2**40)
    (134217728, 1073741824, 7)
    >>> parse_size("-5m", 0, 2**40)
    Traceback (most recent call last):
    ValueError: expected a number of bytes up to 1t, such as 128m, not '-5m'
    """
    found = _SIZE.fullmatch(text.strip().lower().replace(" ", ""))
    size = least - 1 if found is None else int(found["number"]) << _BITS[found["unit"]]
    if not least <= size <= most:
        span = (
            f"up to {_binary(most)}" if least == 0 else f"from {_binary(least)} to {_binary(most)}"
        )
        raise ValueError(f"expected a number of bytes {span}, such as 128m, not {text!r}")
    return size


def _binary(size: int) -> str:
    """A limit in the largest unit that divides it."""
    units = [unit for unit, bits in _BITS.items() if size and size % (1 << bits) == 0]
    return f"{size >> _BITS[units[-1]]}{units[-1]}" if units else str(size)


def offsets_text(first: int, last: int) -> str:
    """A range of offsets.

    >>> offsets_text(7, 9), offsets_text(7, 7)
    ('offsets 7 to 9', 'offset 7')
    """
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def offsets_are(first: int, last: int) -> str:
    """A range of offsets as the subject of a sentence.

    >>> offsets_are(7, 9), offsets_are(7, 7)
    ('offsets 7 to 9 are', 'offset 7 is')
    """
    return f"{offsets_text(first, last)} {'is' if first == last else 'are'}"


def number_of(count: int, noun: str, plural: str | None = None) -> str:
    """A count and its noun.

    >>> number_of(1, "topic"), number_of(12_000, "batch", "batches")
    ('1 topic', '12,000 batches')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def time_text(timestamp: int | None) -> str:
    """Kafka's milliseconds as a time to the second, in UTC.

    >>> time_text(1762300800123), time_text(None), time_text(2**62)
    ('2025-11-05 00:00:00', '-', '4611686018427387904')
    """
    if timestamp is None:
        return "-"
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return str(timestamp)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def minute_text(timestamp: int | None) -> str:
    """As `time_text`, to the minute.

    >>> minute_text(1762300800123)
    '2025-11-05 00:00'
    """
    text = time_text(timestamp)
    return text[:_TO_THE_MINUTE] if ":" in text else text


def duration_text(seconds: float) -> str:
    """A duration in its one or two largest units.

    >>> duration_text(0.4), duration_text(59), duration_text(150), duration_text(90_000)
    ('0 s', '59 s', '2 min 30 s', '1 d 1 h')
    """
    whole = round(seconds)
    units = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s"))
    first = next((at for at, (size, _) in enumerate(units) if whole >= size), len(units) - 1)
    parts = []
    for size, name in units[first : first + 2]:
        parts.append(f"{whole // size} {name}")
        whole %= size
    return " ".join(part for part in parts if part[0] != "0" or len(parts) == 1)
