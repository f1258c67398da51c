"""The table of schemas, parsed by kafkajit and by the twin."""

from __future__ import annotations

import messages_twin as twin
import pytest

from kafkajit.topics.schemas import Field, record_types

TABLE = twin.table()


def words_of(field: Field) -> tuple[str, str, int | None]:
    return (
        field.name,
        "[]" * field.is_array + field.type + "?" * field.is_nullable,
        field.tag,
    )


def check(fields: tuple[Field, ...], stated: list, lowest: int = 0) -> None:
    assert len(fields) == len(stated)
    for field, (words, below) in zip(fields, stated, strict=True):
        tag = twin.said(words, "tag")
        assert words_of(field) == (words[0], words[1], None if tag is None else int(tag))
        versions = [version for version in range(lowest, 20) if twin.is_there(words, version)]
        assert list(field.versions) == [v for v in versions if v <= field.versions[-1]]
        check(field.fields, below, field.versions[0])


@pytest.mark.parametrize("topic", TABLE)
def test_the_table_is_read_as_the_twin_reads_it(topic: str) -> None:
    types = record_types(topic)
    assert types.keys() == TABLE[topic].keys()
    for number, stated in TABLE[topic].items():
        messages = {"key": types[number].key, "value": types[number].value}
        assert types[number].name == stated.name
        for role, message in messages.items():
            if message is None:
                assert role not in stated.messages
                continue
            assert message.name == stated.messages[role].name
            assert message.versions[0] == stated.messages[role].lowest
            assert message.versions[-1] == stated.messages[role].highest
            check(message.fields, stated.messages[role].fields)


def test_defaults_are_json() -> None:
    fields = {f.name: f for f in record_types("offsets")[5].value.fields}
    assert fields["rebalanceTimeoutMs"].default == "-1"
    assert fields["subscribedTopicNames"].default == "[]"
    expected = '{"sessionTimeoutMs":0,"supportedProtocols":[]}'
    assert fields["classicMemberMetadata"].default == expected
    assert record_types("cluster_metadata")[3].value.fields[-1].default == "null"
