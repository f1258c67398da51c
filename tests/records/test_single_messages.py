from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
import kafkajit.testing as kt
from kafkajit.records.batches import SingleMessages, frame
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.single_messages import read_single_messages
from kafkajit.storage.source import as_bytes

EVERYTHING = Wanted(offset=True, timestamp=True, fields=True, key=True, value=True)
FIELDS = st.none() | st.binary(max_size=100)
MESSAGES = st.lists(
    st.builds(
        lambda key, value, timestamp, offset, magic: kt.message(
            kt.Record(key=key, value=value, timestamp=timestamp), offset=offset, magic=magic
        ),
        FIELDS,
        FIELDS,
        st.integers(-1, 2**62),
        st.integers(0, 2**62),
        st.sampled_from([0, 1]),
    ),
    min_size=1,
    max_size=20,
)


def read_first(log: bytes, *, check_crcs: bool = True, wanted: Wanted = EVERYTHING) -> int:
    """How many messages one pass reads."""
    framing = frame(as_bytes(log))
    assert isinstance(framing.batches, SingleMessages)
    places = framing.batches.position, framing.batches.end
    _, count = read_single_messages(as_bytes(log), *places, ColumnMemory(wanted), check_crcs)
    return count


@given(MESSAGES)
def test_one_pass_reads_what_the_slow_twin_reads(messages: list[bytes]) -> None:
    log = b"".join(messages)
    framing = frame(as_bytes(log))
    columns, count = read_single_messages(
        as_bytes(log),
        framing.batches.position,
        framing.batches.end,
        ColumnMemory(EVERYTHING),
        True,
    )
    batches, _ = reference.read_batches(log)
    records = [record for batch in batches for record in reference.read_messages(batch)]
    assert count == len(messages) == len(records)
    for row, record in enumerate(records):
        assert columns.offset[row] == columns.fields["offset"][row] == record.offset
        assert columns.timestamp[row] == columns.fields["timestamp"][row] == record.timestamp
        for name, column in (("key", columns.key), ("value", columns.value)):
            expected = getattr(record, name)
            held = column.data[column.offsets[row] : column.offsets[row + 1]].tobytes()
            assert held == (expected or b"")
            is_there = column.validity[row >> 3] >> (row & 7) & 1
            assert bool(is_there) == (expected is not None)
            size = columns.fields[f"{name}Size"][row]
            start = columns.fields[name][row]
            assert size == (-1 if expected is None else len(expected))
            assert log[start : start + max(size, 0)] == (expected or b"")


@given(MESSAGES, st.data())
def test_one_pass_stops_at_the_first_wrong_checksum(
    messages: list[bytes], data: st.DataObject
) -> None:
    bad = data.draw(st.integers(0, len(messages) - 1))
    message = bytearray(messages[bad])
    message[-1] ^= 1  # of the value, or of its size
    log = b"".join([*messages[:bad], bytes(message), *messages[bad + 1 :]])
    assert read_first(log) == bad


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("column", ["key", "value"])
def test_one_pass_stops_at_a_size_that_leads_out_of_a_message(magic: int, column: str) -> None:
    good = kt.message(kt.Record(b"key", b"value"), magic=magic)
    at = (18 if magic == 0 else 26) + (7 if column == "value" else 0)
    size = {"key": 3, "value": 5}[column]
    assert good[at : at + 4] == size.to_bytes(4)
    for wrong in (size + 20, 2**31 - 1):
        bad = good[:at] + wrong.to_bytes(4) + good[at + 4 :]
        assert read_first(good + bad + good, check_crcs=False) == 1
    assert read_first(good + good, check_crcs=False) == 2


def test_a_message_too_small_for_its_fields_is_not_read() -> None:
    good = kt.message(kt.Record(b"key", b"value"))
    for size in range(14, 22):
        bad = bytes(8) + size.to_bytes(4) + bytes(4) + b"\1" + bytes(size - 5)
        log = good + bad
        assert read_first(log, check_crcs=False) == 1


def test_columns_that_are_too_small_are_made_larger() -> None:
    memory = ColumnMemory(EVERYTHING)
    small = kt.message(kt.Record(b"k", b"v" * 3)) * 50
    large = kt.message(kt.Record(b"k", b"v" * 3000)) * 50
    for log in (small, large):
        batches = frame(as_bytes(log)).batches
        columns, count = read_single_messages(
            as_bytes(log), batches.position, batches.end, memory, True
        )
        assert count == 50
        assert columns.value.offsets[50] == (3 if log is small else 3000) * 50


def test_headers_of_messages_are_read_when_someone_asks_for_them() -> None:
    log = b"".join(kt.message(kt.Record(b"k", b"v"), offset=i, magic=i % 2) for i in range(6))
    batches = frame(as_bytes(log)).batches
    part = batches[2:5]
    assert part.end.tolist() == [position + size for position, size in places(log)][2:5]
    assert part.field("baseOffset").tolist() == [2, 3, 4]
    assert part[np.array([True, False, True])].field("magic").tolist() == [0, 0]
    assert part.is_message.all()


def places(log: bytes) -> list[tuple[int, int]]:
    found, position = [], 0
    while position < len(log):
        size = 12 + int.from_bytes(log[position + 8 : position + 12])
        found.append((position, size))
        position += size
    return found


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("columns", [None, ["offset", "value"]])
def test_every_mode_reads_them(mode: str, columns: list[str] | None) -> None:
    log = b"".join(kt.message(kt.Record(b"k", b"%d" % i), offset=i) for i in range(10))
    table = kafkajit.read_records(log, mode=mode, columns=columns)
    assert table["value"].to_pylist() == [b"%d" % i for i in range(10)]


def test_a_bad_message_is_left_out_and_those_behind_it_are_read() -> None:
    messages = [kt.message(kt.Record(b"k", b"%d" % i), offset=i) for i in range(10)]
    messages[4] = messages[4][:-1] + b"x"
    log = b"".join(messages)
    table = kafkajit.read_records(log, mode="DROPMALFORMED", columns=["offset"])
    assert table["offset"].to_pylist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    with pytest.raises(kafkajit.CorruptRecordError, match="stored crc"):
        kafkajit.read_records(log)
