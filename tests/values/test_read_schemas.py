"""read_schemas: the schemas that a registry keeps in its topic, as it reads them when it starts."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scanning import write_partition
from typed_logs import Records, schema_key, schema_record, write_registry

import kafkajit
from kafkajit import InvalidSchemaError
from kafkajit.values.schemas import Schemas

RECORDS: Records = [
    ({"keytype": "NOOP", "magic": 0}, None),
    schema_record("orders-value", 1, 1, '"int"'),
    schema_record("orders-value", 2, 2, '"long"'),
    schema_record("orders-value", 3, 3, '"double"'),
    schema_record("payments-value", 1, 1, '"int"'),
    ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
    ({"keytype": "MODE", "subject": None, "magic": 0}, {"mode": "READWRITE"}),
    ({"magic": 1, "version": 1, "subject": "odd", "keytype": "SCHEMA"}, {
        "schema": '{"type": "record", "name": "O", "fields": [{"name": "m", "type": "Money"}]}',
        "subject": "odd", "version": 1, "id": 9,
        "references": [{"name": "Money", "subject": "money", "version": 1}],
        "metadata": {"properties": {"owner": "ann"}},
    }),
    schema_record("money", 1, 8, '{"type": "fixed", "name": "Money", "size": 8}'),
    schema_record("proto", 1, 10, "message A {}", schemaType="PROTOBUF"),
    schema_record("json", 1, 11, "{}", schemaType="JSON"),
    schema_record(":.other:orders-value", 1, 1, '"string"'),
    ({"keytype": "DELETE_SUBJECT", "subject": "payments-value", "magic": 0},
     {"subject": "payments-value", "version": 1}),
    schema_record("orders-value", 3, 3, '"double"', deleted=True),
    (schema_key("orders-value", 2), None),
    (schema_key("never-seen", 2), None),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_registry(tmp_path / "logs" / "_schemas-0", RECORDS)


def test_a_subject_may_be_deleted_and_registered_again(tmp_path: Path) -> None:
    def deletion(last: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return (
            {"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0},
            {"subject": "a", "version": last},
        )

    folder = write_registry(
        tmp_path / "_schemas-0",
        [
            *(schema_record("a", version, version, '"int"') for version in (1, 2, 3)),
            deletion(2),
            schema_record("a", 2, 2, '"int"'),
            (schema_key("a", 1), None),
            schema_record("b", 1, 1, '"int"'),
            deletion(2),
            deletion(2),
            schema_record("a", 4, 4, '"int"'),
        ],
    )
    table = kafkajit.read_schemas(folder)
    rows = {(row["subject"], row["version"]): row["deletion"] for row in table.to_pylist()}
    assert rows == {
        ("a", 1): "hard",
        ("a", 2): "soft",
        ("a", 3): None,
        ("b", 1): None,
        ("a", 4): None,
    }


def test_each_version_of_each_subject_is_a_row(folder: Path) -> None:
    table = kafkajit.read_schemas(folder)
    columns = ["subject", "version", "id", "schemaType", "deletion", "context", "offset"]
    assert [tuple(row.values()) for row in table.select(columns).to_pylist()] == [
        ("orders-value", 1, 1, "AVRO", None, ".", 1),
        ("orders-value", 2, 2, "AVRO", "hard", ".", 2),
        ("orders-value", 3, 3, "AVRO", "soft", ".", 13),
        ("payments-value", 1, 1, "AVRO", "soft", ".", 4),
        ("odd", 1, 9, "AVRO", None, ".", 7),
        ("money", 1, 8, "AVRO", None, ".", 8),
        ("proto", 1, 10, "PROTOBUF", None, ".", 9),
        ("json", 1, 11, "JSON", None, ".", 10),
        (":.other:orders-value", 1, 1, "AVRO", None, ".other", 11),
    ]
    odd = table.to_pylist()[4]
    assert odd["references"] == [{"name": "Money", "subject": "money", "version": 1}]
    assert json.loads(odd["metadata"]) == {"properties": {"owner": "ann"}}


def alias_record(subject: str, alias: str | None) -> Any:
    return ({"keytype": "CONFIG", "subject": subject, "magic": 0}, {"alias": alias})


def test_a_subject_may_have_aliases(tmp_path: Path) -> None:
    records = [
        schema_record("orders-value", 1, 1, '"int"'),
        schema_record("sales-value", 1, 2, '"string"'),
        schema_record(":.eu:orders", 1, 3, '"long"'),
        alias_record("sales-value", "orders-value"),
        alias_record("old-value", "orders-value"),
        alias_record("gone-value", "orders-value"),
        alias_record("none-value", None),
        alias_record(":.eu:purchases", "orders"),
        alias_record("europe", ":.eu:orders"),
        ({"keytype": "CONFIG", "subject": "gone-value", "magic": 0}, None),
        ({"keytype": "CONFIG", "magic": 0}, {"alias": "orders-value"}),
    ]
    folder = write_registry(tmp_path / "_schemas-0", records)
    table = kafkajit.read_schemas(folder)
    assert table["aliases"].to_pylist() == [
        ["sales-value", "old-value"],
        [],
        [":.eu:purchases", "europe"],
    ]
    for schemas in (Schemas.of(folder), Schemas.of(table)):
        newest = {
            name: found.text if (found := schemas.newest(name)) else None
            for name in ("sales-value", "old-value", "gone-value", ":.eu:purchases", "europe")
        }
        assert newest == {
            "sales-value": '"int"',  # although there is such a subject
            "old-value": '"int"',
            "gone-value": None,
            ":.eu:purchases": '"long"',
            "europe": '"long"',
        }


def test_the_folder_may_be_that_of_all_logs(folder: Path) -> None:
    write_registry(folder.parent / "orders-0", RECORDS[:1])
    assert kafkajit.read_schemas(folder.parent).equals(kafkajit.read_schemas(folder))
    with pytest.raises(FileNotFoundError, match=r"no log of _schemas at .*orders-0"):
        kafkajit.read_schemas(folder.parent / "orders-0")
    other = write_registry(folder.parent / "registry-0", RECORDS[:2])
    assert kafkajit.read_schemas(other, topic="registry").num_rows == 1


def test_values_are_decoded_with_the_schemas_of_the_log(folder: Path) -> None:
    """Also with schemas that have been deleted, by either mark."""
    values = [b"\0\0\0\0\1\x08", b"\0\0\0\0\2\x0a", b"\0\0\0\0\3" + bytes(8)]
    for schemas in (folder, folder.parent, kafkajit.read_schemas(folder), str(folder)):
        found = kafkajit.decode_values(values, "double", schemas=schemas)
        assert found.to_pylist() == [4.0, 5.0, 0.0]
    # The newest version that is not deleted is the one to read into.
    assert kafkajit.decode_values(values[:1], schemas=folder).type == pa.int32()


def test_a_schema_may_use_others(folder: Path) -> None:
    found = kafkajit.decode_values([b"\0\0\0\0\x09" + b"12345678"], schemas=folder)
    assert found.to_pylist() == [{"m": b"12345678"}]
    lonely = kafkajit.read_schemas(folder).slice(4, 1)
    with pytest.raises(InvalidSchemaError, match="version 1 of 'money', which does not exist"):
        kafkajit.decode_values([b"\0\0\0\0\x09" + b"12345678"], schemas=lonely)


def test_records_that_are_not_a_registrys_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records: Records = [
        (None, None),
        ("x", None),
        (schema_key("a", 1), {"subject": "a"}),
        schema_record("a", 1, 1, '"int"'),
        schema_record("b", 1, 1, '"long"'),
    ]
    caplog.set_level(logging.WARNING, logger="kafkajit")
    table = kafkajit.read_schemas(write_registry(tmp_path / "_schemas-0", records))
    assert table["id"].to_pylist() == [1, None]
    words = "3 of 5 records do not come from a schema registry; the first is at offset 0: "
    assert words in caplog.text
    with pytest.raises(
        InvalidSchemaError, match="none of its 2 records comes from a schema registry"
    ):
        kafkajit.read_schemas(write_registry(tmp_path / "b" / "_schemas-0", records[:2]))
    assert "the id 1 has another schema at offset 4 than at offset 3" in caplog.text


# The test vectors of Confluent's registry: an Avro schema with and without references and metadata.
PERSON = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "namespace": "io.confluent.kafka.example",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "age", "type": "int"},
            {"name": "ssn", "type": "string"},
            {"name": "user", "type": "io.confluent.kafka.example.User"},
            {"name": "address", "type": "io.confluent.kafka.example.Address"},
        ],
    },
    separators=(",", ":"),
)
REFERENCES = [
    {"name": "io.confluent.kafka.example.User", "subject": "User", "version": 1},
    {"name": "io.confluent.kafka.example.Address", "subject": "Address", "version": 2},
]
METADATA = {
    "tags": {"team": ["data-engineering"], "environment": ["production", "staging"]},
    "properties": {
        "description": "Person schema for user management",
        "owner": "data-team",
        "version": "1.0.0",
    },
    "sensitive": ["ssn", "credit-card"],
}


@pytest.mark.parametrize(
    ("more", "guid"),
    [
        ({}, "d629bb05-ad85-3d20-fbcb-895de3c459f7"),
        ({"metadata": METADATA}, "2034166c-90a8-1166-0ff2-f5f62c80dbe0"),
        ({"references": REFERENCES}, "5c08d70e-5347-41b2-6369-199425d044eb"),
        ({"references": REFERENCES, "metadata": METADATA}, "3619d8e0-2ee8-de51-0d9e-2520d39174d5"),
        ({"ruleSet": {"domainRules": []}}, None),
        ({"md5": "EBESExQVFhcYGRobHB0eHw=="}, "10111213-1415-1617-1819-1a1b1c1d1e1f"),
    ],
)
def test_a_guid_is_that_of_the_registry(
    more: dict[str, Any], guid: str | None, tmp_path: Path
) -> None:
    folder = write_registry(
        tmp_path / "_schemas-0", [schema_record("person", 1, 1, PERSON, **more)]
    )
    assert kafkajit.read_schemas(folder)["guid"].to_pylist() == [guid]


def test_schemas_come_from_files_as_well(tmp_path: Path) -> None:
    (tmp_path / "money.avsc").write_text('{"type": "fixed", "name": "Money", "size": 2}')
    (tmp_path / "all.json").write_text(
        json.dumps([{"subject": "a", "version": 1, "id": 5, "schema": '"int"'}])
    )
    (tmp_path / "notes.txt").write_text("-")
    assert len(Schemas.of(tmp_path)) == 2
    assert kafkajit.decode_values([b"\0\0\0\0\5\2"], schemas=tmp_path).to_pylist() == [1]
    found = kafkajit.decode_values([b"ab"], tmp_path / "money.avsc", framing="bare")
    assert found.to_pylist() == [b"ab"]
    with pytest.raises(InvalidSchemaError, match=r"there are no \.avsc or \.proto files"):
        Schemas.of(tmp_path / "notes.txt")
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(InvalidSchemaError, match="not a registry's answer to GET /schemas"):
        Schemas.of(tmp_path / "bad.json")


def test_markers_of_transactions_are_not_the_registrys_records(tmp_path: Path) -> None:
    """As the registry's own consumer, which never sees them."""
    key, value = schema_record("orders-value", 1, 1, '"int"')
    table = pa.table(
        {
            "key": pa.array([json.dumps(key).encode(), None]),
            "value": pa.array([json.dumps(value).encode(), None]),
            "controlType": pa.array([None, "COMMIT"]),
        }
    )
    log = kafkajit.encode_batches(table)
    folder = write_partition(tmp_path, {0: log}, "_schemas-0")
    assert kafkajit.read_schemas(folder)["id"].to_pylist() == [1]
