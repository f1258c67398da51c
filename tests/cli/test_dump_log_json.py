"""--format json: an object for every line that Kafka's tool prints, with all its fields."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA, log_id
from dumping import DECODED, LOG, SEGMENTS, Dump, copied_segment, flags_of

import kafkajit
import kafkajit.testing as kt

Object = dict[str, Any]

# Goldens in which Kafka prints all records.
GOLDENS = [
    (path, kind)
    for suffix in (".log", ".checkpoint")
    for path in sorted(DATA.glob(f"*/*/*{suffix}"))
    for kind in ("data", "skip", "long", *DECODED)
    if path.with_name(f"{path.name}.{kind}.out").exists()
    and not path.with_name(f"{path.name}.{kind}.exit").exists()
]


def objects(out: bytes) -> list[Object]:
    assert out.endswith(b"\n")
    return [json.loads(line) for line in out[:-1].decode().split("\n")]


def as_java(value: Any) -> str:
    """What StringDecoder makes of a value that may be there in base64."""
    if isinstance(value, dict) and set(value) == {"base64"}:
        return base64.b64decode(value["base64"]).decode("utf-8", "replace")
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def record_line(record: Object, *, metadata: bool, decoded: bool) -> str:
    line, prefix = "", "| "
    if metadata:
        prefix = " "
        line = (
            f"| offset: {record['offset']} {record['timestampType']}: {record['timestamp']} "
            f"keySize: {record['keySize']} valueSize: {record['valueSize']}"
        )
        if "sequence" in record:
            names = ",".join(header["key"] for header in record["headers"])
            line += f" sequence: {record['sequence']} headerKeys: [{names}]"
        else:
            valid = str(record["isValid"]).lower()
            line += f" isValid: {valid} crc: {record['crc']}}}"
        if "endTxnMarker" in record:
            line += f" endTxnMarker: {record['endTxnMarker']}"
            line += f" coordinatorEpoch: {record['coordinatorEpoch']}"
        if "controlTypeId" in record:
            line += f" controlType: {record['controlType']}({record['controlTypeId']})"
        for name in ("LeaderChange", "SnapshotHeader", "SnapshotFooter", "KRaftVersion"):
            if name in record:
                colon = ":" if name == "LeaderChange" else ""
                line += f" {name}{colon} {as_java(record[name])}"
    if record.get("key") is not None:
        line += f"{prefix}key: {as_java(record['key'])}"
    if record.get("payload") is not None:
        line += f" payload: {as_java(record['payload'])}"
    elif decoded and "payload" in record and record.get("key", "").__class__ is dict:
        line += " payload: <DELETE>"
    return line


def batch_line(batch: Object) -> str:
    if "baseOffset" in batch:
        horizon = batch["deleteHorizonMs"]
        line = (
            f"baseOffset: {batch['baseOffset']} lastOffset: {batch['lastOffset']} count: "
            f"{batch['count']} baseSequence: {batch['baseSequence']} lastSequence: "
            f"{batch['lastSequence']} producerId: {batch['producerId']} producerEpoch: "
            f"{batch['producerEpoch']} partitionLeaderEpoch: {batch['partitionLeaderEpoch']} "
            f"isTransactional: {str(batch['isTransactional']).lower()} isControl: "
            f"{str(batch['isControl']).lower()} deleteHorizonMs: OptionalLong"
            + (".empty" if horizon is None else f"[{horizon}]")
        )
    else:
        line = f"offset: {batch['offset']}"
    return (
        f"{line} position: {batch['position']} {batch['timestampType']}: {batch['maxTimestamp']} "
        f"size: {batch['size']} magic: {batch['magic']} compresscodec: {batch['compresscodec']} "
        f"crc: {batch['crc']} isvalid: {str(batch['isvalid']).lower()}"
    )


def kafkas_line(line: Object, kind: str) -> str:
    match line["kind"]:
        case "file":
            return f"Dumping {line['path']}"
        case "log":
            return f"Log starting offset: {line['startingOffset']}"
        case "snapshot":
            return f"Snapshot end offset: {line['endOffset']}, epoch: {line['epoch']}"
        case "bootstrap":
            return "KRaft bootstrap snapshot"
        case "invalidBytes":
            return f"Found {line['size']} invalid bytes at the end of {line['file']}"
        case "batch":
            return batch_line(line)
    assert line["kind"] == "record"
    return record_line(line, metadata="skip" not in kind, decoded=kind in DECODED)


def plain(text: str) -> str:
    """Without what decoders of UTF-8 write in different numbers, and escapes in either case."""
    text = re.sub(r"\\u00[0-9A-Fa-f]{2}", lambda escape: escape[0].lower(), text)
    return re.sub("\N{REPLACEMENT CHARACTER}+", "\N{REPLACEMENT CHARACTER}", text)


@pytest.mark.parametrize(
    ("path", "kind"), GOLDENS, ids=[f"{log_id(path)}-{kind}" for path, kind in GOLDENS]
)
def test_json_has_every_field_of_kafkas_lines(path: Path, kind: str, dump: Dump) -> None:
    run = dump("--files", path.name, *flags_of(path, kind), "--format", "json", folder=path.parent)
    golden = path.with_name(f"{path.name}.{kind}.out").read_bytes().decode()
    found = [line for line in objects(run.out) if line["kind"] != "nonConsecutiveOffsets"]
    assert (run.code, run.err) == (0, "")
    text = "".join(kafkas_line(line, kind) + "\n" for line in found)
    assert plain(text) == plain(golden)


def test_the_corpus_has_goldens_of_every_kind() -> None:
    assert len(GOLDENS) > 300
    assert {kind for _, kind in GOLDENS} >= {"data", "skip", "long", *DECODED}


def test_headers_have_their_values_and_binary_bytes_are_in_base64(
    dump: Dump, tmp_path: Path
) -> None:
    headers = [("a", b"1"), ("a", None), ("\u00e4\n", b"\xff\0"), ("", b"")]
    records = [
        kt.Record(key=b"\xc3(", value=b'say "hi"\n\x01', headers=headers),
        kt.Record(key=None, value=None),
        kt.Record(key=b"", value="\U0001f600".encode()),
    ]
    (tmp_path / LOG).write_bytes(kt.batch(records))
    run = dump("--files", LOG, "--print-data-log", "--format", "json", folder=tmp_path)
    first, second, third = objects(run.out)[3:]
    assert first["headers"] == [
        {"key": "a", "value": "1"},
        {"key": "a", "value": None},
        {"key": "\u00e4\n", "value": {"base64": "/wA="}},
        {"key": "", "value": ""},
    ]
    assert (first["key"], first["payload"]) == ({"base64": "wyg="}, 'say "hi"\n\x01')
    assert (second["key"], second["payload"]) == (None, None)
    assert (third["key"], third["payload"]) == ("", "\U0001f600")


def test_default_decoder_gives_bytes_in_base64(dump: Dump, tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(kt.batch([kt.Record(key=b"k", value=b"v\0")]))
    decoder = "--value-decoder-class=org.apache.kafka.tools.api.DefaultDecoder"
    run = dump("--files", LOG, decoder, "--format", "json", folder=tmp_path)
    assert objects(run.out)[3]["payload"] == {"base64": "dgA="}


@pytest.mark.parametrize("name", ["transactions-segments-0", "segments-idempotent-0"])
def test_files_beside_a_log_are_objects_too(name: str, dump: Dump) -> None:
    folder = DATA / "v2" / name
    run = dump("--files", ".", "--format", "json", folder=folder)
    found = objects(run.out)
    for kind, read, suffix in (
        ("index", kafkajit.index.read_offset_index, ".index"),
        ("timeindex", kafkajit.index.read_time_index, ".timeindex"),
        ("txnindex", kafkajit.index.read_transaction_index, ".txnindex"),
        ("producer", kafkajit.read_producer_snapshot, ".snapshot"),
    ):
        expected = []
        for path in sorted(folder.glob(f"*{suffix}")):
            table = read(path)
            for place, column in enumerate(table.schema.names):
                if column in ("timestamp", "lastTimestamp"):
                    table = table.set_column(place, column, table[column].cast("int64"))
            expected += table.to_pylist()
        shown = [
            {field: line[field] for field in line if field not in ("kind", "version")}
            for line in found
            if line["kind"] == kind
        ]
        assert shown == expected
    kinds = {line["kind"] for line in found}
    assert kinds > {"producer", "timeindex", "txnindex" if name[0] == "t" else "index"}


def test_what_does_not_fit_is_an_object_for_each_pair(dump: Dump, tmp_path: Path) -> None:
    index = (SEGMENTS / LOG).with_suffix(".index").read_bytes()
    folder = copied_segment(tmp_path, index=index[:3] + b"\0" + index[4:])
    name = LOG.replace(".log", ".index")
    run = dump("--files", name, "--verify-index-only", "--format", "json", folder=folder)
    assert objects(run.out)[1:] == [
        {"kind": "indexMismatch", "path": str(folder / name), "indexOffset": 0, "logOffset": 11}
    ]
    assert run.err == ""
    run = dump("--files", name, "--index-sanity-check", "--format", "json", folder=folder)
    assert objects(run.out)[1:] == [{"kind": "sane", "path": name}]


@pytest.mark.parametrize("name", ["crc", "control-version-negative", "gzip-noise", "codec-7"])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_damage_leaves_no_line_unfinished(name: str, mode: str, dump: Dump) -> None:
    folder = DATA / "damaged" / name
    arguments = ("--files", LOG, "--print-data-log", "--format", "json", "--mode", mode)
    run = dump(*arguments, folder=folder)
    found = objects(run.out)
    gaps = [line for line in found if line["kind"] == "gap"]
    assert len(gaps) == (mode == "PERMISSIVE")
    assert all(set(gap) == {"kind", "position", "size", "reason"} for gap in gaps)


def test_a_corrupt_snapshot_is_an_object_with_its_file(dump: Dump, tmp_path: Path) -> None:
    name = LOG.replace(".log", ".snapshot")
    (tmp_path / name).write_bytes(b"\0\1")
    run = dump("--files", name, "--format", "json", folder=tmp_path)
    _, stated = objects(run.out)
    assert (stated["kind"], stated["path"]) == ("corruptSnapshot", name)
    assert "Snapshot is cut short in its header" in stated["reason"]
    assert (run.err, run.code) == ("", 0)


@pytest.mark.parametrize("format_", ["json", "text"])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_record_of_a_coordinator_without_a_key_ends_the_dump_in_failfast_only(
    mode: str, format_: str, dump: Dump, tmp_path: Path
) -> None:
    (tmp_path / LOG).write_bytes(kt.batch([kt.Record(value=b"v")] * 2))
    arguments = ("--offsets-decoder", "--mode", mode, "--format", format_)
    run = dump("--files", LOG, *arguments, folder=tmp_path)
    assert run.code == (mode == "FAILFAST")
    assert run.out.count(b"(message had a missing key)") == (0 if mode == "FAILFAST" else 2)
    if format_ == "json":
        assert all("error" in line for line in objects(run.out)[3:])
