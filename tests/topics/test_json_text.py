from __future__ import annotations

import base64
import math
import struct

import messages_twin as twin
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.topics.json_text import (
    MAX_JSON_GROWTH,
    is_plain,
    java_double,
    learn_double,
    new_doubles,
    write_base64,
    write_double,
    write_json_string,
    write_uuid,
)


# is_plain and write_json_string are inlined: kernels of their own call them here.
@kernel
def _is_plain(content, position, size):
    return is_plain(content, position, size)


@kernel
def _write_json_string(content, position, size, out, w):
    return write_json_string(content, position, size, out, w)


@kernel
def _write_double(doubles, bits, out, w):
    return write_double(doubles, bits, out, w)


MOSTLY_PLAIN = st.lists(
    st.sampled_from([*b" !#[]az~\x7f"] * 4 + [0, 31, 34, 92, 128, 195, 169, 255]), max_size=60
).map(bytes)


def array(raw: bytes) -> np.ndarray:
    return np.frombuffer(b"\xff" + raw + b"\xff", dtype=np.uint8)


@given(MOSTLY_PLAIN | st.text(max_size=40).map(str.encode) | st.binary(max_size=40))
@example(b"\xed\xa0\x80 \xe2\x82")
@example(b'a"b\\c\b\f\n\r\t\x1f\x7f/')
def test_a_string_is_written_as_jackson_writes_what_java_decodes(raw: bytes) -> None:
    out = np.zeros(MAX_JSON_GROWTH * len(raw) + 2 + WIDE, dtype=np.uint8)
    end = _write_json_string(array(raw), 1, len(raw), out, 0)
    text = "".join(p["good"].decode() if p["good"] else "�" for p in twin._PART.finditer(raw))
    assert out[:end].tobytes().decode() == twin.json_text(text)
    assert end <= MAX_JSON_GROWTH * len(raw) + 2


@given(MOSTLY_PLAIN)
def test_plain_is_ascii_without_quotes_backslashes_and_control_characters(raw: bytes) -> None:
    expected = all(32 <= byte < 128 and byte not in b'"\\' for byte in raw)
    assert bool(_is_plain(array(raw), 1, len(raw))) == expected


@pytest.mark.parametrize("size", range(8, 26))
def test_one_byte_that_is_not_plain_is_found_wherever_it_stands(size: int) -> None:
    for at in range(size):
        for byte in (0, 31, 34, 92, 128, 255):
            raw = bytearray(b"x" * size)
            raw[at] = byte
            assert not _is_plain(array(bytes(raw)), 1, size)


@given(st.binary(max_size=40))
def test_base64_is_padded(raw: bytes) -> None:
    out = np.zeros(80, dtype=np.uint8)
    end = write_base64(array(raw), 1, len(raw), out, 0)
    assert out[:end].tobytes() == b'"' + base64.b64encode(raw) + b'"'


@given(st.binary(min_size=16, max_size=16))
@example(b"\xff" * 16)
def test_a_uuid_is_url_safe_and_not_padded(raw: bytes) -> None:
    out = np.zeros(80, dtype=np.uint8)
    end = write_uuid(array(raw), 1, out, 0)
    assert out[:end].tobytes() == b'"' + base64.urlsafe_b64encode(raw)[:22] + b'"'


def bits_of(value: float) -> int:
    return int(struct.unpack(">q", struct.pack(">d", value))[0])


@given(st.floats() | st.floats(1e-5, 1e9))
@example(5e-324)
@example(2.2250738585072014e-308)
@example(1e23)
@example(9007199254740993.0)
def test_a_double_is_written_as_java_does(value: float) -> None:
    doubles, out = new_doubles(), np.zeros(80, dtype=np.uint8)
    bits = bits_of(value)
    if bits != 0:
        assert _write_double(doubles, bits, out, 0) == -1
    learn_double(doubles, bits)
    end = _write_double(doubles, bits, out, 0)
    assert out[:end].tobytes().decode() == twin.double_text(value) == java_double(value)


def test_doubles_in_one_place_of_the_table_replace_each_other() -> None:
    doubles, out = new_doubles(), np.zeros(80, dtype=np.uint8)
    for value in [*np.linspace(1, 3, 1000).tolist(), math.inf, -math.inf, math.nan, -0.0]:
        learn_double(doubles, bits_of(value))
        end = _write_double(doubles, bits_of(value), out, 0)
        assert out[:end].tobytes().decode() == java_double(value)
