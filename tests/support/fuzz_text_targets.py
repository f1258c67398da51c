"""Targets of tests/support/coverage_fuzz.py: journals, manifests, SQL, options, names and URIs."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from functools import cache
from typing import Any

import data as archives
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tiered_twin
import zstandard
from fuzz_log_targets import Target, file_with
from mutations import repaired

import kafkajit
from kafkajit import testing as kt
from kafkajit.change.journal import Journal as ChangeJournal
from kafkajit.cli.sql.statements import created, mentioned, on_one_line, split, tokens
from kafkajit.format.amounts import parse_size
from kafkajit.format.log_path import is_segment_file, parse_log_path
from kafkajit.format.moment import milliseconds, option_text, option_time
from kafkajit.format.tiered_names import object_name
from kafkajit.format.topic import check_topic
from kafkajit.places.chunks import ChunkReader
from kafkajit.places.location import as_location, shown
from kafkajit.places.manifest import ChunkMap, Manifest, parse_manifest
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.places.uri import has_secrets, parts_of, path_in, secrets_in, uri_of, without_secrets
from kafkajit.produce.inputs.numbers import integer_of
from kafkajit.produce.inputs.times import millisecond_of
from kafkajit.produce.options import OPTIONS as PRODUCE_OPTIONS
from kafkajit.scan.export.journal import Entry, FileNames, NotAJournalError, last_of
from kafkajit.scan.options import OPTIONS as SCAN_OPTIONS
from kafkajit.scan.patterns import Pattern
from kafkajit.scan.stream.offsets import OffsetsParser, to_json
from kafkajit.scan.stream.options import STREAM_OPTIONS
from kafkajit.state.sidecar_files import kind_of
from kafkajit.storage.globs import glob_to_regex
from kafkajit.storage.source import Source
from kafkajit.text.log_dump import LogDump, Style

_LONGEST_MESSAGE = 20_000
OPTIONS = [*SCAN_OPTIONS.items(), *STREAM_OPTIONS.items(), *PRODUCE_OPTIONS.items()]


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def manifest(data: bytes) -> None:
    """Parse a manifest; the twin has the same chunks."""
    try:
        found = parse_manifest(data, "x.rsm-manifest")
    except kafkajit.RemoteStorageError:
        return
    places = found.chunks.places()
    assert places.end == places.start(found.chunks.chunks)
    if found.chunks.chunks < 10_000:
        expected = [size for _, size in tiered_twin.chunks(json.loads(data)["chunkIndex"])]
        starts = [places.start(chunk) for chunk in range(found.chunks.chunks + 1)]
        assert np.diff(starts).tolist() == expected


def _manifests() -> list[bytes]:
    found = {path.read_bytes() for path in archives.objects().rglob("*.rsm-manifest")}
    return sorted(found, key=len)[:20]


def chunks(data: bytes) -> None:
    """Read a tiered segment of two compressed chunks, of which the input has the bytes."""
    first, stored = data[:1] and data[0], data[1:]
    if not first or first >= len(stored):
        return
    sizes = np.array([first, len(stored) - first], dtype=np.int32).tobytes()
    known = Manifest(*[None] * 6, (), ChunkMap(64, 100, sizes), True, None, ())

    def read(size: int, position: int) -> bytes:
        return stored[position : position + size]

    for at, size in ((0, 100), (64, 36), (10, 20)):
        reader = ChunkReader(known, PrivateKeys.of({}), read, "x.log")
        memory = memoryview(bytearray(size))
        with suppress(kafkajit.KafkaJitError):
            assert 0 < reader.read_into(memory, at) <= size


def _chunks() -> list[bytes]:
    frames = [zstandard.ZstdCompressor().compress(bytes(range(size))) for size in (64, 36)]
    return [bytes([len(frames[0])]) + b"".join(frames)]


def kafscale(data: bytes) -> None:
    """Read a segment of KafScale's, with a right head and footer if the first byte is even."""
    if len(data) < 4:
        return
    log = repaired(data[4:])
    segment = log
    if data[0] % 2 == 0:
        segment = kt.kafscale_segment(log, data[1], data[2], data[3])
    columns = ["offset", "timestamp", "key", "value"]
    limit = {"max_decompressed_bytes": 1 << 16}
    with file_with(f"orders/0/segment-{data[1]:020}.kfs", segment) as path:
        with suppress(kafkajit.KafkaJitError):
            rows = kafkajit.read_records(path, columns=columns, **limit)
            if data[0] % 2 == 0:
                assert rows == kafkajit.read_records(log, columns=columns, **limit)
        kafkajit.read_records(path, mode="PERMISSIVE", **limit).validate(full=True)
        kafkajit.find_corruption(path).validate(full=True)
        for mode in (None, "PERMISSIVE"):
            dump = LogDump(Source(str(path)), Style(True, True), mode=mode)
            assert [*dump.text()] or dump.error or not log


