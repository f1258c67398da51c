from __future__ import annotations

import re

import numpy as np
import pytest
import reference
from corpus import DATA, log_of
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.format.utf8 import MAX_GROWTH, is_ascii, java_string, write_replaced, write_string
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.storage.source import as_bytes

# The Unicode standard's table 3-7, and the parts that Java replaces with one U+FFFD.
_WELL_FORMED = (
    rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]"
    rb"|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
_MALFORMED = (
    rb"\xed[\xa0-\xbf][\x80-\xbf]|\xe0[\xa0-\xbf]|[\xe1-\xef][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf3][\x80-\xbf]{1,2}|\xf4[\x80-\x8f][\x80-\xbf]?|."
)
_PART = re.compile(rb"(?P<good>(?:" + _WELL_FORMED + rb")+)|" + _MALFORMED, re.DOTALL)


def java_twin(raw: bytes) -> str:
    return "".join(
        part["good"].decode() if part["good"] else "\ufffd" for part in _PART.finditer(raw)
    )


def printed() -> list[bytes]:
    """What Java printed of each record of binary-0, behind its header keys."""
    golden = (DATA / "v2" / "binary-0" / "00000000000000000000.log.data.out").read_bytes()
    golden = re.sub(rb"\nbaseOffset: \d+ lastOffset: [^\n]+", b"", golden)
    lines = golden.split(b"\n| offset: ")[1:]
    return [line.partition(b" headerKeys: [] ")[2] for line in lines]


def test_broken_utf8_is_replaced_as_java_replaces_it() -> None:
    lines = printed()
    records = [
        record
        for batch in reference.read_batches(log_of("binary-0"))[0]
        for record in reference.read_records(batch)
    ]
    assert len(records) == len(lines) == 320
    for record, line in zip(records, lines, strict=True):
        assert record.key is not None
        assert record.value is not None
        expected = f"key: {java_string(record.key)} payload: {java_string(record.value)}"
        assert line.rstrip(b"\n") == expected.encode().rstrip(b"\n")
        assert java_twin(record.key) == java_string(record.key)
        assert java_twin(record.value) == java_string(record.value)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"plain", "plain"),
        (b"\x00\x7f", "\x00\x7f"),
        ("é€😀".encode(), "é€😀"),
        (b"\xc2\x80 \xdf\xbf", "\x80 \u07ff"),
        (b"\xe0\xa0\x80 \xef\xbf\xbf", "\u0800 \uffff"),
        (b"\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", "\U00010000 \U0010ffff"),
        (b"\xed\x9f\xbf \xee\x80\x80", "\ud7ff \ue000"),
        (b"\x80", "\ufffd"),
        (b"\xbf\xbf", "\ufffd\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),  # Java's own modified NUL is not UTF-8 either
        (b"\xc1\xbf", "\ufffd\ufffd"),
        (b"\xc3", "\ufffd"),
        (b"\xc3(", "\ufffd("),
        (b"\xe0\x9f\x80", "\ufffd\ufffd\ufffd"),
        (b"\xe2\x82", "\ufffd"),  # cut by the end: one for all of it
        (b"\xe2\x82|", "\ufffd|"),
        (b"\xed\xa0\x80", "\ufffd"),  # a surrogate: Python has three
        (b"\xed\xbf\xbf\xed\xa0\x80", "\ufffd\ufffd"),
        (b"\xed\xa0|", "\ufffd|"),
        (b"\xf0\x8f\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xf0\x9f\x98|", "\ufffd|"),
        (b"\xf0\x9f|", "\ufffd|"),
        (b"\xf0|", "\ufffd|"),
        (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
        (b"\xf5\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_a_string_is_javas(raw: bytes, text: str) -> None:
    assert java_string(raw) == text
    assert java_twin(raw) == text


@given(st.text())
def test_valid_text_is_itself(text: str) -> None:
    assert java_string(text.encode()) == text


# Bytes that begin, continue or break off a sequence.
_EDGES = bytes.fromhex("00417f808f909fa0bfc0c1c2dfe0e1edeff0f1f4f5ff")
_NASTY = st.lists(st.sampled_from(_EDGES), max_size=12).map(bytes)


@given(st.one_of(_NASTY, st.binary(max_size=40)))
def test_any_bytes_are_read_as_the_twin_reads_them(raw: bytes) -> None:
    text = java_string(raw)
    assert text == java_twin(raw)
    assert len(text.encode()) <= MAX_GROWTH * len(raw)


@given(st.one_of(_NASTY, st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
def test_writing_a_string_stays_inside_its_room(raw: bytes) -> None:
    before, behind = 3, 5
    content = as_bytes(b"\xe2" * before + raw + b"\x82" * behind)
    room = MAX_GROWTH * len(raw) + WIDE
    for write, end in ((write_string, len(raw)), (write_replaced, before + len(raw))):
        target = np.full(7 + room + 8, 0xAA, dtype=np.uint8)
        after = write(content, before, end, target, 7)
        assert target[7:after].tobytes().decode() == java_twin(raw)
        assert (target[:7] == 0xAA).all()
        assert (target[7 + room :] == 0xAA).all()


@pytest.mark.parametrize("at", [None, 0, 1, 31, 32, 63])
def test_ascii_is_known_by_every_byte(at: int | None) -> None:
    raw = bytearray(b"\xff" + b"a" * 64 + b"\xff")
    if at is not None:
        raw[1 + at] = 0x80
    assert is_ascii(as_bytes(bytes(raw)), 1, 64) == (at is None)
