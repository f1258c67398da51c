"""A partition whose segments hold v0, v1 and v2, as tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanning import offsets_of, read_rows, read_table, write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.scan.predicates import Predicate

RECORDS = [kt.Record(key=b"k%d" % i, value=b"v" * i, timestamp=1000 + i) for i in range(4)]
OLD = (
    kt.message_set(RECORDS, magic=0, base_offset=0)
    + kt.message_set(RECORDS, magic=0, base_offset=4, codec="snappy")
    + kt.message_set(RECORDS, base_offset=8, codec="lz4", timestamp_type=kt.LOG_APPEND_TIME)
)
MIXED = (
    kt.message_set(RECORDS, base_offset=12)
    + kt.batch(RECORDS, base_offset=16, codec="zstd")
    + kt.message_set(RECORDS, base_offset=20, codec="gzip")
    + kt.batch(RECORDS, base_offset=24)
)
SIZES = [1, 150, 10**6]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: OLD, 12: MIXED})


@pytest.mark.parametrize("least", SIZES)
def test_every_record_is_there_however_a_segment_is_split(least: int, folder: Path) -> None:
    assert offsets_of(folder, maxPartitionBytes=least) == list(range(28))
    magics = read_table(folder, columns=["magic"], maxPartitionBytes=least)["magic"].to_pylist()
    assert magics == [0] * 8 + [1] * 8 + [2] * 4 + [1] * 4 + [2] * 4


@pytest.mark.parametrize("least", SIZES)
def test_an_index_may_point_at_messages(least: int, folder: Path) -> None:
    (first, second) = (len(kt.message_set(RECORDS[:n], magic=0)) for n in (1, 3))
    entries = [(1, first), (3, second)]
    index = b"".join(offset.to_bytes(4) + position.to_bytes(4) for offset, position in entries)
    (folder / f"{0:020}.index").write_bytes(index)
    assert offsets_of(folder, maxPartitionBytes=least) == list(range(28))


@pytest.mark.parametrize("least", SIZES)
@pytest.mark.parametrize("offset", range(28))
def test_an_offset_is_found_wherever_it_is(least: int, offset: int, folder: Path) -> None:
    asked = [Predicate("offset", "=", offset)]
    assert offsets_of(folder, predicates=asked, maxPartitionBytes=least) == [offset]


def test_a_set_whose_message_has_offset_zero_is_never_dropped(tmp_path: Path) -> None:
    log = kt.message_set(RECORDS, codec="gzip", wrapper_offset=0)
    folder = write_partition(tmp_path, {0: log})
    assert offsets_of(folder, predicates=[Predicate("offset", ">=", 2)]) == [2, 3]


def test_committed_reads_leave_messages_alone(folder: Path) -> None:
    assert offsets_of(folder, isolationLevel="read_committed") == list(range(28))


def test_a_damaged_message_costs_itself(tmp_path: Path) -> None:
    damaged = bytearray(OLD + MIXED)
    damaged[-1] ^= 1  # the last batch
    damaged[20] ^= 1  # the first message
    folder = write_partition(tmp_path, {0: bytes(damaged)})
    for least in SIZES:
        rows = read_rows(folder, mode="PERMISSIVE", maxPartitionBytes=least)
        offsets = [row["offset"] for row in rows if row["corruption"] is None]
        assert offsets == list(range(1, 24))
        assert len(rows) == 25


def test_batches_of_all_formats_are_one_table(folder: Path) -> None:
    rows = read_rows(folder, kind="batches")
    assert all(row["isValid"] for row in rows)
    sets = [row for row in rows if row["baseOffset"] is None]
    assert [row["lastOffset"] for row in sets] == [7, 11, 23]
    assert [row["recordsCount"] for row in sets] == [None] * 3
    logs = sorted(folder.glob("*.log"))
    assert len(rows) == sum(kafkajit.read_record_batches(log).num_rows for log in logs)