def _kafscale() -> list[bytes]:
    log = b"".join(
        kt.batch([kt.Record(b"k", b"v")] * 2, base_offset=offset, codec=codec)
        for offset, codec in ((5, "none"), (7, "gzip"))
    )
    whole = kt.kafscale_segment(log, 5, 8, 4)
    return [b"\0\5\x08\4" + log, b"\1\5\0\0" + whole]


def export_journal(data: bytes) -> None:
    """Read an entry of an export's journal; what is read is written and read again."""
    names = FileNames("orders", 0, suffix=".csv")
    name = "00000001-00000000000000aa.json"
    try:
        entry = names.entry_in(data, name)
    except NotAJournalError:
        return
    again = names.entry_in(entry.journal.encoded(entry.options, entry.parent), name)
    assert again.journal == entry.journal
    last, _ = last_of([Entry(name, None, entry.journal, {})])
    assert {*last.begun} == {*entry.journal.begun}


def _export_journals() -> list[bytes]:
    document = {
        "version": 2, "parent": "00000001-00000000000000bb.json", "options": {"format": "csv"},
        "next": 10, "last": [8, 2, 100, 70, 12345, 3], "topicId": "5W7Ptr3HQKuj-8ukrKL1eQ",
        "epochs": [[0, 0], [1, 5]], "logStart": 0, "gaps": [["/k/orders-0/0.log", 5, 7, "ab"]],
        "missing": [[2, 3]], "leftOut": [[[4, 5], [["/k/0.log", 1, 2, "cd"]], [100, None]]],
        "files": [["_kafkajit/orders-0@ab", "orders-0-00000000000000000000.csv", 50]],
        "begun": ["_kafkajit/orders-0@cd"], "rounds": 1,
    }  # fmt: skip
    old = {
        "version": 1, "options": {"hasCorruption": True}, "next": None, "gaps": [],
        "files": [["orders-0-00000000000000000000.csv"] * 2],
    }  # fmt: skip
    return [json.dumps(one).encode() for one in (document, old)]


def change_journal(data: bytes) -> None:
    """Read the journal of an interrupted change."""
    with file_with("k/orders-0/.kafkajit-change/change.json", data) as path:
        for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
            folder.chmod(stat.S_IRWXU)
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        with suppress(kafkajit.KafkaJitError):
            ChangeJournal.read(path)


def _change_journals() -> list[bytes]:
    log, index = (f"orders-0/{0:020}{suffix}" for suffix in (".log", ".index"))
    stages = [
        {"kind": "in", "names": ["orders-0/partition.metadata"], "gone": []},
        {"kind": "swap", "names": [log], "gone": [f"orders-0/{5:020}.log"]},
        {"kind": "out", "names": [index, "recovery-point-offset-checkpoint"], "gone": []},
    ]
    new = {name: [10, 123] for name in (log, "orders-0/partition.metadata")}
    document = {
        "what": "repair", "home": "orders-0", "stages": stages, "new": new,
        "live": {log: [5, 7]}, "kept": ".kafkajit-repair-20260101T000000Z",
    }  # fmt: skip
    return [json.dumps(document).encode()]


