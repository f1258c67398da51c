"""`printed`, compared with Kafka's output for every record of the payloads."""

from __future__ import annotations

import re

import pytest
import reference
from corpus import DATA

from kafkajit.errors import InvalidRecordError
from kafkajit.topics import TOPICS
from kafkajit.topics.kinds import topic_kind
from kafkajit.topics.single import printed, read_key, read_metadata, read_value

LOG = "00000000000000000000.log"
LINE = re.compile(
    r"^\| offset: (\d+) .* headerKeys: \[\](?: key: (.*?))?(?: payload: (.*))?$", re.M
)


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("number", [0, 1])
def test_a_record_alone_is_printed_as_kafka_prints_it(name: str, number: int) -> None:
    folder = DATA / "payloads" / f"{TOPICS[name]}-{number}"
    kafka = LINE.findall((folder / f"{LOG}.decoded.out").read_text("utf-8"))
    records = [
        record
        for batch in reference.read_batches((folder / LOG).read_bytes())[0]
        for record in reference.read_records(batch)
    ]
    assert len(kafka) == len(records) > 0
    kind = topic_kind(name)
    for (offset, key, payload), record in zip(kafka, records, strict=True):
        stated = printed(kind, int(offset), record.key, record.value)
        assert stated == (key or None, payload or None)


@pytest.mark.parametrize("name", [name for name in TOPICS if topic_kind(name).has_keys])
def test_a_coordinators_record_without_a_key_is_an_error(name: str) -> None:
    with pytest.raises(InvalidRecordError, match=r"at offset 5 .* had a missing key"):
        printed(topic_kind(name), 5, None, b"")


def test_the_position_of_what_is_malformed_counts_from_the_payloads_start() -> None:
    offsets, metadata = topic_kind("offsets"), topic_kind("cluster_metadata")
    assert read_key(offsets, b"\0\2\0\5abc").position == 4
    assert read_value(offsets, b"\0\1", b"\0\3" + bytes(11)).position == 10
    record = b"\1\2\0\2a" + bytes(16) + b"\0"
    assert read_metadata(metadata, record + b"!!", any_version=False).position == len(record)
