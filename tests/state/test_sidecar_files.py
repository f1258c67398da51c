from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from corpus import DATA

import kafkajit
from kafkajit.schema import table_schema
from kafkajit.state.sidecar_files import SIDECAR_FILES, kind_of
from kafkajit.storage.source import as_bytes

BASE_OFFSET = 42
READERS = {
    "offsetIndex": lambda source: kafkajit.index.read_offset_index(source, BASE_OFFSET),
    "timeIndex": lambda source: kafkajit.index.read_time_index(source, BASE_OFFSET),
    "transactionIndex": kafkajit.index.read_transaction_index,
    "producers": kafkajit.read_producer_snapshot,
    "leaderEpochs": kafkajit.read_leader_epochs,
    "checkpoints": kafkajit.read_checkpoint,
    "partitionMetadata": kafkajit.read_partition_metadata,
    "metaProperties": kafkajit.read_meta_properties,
    "quorumState": kafkajit.read_quorum_state,
}
OFFSET = "00000000000000000042"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"{OFFSET}.snapshot", "producers"),
        (f"{OFFSET}.snapshot.deleted", "producers"),
        (f"{OFFSET}.snapshot.swap", None),  # Kafka swaps segments and their indexes
        (f"{OFFSET}.snapshot.dump.out", None),
        ("42.snapshot", None),
        (f"{OFFSET}.log", None),
        ("leader-epoch-checkpoint", "leaderEpochs"),
        ("leader-epoch-checkpoint.tmp", None),
        ("cleaner-offset-checkpoint", "checkpoints"),
        ("log-start-offset-checkpoint", "checkpoints"),
        ("recovery-point-offset-checkpoint", "checkpoints"),
        ("replication-offset-checkpoint", "checkpoints"),
        (f"{OFFSET}-0000000001.checkpoint", None),  # of KRaft: a log
        ("bootstrap.checkpoint", None),
        ("partition.metadata", "partitionMetadata"),
        ("partition_metadata", None),
        ("meta.properties", "metaProperties"),
        ("quorum-state", "quorumState"),
    ],
)
def test_a_file_s_name_says_its_kind(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind_of(f"/var/kafka/orders-3/{name}") == kind
    assert kind_of(Path(name)) == kind


def test_every_file_of_a_broker_is_known_and_read_as_its_reader_reads_it() -> None:
    kinds = set()
    for path in sorted(DATA.rglob("*")):
        kind = kind_of(path)
        if kind is None:
            continue
        table = SIDECAR_FILES[kind].parse(as_bytes(path.read_bytes()), str(path), BASE_OFFSET)
        assert table.schema == table_schema(SIDECAR_FILES[kind].columns)
        assert table == READERS[kind](path)
        assert table == READERS[kind](memoryview(path.read_bytes()))
        kinds.add(kind)
    assert kinds >= READERS.keys()


@pytest.mark.parametrize("kind", READERS)
def test_an_error_of_a_parser_names_the_path(kind: str) -> None:
    with pytest.raises(kafkajit.KafkaJitError) as caught:
        SIDECAR_FILES[kind].parse(as_bytes(b"\xff=\\u\nversion"), "a/b", BASE_OFFSET)
    assert caught.value.path == "a/b"


@pytest.mark.parametrize("kind", SIDECAR_FILES)
def test_a_table_of_many_files_names_no_column_twice(kind: str) -> None:
    side_file = SIDECAR_FILES[kind]
    names = [*side_file.path_columns, *side_file.columns, "path"]
    assert list(side_file.folder_columns) == names
    assert all(column.doc for column in side_file.folder_columns.values())
    assert all(isinstance(column.type, pa.DataType) for column in side_file.folder_columns.values())


@pytest.mark.parametrize("kind", SIDECAR_FILES)
def test_a_file_is_called_what_its_name_is_matched_by(kind: str) -> None:
    names = SIDECAR_FILES[kind].called.replace("20 digits and ", OFFSET).split(", ")
    assert [kind_of(name) for name in names] == [kind] * len(names)
