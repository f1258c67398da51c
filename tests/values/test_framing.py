"""The names of schemas in front of values, as one finds them who takes a value at a time."""

from __future__ import annotations

import struct

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from kafkajit.values.framing import (
    APICURIO8,
    AUTO,
    BARE,
    CONFLUENT,
    GLUE,
    GUID,
    HEADER_SIZES,
    HEADERS,
    SINGLE_OBJECT,
    UNFRAMED,
    SchemaKey,
    places,
    split_frames,
)

_FRAMINGS = (AUTO, HEADERS, BARE, CONFLUENT, APICURIO8, GLUE, SINGLE_OBJECT)


def key_of(value: bytes, framing: int) -> SchemaKey:
    """The key that a value names, byte by byte."""
    if framing == BARE:
        return SchemaKey(BARE, 0)
    if framing == HEADERS and len(value) >= 17 and value[0] == 1:
        high, number = struct.unpack(">qq", value[1:17])
        return SchemaKey(GUID, number, high)
    is_found = framing in (AUTO, HEADERS)
    if is_found and len(value) < 5:
        return SchemaKey(UNFRAMED, 0)
    has_long_id = len(value) >= 9 and value[1:5] == bytes(4)
    if value[:1] == b"\0" and len(value) >= 9 and (framing == APICURIO8 or is_found & has_long_id):
        return SchemaKey(APICURIO8, struct.unpack(">q", value[1:9])[0])
    if value[:1] == b"\0" and len(value) >= 5 and (framing == CONFLUENT or is_found):
        return SchemaKey(CONFLUENT, struct.unpack(">i", value[1:5])[0])
    if value[:2] == b"\3\0" and len(value) >= 18 and (framing == GLUE or is_found):
        high, number = struct.unpack(">qq", value[2:18])
        return SchemaKey(GLUE, number, high)
    if value[:2] == b"\xc3\1" and len(value) >= 10 and (framing == SINGLE_OBJECT or is_found):
        return SchemaKey(SINGLE_OBJECT, struct.unpack("<q", value[2:10])[0])
    return SchemaKey(UNFRAMED, 0)


_IDS = st.sampled_from([b"\0\0\0\0", b"\0\0\0\7", b"\0\0\0\x08", b"\xff\xff\xff\xff"])
_HEADS = st.one_of(
    st.builds(bytes.__add__, st.just(b"\0"), _IDS),
    st.builds(lambda id_: b"\0\0\0\0\0" + id_, _IDS),
    st.builds(lambda id_: b"\1" + 4 * id_, _IDS),
    st.builds(lambda id_: b"\3\0" + 4 * id_, _IDS),
    st.builds(lambda id_: b"\xc3\1" + 2 * id_, _IDS),
    st.binary(max_size=3),
)
_VALUES = st.builds(bytes.__add__, _HEADS, st.sampled_from([b"", b"abc", bytes(4), b"abcdefgh"]))


@given(st.lists(st.none() | _VALUES, max_size=40), st.sampled_from(_FRAMINGS))
@example([bytes(8), bytes(9)], AUTO)  # an id 0 has four bytes only if there is no room for eight
def test_each_value_names_its_own_schema(values: list[bytes | None], framing: int) -> None:
    frames = split_frames(*places(pa.array(values, pa.binary())), framing)
    for row, value in enumerate(values):
        if value is not None:
            key = frames.keys[frames.numbers[row]]
            assert key == key_of(value, framing)
            assert frames.body(row) == value[HEADER_SIZES[key.framing] :]
    assert len(set(frames.keys)) == len(frames.keys)