def sql(data: bytes) -> None:
    """Split SQL into statements: nothing is lost, and a statement stays one."""
    text = _text(data)
    pieces = [*tokens(text)]
    assert "".join(piece.text for piece in pieces) == text
    whole, rest = split(text)
    for statement in (*whole, *([] if rest is None else [rest])):
        lines = text.split("\n")
        assert statement.text.split("\n")[0] in lines[statement.line - 1]
        on_one_line(statement.text)
        created(statement.text)
        assert mentioned(statement.text, []) == []
    for statement in whole:
        assert split(f"{statement.text}\n;")[0][:1] != []


_SQL = [
    b"SELECT ';' -- one; still\n; SELECT 2",
    b"BEGIN IF a THEN SELECT CASE WHEN 1 THEN 2 END; END IF; END; CREATE OR REPLACE VIEW `a``b` AS",
    b'/* a /* b */ c */ /*+ hint */ r\'x\\\' "a\\"" $tag$ ; $tag$; SHOW TABLES',
]


def options(data: bytes) -> None:
    """Parse an option of Spark's or a command's; an error is one of values."""
    if not data:
        return
    name, option = OPTIONS[data[0] % len(OPTIONS)]
    text = _text(data[1:])
    try:
        option.parse(text)
    except ValueError as error:
        _check_words(f"{name}: {error}")


_LITERALS = [
    "earliest", "5", "true", '{"orders": {"0": 5, "1": -2}}', "128m", "2025-11-05", "PERMISSIVE",
    "orders,payments", "/var/kafka", "a,b", "confluent", "compact,delete", "1h", "zstd",
]  # fmt: skip


def _option_seeds() -> list[bytes]:
    return [bytes([n]) + text.encode() for n in range(len(OPTIONS)) for text in _LITERALS]


def _check_words(words: str) -> None:
    """An error of a text that a user has written does not come from Python's own functions."""
    assert not re.search("Exceeds the limit|codec can't|nested|unhashable|object is not", words)
    assert len(words) < _LONGEST_MESSAGE


def text_forms(data: bytes) -> None:
    """Parse a time, a size, a number and a topic."""
    text = _text(data)
    for parse in (milliseconds, option_time):
        try:
            found = parse(text)
        except ValueError as error:
            _check_words(str(error))
        else:
            assert option_time(option_text(found)) == found
    try:
        assert 0 <= parse_size(text, 0, 2**40) <= 2**40
    except ValueError as error:
        _check_words(str(error))
    for number in (integer_of(data), None if not text.isprintable() else millisecond_of(text)):
        assert number is None or -(2**63) <= number < 2**63
    with suppress(ValueError):
        check_topic(text)
    with suppress(ValueError):
        Pattern.of_hex(text)
    with suppress(ValueError):
        glob_to_regex(text)


_FORMS = [
    b"1762300805000", b"1762300805s", b"5ms", b"2025-11-05T01:00:00.123+01:00", b"2025-11-05Z",
    b"2025-11-05 01:00", b"128m", b"1 GB", b"-5", b"5.04e2", b"+10000-01-01", b"cafebabe", b"a-b.c",
    b"*.log", b"{a,b}*[!x]",
]  # fmt: skip


def uri(data: bytes) -> None:
    """Take a location apart; its secrets are in nothing that is shown."""
    text = _text(data)
    if "\0" in text or not text.isprintable():  # a location that is not UTF-8 is refused first
        with suppress(ValueError):
            uri_of(text)
        return
    found = parts_of(text)
    try:
        assert uri_of(text) is None or found is not None
    except ValueError as error:
        assert str(error).isprintable()  # noqa: PT017
    if found is None:
        return
    has_secrets(text)
    visible = without_secrets(found)
    path_in(found)
    as_location(visible, [text])
    shown(text)
    secret = (found["user"] or "").rstrip("@").partition(":")[2]
    assert (
        len(secret) < 8
        or secret in (found["host"] or "") + found["path"]
        or (secret not in visible)
    )
    secrets_in(found, {})


