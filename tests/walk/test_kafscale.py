"""KafScale's segments: head and footer are stepped over if they fit, and are damage if not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kafscale_buckets import segment, write_partition
from scanning import far_away, read_in_small_pieces, read_rows, read_table

import kafkajit
import kafkajit.testing as kt
from kafkajit import CorruptRecordError
from kafkajit.cli import main
from kafkajit.storage.source import Source
from kafkajit.walk.kafscale import is_kafscale, unwrapped

GOOD = segment(20)
HEAD, FOOTER = 32, 16
END = len(GOOD) - FOOTER


def flipped(position: int) -> bytes:
    broken = bytearray(GOOD)
    broken[position] ^= 1
    return bytes(broken)


# The bytes, a part of the error, the records that are left, and the place of the damage.
DAMAGES = {
    "magic": (flipped(0), "it begins with b'JAFS'", 20, (0, HEAD)),
    "version": (flipped(5), "its head has version 0", 20, (0, HEAD)),
    "flags": (flipped(7), "version 1 and flags 1", 20, (0, HEAD)),
    "base offset": (flipped(15), "base offset 21, its name 20", 20, (0, HEAD)),
    "count": (flipped(19), "its head has 21 records, its batches have 20", 20, (END, FOOTER)),
    "crc": (flipped(END), "its footer has crc", 20, (END, FOOTER)),
    "last offset": (flipped(END + 11), "last offset 38, its batches 39", 20, (END, FOOTER)),
    "end magic": (flipped(-1), "it ends with b'END ' instead of b'END!'", 20, (END, FOOTER)),
    "a batch's epoch": (flipped(HEAD + 12), "its footer has crc", 20, (END, FOOTER)),
    "a batch's offset": (flipped(HEAD + 7), "its footer has crc", 20, (END, FOOTER)),
    "cut in the head": (GOOD[:20], "cut short within its head", 0, (0, 20)),
    "only a head": (GOOD[:HEAD], "it has no footer", 0, (0, HEAD)),
    "cut in a batch": (GOOD[: END - 60], "without its footer", 15, None),
    "no footer": (GOOD[:END], "it has no footer", 20, (END, 0)),
    "cut in the footer": (GOOD[:-3], "13 bytes without its footer", 20, (END, FOOTER - 3)),
    "bytes behind": (GOOD + bytes(9), "25 bytes without its footer", 20, (END, FOOTER + 9)),
}
each_damage = pytest.mark.parametrize("damage", DAMAGES)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return write_partition(tmp_path / "default" / "orders" / "3")


def damaged(partition: Path, damage: str) -> Path:
    path = partition / f"segment-{20:020}.kfs"
    path.write_bytes(DAMAGES[damage][0])
    return path


Reader = Callable[[Path, str], int]
READERS: dict[str, Reader] = {
    "read_records": lambda path, mode: kafkajit.read_records(path, mode=mode).num_rows,
    "one file": lambda path, mode: read_table(path, mode=mode).num_rows,
    "batches": lambda path, mode: sum(
        row["recordsCount"] or 0 for row in read_rows(path, mode=mode, kind="batches")
    ),
    "together": lambda path, mode: read_table(path.parent, mode=mode).num_rows - 20,
}


@pytest.mark.parametrize("reader", READERS)
@each_damage
def test_damage_ends_failfast_and_costs_other_modes_only_its_batches(
    damage: str, reader: str, partition: Path
) -> None:
    path = damaged(partition, damage)
    _, words, left, _ = DAMAGES[damage]
    read = READERS[reader]
    assert read(path, "DROPMALFORMED") == left
    if reader == "batches" and "its footer has crc" in words:
        return  # headers are read without checksums
    with pytest.raises(CorruptRecordError, match=words):
        read(path, "FAILFAST")


@each_damage
def test_damage_is_reported_once(damage: str, partition: Path) -> None:
    path = damaged(partition, damage)
    _, words, _, place = DAMAGES[damage]
    for (row,) in (
        read_rows(path, kind="corruption"),
        kafkajit.find_corruption(path).to_pylist(),
        [row["corruption"] for row in read_rows(path, mode="PERMISSIVE") if row["corruption"]],
    ):
        assert words in row["reason"]
        assert place in (None, (row["position"], row["length"]))


def test_an_empty_segment_is_damage_once(partition: Path) -> None:
    path = partition / f"segment-{20:020}.kfs"
    path.write_bytes(b"")
    assert kafkajit.read_records(path, mode="DROPMALFORMED").num_rows == 0
    for (row,) in (
        kafkajit.find_corruption(path).to_pylist(),
        kafkajit.read_records(path, mode="PERMISSIVE")["corruption"].to_pylist(),
    ):
        assert "cut short within its head" in row["reason"]
        assert (row["position"], row["length"]) == (0, 0)


def test_a_bad_batch_is_the_only_damage(partition: Path) -> None:
    path = partition / f"segment-{20:020}.kfs"
    path.write_bytes(flipped(HEAD + 70))
    (row,) = read_rows(path, kind="corruption")
    assert (row["position"], row["firstMissingOffset"], row["lastMissingOffset"]) == (HEAD, 20, 24)
    assert read_table(path, mode="DROPMALFORMED").num_rows == 15


def test_checksums_are_checked_on_request(partition: Path) -> None:
    path = damaged(partition, "crc")
    assert kafkajit.read_records(path, check_crcs=False).num_rows == 20
    assert read_table(partition, checkCrcs=False).num_rows == 40
    assert read_table(path, startingOffsets='{"orders": {"3": 30}}').num_rows == 10


def test_an_empty_object_is_an_error(partition: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = partition / f"segment-{20:020}.kfs"
    path.write_bytes(b"")
    with pytest.raises(CorruptRecordError, match="segment is empty in"):
        read_table(partition)
    with pytest.raises(CorruptRecordError, match="cut short"):
        kafkajit.read_records(path)
    assert read_table(partition, mode="DROPMALFORMED").num_rows == 20
    assert "segment is empty" in caplog.text


def test_its_bytes_are_recognized_without_a_name() -> None:
    assert is_kafscale(Source(GOOD))
    assert not is_kafscale(Source(GOOD[HEAD:END]))
    assert kafkajit.read_records(GOOD)["offset"].to_pylist() == list(range(20, 40))
    with pytest.raises(CorruptRecordError, match="it ends with"):
        kafkajit.read_records(flipped(-1))


def test_positions_are_those_in_the_object(partition: Path) -> None:
    expected = [row["position"] for row in kafkajit.read_record_batches(GOOD).to_pylist()]
    assert expected[0] == HEAD
    for rows in (read_rows(partition, kind="batches"), read_rows(partition, maxPartitionBytes=9)):
        assert rows[0]["position"] == HEAD if "position" in rows[0] else True
    path = partition / f"segment-{20:020}.kfs"
    assert [row["position"] for row in read_rows(path, kind="batches")] == expected
    together = [row for row in read_rows(partition, kind="batches") if row["baseOffset"] >= 20]
    assert [row["position"] for row in together] == expected


def test_remote_segments_are_the_same(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_table(partition)
    uri = far_away(monkeypatch, partition.parents[2])
    read_in_small_pieces(monkeypatch)
    assert read_table(f"{uri}/default/orders/3").equals(expected)
    damaged(partition, "a batch's epoch")
    with pytest.raises(CorruptRecordError, match="its footer has crc"):
        read_table(f"{uri}/default/orders/3")
    damaged(partition, "cut in a batch")
    assert read_table(f"{uri}/default/orders/3", mode="DROPMALFORMED").num_rows == 35


def test_a_large_segment_is_read_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.walk.threads.LEAST_BYTES", 50)
    monkeypatch.setattr("kafkajit.reader.LEAST_BYTES", 50)
    assert kafkajit.read_records(GOOD, threads=3).num_rows == 20
    with pytest.raises(CorruptRecordError, match="its footer has crc"):
        kafkajit.read_records(flipped(HEAD + 12), threads=3)


def test_the_batches_of_a_sound_segment_stand_alone() -> None:
    assert unwrapped(Source(GOOD), checks_crc=True).tobytes() == GOOD[HEAD:END]
    for content, words, *_ in DAMAGES.values():
        if "its name" not in words:
            assert unwrapped(Source(content), checks_crc=True) is None


def test_dump_log_prints_its_batches(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = partition / f"segment-{20:020}.kfs"
    assert main(["dump-log", "--files", str(path), "--print-data-log"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[1] == "Log starting offset: 20"
    assert "position: 32 " in lines[2]
    assert lines[-1].endswith("payload: 39")
    assert main(["dump-log", str(partition)]) == 0  # without KafScale's own indexes
    assert capfd.readouterr().out.count("baseOffset: ") == 8
    for mode in ([], ["--mode", "FAILFAST"]):
        for damage in ("magic", "end magic", "cut in a batch", "last offset", "no footer"):
            damaged(partition, damage)
            assert main(["dump-log", *mode, str(path)]) == 1
            assert DAMAGES[damage][1] in capfd.readouterr().err


def test_a_log_of_them_begins_and_ends_at_their_offsets(partition: Path) -> None:
    log = kafkajit.Log(partition)
    assert (log.topic, log.partition, log.start_offset, log.end_offset) == ("orders", 3, 0, 40)
    assert log.read(18, 4)["offset"].to_pylist() == [18, 19, 20, 21]


def test_restore_makes_a_brokers_log_of_them(partition: Path, tmp_path: Path) -> None:
    target = tmp_path / "restored"
    arguments = ["--apply", "--no-topic-id", str(partition.parents[1]), str(target)]
    assert main(["restore", *arguments]) == 0
    logs = sorted((target / "orders-3").glob("*.log"))
    assert [log.name[:20] for log in logs] == [f"{0:020}", f"{20:020}"]
    assert logs[1].read_bytes() == GOOD[HEAD:END]
    damaged(partition, "a batch's epoch")
    assert main(["restore", *arguments[:-1], str(tmp_path / "again")]) == 1


def test_the_builder_writes_what_kafscales_own_code_writes() -> None:
    """pkg/storage/segment.go built these bytes of the same batch, with Go 1.26."""
    batch = kt.batch([kt.Record(key=b"k", value=b"v")], base_offset=42)
    built = kt.kafscale_segment(batch, 42, 42, 1)
    assert built[:HEAD].hex() == GO_HEAD
    assert built[-FOOTER:].hex() == GO_FOOTER
    assert built[HEAD:-FOOTER] == batch


GO_HEAD = "4b41465300010000000000000000002a000000010000018bcfe5680000000000"
GO_FOOTER = "652f2249000000000000002a454e4421"
