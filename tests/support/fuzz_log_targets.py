"""Targets of tests/support/coverage_fuzz.py: logs, the files beside them, and internal topics.

A target takes any bytes. It raises if a reader gives something else than the slow twin, or any
other error than kafkajit's. Its seeds are small sound inputs.
"""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import messages_twin
import pyarrow as pa
import reference
import text_twins
from corpus import DATA
from crc32c import crc32c
from fuzz import our_decompress
from fuzz_checks import check, check_gaps
from mutations import repaired, seeds
from payloads_twin import expected_payload, payload_rows

import kafkajit
from kafkajit import testing as kt
from kafkajit.index.offset_index import OffsetIndex, parse_offset_index
from kafkajit.index.time_index import TimeIndex, parse_time_index
from kafkajit.index.transaction_index import parse_transaction_index
from kafkajit.index.verify import verify_offset_index, verify_time_index
from kafkajit.index.verify_transactions import verify_transaction_index
from kafkajit.log.remote_log_metadata import noted_segments
from kafkajit.places.locations import find_segments
from kafkajit.state.checkpoints import parse_offsets
from kafkajit.state.leader_epochs import parse_leader_epochs
from kafkajit.state.meta_properties import parse_meta_properties
from kafkajit.state.partition_metadata import parse_partition_metadata
from kafkajit.state.producer_snapshot import parse_producer_snapshot
from kafkajit.state.quorum_state import parse_quorum_state
from kafkajit.storage.source import Source, as_bytes
from kafkajit.text.log_dump import LogDump, Style
from kafkajit.text.sidecar_dump import (
    OffsetIndexDump,
    TimeIndexDump,
    snapshot_text,
    transaction_index_text,
)
from kafkajit.topics import TOPICS
from kafkajit.topics.kinds import topic_kind
from kafkajit.topics.structs import decode_payloads

Check = Callable[[bytes], None]
Target = tuple[Check, Callable[[], list[bytes]]]

ROOM = 1 << 16  # the largest decompressed batch: interpreted kernels need a second for a MiB
CODECS = {number: compress for number, compress in kt.COMPRESSORS.values() if number}
LOG = b"".join(
    kt.batch([kt.Record(b"k", b"v", timestamp=1_700_000_000_000 + n)] * 2, base_offset=100 + 2 * n)
    for n in range(6)
)


def _log_of(data: bytes) -> bytes:
    """A log with right checksums if the first byte is even, or else as the input has it."""
    return data[1:] if data[:1] > b"\x00" and data[0] % 2 else repaired(data[1:])


def segment(data: bytes) -> None:
    """Read a log in every way; compare its rows with the reference's."""
    log = _log_of(data)
    check(log, ROOM)
    check_gaps(log, ROOM)
    limit = {"max_decompressed_bytes": ROOM}
    readers: list[Callable[[], Any]] = [
        lambda: kafkajit.read_records(log, check_crcs=False, **limit),
        lambda: kafkajit.read_records(
            log, columns=["key", "headers"], binary_view=True, mode="DROPMALFORMED", **limit
        ).to_pylist(),
        lambda: kafkajit.read_record_batches(log),
        lambda: kafkajit.read_record_batches(log, mode="PERMISSIVE").validate(full=True),
        lambda: kafkajit.find_corruption(log),
        lambda: kafkajit.valid_bytes(log),
    ]
    for read in readers:
        with suppress(kafkajit.KafkaJitError):
            read()


def wrapped(data: bytes) -> None:
    """As `segment`; the bytes are what a compressed batch or message of v1 holds."""
    codec = 1 + data[0] % 4 if data else 1
    payload = CODECS[codec](data[2:])
    if data[1:2] < b"\x80":
        head = kt.batch([kt.Record()] * 2)[:61]
        whole = head[:22] + bytes([codec]) + head[23:] + payload
        whole = whole[:8] + struct.pack(">i", len(whole) - 12) + whole[12:]
    elif codec == 4:
        return
    else:
        inside = CODECS[codec](repaired(data[2:]))
        whole = kt.message(kt.Record(value=inside), magic=data[1] % 2, attributes=codec, offset=5)
    segment(b"\0" + whole)


def codec(data: bytes) -> None:
    """Decompress a payload; both decoders may accept it only if they give the same bytes."""
    if not data:
        return
    number, payload = 1 + data[0] % 4, data[1:]
    head = kt.batch([])[:61]
    whole = head[:22] + bytes([number]) + head[23:57] + struct.pack(">i", 1) + payload
    whole = whole[:8] + struct.pack(">i", len(whole) - 12) + whole[12:]
    with suppress(reference.Invalid):
        our_decompress(number, payload, ROOM)
    segment(b"\0" + whole)


