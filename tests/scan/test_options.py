from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.records.decode import MAX_DECOMPRESSED_BYTES
from kafkajit.scan.options import OPTIONS, ScanOptions

PATH = {"path": "/logs"}

GOOD: list[tuple[str, str, object]] = [
    ("path", "/logs/orders-0", ("/logs/orders-0",)),
    ("path", '["a"]', ('["a"]',)),  # a name may look like JSON: a list is `paths`
    ("paths", '["/a", "s3://b/c-*"]', ("/a", "s3://b/c-*")),
    ("kind", "records", "records"),
    ("kind", "Batches", "batches"),
    ("kind", "FILES", "files"),
    ("kind", "corruption", "corruption"),
    ("pathGlobFilter", "*.log.deleted", "*.log.deleted"),
    ("pathGlobFilter", "0*{0,1}.log", "0*{0,1}.log"),
    ("startingOffsets", "earliest", {}),
    ("startingOffsets", " Earliest ", {}),
    ("startingOffsets", '{"orders": {"0": 42, "1": -2}}', {"orders": {0: 42}}),
    ("startingOffsets", '{"a": {"0": 0}, "b": {}}', {"a": {0: 0}, "b": {}}),
    ("startingOffsets", '{"a": {"0": 9223372036854775807}}', {"a": {0: 2**63 - 1}}),
    ("endingOffsets", "latest", {}),
    ("endingOffsets", '{"orders": {"0": 42, "1": -1}}', {"orders": {0: 42}}),
    ("startingTimestamp", "1700000000000", 1_700_000_000_000),
    ("startingTimestamp", "0", 0),
    ("startingTimestamp", "2023-11-14", 1_699_920_000_000),
    ("endingTimestamp", "2023-11-14T23:13:20.000001+01:00", 1_700_000_000_001),
    ("endingTimestamp", "9223372036854775807", 2**63 - 1),
    ("isolationLevel", "read_committed", "read_committed"),
    ("isolationLevel", "READ_UNCOMMITTED", "read_uncommitted"),
    ("checkCrcs", "false", False),
    ("checkCrcs", "TRUE", True),
    ("mode", "failfast", "FAILFAST"),
    ("mode", "DropMalformed", "DROPMALFORMED"),
    ("mode", "PERMISSIVE", "PERMISSIVE"),
    ("maxDecompressedBytes", "1", 1),
    ("maxDecompressedBytes", str(MAX_DECOMPRESSED_BYTES), MAX_DECOMPRESSED_BYTES),
    ("maxDecompressedBytes", "64m", 64 << 20),
    ("oneTaskPerPartition", "true", True),
    ("maxPartitionBytes", "1", 1),
    ("maxPartitionBytes", "128MB", 128 << 20),
    ("maxPartitionBytes", " 1g ", 1 << 30),
    ("maxPartitionBytes", "16k", 16 << 10),
    ("maxPartitionBytes", "100b", 100),
    ("maxPartitionBytes", str(2**40), 2**40),
    ("layout", "KafScale", "kafscale"),
    ("overlaps", "ALL", "all"),
    ("overlaps", "served", "served"),
    ("topicId", "pUM3BMsVQk2fe-klgEgLLA", "pUM3BMsVQk2fe-klgEgLLA"),
    ("valueSchema", '"string"', '"string"'),
    ("keySchema", "/schemas/order.avsc", "/schemas/order.avsc"),
    ("valueMessage", "shop.Order", "shop.Order"),
    ("keyMessage", "Key", "Key"),
    ("schemas", "auto", "auto"),
    ("framing", "single-object", "single-object"),
    ("framing", "Confluent", "confluent"),
    ("framing", "headers", "headers"),
]


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
@pytest.mark.parametrize("spelling", [str, str.lower, str.upper])
def test_an_option_is_parsed_in_any_case(
    name: str, text: str, value: object, spelling: Any
) -> None:
    given = {spelling(name): text}
    if name in ("framing", "valueMessage", "keyMessage"):
        given["schemas"] = "auto"  # without schemas they would be ignored
    options = ScanOptions.parse(given if name in ("path", "paths") else PATH | given)
    assert getattr(options, "paths" if name == "path" else OPTIONS[name].attribute) == value


def test_every_option_is_tried() -> None:
    assert {name for name, _, _ in GOOD} == {name for name, _, _ in BAD} == set(OPTIONS)


def test_defaults_are_those_of_the_docs() -> None:
    assert ScanOptions.parse(PATH) == ScanOptions(paths=("/logs",))
    assert ScanOptions(paths=()) == ScanOptions(
        paths=(),
        kind="records",
        path_glob_filter=None,
        starting_offsets={},
        ending_offsets={},
        starting_timestamp=None,
        ending_timestamp=None,
        isolation_level="read_uncommitted",
        check_crcs=True,
        mode="FAILFAST",
        max_decompressed_bytes=DEFAULT_MAX_DECOMPRESSED_BYTES,
        max_partition_bytes=None,
        one_task_per_partition=False,
    )


