"""dump-log --value-decoder and --key-decoder: values with a schema as JSON, in place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from corpus import NO_JIT
from dumping import LOG, PACKAGE, Dump
from typed_logs import (
    ORDER,
    ORDERS,
    SHIPMENTS,
    confluent,
    encoded,
    schema_record,
    write_clicks,
    write_registry,
    write_shipments,
    write_values,
)

import kafkajit
import kafkajit.testing as kt
from kafkajit.text import VALUE_DECODERS

NEWER: dict[str, Any] = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "extra", "type": "int", "default": 5}],
}
OTHER = {"type": "record", "name": "Payment", "fields": [{"name": "cents", "type": "int"}]}
# It has the subject of Order, but another field without a default.
STRANGER = {"type": "record", "name": "Stranger", "fields": [{"name": "x", "type": "string"}]}
GOOD = confluent(7, encoded(ORDER, *ORDERS))
NEWEST = [{**order, "extra": 5} for order in ORDERS]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    records = [
        schema_record("orders-value", 1, 6, json.dumps(STRANGER)),
        schema_record("orders-value", 2, 7, json.dumps(ORDER)),
        schema_record("orders-value", 3, 8, json.dumps(NEWER)),
        schema_record("com.acme.Payment", 1, 9, json.dumps(OTHER)),
        schema_record("orders-key", 1, 3, '"string"'),
        schema_record("proto", 1, 4, "syntax", schemaType="PROTOBUF"),
    ]
    write_registry(tmp_path / "_schemas-0", records)
    write_values(tmp_path / "orders-0", [*GOOD, None], keys=[*confluent(3, [b"\2k"] * 3), None])
    return tmp_path


def records(out: bytes) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return [line for line in lines if line["kind"] == "record"]


def payloads(out: bytes) -> list[str | None]:
    """The payload of each record's line, as text."""
    lines = [line for line in out.decode().splitlines() if line.startswith("| ")]
    return [line.partition(" payload: ")[2] or None for line in lines]


def test_values_are_json_behind_kafkas_line(root: Path, dump: Dump) -> None:
    run = dump("--value-decoder", "avro", "orders-0", folder=root)
    plain = dump("--print-data-log", "orders-0", folder=root)
    assert run.code == 0
    assert run.err == ""
    found = payloads(run.out)
    assert [payload and json.loads(payload) for payload in found] == [*NEWEST, None]
    assert found[0] == '{"id":1,"sku":"a","note":null,"lines":[1,2],"extra":5}'
    heads = [
        [line.partition(b" payload: ")[0] for line in out.splitlines()]
        for out in (run.out, plain.out)
    ]
    assert heads[0] == heads[1]


def test_keys_and_values_have_decoders_of_their_own(root: Path, dump: Dump) -> None:
    flags = ("--skip-record-metadata", "--key-decoder", "avro")
    line = dump(*flags, "orders-0", folder=root).out.splitlines()[3]
    assert line.startswith(b'| key: "k" payload: \0\0\0\0\7')
    line = dump(*flags, "--value-decoder", "avro", "orders-0", folder=root).out.splitlines()[3]
    assert line.startswith(b'| key: "k" payload: {"id":1,')
    integers = f"--value-decoder-class={PACKAGE}.IntegerDecoder"
    line = dump(*flags, integers, "orders-0", folder=root).out.splitlines()[3]
    assert line == b'| key: "k" payload: 0'  # of the first four bytes


def test_json_has_the_values_as_objects(root: Path, dump: Dump) -> None:
    flags = ("--format", "json", "--value-decoder", "avro", "--key-decoder", "avro")
    found = records(dump(*flags, "orders-0", folder=root).out)
    assert [record["payload"] for record in found] == [*NEWEST, None]
    assert [record["key"] for record in found] == ["k", "k", "k", None]


