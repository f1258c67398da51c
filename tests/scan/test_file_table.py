"""The files at a path as a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from scanning import options_of, read_rows

import kafkajit.testing as kt
from kafkajit.scan.file_table import read_files
from kafkajit.scan.table import schema_of

OLD, NEW, OTHER = (letter * 21 + "A" for letter in "abc")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A topic that was made anew: in a broker's folder, and of both ids in tiered storage."""
    log = kt.batch([kt.Record(value=b"v")])
    for folder, name in (
        ("orders-0", f"{0:020}.log"),
        ("payments-0", f"{0:020}.log"),
        (f"orders-0-{OLD}", f"{0:020}-{OTHER}.log"),
        (f"orders-0-{OLD}", f"{0:020}-{OTHER}.snapshot"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes(log)
    text = f"version: 0\ntopic_id: {NEW}"
    (tmp_path / "orders-0" / "partition.metadata").write_text(text)
    return tmp_path


def test_each_segment_has_the_id_of_its_topic(root: Path) -> None:
    rows = read_rows(root, kind="files")
    ids = {row["path"]: row["topicId"] for row in rows if row["suffix"] == ".log"}
    assert ids == {
        f"{root}/orders-0/{0:020}.log": NEW,
        f"{root}/orders-0-{OLD}/{0:020}-{OTHER}.log": OLD,
        f"{root}/payments-0/{0:020}.log": None,
    }
    batches = read_rows(root, kind="batches")
    assert {ids[row["path"]] for row in batches if row["topic"] == "orders"} == {OLD, NEW}


def test_a_damaged_partition_metadata_costs_the_id(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "orders-0" / "partition.metadata").write_text("x")
    rows = read_rows(root, kind="files")
    assert {row["topicId"] for row in rows if "/orders-0/" in row["path"]} == {None}
    assert "the topic's id is not known" in caplog.text


def test_no_file_is_read_for_other_columns(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("kafkajit.scan.file_table.parse_partition_metadata", refused)
    options = options_of(root, kind="files")
    schema = pa.schema([field for field in schema_of(options) if field.name != "topicId"])
    assert read_files(options, [], schema).num_rows == 5