_OFFSETS = r'JSON such as \{"orders": \{"0": 42, "1": -[12]\}\}, not '
_BYTES = r"a number of bytes from 1 to \S+, such as 128m, not "
# name, text, the error's text behind the option's name
BAD: list[tuple[str, str, str]] = [
    ("layout", "redpanda", "unknown value 'redpanda'"),
    ("overlaps", "both", "unknown value 'both'"),
    ("topicId", "orders", "a topic's id has 22 letters of base64"),
    ("path", "", "a path, not an empty text"),
    ("paths", "/logs", r'a list of paths in JSON such as \["/logs/a-0", "/logs/b-0"\], not /logs'),
    ("paths", '"/logs"', "a list of paths in JSON"),
    ("paths", '{"a": 1}', "a list of paths in JSON"),
    ("paths", "5", "a list of paths in JSON"),
    ("paths", "[1]", "a list of paths in JSON"),
    ("paths", '["/a", ""]', "a list of paths in JSON"),
    ("paths", '["/a"', "a list of paths in JSON"),
    (
        "kind",
        "record",
        r"unknown value 'record' \(did you mean 'records'\?\); there are: records,",
    ),
    ("kind", "", "unknown value ''; there are: records, batches, files, corruption"),
    ("kind", "offsetIndexes", "unknown value .offsetIndexes. .did you mean .offsetIndex"),
    ("pathGlobFilter", "{a,b", "opens a {"),
    ("pathGlobFilter", "[z-a]", "bad character range"),
    ("startingOffsets", "latest", "earliest or " + _OFFSETS + "'latest'"),
    ("startingOffsets", '{"orders": {"0": -1}}', "-1 has no meaning in this option"),
    ("startingOffsets", '{"orders": {"0": -3}}', _OFFSETS),
    ("startingOffsets", '{"orders": {"0": 1.5}}', _OFFSETS),
    ("startingOffsets", '{"orders": {"0": "5"}}', _OFFSETS),
    ("startingOffsets", '{"orders": {"0": null}}', _OFFSETS),
    ("startingOffsets", '{"orders": {"0": true}}', _OFFSETS),
    ("startingOffsets", '{"orders": {"0": 9223372036854775808}}', _OFFSETS),
    ("startingOffsets", '{"orders": {"zero": 5}}', "'zero' is not the number of a partition: "),
    ("startingOffsets", '{"orders": {"-1": 5}}', "'-1' is not the number of a partition: "),
    ("startingOffsets", '{"orders": {"01": 5}}', "'01' is not the number of a partition: "),
    ("endingOffsets", '{"orders": {"2147483648": 5}}', "'2147483648' is not the number of a"),
    ("endingOffsets", '{"orders": {"0": 5, "0": 6}}', "'0' is named twice: "),
    ("endingOffsets", '{"orders": {"0": 5}, "orders": {}}', "'orders' is named twice: "),
    ("startingOffsets", '{"orders": 5}', _OFFSETS),
    ("startingOffsets", '{"orders": [5]}', _OFFSETS),
    ("startingOffsets", "[5]", _OFFSETS),
    ("startingOffsets", "5", _OFFSETS),
    ("startingOffsets", "{orders: 5}", _OFFSETS),
    ("endingOffsets", "earliest", "latest or " + _OFFSETS + "'earliest'"),
    ("endingOffsets", '{"orders": {"0": -2}}', "-2 has no meaning in this option"),
    ("endingOffsets", "", _OFFSETS),
    ("startingTimestamp", "yesterday", "'yesterday' is neither ISO 8601, such as "),
    ("startingTimestamp", "-1", "'-1' is neither ISO 8601, such as "),
    ("startingTimestamp", "9223372036854775808", "nor milliseconds"),
    ("startingTimestamp", "1_000", "nor milliseconds"),
    ("endingTimestamp", "1.5", "'1.5' is neither ISO 8601"),
    ("endingTimestamp", "", "'' is neither ISO 8601"),
    (
        "isolationLevel",
        "committed",
        r"unknown value 'committed' \(did you mean 'read_committed'\?\); there are: read_un",
    ),
    ("checkCrcs", "yes", "true or false, not 'yes'"),
    ("checkCrcs", "", "true or false, not ''"),
    (
        "mode",
        "PERMISIVE",
        r"unknown value 'PERMISIVE' \(did you mean 'PERMISSIVE'\?\); there are: FAILFAST,",
    ),
    ("maxDecompressedBytes", "0", _BYTES + "'0'"),
    ("maxDecompressedBytes", str(MAX_DECOMPRESSED_BYTES + 1), _BYTES),
    ("maxDecompressedBytes", "-5", _BYTES),
    ("oneTaskPerPartition", "per topic", "true or false, not 'per topic'"),
    ("maxPartitionBytes", "0", _BYTES),
    ("maxPartitionBytes", "2048g", _BYTES),
    ("maxPartitionBytes", "1.5m", _BYTES),
    ("maxPartitionBytes", "m", _BYTES),
    ("maxPartitionBytes", "9" * 5000, _BYTES),
    ("startingOffsets", "[" * 5000, _OFFSETS),
    ("paths", "[" * 5000, "expected a list of paths in JSON"),
    ("maxPartitionBytes", "", _BYTES),
    ("maxPartitionBytes", "five", _BYTES),
    ("maxPartitionBytes", "٣", _BYTES),
    ("valueSchema", "", "expected a schema or a path, not an empty text"),
    ("keySchema", " ", "expected a schema or a path, not an empty text"),
    ("valueMessage", "", "expected the name of a Protobuf message, not an empty text"),
    ("keyMessage", "", "expected the name of a Protobuf message, not an empty text"),
    ("schemas", "", "expected auto or a path, not an empty text"),
    ("framing", "confluence", r"unknown value 'confluence' \(did you mean 'confluent'"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_a_bad_value_is_an_error_with_the_options_name_and_the_remedy(
    name: str, text: str, message: str
) -> None:
    given = {name.lower(): text}
    with pytest.raises(ValueError, match=f"^option {name}: .*{message}"):
        ScanOptions.parse(given if name == "path" else PATH | given)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_misspelt_option_gets_a_suggestion(name: str) -> None:
    for wrong in (name[:-1], name.lower() + "x", name[1:]):
        if wrong.lower() in {known.lower() for known in OPTIONS}:
            continue  # path and paths
        with pytest.raises(ValueError, match=f"^unknown option '{wrong}': did you mean '") as e:
            ScanOptions.parse(PATH | {wrong: "1"})
        assert name in str(e.value) or "path" in name


def test_an_unknown_option_is_an_error_that_lists_all() -> None:
    with pytest.raises(ValueError, match=r"^unknown option 'zzz'; there are: ") as caught:
        ScanOptions.parse(PATH | {"zzz": "1"})
    assert all(name in str(caught.value) for name in OPTIONS)


@pytest.mark.parametrize("given", [{}, {"kind": "files"}, {"paths": "[]"}])
def test_without_a_path_there_is_an_example_of_one(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"^option path is missing: .*load\('/var/kafka/orders-\*"):
        ScanOptions.parse(given)


def test_path_and_paths_are_all_read() -> None:
    options = ScanOptions.parse({"paths": '["/b", "/c"]', "path": "/a"})
    assert options.paths == ("/a", "/b", "/c")


def test_the_options_that_spark_adds_to_a_table_are_ignored() -> None:
    added = {"provider": "kafkaLog", "owner": "me", "serialization.format": "1", "Comment": "x"}
    assert ScanOptions.parse(PATH | added) == ScanOptions.parse(PATH)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_has_a_line_of_docs(name: str) -> None:
    assert len(OPTIONS[name].doc) > 10
    assert not OPTIONS[name].doc.endswith(".")


def test_offsets_as_sparks_connector_writes_them() -> None:
    offsets = {"orders": {str(partition): 10 * partition for partition in range(12)}}
    parsed = ScanOptions.parse(PATH | {"startingOffsets": json.dumps(offsets)}).starting_offsets
    assert parsed == {"orders": {partition: 10 * partition for partition in range(12)}}


def test_rows_with_offsets_are_read_by_partition() -> None:
    for kind in ("records", "batches"):
        options = ScanOptions.parse({"path": "/l", "kind": kind, "oneTaskPerPartition": "true"})
        assert options.one_task_per_partition


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            {"kind": "files", "endingOffsets": "latest"},
            "option endingOffsets: it is for the kinds records, batches and corruption, not files",
        ),
        (
            {"kind": "offsetIndex", "ISOLATIONLEVEL": "read_committed"},
            "option isolationLevel: it is for the kinds records, batches and corruption, not "
            "offsetIndex",
        ),
        (
            {"kind": "batches", "valueSchema": '"string"'},
            "option valueSchema: it is for the kind records, not batches",
        ),
        (
            {"kind": "corruption", "oneTaskPerPartition": "true"},
            "option oneTaskPerPartition: it is for the kinds records and batches, not corruption",
        ),
        ({"framing": "bare"}, "option framing: pass valueSchema, keySchema or schemas, too"),
        ({"valueMessage": "a.B"}, "option valueMessage: pass valueSchema or schemas, too"),
        ({"keyMessage": "a.B"}, "option keyMessage: pass keySchema or schemas, too"),
        ({"valueMessage": "a.B", "keySchema": "x"}, "option valueMessage: pass valueSchema or"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(given: dict[str, str], error: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(error)}"):
        ScanOptions.parse({"path": "/k", **given})


@pytest.mark.parametrize("name", ["framing", "valueMessage"])
@pytest.mark.parametrize("schemas", ["auto", "/k/_schemas-0"])
def test_schemas_are_enough_for_options_of_types(name: str, schemas: str) -> None:
    text = "headers" if name == "framing" else "a.B"
    assert ScanOptions.parse({"path": "/k", name: text, "schemas": schemas}).schemas == schemas
