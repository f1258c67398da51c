"""Every message of the table, compared with the slow twin."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import messages_twin as twin
import numpy as np
import pytest
import reference
from corpus import DATA, NO_JIT
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkajit.errors import InvalidRecordError
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.topics import TOPICS
from kafkajit.topics.message import POSITION, learn, new_tables, version_row, write_message
from kafkajit.topics.message_errors import java_complaint
from kafkajit.topics.programs import programs
from kafkajit.topics.raft import raft_json, raft_message
from kafkajit.topics.status import DONE, FULL, MALFORMED, NEW_DOUBLE

TABLE = twin.table()
COMPILED = programs(*TABLE)
MESSAGES = [
    (message, version)
    for types in TABLE.values()
    for type_ in types.values()
    for message in type_.messages.values()
    for version in range(message.lowest - 1, message.highest + 2)
]
MUTANTS = 5 if NO_JIT else 150
SEED = 411


def read(name: str, version: int, data: bytes, room: int = 1 << 14) -> tuple[int, str, int]:
    """(status, JSON or Java's complaint, position), with other bytes around the message."""
    # a read outside of the message finds plausible lengths and letters
    content = np.frombuffer(b"\1\1\1\1\1aaa" * 8 + data + b"\1\1\1\1aaaa" * 8, dtype=np.uint8)
    tables = new_tables(COMPILED)
    row = version_row(COMPILED.rows, COMPILED.messages[name], version)
    while True:
        out = np.full(room + WIDE, 0xEE, dtype=np.uint8)
        status, end = write_message(tables, content, 64, 64 + len(data), row, out[:room], 0)
        assert (out[room:] == 0xEE).all(), "written behind the end"
        if status == NEW_DOUBLE:
            learn(tables)
        elif status == FULL:
            room *= 4
        else:
            break
    position = int(tables.scratch[POSITION]) - 64
    if status == MALFORMED:
        return int(status), java_complaint(COMPILED, tables.scratch, version), position
    assert status == DONE
    return int(status), out[:end].tobytes().decode(), position


def check(message: twin.Message, version: int, data: bytes) -> bool:
    """Compare one message with the twin; whether it is well-formed."""
    status, text, position = read(message.name, version, data)
    expected = complaint = None
    try:
        expected = twin.message_json(message, version, data)
    except twin.Malformed as malformed:
        complaint = str(malformed)
    if complaint is None:
        assert (status, (text, position)) == (DONE, expected)
        return True
    assert status == MALFORMED
    # for a newer version Java names the struct's class, which the table does not have
    assert text == complaint or complaint.startswith("Can't read")
    assert 0 <= position <= len(data)
    return False


@functools.cache
def payloads() -> dict[str, list[tuple[int, bytes]]]:
    """Messages that Kafka's own classes wrote, with their versions, by the message's name."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for topic, name in TOPICS.items():
        for record in records(DATA / "payloads" / f"{name}-0"):
            for message, version, data in of_record(topic, record):
                found.setdefault(message, []).append((version, data))
    return found


def records(folder: Path) -> Iterator[reference.Record]:
    log = (folder / "00000000000000000000.log").read_bytes()
    for batch in reference.read_batches(log)[0]:
        yield from reference.read_records(batch)


def of_record(topic: str, record: reference.Record) -> Iterator[tuple[str, int, bytes]]:
    assert record.value is not None
    if record.key is None:
        _, type_id, version = record.value[:3]
        yield TABLE[topic][type_id].messages["value"].name, version, record.value[3:]
        return
    (type_id,), (version,) = (struct.unpack_from(">h", raw) for raw in (record.key, record.value))
    messages = TABLE[topic][type_id].messages
    yield messages["key"].name, 0, record.key[2:]
    yield messages["value"].name, version, record.value[2:]


by_message = pytest.mark.parametrize(
    "name", sorted({message.name for message, _ in MESSAGES if message.name in payloads()})
)


def message_of(name: str) -> twin.Message:
    return next(message for message, _ in MESSAGES if message.name == name)


@by_message
def test_what_kafka_wrote_is_read_in_every_version(name: str) -> None:
    message = message_of(name)
    seen = {version for version, _ in payloads()[name]}
    assert seen == set(range(message.lowest, message.highest + 1))
    for version, data in payloads()[name]:
        assert check(message, version, data)


@by_message
def test_a_changed_message_is_read_as_the_twin_reads_it(name: str) -> None:
    message, chance = message_of(name), random.Random(f"{SEED} {name}")
    for version, data in payloads()[name]:
        for _ in range(MUTANTS // 3):
            check(message, version + chance.choice([0, 0, 0, 1, -1]), mutant(data, chance))


def mutant(data: bytes, chance: random.Random) -> bytes:
    """The data, cut, or with some bytes changed, removed or inserted."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(changed) + 1)
        some = bytes(chance.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, 0xED, 34]) for _ in range(2))
        match chance.randrange(5):
            case 0:
                del changed[at:]
            case 1:
                changed[at : at + 1] = some[:1]
            case 2:
                changed[at:at] = some
            case 3:
                del changed[at : at + 1]
            case 4:
                changed[at : at + 4] = chance.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
    return bytes(changed)


@pytest.mark.thorough
@settings(deadline=None, max_examples=10 if NO_JIT else 600)
@given(st.sampled_from(MESSAGES), st.binary(max_size=60))
def test_any_bytes_are_a_message_or_malformed(
    message: tuple[twin.Message, int], data: bytes
) -> None:
    check(*message, data)


