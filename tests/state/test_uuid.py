from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.state.uuid import ZERO, parse_uuid


@given(st.binary(min_size=16, max_size=16), st.sampled_from(["", "=="]))
def test_sixteen_bytes_in_base64_are_an_id(number: bytes, padding: str) -> None:
    text = base64.urlsafe_b64encode(number).decode().rstrip("=")
    assert parse_uuid(text + padding) == text


def test_bits_that_nobody_looks_at_are_not_printed() -> None:
    assert [parse_uuid("A" * 21 + last) for last in "ABPQ"] == [ZERO, ZERO, ZERO, "A" * 21 + "Q"]


@pytest.mark.parametrize(
    "text", ["", "A" * 21, "A" * 23, "A" * 24, "A" * 22 + "=", "A" * 21 + "+", "A" * 22 + "\n"]
)
def test_another_text_is_none(text: str) -> None:
    assert parse_uuid(text) is None
