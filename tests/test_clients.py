"""What clients other than Kafka's own wrote, in every format and codec, is what they were given.

tests/broker/clients.py made the segments; tests/cli/test_dump_log.py holds dump-log against what
Kafka prints of each.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
import reference
from corpus import DATA, rows_of

import kafkajit
import kafkajit.testing as kt
from kafkajit.format.ranges import Range
from kafkajit.reader import SegmentReader
from kafkajit.schema import record_schema
from kafkajit.storage.source import Source
from kafkajit.walk.selection import Selection

CLIENTS = DATA / "clients"
LOG = "00000000000000000000.log"
MAGICS = {"v0": 0, "v1": 1, "v2": 2}

# The codecs that each client writes in each format: v0 and v1 have no zstd, and aiokafka and sarama
# refuse lz4 in v0.
WRITTEN = {
    "kafka-python": ("none gzip snappy lz4", "none gzip snappy lz4", "none gzip snappy lz4 zstd"),
    "aiokafka": ("none gzip snappy", "none gzip snappy lz4", "none gzip snappy lz4 zstd"),
    "librdkafka": ("none gzip snappy lz4", "none gzip snappy lz4", "none gzip snappy lz4 zstd"),
    "franz-go": ("none gzip snappy lz4", "none gzip snappy lz4", "none gzip snappy lz4 zstd"),
    "sarama": ("none gzip snappy", "none gzip snappy lz4", "none gzip snappy lz4 zstd"),
}
LOGS = [
    (client, version, codec)
    for client, formats in WRITTEN.items()
    for version, codecs in zip(MAGICS, formats, strict=True)
    for codec in codecs.split()
]
# What brokers of 0.9 would have put right: they compressed sets of v0 anew, with the log's offsets.
OFFSETS_IN_SETS_OF_V0 = {
    "librdkafka": [*range(12), 0],
    "franz-go": [*range(12), 0],
    "sarama": [0] * 13,
}

by_log = pytest.mark.parametrize(
    ("client", "version", "codec"), LOGS, ids=["-".join(names) for names in LOGS]
)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _record(given: dict[str, Any]) -> kt.Record:
    value = _bytes(given["value"])
    return kt.Record(
        key=_bytes(given["key"]),
        value=None if value is None else value * given.get("repeated", 1),
        headers=[(header["key"], _bytes(header["value"])) for header in given["headers"]],
        timestamp=given["timestamp"],
    )


GIVEN = [_record(given) for given in json.loads((CLIENTS / "records.json").read_text())]


def rows_given(version: str, records: list[kt.Record]) -> list[dict[str, Any]]:
    """The rows that a log of these records has to give."""
    return [
        {
            "offset": offset,
            "timestamp": -1 if version == "v0" else record.timestamp,
            "timestampType": -1 if version == "v0" else kt.CREATE_TIME,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in record.headers]
            if version == "v2" and record.headers
            else None,
        }
        for offset, record in enumerate(records)
    ]


def rows_read(log: bytes) -> list[dict[str, Any]]:
    columns = ["offset", "timestamp", "timestampType", "key", "value", "headers"]
    return rows_of(kafkajit.read_records(log, columns=columns))


@by_log
def test_records_are_those_that_the_client_sent(client: str, version: str, codec: str) -> None:
    log = (CLIENTS / f"{client}-{version}-{codec}" / LOG).read_bytes()
    expected = rows_given(version, GIVEN[:-1] if codec == "none" else GIVEN)
    if version == "v0" and codec != "none" and client in OFFSETS_IN_SETS_OF_V0:
        for row, offset in zip(expected, OFFSETS_IN_SETS_OF_V0[client], strict=True):
            row["offset"] = offset
    assert rows_read(log) == expected
    assert rows_of(kafkajit.read_records(log)) == reference.rows(log)


@by_log
def test_headers_name_format_and_codec(client: str, version: str, codec: str) -> None:
    log = (CLIENTS / f"{client}-{version}-{codec}" / LOG).read_bytes()
    batches = kafkajit.read_record_batches(log)
    assert set(batches["magic"].to_pylist()) == {MAGICS[version]}
    assert set(batches["compressionType"].to_pylist()) == {codec}
    assert set(batches["isValid"].to_pylist()) == {True}
    entries = {"v2": 1}.get(version, 12) if codec == "none" else 2
    assert batches.num_rows == entries
    assert kafkajit.valid_bytes(log) == len(log)


@pytest.mark.parametrize("client", WRITTEN)
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_a_set_is_not_judged_by_the_timestamp_around_it(client: str, codec: str) -> None:
    # Kafka's is the largest inside. Here it is the first record's, or 0.
    log = (CLIENTS / f"{client}-v1-{codec}" / LOG).read_bytes()
    selection = Selection(timestamps=Range(GIVEN[-2].timestamp))
    parts = SegmentReader(Source(log), selection=selection).records(record_schema(["offset"]))
    assert [offset for rows in parts for offset in rows["offset"].to_pylist()] == [11, 12]


def test_every_client_is_there_in_every_format_and_codec_with_what_kafka_prints() -> None:
    assert {path.name for path in CLIENTS.iterdir() if path.is_dir()} == {
        "-".join(names) for names in LOGS
    }
    for names in LOGS:
        folder = CLIENTS / "-".join(names)
        assert (folder / f"{LOG}.batches.out").exists()
        assert any(folder.glob(f"{LOG}.data.[os]*"))
        assert not any(folder.glob("*.exit"))  # Kafka reads all of them


# The first bytes of a compressed batch, as each client writes it: the variety that names promise.
FRAMES = {
    "snappy": {
        "kafka-python": b"\x82SNAPPY\0\0\0\0\1\0\0\0\1",
        "aiokafka": b"\x82SNAPPY\0\0\0\0\1\0\0\0\1",
        "sarama": b"\x82SNAPPY\0\0\0\0\1\0\0\0\1",
        "librdkafka": b"\xad\x06",  # raw: the length of the records
        "franz-go": b"\xad\x06",
    },
    # Flags and the size of blocks: 0x08 adds the length, 0x10 and 0x04 add checksums.
    "lz4": {
        "kafka-python": b"\x04\x22\x4d\x18\x68\x40",
        "aiokafka": b"\x04\x22\x4d\x18\x70\x40",
        "sarama": b"\x04\x22\x4d\x18\x64\x40",
        "librdkafka": b"\x04\x22\x4d\x18\x60\x40",
        "franz-go": b"\x04\x22\x4d\x18\x64\x70",
    },
}


@pytest.mark.parametrize(
    ("codec", "client"), [(codec, client) for codec in FRAMES for client in FRAMES[codec]]
)
def test_clients_frame_what_they_compress_in_their_own_way(codec: str, client: str) -> None:
    (batch, _), _ = reference.read_batches((CLIENTS / f"{client}-v2-{codec}" / LOG).read_bytes())
    assert batch.payload.startswith(FRAMES[codec][client])


def _little_endian_versions(payload: bytes) -> bytes:
    """As Redpanda wrote them: the frame's versions in its machine's order, its sizes in Java's."""
    _, compress = kt.COMPRESSORS["snappy"]
    return compress(payload).replace(b"\0\0\0\1\0\0\0\1", b"\1\0\0\0\1\0\0\0", 1)


@pytest.mark.parametrize("version", MAGICS)
@pytest.mark.parametrize(
    "form", ["snappy", "snappy-raw", "snappy-little-endian", "snappy-little-endian-versions"]
)
def test_every_form_of_snappy_is_read_in_every_format(
    version: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        kt.COMPRESSORS, "snappy-little-endian-versions", (2, _little_endian_versions)
    )
    if version == "v2":
        log = kt.batch(GIVEN, codec=form)
    else:
        log = kt.message_set(GIVEN, magic=MAGICS[version], codec=form)
    assert rows_read(log) == rows_given(version, GIVEN)