@by_message
def test_a_small_buffer_is_full_before_it_is_overrun(name: str) -> None:
    message = message_of(name)
    version, data = payloads()[name][-1]
    for room in range(200, 1200, 250 if NO_JIT else 13):
        assert read(name, version, data, room) == read(name, version, data), message


def test_a_string_longer_than_the_buffer_is_written_in_a_larger_one() -> None:
    data = struct.pack(">h", 30_000) + b'"' * 30_000
    status, text, _ = read("ShareGroupMetadataKey", 0, data, 400)
    assert (status, text) == (DONE, '{"groupId":"' + '\\"' * 30_000 + '"}')


@pytest.mark.parametrize("size", [0x7FFF, 0x8000])
def test_a_compact_string_is_no_longer_than_a_plain_one_can_be(size: int) -> None:
    length = bytes([(size + 1) & 0x7F | 0x80, (size + 1) >> 7 & 0x7F | 0x80, (size + 1) >> 14])
    data = length + b"x" * size + bytes(16) + b"\0"
    assert check(message_of("TopicRecord"), 0, data) == (size < 0x8000)


def test_a_tag_that_stands_among_plain_fields_is_found_wherever_it_lies() -> None:
    """PartitionRecord's tags 1 and 2, of version 2, come last in its JSON; tag 0 does not."""
    plain = bytes(4) + bytes(16) + b"\1\1\1\1" + bytes(12) + b"\1"
    tags = b"\3" + b"\2\5\2\0\0\0\7" + b"\0\1\1" + b"\1\1\1"
    status, text, _ = read("PartitionRecord", 2, plain + tags)
    assert status == DONE
    assert '"leader":0,"leaderRecoveryState":1,"leaderEpoch":0' in text
    assert text.endswith('"directories":[],"eligibleLeaderReplicas":[],"lastKnownElr":[7]}')


def test_the_default_of_a_tag_is_not_printed_even_if_it_was_written() -> None:
    value = bytes(4) + b"\1" + b"\0" + b"\x08" + bytes(8)
    assert read("ConsumerGroupMetadataValue", 0, value)[1] == '{"epoch":0}'
    value = bytes(4) + b"\1" + b"\0" + b"\x08" + bytes(7) + b"\7"
    assert read("ConsumerGroupMetadataValue", 0, value)[1] == '{"epoch":0,"metadataHash":7}'


def test_of_a_tag_that_comes_twice_the_last_counts() -> None:
    value = bytes(4) + b"\2" + b"\0\x08" + bytes(7) + b"\7" + b"\0\x08" + bytes(8)
    assert read("ConsumerGroupMetadataValue", 0, value)[1] == '{"epoch":0}'


def test_a_struct_like_the_default_is_printed_for_its_unknown_tags() -> None:
    member = b"\0\0" + b"\1\1" + b"\1" + b"\0" + bytes(4) + b"\0"
    plain = member + b"\1" + b"\0\7" + b"\1" + bytes(4) + b"\1" + b"\0"
    name = "ConsumerGroupMemberMetadataValue"
    assert "classicMemberMetadata" not in read(name, 0, plain)[1]
    unknown = member + b"\1" + b"\0\7" + b"\1" + bytes(4) + b"\1" + b"\1" + b"\x63\0"
    assert "classicMemberMetadata" in read(name, 0, unknown)[1]


@pytest.mark.parametrize("cut", range(15))
def test_a_control_record_cut_anywhere_is_an_error(cut: int) -> None:
    value = b"\0\0" + b"\0\0\0\1" + b"\2" + b"\0\0\0\1\0" + b"\1" + b"\0\0"
    assert raft_json(2, value).startswith('{"version":0,"leaderId":1,"voters":[{"voterId":1}]')
    with pytest.raises(InvalidRecordError, match="cut or malformed"):
        raft_json(2, value[: min(cut, len(value) - 2)])


def test_what_a_control_record_lacks_of_the_version_it_names_has_its_default() -> None:
    value = b"\0\1" + b"\0\0\0\1" + b"\2" + b"\0\0\0\1\0" + b"\1" + b"\0"
    voter = '{"voterId":1,"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}'
    expected = f'{{"version":1,"leaderId":1,"voters":[{voter}],"grantingVoters":[]}}'
    assert raft_json(2, value) == expected


def test_a_large_control_record_is_written_whole() -> None:
    value = b"\0\0" + b"\0\0\0\1" + b"\xf5\x03" + b"\0\0\0\1\0" * 500 + b"\1" + b"\0"
    assert raft_json(2, value).count('{"voterId":1}') == 500


def test_voters_of_a_quorum_are_printed_as_kafka_does() -> None:
    endpoint = b"\x0bCONTROLLER" + b"\x0a127.0.0.1" + b"\x23\x85" + b"\0"
    voter = b"\0\0\0\x01" + bytes(16) + b"\x02" + endpoint + b"\0\0\0\x01\0" + b"\0"
    assert raft_message(b"\0\0\0\x06", b"\0\0" + b"\x02" + voter + b"\0") == (
        'KRaftVoters {"version":0,"voters":[{"voterId":1,'
        '"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","endpoints":'
        '[{"name":"CONTROLLER","host":"127.0.0.1","port":9093}],'
        '"kRaftVersionFeature":{"minSupportedVersion":0,"maxSupportedVersion":1}}]}'
    )
