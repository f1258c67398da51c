"""Sizes as people write them."""

from __future__ import annotations

import pytest

from kafkajit.format.amounts import parse_size


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0),
        ("17", 17),
        ("1k", 1 << 10),
        ("1KB", 1 << 10),
        ("3 m", 3 << 20),
        (" 2g ", 2 << 30),
        ("1t", 1 << 40),
        ("1TB", 1 << 40),
    ],
)
def test_units_are_powers_of_1024(text: str, found: int) -> None:
    assert parse_size(text, 0, 1 << 40) == found


@pytest.mark.parametrize(
    "text", ["", "m", "1.5m", "-5m", "-1", "1p", "2t", "99999999999999", "٣", "9" * 5000]
)
def test_a_negative_or_an_absurd_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^expected a number of bytes up to 1t, .*, not {text!r}"):
        parse_size(text, 0, 1 << 40)