_URIS = [
    b"s3://key:9/secret@bucket/orders-0", b"s3://bucket/a/../b?region=eu-west-1", b"file:///k/a",
    b"gs://a@b/c?secret_key=abcdefgh", b"hdfs://user@host:8020/k", b"/var/kafka//orders-0/.",
    b"s3:/bucket/a;sas_token=x", b"abfss://c@account.dfs.core.windows.net/k?x=1",
]  # fmt: skip


def names(data: bytes) -> None:
    """Recognize the names of files and folders, whatever they are."""
    text = _text(data)
    if "\0" in text:
        return
    found = parse_log_path(text)
    assert found.partition is None or 0 <= found.partition < 2**31
    is_segment_file(text)
    object_name(text)
    kind_of(text)


@cache
def _names() -> list[bytes]:
    listed = [archives.objects(), archives.unpacked()]
    paths = sorted(str(path.relative_to(top)) for top in listed for path in top.rglob("*.*"))
    return [os.fsencode(path) for path in paths[:: len(paths) // 60]] + [
        b"orders-3/00000000000000000042.log.deleted",
        b"default/orders/3/segment-00000000000000000042.kfs",
    ]


def pattern(data: bytes) -> None:
    """Search a value for a regular expression; RE2 alone finds it in the same values."""
    expression, _, value = data.partition(b"\0")
    text = _text(expression)
    ignores_case = len(value) % 2 == 1
    try:
        wanted = Pattern.of_regex(text, ignores_case=ignores_case)
    except ValueError as error:
        assert "Exceeds" not in str(error)  # noqa: PT017
        return
    values = pa.array([value, b"", None, b"x" + value], pa.binary())
    found = wanted.rows(values).tolist()
    regex = f"(?i){text}" if ignores_case else text
    if text.isascii() and value.isascii():
        strings = values.cast(pa.string())
        expected = pc.match_substring_regex(strings, regex).fill_null(False).to_pylist()
        assert found == expected, (text, value, found, expected)
    for start, end in wanted.spans(value):
        assert 0 <= start <= end <= len(value)


_PATTERNS = [
    b"^a+(b|c)?$\0aab", b"order\\.[0-9]{2,}\0order.17", b"(?i)K\0\xe2\x84\xaa", b"[^x]yz|q\0ayz",
    b"\\Qa.b\\E\0a.b", b"a(?P<n>b)\\x41\\pL\0abAx", b"plain\0a plain text",
]  # fmt: skip


def stream_offsets(data: bytes) -> None:
    """Read the offsets in a checkpoint of Spark's; what is read is written and read again."""
    try:
        given: Any = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(given, dict):
        return
    try:
        found = OffsetsParser().parsed(given)
    except (ValueError, AttributeError, TypeError):
        return  # only kafkajit writes them
    again = OffsetsParser().parsed(json.loads(json.dumps(to_json(*found))))
    assert (again.ends, dict(again.footings).keys() <= dict(found.footings).keys()) == (
        found.ends,
        True,
    )


_OFFSETS = [b'{"a": {"0": 7}, "@read": {"a": {"0": [null, [8, 2, 1, 7, 1, 3], [[3, 5]], 2]}}}']

TARGETS: dict[str, Target] = {
    "manifest": (manifest, _manifests),
    "chunks": (chunks, _chunks),
    "kafscale": (kafscale, _kafscale),
    "export-journal": (export_journal, _export_journals),
    "change-journal": (change_journal, _change_journals),
    "sql": (sql, lambda: _SQL),
    "options": (options, _option_seeds),
    "text-forms": (text_forms, lambda: _FORMS),
    "uri": (uri, lambda: _URIS),
    "names": (names, _names),
    "pattern": (pattern, lambda: _PATTERNS),
    "stream-offsets": (stream_offsets, lambda: _OFFSETS),
}
