"""Times as people write them → Kafka's milliseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from kafkajit.format.limits import MAX_INT64

# A time as Python's functions take it: milliseconds, a datetime, or a text.
Time = int | str | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITH_UNIT = re.compile(r"(?P<digits>[0-9]{1,19})(?P<unit>ms|s)")
_DAY_WITH_ZONE = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)")
# A smaller number without a unit may be meant in seconds: as milliseconds it is a time before March
# 1973, as seconds one before the year 5138. No log of Kafka's is as old as that.
_LEAST_BARE = 10**11


def milliseconds(text: str, *, is_now: bool = False) -> int:
    """Parse milliseconds, or an ISO 8601 time, which is UTC unless it has a zone.

    >>> milliseconds("1762300800000")
    1762300800000
    >>> milliseconds("2025-11-05"), milliseconds("2025-11-05T01:00:00+01:00")
    (1762300800000, 1762300800000)
    >>> milliseconds("yesterday")
    Traceback (most recent call last):
    ValueError: 'yesterday' is neither ISO 8601, such as 2025-11-22T01:00:00Z, nor milliseconds
    """
    stripped = text.strip()
    # Digits alone are milliseconds, although ISO 8601 also writes a date as 20251105.
    if re.fullmatch(r"[0-9]{1,100}", stripped) and int(stripped) <= MAX_INT64:
        return int(stripped)
    try:
        return of_datetime(_datetime_of(stripped), is_now=is_now)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither ISO 8601, such as 2025-11-22T01:00:00Z, nor milliseconds"
        ) from None


def _datetime_of(text: str) -> datetime:
    """A datetime; a date may have a zone, as those of XML and Java have.

    >>> _datetime_of("2025-11-05+02:00").isoformat()
    '2025-11-05T00:00:00+02:00'
    """
    day = _DAY_WITH_ZONE.fullmatch(text)
    if day is not None:
        return datetime.fromisoformat(f"{day['day']}T00:00{day['zone']}")
    found = datetime.fromisoformat(text)
    # Python takes any character between the day and the time.
    if len(text) > len("2025-11-05") and not re.search("[Tt ]", text):
        raise ValueError(text)
    return found


def option_time(text: str, *, is_now: bool = False) -> int:
    """Parse the time of an option as `milliseconds` does, but no number that may be in seconds.

    A unit behind the number settles it: s or ms. So does 0, which is the same time in both.

    >>> option_time("1762300805000"), option_time("1762300805s"), option_time("5ms")
    (1762300805000, 1762300805000, 5)
    >>> option_time("1762300805")
    Traceback (most recent call last):
    ValueError: '1762300805' may be in seconds: write 1762300805s, or 1762300805ms for \
1970-01-21T09:31:40.805Z
    """
    with_unit = _WITH_UNIT.fullmatch(text.strip())
    if with_unit is not None:
        number = int(with_unit["digits"]) * (1000 if with_unit["unit"] == "s" else 1)
        if number > MAX_INT64:
            raise ValueError(f"{text!r} is beyond Kafka's last time")
        return number
    found = milliseconds(text, is_now=is_now)
    if text.strip().isdecimal() and 0 < found < _LEAST_BARE:
        there = (_EPOCH + timedelta(milliseconds=found)).replace(tzinfo=None)
        raise ValueError(
            f"{text!r} may be in seconds: write {found}s, or {found}ms for "
            f"{there.isoformat(timespec='milliseconds')}Z"
        )
    return found


def option_text(millisecond: int) -> str:
    """Milliseconds as `option_time` reads them.

    >>> option_text(5), option_text(-1)
    ('5ms', '1969-12-31T23:59:59.999000+00:00')
    """
    if millisecond < 0:
        return (_EPOCH + timedelta(milliseconds=millisecond)).isoformat()
    return f"{millisecond}ms"


def python_time(value: Time | None) -> int | None:
    """A time as Python's functions take it: a number of milliseconds, a datetime, or a text.

    >>> python_time(1762300800000), python_time("2025-11-05"), python_time(datetime(2025, 11, 5))
    (1762300800000, 1762300800000, 1762300800000)
    """
    if isinstance(value, datetime):
        return of_datetime(value)
    if value is None or (isinstance(value, int) and value < 0):
        return value
    return option_time(str(value))


def of_datetime(moment: datetime, *, is_now: bool = False) -> int:
    """The first millisecond that is not before a datetime, which is UTC unless it has a zone.

    If it `is_now`, it is the millisecond that a clock shows: the last one that is not after it.

    >>> of_datetime(datetime(2025, 11, 5)), of_datetime(datetime(2025, 11, 5, microsecond=1))
    (1762300800000, 1762300800001)
    """
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH
    millisecond = timedelta(milliseconds=1)
    return since // millisecond if is_now else -(-since // millisecond)