def test_each_value_is_read_by_its_own_schema(root: Path, dump: Dump) -> None:
    """By the newest version of its subject; by its own one if that does not fit."""
    values = [
        *confluent(9, encoded(OTHER, {"cents": 5})),
        GOOD[0],
        *confluent(6, encoded(STRANGER, {"x": "é"})),
        None,
        *confluent(9, encoded(OTHER, {"cents": 6})),
        *confluent(8, encoded(NEWER, {**ORDERS[0], "extra": 1})),
    ]
    write_values(root / "orders-0", values)
    run = dump("--value-decoder", "avro", "orders-0", folder=root)
    assert [payload and json.loads(payload) for payload in payloads(run.out)] == [
        {"cents": 5},
        NEWEST[0],
        {"x": "é"},
        None,
        {"cents": 6},
        {**ORDERS[0], "extra": 1},
    ]


def test_a_malformed_value_is_reported_in_its_place(root: Path, dump: Dump) -> None:
    bad = [GOOD[0][:-1], b"junk", *confluent(99, [b"x"]), *confluent(4, [b"x"])]
    write_values(root / "orders-0", [GOOD[0], *bad, GOOD[1]])
    words = [
        "the value ends in the middle of a field, field lines, byte 12, schema id 7",
        "the value does not begin with a schema id",
        "the schema is not known, schema id 99",
    ]
    run = dump("--value-decoder", "avro", "orders-0", folder=root)
    assert run.code == 0
    found = payloads(run.out)
    assert found[1:4] == [f"RecordDeserializationError: {text}" for text in words]
    assert "schema id 4" in str(found[4])
    assert "PROTOBUF" in str(found[4])
    assert json.loads(str(found[5])) == NEWEST[1]
    run = dump("--value-decoder", "avro", "--format", "json", "orders-0", folder=root)
    found_json = records(run.out)
    assert [record.get("payload") for record in found_json] == [NEWEST[0], *[None] * 4, NEWEST[1]]
    assert found_json[1]["payloadError"] == f"RecordDeserializationError: {words[0]}"
    assert "payloadError" not in found_json[0]


def test_nothing_is_known_of_any_value(root: Path, dump: Dump) -> None:
    write_values(root / "orders-0", confluent(99, [b"x"] * 3))
    found = payloads(dump("--value-decoder", "avro", "orders-0", folder=root).out)
    assert found == ["RecordDeserializationError: the schema is not known, schema id 99"] * 3


def test_schemas_are_found_where_the_options_say(
    root: Path, dump: Dump, tmp_path_factory: pytest.TempPathFactory
) -> None:
    far = tmp_path_factory.mktemp("far")
    write_values(far / "orders-0", [*GOOD, None])
    run = dump("--value-decoder", "avro", "orders-0", folder=far)
    assert run.code == 1
    assert f"there are no schemas for --value-decoder: no log at {far}/_schemas-0" in run.err
    assert "pass --schemas, or --value-schema" in run.err
    flags = ("--value-decoder", "avro", "--schemas", str(root))
    assert json.loads(str(payloads(dump(*flags, "orders-0", folder=far).out)[0])) == NEWEST[0]
    (far / "order.avsc").write_text(json.dumps(ORDER))
    for schema in ("order.avsc", json.dumps(ORDER)):
        flags = ("--value-decoder", "avro", "--value-schema", schema)
        run = dump(*flags, "orders-0", folder=far)
        assert [payload and json.loads(payload) for payload in payloads(run.out)] == [*ORDERS, None]


def test_a_null_of_avro_is_not_a_missing_value(root: Path, dump: Dump) -> None:
    write_values(root / "orders-0", [b"\0", None, b"\2\2x"])
    flags = ("--value-decoder", "avro", "--value-schema", '["null", "string"]')
    assert payloads(dump(*flags, "orders-0", folder=root).out) == ["null", None, '"x"']


