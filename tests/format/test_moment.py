"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.format.moment import milliseconds, option_text, option_time, python_time


@pytest.mark.parametrize("text", ["1", "1762300805", "20251105", "99999999999", " 1762300805 "])
def test_a_number_that_may_be_in_seconds_is_refused_with_both_ways_to_write_it(text: str) -> None:
    digits = text.strip()
    with pytest.raises(ValueError, match=f"may be in seconds: write {digits}s, or {digits}ms for"):
        option_time(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0),
        ("100000000000", 10**11),
        ("1762300805000", 1762300805000),
        ("1762300805s", 1762300805000),
        ("1762300805ms", 1762300805),
        ("7ms", 7),
        ("0s", 0),
        ("2025-11-05", 1762300800000),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_a_unit_or_a_large_number_or_a_date_is_one_time(text: str, found: int) -> None:
    assert option_time(text) == found


@pytest.mark.parametrize(
    "text", ["-1", "1.5s", "s", "1m", "9223372036854775807s", "٣ms", "", "9" * 5000]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is neither ISO 8601|is beyond Kafka's last time"):
        option_time(text)


def test_times_in_data_are_milliseconds_however_small() -> None:
    assert milliseconds("7") == 7
    with pytest.raises(ValueError, match="is neither"):
        milliseconds("7s")


@given(st.integers(-(10**13), 2**63 - 1))
def test_an_options_text_is_read_back(millisecond: int) -> None:
    assert option_time(option_text(millisecond)) == millisecond


def test_pythons_times_are_numbers_datetimes_or_texts() -> None:
    assert python_time(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1000
    assert python_time("7ms") == 7
    assert python_time(None) is None
    with pytest.raises(ValueError, match="may be in seconds"):
        python_time(1762300805)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2025-11-22Z", 1763769600000),
        ("2025-11-22+02:00", 1763762400000),
        ("2025-11-22-01:00", 1763773200000),
        ("2025-11-22-0100", 1763773200000),
        ("2025-11-22 01:00", 1763773200000),
        ("20251122T010000Z", 1763773200000),
    ],
)
def test_a_date_may_have_a_zone(text: str, found: int) -> None:
    assert milliseconds(text) == found


@pytest.mark.parametrize("text", ["2025-11-22x01:00", "2025-11-22_01:00", "2025-11-22+25:00"])
def test_the_time_behind_a_date_begins_with_t_or_a_space(text: str) -> None:
    with pytest.raises(ValueError, match="is neither ISO 8601"):
        milliseconds(text)