def dump_log(data: bytes) -> None:
    """Print a log in each style; none of its modes raises, but PERMISSIVE prints to the end."""
    if not data:
        return
    log = _log_of(data)
    topics = [None, *map(topic_kind, TOPICS)]
    topic = topics[data[0] // 2 % len(topics)]
    styles = [Style(), Style(True, True), Style(True, True, json=True)]
    if topic is not None:
        styles = [Style(True, True, topic=topic), Style(True, True, topic=topic, json=True)]
    for style in styles:
        for mode in (None, "FAILFAST", "PERMISSIVE"):
            dump = LogDump(Source(log), style, mode=mode, max_decompressed_bytes=ROOM)
            text = b"".join(map(bytes, dump.text()))
            if style.json:
                for line in text.splitlines():
                    json.loads(line)
            assert mode != "PERMISSIVE" or dump.error is None, dump.error


def _logs() -> list[bytes]:
    return [b"\0" + log for log in seeds()[:200]]


def _payloads() -> list[bytes]:
    plain = [log for log in seeds()[:200] if len(log) > 61 and log[16] == 2 and not log[22] & 7]
    sets = [log for log in seeds()[:60] if log[16] < 2]
    return [bytes([n, 0]) + log[61:] for log in plain[:20] for n in range(4)] + [
        bytes([n, 128 + log[16]]) + log for log in sets[:10] for n in range(3)
    ]


def _compressed() -> list[bytes]:
    found = [log for log in seeds()[:200] if len(log) > 61 and log[16] == 2 and log[22] & 7]
    return [bytes([(log[22] & 7) - 1]) + log[61:] for log in found]


def _ints(layout: str, data: bytes) -> list[tuple[int, ...]]:
    return [*struct.iter_unpack(layout, data)]


def _without_zeros(entries: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    while entries and not any(entries[-1]):
        entries.pop()
    return entries


def _expected(entries: list[tuple[int, ...]], *steps: int) -> bool:
    """Whether no field is negative, and each grows by its step from entry to entry."""
    return all(value >= 0 for entry in entries for value in entry) and all(
        one + step <= other
        for before, after in pairwise(entries)
        for one, other, step in zip(before, after, steps, strict=True)
    )


def offset_index(data: bytes) -> None:
    """Read, verify and print an .index beside a log."""
    rows = None
    if len(data) % 8 == 0 and _expected(entries := _without_zeros(_ints(">ii", data)), 1, 1):
        rows = [{"offset": 100 + offset, "position": place} for offset, place in entries]
    _compare(rows, lambda: parse_offset_index(as_bytes(data), None, 100))
    with suppress(kafkajit.KafkaJitError):
        verify_offset_index(LOG, data, 100).validate(full=True)
    for is_json in (False, True):
        with suppress(kafkajit.KafkaJitError), _file("x.index", data) as path:
            index = OffsetIndex(path, 100)
            dump = OffsetIndexDump(index, Source(LOG), max_message_size=1 << 20, json=is_json)
            for _ in dump.text():
                pass


def time_index(data: bytes) -> None:
    """Read, verify and print a .timeindex beside a log and its .index."""
    rows = None
    if len(data) % 12 == 0 and _expected(entries := _without_zeros(_ints(">qi", data)), 1, 0):
        rows = [{"timestamp": time, "offset": 100 + offset} for time, offset in entries]
    table = _compare(rows, lambda: parse_time_index(as_bytes(data), None, 100), "timestamp")
    assert table is None or table.num_rows == len(rows or ())
    with suppress(kafkajit.KafkaJitError):
        verify_time_index(LOG, data, 100).validate(full=True)
    for is_json in (False, True):
        with (
            suppress(kafkajit.KafkaJitError),
            _file("x.timeindex", data) as path,
            _file("x.index", struct.pack(">ii", 3, 94)) as beside,
        ):
            dump = TimeIndexDump(
                TimeIndex(path, 100),
                OffsetIndex(beside, 100),
                Source(LOG),
                max_decompressed_bytes=ROOM,
                json=is_json,
            )
            for _ in dump.text():
                pass


def transaction_index(data: bytes) -> None:
    """Read, verify and print a .txnindex."""
    rows = None
    names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
    if len(data) % 34 == 0 and not any(entry[0] for entry in _ints(">hqqqq", data)):
        rows = [dict(zip(names, entry[1:], strict=True)) for entry in _ints(">hqqqq", data)]
    _compare(rows, lambda: parse_transaction_index(as_bytes(data)))
    with suppress(kafkajit.KafkaJitError):
        verify_transaction_index(LOG, data).validate(full=True)
    for is_json in (False, True):
        with suppress(kafkajit.KafkaJitError):
            b"".join(transaction_index_text(as_bytes(data), json=is_json)).decode()


def _compare(
    rows: list[dict[str, Any]] | None, read: Callable[[], pa.Table], as_number: str = ""
) -> pa.Table | None:
    """The table that has the rows of the twin; None if both refuse the bytes."""
    try:
        table = read()
    except kafkajit.KafkaJitError as error:
        if rows is not None:
            raise AssertionError("the twin reads it") from error
        return None
    table.validate(full=True)
    assert rows is not None
    if as_number:
        place = table.schema.get_field_index(as_number)
        table = table.set_column(place, as_number, table[as_number].cast(pa.int64()))
    assert table.to_pylist() == rows
    return table


class _file:  # noqa: N801 - used as a function
    """A file with these bytes, as long as it is needed."""

    def __init__(self, name: str, content: bytes) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self._path = Path(self._folder.name) / name
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(content)

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


file_with = _file
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def snapshot(data: bytes) -> None:
    """Read and print a .snapshot, with a right checksum if its last byte is even."""
    if data and data[-1] % 2 == 0 and len(data) > 10:
        data = data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:]
    is_good = len(data) >= 10 and data[:2] == b"\0\1"
    if is_good:
        crc, count = struct.unpack_from(">Ii", data, 2)
        is_good = count >= 0 and 10 + 46 * count <= len(data) and crc == crc32c(data[6:])
    try:
        table = parse_producer_snapshot(as_bytes(data))
    except kafkajit.CorruptSnapshotError:
        assert not is_good
        return
    assert is_good
    table.validate(full=True)
    ids = [struct.unpack_from(">q", data, 10 + 46 * row)[0] for row in range(count)]
    assert table["producerId"].to_pylist() == ids
    for is_json in (False, True):
        b"".join(snapshot_text(as_bytes(data), json=is_json)).decode()


def text_file(data: bytes) -> None:
    """Read the text files beside a log; the twin has checkpoints."""
    content = as_bytes(data)
    checkpoints: list[tuple[Callable[..., pa.Table], tuple[int, ...]]] = [
        (parse_leader_epochs, (32, 64)),
        (parse_offsets, (0, 32, 64)),
    ]
    for parse, bits in checkpoints:
        try:
            expected = text_twins.checkpoint(data, *bits)
        except text_twins.Refused:
            expected = None
        try:
            rows = [[*row.values()] for row in parse(content).to_pylist()]
        except kafkajit.CorruptCheckpointError:
            rows = None
        assert rows == expected, (rows, expected)
    for parse in (parse_partition_metadata, parse_meta_properties, parse_quorum_state):
        with suppress(kafkajit.KafkaJitError):
            parse(content).validate(full=True)


def internal_topic(data: bytes) -> None:
    """Decode a key and a value of an internal topic; compare them with the twin's."""
    if len(data) < 2:
        return
    topic = [*TOPICS][data[0] % len(TOPICS)]
    key, value = data[2 : 2 + data[1]], data[2 + data[1] :]
    try:
        expected = expected_payload(topic, key, value)
    except (messages_twin.Malformed, ValueError):
        expected = None
    keys, values = pa.array([key], pa.binary()), pa.array([value], pa.binary())
    found = decode_payloads(topic, keys, values, lenient=True)
    found.validate(full=True)
    assert found.to_pylist() == [expected]
    try:
        decode_payloads(topic, keys, values)
        assert expected is not None
    except kafkajit.InvalidRecordError:
        assert expected is None


def _payload_seeds() -> list[bytes]:
    return [
        bytes([number, len(key or b"")]) + (key or b"") + (value or b"")
        for number, topic in enumerate(TOPICS)
        for key, value in payload_rows(topic)
        if len(key or b"") < 256 and len(value or b"") < 600
    ]


def remote_metadata(data: bytes) -> None:
    """Follow the states of tiered segments; the input is events, each after its size."""
    values = [*_parts(data)]
    log = kt.batch([kt.Record(value=value) for value in values])
    name = "__remote_log_metadata-0/00000000000000000000.log"
    with suppress(kafkajit.KafkaJitError), _file(name, log) as path:
        logs, _ = find_segments([str(path.parent.parent)])
        noted_segments(logs, "PERMISSIVE")


def _parts(data: bytes) -> Iterator[bytes]:
    while data:
        yield data[1 : 1 + data[0]]
        data = data[1 + data[0] :]


def _event_seeds() -> list[bytes]:
    values = [value for _, value in payload_rows("remote_log_metadata") if value]
    short = [bytes([len(value)]) + value for value in values if len(value) < 256]
    return [*short, b"".join(short[:8])]


def _files(pattern: str, most: int = 1500) -> list[bytes]:
    found = {path.read_bytes() for path in DATA.rglob(pattern) if path.stat().st_size <= most}
    return sorted(found, key=len)[:60]


_TEXT_FILES = ("*-checkpoint", "*.metadata", "*.properties", "quorum-state")
TARGETS: dict[str, Target] = {
    "segment": (segment, _logs),
    "wrapped": (wrapped, _payloads),
    "codec": (codec, _compressed),
    "dump-log": (dump_log, _logs),
    "offset-index": (offset_index, lambda: _files("*.index")),
    "time-index": (time_index, lambda: _files("*.timeindex")),
    "transaction-index": (transaction_index, lambda: _files("*.txnindex")),
    "snapshot": (snapshot, lambda: _files("*.snapshot")),
    "text-file": (text_file, lambda: [file for name in _TEXT_FILES for file in _files(name)]),
    "internal-topic": (internal_topic, _payload_seeds),
    "remote-metadata": (remote_metadata, _event_seeds),
}