def test_markers_and_internal_topics_are_printed_as_before(root: Path, dump: Dump) -> None:
    log = kt.batch([kt.Record(value=GOOD[0])], producer_id=1, producer_epoch=0, base_sequence=0)
    marker = kafkajit.encode_batches(
        pa.table({"controlType": ["COMMIT"], "producerId": [1]}),
        base_offset=1,
    )
    (root / "orders-0" / LOG).write_bytes(log + marker)
    out = dump("--value-decoder", "avro", "orders-0", folder=root).out
    assert b"endTxnMarker: COMMIT" in out
    assert b"RecordDeserializationError" not in out
    sample = "sample:internal/__consumer_offsets-0"
    kafkas = dump("--offsets-decoder", sample, folder=root)
    assert dump("--offsets-decoder", "--value-decoder", "avro", sample, folder=root) == kafkas


def test_messages_of_old_formats_are_decoded(root: Path, dump: Dump) -> None:
    table = pa.table({"value": GOOD})
    (root / "orders-0" / LOG).write_bytes(kafkajit.encode_batches(table, magic=1))
    found = payloads(dump("--value-decoder", "avro", "orders-0", folder=root).out)
    assert [json.loads(str(payload)) for payload in found] == NEWEST


def test_large_values_are_printed_whole(root: Path, dump: Dump) -> None:
    many = [
        {**ORDERS[0], "sku": "\n" * (30_000 if NO_JIT else 3_000_000), "lines": list(range(10))}
    ] * 2
    write_values(root / "orders-0", confluent(7, encoded(ORDER, *many)))
    found = payloads(dump("--value-decoder", "avro", "orders-0", folder=root).out)
    assert [json.loads(str(payload)) for payload in found] == [{**row, "extra": 5} for row in many]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--schemas", "x"), "--schemas needs --value-decoder or --key-decoder"),
        (("--value-schema", "x"), "--value-schema needs --value-decoder"),
        (
            ("--value-decoder", "protobuf", "--value-message", "M"),
            "--value-message needs --value-sch",
        ),
        (
            ("--key-decoder", "avro", f"--key-decoder-class={PACKAGE}.LongDecoder"),
            "pass --key-decoder or --key-decoder-class, not both",
        ),
        (("--value-decoder", "xml"), f"there are: {', '.join(VALUE_DECODERS)}"),
    ],
)
def test_options_that_do_not_fit_each_other_are_refused(
    root: Path, dump: Dump, flags: tuple[str, ...], words: str
) -> None:
    run = dump(*flags, "orders-0", folder=root)
    assert run.code != 0
    assert run.out == b""
    assert words in run.err


def test_protobuf_values_are_json_each_by_its_own_message(tmp_path: Path, dump: Dump) -> None:
    write_shipments(tmp_path)
    ignored = b"\0\0\0\0\x05\0\x08\x07"
    bad = b"\0\0\0\0\x05\x02\x02\x08"
    write_values(tmp_path / "shipments-0", [SHIPMENTS[1], ignored, SHIPMENTS[0], bad])
    run = dump("--value-decoder", "protobuf", "shipments-0", folder=tmp_path)
    second, other, first, error = payloads(run.out)
    assert json.loads(second or "") == {
        "id": 2, "code": 0, "carrier": "TRUCK", "weight": None, "parcels": {"a": 5},
        "created": "1970-01-01T00:00:05.000000Z", "took": "2s",
    }  # fmt: skip
    assert other == '{"nothing":7}'
    assert '"code":18446744073709551615,' in (first or "")
    assert error == (
        "RecordDeserializationError: the value ends in the middle of a field, field id, byte 8, "
        "schema id 5"
    )


def test_json_values_are_those_of_the_schema(tmp_path: Path, dump: Dump) -> None:
    write_clicks(tmp_path)
    run = dump("--value-decoder", "json", "clicks-0", folder=tmp_path)
    assert payloads(run.out)[:2] == [
        '{"page":"/a","user":{"id":5},"at":"2026-01-02T03:04:05.000000Z"}',
        '{"page":null,"user":null,"at":null}',
    ]
