from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit.schema import PARTITION_METADATA_COLUMNS, table_schema
from kafkajit.state.partition_metadata import partition_metadata_text

FILES = sorted(DATA.rglob("partition.metadata"))
ID = "pUM3BMsVQk2fe-klgEgLLA"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_the_topic_ids_of_a_broker_are_read(path: Path) -> None:
    version, topic_id = re.fullmatch(r"version: (\d)\ntopic_id: (.{22})", path.read_text()).groups()
    table = kafkajit.read_partition_metadata(path)
    assert table.schema == table_schema(PARTITION_METADATA_COLUMNS)
    assert table.to_pylist() == [{"version": int(version), "topicId": topic_id}]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_brokers_file_is_written_again(path: Path) -> None:
    (topic_id,) = kafkajit.read_partition_metadata(path)["topicId"].to_pylist()
    assert partition_metadata_text(topic_id) == path.read_bytes()


def test_the_corpus_has_topic_ids() -> None:
    assert len(FILES) > 50
    ids = {kafkajit.read_partition_metadata(path)["topicId"][0].as_py() for path in FILES}
    assert len(ids) > 40


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (f"version: 0\ntopic_id: {ID}", 0),
        (f"version:\t +7\r\n:  {ID}==: \r\nmore\xff\n".replace("\t +", "\t+"), 7),
        (f"version: 2147483647: \ntopic_id: {ID[:-1]}B", 2147483647),
    ],
)
def test_what_kafka_accepts_is_read(text: str, version: int) -> None:
    table = kafkajit.read_partition_metadata(text.encode("latin-1"))
    assert table.to_pylist() == [{"version": version, "topicId": ID}]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "File ended prematurely", 1),
        ("version: 0\n", "File ended prematurely", 2),
        ("version: x\n", "Malformed line in checkpoint file: version: x", 1),
        ("version: 2147483648\n", "Malformed line in checkpoint file: version: 2147483648", 1),
        ("version:0\n", "Malformed line in checkpoint file: version:0", 1),
        ("version: \n", "Malformed line in checkpoint file: version: ", 1),
        ("a: b: c\n", "Malformed line in checkpoint file: a: b: c", 1),
        ("version: -1\n", "Unrecognized version of partition metadata file: -1", 1),
        ("version: 0\ntopic_id\n", "Malformed line in checkpoint file: topic_id", 2),
        (f"version: 0\ntopic_id: {ID}A", f"Malformed line in checkpoint file: topic_id: {ID}A", 2),
        (f"version: 0\ntopic_id: {'A' * 22}", "Invalid topic ID in partition metadata file", 2),
    ],
)
def test_what_kafka_refuses_is_an_error_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(kafkajit.CorruptCheckpointError) as caught:
        kafkajit.read_partition_metadata(text.encode())
    assert (caught.value.message, caught.value.line) == (message, line)


@given(st.integers(0, 50), st.binary(max_size=3), st.integers(0, 3))
def test_whatever_the_bytes_an_id_is_read_or_refused(at: int, put: bytes, cut: int) -> None:
    content = f"version: 0\ntopic_id: {ID}".encode()
    content = content[:at] + put + content[at + cut :]
    try:
        (row,) = kafkajit.read_partition_metadata(content).to_pylist()
    except kafkajit.CorruptCheckpointError:
        return
    first, second = re.split("\r\n|\r|\n", content.decode("utf-8", "replace"))[:2]
    assert re.fullmatch(rf".*:\s+[+]?0*{row['version']}(:\s+)?", first)
    assert re.fullmatch(rf".*:\s+{row['topicId'][:-1]}.(==)?(:\s+)?", second)
