from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_twins import Refused, java_int, java_lines

import kafkajit
from kafkajit.state import text_lines
from kafkajit.state.text_lines import MAX_LINE, lines, malformed_line, parse_number
from kafkajit.storage.source import as_bytes

CONTENT = st.lists(
    st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"\x0b", b"\x85", "é".encode(), b" "])
).map(b"".join)


@given(CONTENT, st.integers(1, 5))
def test_lines_are_java_s_wherever_a_block_ends(content: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_lines, "_BLOCK", block)
        try:
            expected = java_lines(content)
        except Refused:
            with pytest.raises(kafkajit.CorruptCheckpointError, match="not UTF-8"):
                list(lines(as_bytes(content)))
        else:
            assert list(lines(as_bytes(content))) == expected


def test_a_line_as_long_as_can_be_is_one() -> None:
    for end in (b"", b"\n", b"\r\n"):
        content = b"x\n" * 100_000 + b"a" * MAX_LINE + end
        assert list(lines(as_bytes(content)))[100_000:] == ["a" * MAX_LINE]


@pytest.mark.parametrize("end", [b"", b"\n", b"a" * 500_000])
def test_a_longer_line_is_an_error_that_does_not_quote_it(end: bytes) -> None:
    content = as_bytes(b"x\n" * 100_000 + b"a" * (MAX_LINE + 1) + end)
    with pytest.raises(kafkajit.CorruptCheckpointError) as caught:
        list(lines(content, "a/b"))
    assert str(caught.value) == (
        "more than 65536 bytes, and Kafka writes no line that long at line 100001 in a/b"
    )


def test_half_a_gigabyte_of_digits_is_not_looked_at() -> None:
    digits = np.broadcast_to(np.uint8(ord("9")), 1 << 29)
    with pytest.raises(kafkajit.CorruptCheckpointError, match="Kafka writes no line that long"):
        next(lines(digits))


def test_an_error_quotes_the_beginning_of_a_long_line() -> None:
    error = malformed_line("0" * 5000, 7, None)
    assert str(error) == (
        f"Malformed line in checkpoint file: {'0' * 200}… (5000 characters) at line 7"
    )


@pytest.mark.parametrize("bits", [32, 64])
@given(
    text=st.one_of(
        st.integers(-(2**65), 2**65).map(str),
        st.sampled_from(
            [
                str(sign * 2**size + step)
                for sign in (1, -1)
                for size in (31, 63)
                for step in (-1, 0, 1)
            ]
        ),
        st.text("0123456789+-_ x١", max_size=6),
        st.integers(0, 99).map(lambda number: "+" + "0" * 40 + str(number)),
    )
)
def test_a_number_is_what_java_takes_for_one(bits: int, text: str) -> None:
    try:
        expected: int | None = java_int(text, bits)
    except Refused:
        expected = None
    assert parse_number(text, bits) == expected
