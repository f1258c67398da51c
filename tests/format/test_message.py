"""Kafka's generated messages, in their flexible encoding."""

from __future__ import annotations

import pytest

from kafkajit.errors import InvalidRecordError
from kafkajit.format.message import ArrayOf, Fields, message_json, read_message
from kafkajit.records.control_records import raft_message

VOTER: Fields = [("id", "int32"), ("name", "string"), ("port", "uint16"), ("directory", "uuid")]
MESSAGE: Fields = [("version", "int16"), ("voters", ArrayOf(VOTER)), ("range", [("max", "int64")])]


def test_numbers_strings_arrays_structs_and_uuids_are_read_in_order() -> None:
    voter = b"\0\0\0\x07" + b"\x03hi" + b"\xff\xff" + bytes(range(16)) + b"\0"
    data = b"\0\x01" + b"\x03" + voter + voter + b"\xff" * 8 + b"\0" + b"\0"
    decoded = {"id": 7, "name": "hi", "port": 65535, "directory": "AAECAwQFBgcICQoLDA0ODw"}
    assert read_message(data, MESSAGE) == {
        "version": 1,
        "voters": [decoded, decoded],
        "range": {"max": -1},
    }


def test_tagged_fields_are_stepped_over() -> None:
    fields: Fields = [("a", [("x", "int8")]), ("b", "int8")]
    data = b"\x01" + b"\x02" + b"\x00\x01A" + b"\x81\x01\x02BB" + b"\x02" + b"\0"
    assert read_message(data, fields) == {"a": {"x": 1}, "b": 2}


def test_a_null_string_is_none() -> None:
    assert read_message(b"\0\0", [("s", "string")]) == {"s": None}


@pytest.mark.parametrize("cut", range(30))
def test_a_message_cut_anywhere_is_an_error(cut: int) -> None:
    voter = b"\0\0\0\x07" + b"\x03hi" + b"\0\1" + bytes(16) + b"\0"
    data = b"\0\x01" + b"\x02" + voter + bytes(8) + b"\0" + b"\0"
    assert read_message(data, MESSAGE)["version"] == 1
    with pytest.raises(InvalidRecordError, match="cut or malformed"):
        read_message(data[:cut], MESSAGE)


def test_json_has_no_spaces_and_keeps_text_as_it_is() -> None:
    assert message_json({"a": [{"b": "é"}]}) == '{"a":[{"b":"é"}]}'


def test_voters_of_a_quorum_are_printed_as_kafka_does() -> None:
    endpoint = b"\x0bCONTROLLER" + b"\x0a127.0.0.1" + b"\x23\x85" + b"\0"
    voter = b"\0\0\0\x01" + bytes(16) + b"\x02" + endpoint + b"\0\0\0\x01\0" + b"\0"
    assert raft_message(b"\0\0\0\x06", b"\0\0" + b"\x02" + voter + b"\0") == (
        'KRaftVoters {"version":0,"voters":[{"voterId":1,'
        '"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","endpoints":'
        '[{"name":"CONTROLLER","host":"127.0.0.1","port":9093}],'
        '"kRaftVersionFeature":{"minSupportedVersion":0,"maxSupportedVersion":1}}]}'
    )
