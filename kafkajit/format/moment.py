"""Times as people write them → Kafka's milliseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from kafkajit.format.limits import MAX_INT64

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    if re.fullmatch(r"[0-9]+", stripped) and int(stripped) <= MAX_INT64:
        return int(stripped)
    try:
        return of_datetime(datetime.fromisoformat(stripped), is_now=is_now)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither ISO 8601, such as 2025-11-22T01:00:00Z, nor milliseconds"
        ) from None


def of_datetime(moment: datetime, *, is_now: bool = False) -> int:
    """The first millisecond that is not before a datetime, which is UTC unless it has a zone.

    If it `is_now`, it is the millisecond that a clock shows: the last one that is not after it.

    >>> of_datetime(datetime(2025, 11, 5)), of_datetime(datetime(2025, 11, 5, microsecond=1))
    (1762300800000, 1762300800001)
    """
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH
    millisecond = timedelta(milliseconds=1)
    return since // millisecond if is_now else -(-since // millisecond)
