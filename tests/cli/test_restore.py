from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import NamedTuple

import data
import pytest
from changes import hidden
from corpus import DATA, rows_of
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from scanning import write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main

LOCAL = data.objects() / "local-storage"
ENCRYPTED = data.objects() / "aiven-encrypted" / "remote"
ID = "p-KjpqSmTLGaf_K7A1cplg"


class Run(NamedTuple):
    code: int
    out: list[str]
    err: str


@pytest.fixture
def restore(capsys: pytest.CaptureFixture[str]) -> Restore:
    return Restore(capsys)


class Restore:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Run:
        try:
            code = main(["restore", *map(str, words)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = self._capsys.readouterr()
        return Run(code, captured.out.splitlines(), captured.err)


def test_without_apply_partitions_are_listed_and_nothing_is_written(
    restore: Restore, tmp_path: Path
) -> None:
    source, folder = LOCAL / "remote", tmp_path / "kafka"
    run = restore("--topic", "orders", source, folder)
    assert run == Run(
        2,
        [
            "orders-0: 10 segments, 31,615 bytes, offsets 0 to 298, 2023-11-14T22:13:21.000Z to "
            "2023-11-15T22:15:40.000Z",
            f"  topic id {ID}",
            "orders-1: 9 segments, 31,395 bytes, offsets 0 to 298, 2023-11-14T22:15:56.000Z to "
            "2023-11-15T22:18:19.000Z",
            f"  topic id {ID}",
            "2 partitions, 19 segments, 63,010 bytes to restore",
            f"Nothing was changed. To do it: kafkajit restore --apply --topic orders {source} "
            f"{folder}",
        ],
        "",
    )
    assert not folder.exists()


def test_with_apply_partitions_are_written(restore: Restore, tmp_path: Path) -> None:
    run = restore("--partition", "orders-0", "--apply", LOCAL / "remote", tmp_path)
    assert run.code == 0
    assert run.out[1:] == [f"  topic id {ID}", "  done"]
    assert kafkajit.Log(tmp_path / "orders-0").end_offset == 299
    assert hidden(tmp_path) == []
    again = restore("--apply", LOCAL / "remote", tmp_path)
    assert again.code == 1
    assert again.err == (
        f"kafkajit restore: {tmp_path}/orders-0 is not overwritten: it is there already; name "
        "other partitions, or pass --skip-existing\n"
    )
    rest = restore("--apply", "--skip-existing", LOCAL / "remote", tmp_path)
    assert rest.code == 0
    assert rest.out[-2:] == [
        "orders-0: left out: it is there already",
        "2 partitions, 18 segments, 63,459 bytes restored",
    ]


def test_a_time_is_where_a_log_ends(restore: Restore, tmp_path: Path) -> None:
    words = ("--partition", "orders-0", "--ending-timestamp", "2023-11-14T23:00:00Z")
    run = restore(*words, "--apply", LOCAL / "remote", tmp_path)
    assert run.code == 0
    log = kafkajit.Log(tmp_path / "orders-0")
    assert 0 < log.end_offset < 299
    assert log.offset_for_timestamp(1_700_002_800_000) is None


def test_several_sources_are_one_log(restore: Restore, tmp_path: Path) -> None:
    words = ("--topic", "orders", "--quiet", "--apply")
    run = restore(*words, LOCAL / "remote", LOCAL / "logs", tmp_path)
    assert run == Run(0, ["2 partitions, 21 segments, 65,957 bytes restored"], "")
    assert kafkajit.Log(tmp_path / "orders-0").end_offset == 314


def test_encrypted_segments_need_their_keys(restore: Restore, tmp_path: Path) -> None:
    run = restore("--apply", ENCRYPTED, tmp_path / "kafka")
    assert run.code == 1
    assert "--private-key" in run.err
    assert not (tmp_path / "kafka").exists()
    key = data.objects() / "keys" / "first.private.pem"
    assert restore("--apply", "--private-key", f"first={key}", ENCRYPTED, tmp_path).code == 0
    assert kafkajit.Log(tmp_path / "orders-0").end_offset == 142


def test_a_damaged_partition_is_reported_and_the_others_are_restored(
    restore: Restore, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    for name in ("none-0", "gzip-0"):
        shutil.copytree(DATA / "v2" / name, backup / name)
    (log,) = (backup / "none-0").glob("*.log")
    last = rows_of(kafkajit.read_record_batches(log))[-1]
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    run = restore("--apply", backup, tmp_path / "kafka")
    assert run.code == 1
    assert "kafkajit restore: CorruptRecordError: Record is corrupt" in run.err
    assert str(log) in run.err
    end = last["baseOffset"]
    assert run.err.endswith(f"with --ending-offset {end} the log ends before it\n")
    assert run.out[-1].startswith("1 partition, 1 segment,")
    assert sorted(path.name for path in (tmp_path / "kafka").iterdir()) == ["gzip-0"]
    words = ("--partition", "none-0", "--ending-offset", end)
    assert restore(*words, "--apply", backup, tmp_path / "kafka").code == 0
    assert kafkajit.Log(tmp_path / "kafka" / "none-0").end_offset == end


def test_a_partition_that_cannot_be_planned_is_reported_and_the_others_are_restored(
    restore: Restore, tmp_path: Path
) -> None:
    # A size that leads past the end of the log, and a sound batch behind it.
    backup = tmp_path / "backup"
    batches = [kt.batch([kt.Record(value=b"v")], base_offset=at) for at in range(3)]
    log = b"".join(batches)
    size = struct.pack(">i", len(log))
    at = len(batches[0]) + 8
    write_partition(backup, [log], "damaged-0")
    (damaged,) = (backup / "damaged-0").glob("*.log")
    damaged.write_bytes(log[:at] + size + log[at + 4 :])
    write_partition(backup, [log], "sound-0")
    for words in ((), ("--apply",)):
        run = restore(*words, backup, tmp_path / "kafka")
        assert run.code == 1
        assert run.err.startswith("kafkajit restore: CorruptRecordError: record size")
        assert str(damaged) in run.err
        assert run.out[0].startswith("sound-0: 1 segment")
    assert sorted(path.name for path in (tmp_path / "kafka").iterdir()) == ["sound-0"]
    words = ("--partition", "damaged-0", "--ending-offset", 1, "--apply")
    assert restore(*words, backup, tmp_path / "kafka").code == 0
    assert kafkajit.Log(tmp_path / "kafka" / "damaged-0").end_offset == 1


def test_json_has_a_row_for_each_partition(restore: Restore, tmp_path: Path) -> None:
    words = ("--format", "json", "--partition", "orders-0", "--topic-id", f"orders={'y' * 21}A")
    run = restore(*words, LOCAL / "remote", tmp_path / "kafka")
    assert run.code == 2
    (line,) = run.out
    assert json.loads(line) == {
        "command": "restore",
        "applied": False,
        "partitions": [
            {
                "folder": f"{tmp_path}/kafka/orders-0",
                "isNeeded": True,
                "keptIn": None,
                "source": str(LOCAL / "remote" / "kafka-tiered-storage" / f"orders-0-{ID}"),
                "segments": 10,
                "bytes": 31615,
                "logStartOffset": 0,
                "logEndOffset": 299,
                "firstTimestamp": 1700000001000,
                "lastTimestamp": 1700086540000,
                "topicId": "y" * 21 + "A",
                "leaderEpoch": None,
                "rewrittenBatches": [],
                "notes": ["topic id " + "y" * 21 + "A"],
            }
        ],
        "errors": [],
        "leftOut": [],
    }


def test_the_sample_may_be_a_source(restore: Restore, tmp_path: Path) -> None:
    words = ("--topic", "orders", "sample:", tmp_path / "kafka")
    assert restore(*words).out[-1] == (
        "Nothing was changed. To do it: kafkajit restore --apply --topic orders sample: "
        f"{tmp_path}/kafka"
    )
    assert restore("--apply", *words).code == 0


def test_a_secret_is_not_printed(
    restore: Restore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = (SubTreeFileSystem(str(LOCAL), LocalFileSystem()), "remote")
    bucket = type("Bucket", (), {"from_uri": staticmethod(lambda _: opened)})
    monkeypatch.setattr("kafkajit.places.location.FileSystem", bucket)
    run = restore("--quiet", "away://key:sec/ret@remote", tmp_path / "kafka")
    assert run.out[-1] == "Nothing was changed. To do it, pass --apply, too."
    assert "ret@" not in f"{run.out}{run.err}"


@pytest.mark.parametrize(
    "option", ["--topic-id=orders", "--private-key=first", "--ending-timestamp=today"]
)
def test_a_malformed_option_is_refused(option: str, restore: Restore) -> None:
    run = restore(option, "a", "b")
    assert run.code == 1
    assert f"argument {option.partition('=')[0]}: " in run.err
