"""An export of a log that is truncated, made again or copied while it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.scan import table
from kafkajit.scan.export import exporter
from kafkajit.scan.table import read_split
from kafkajit.state.leader_epochs import LEADER_EPOCHS, leader_epochs_text

ID = "pUM3BMsVQk2fe-klgEgLLA"
FIRST, SECOND = f"{0:020}.log", f"{100:020}.log"


def batches(first: int, count: int, text: str = "old", epoch: int = 0, step: int = 10) -> bytes:
    return b"".join(
        kt.batch(
            [kt.Record(value=f"{text}{at + n:04}".encode()) for n in range(10)],
            base_offset=at,
            last_offset_delta=step - 1,
            partition_leader_epoch=epoch,
        )
        for at in range(first, first + count, step)
    )


class Log:
    """A log of two segments, and a change that is made when the first one has been read."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = root / "logs" / "orders-0"
        self.folder.mkdir(parents=True)
        self.out = root / "out"
        self.put(FIRST, batches(0, 100))
        self.put(SECOND, batches(100, 100))
        self.put("partition.metadata", f"version: 0\ntopic_id: {ID}\n".encode())
        self.put(LEADER_EPOCHS, leader_epochs_text([(0, 0)]))
        self.changes: list[Callable[[], object]] = []

        self.early: list[Callable[[], object]] = []

        def reading(*args: object) -> object:
            if self.early:
                self.early.pop(0)()
            yield from read_split(*args)  # type: ignore[arg-type]
            if self.changes:
                self.changes.pop(0)()

        monkeypatch.setattr(table, "small_segments", lambda _: ())  # which are read at once
        monkeypatch.setattr(table, "read_split", reading)

    def put(self, name: str, content: bytes) -> None:
        (self.folder / name).write_bytes(content)

    def export(self) -> tuple[int, list[str]]:
        """The exit code, and the values that are exported."""
        words = ["export", str(self.folder.parent), "-o", str(self.out), "--to", "parquet"]
        status = main(words)
        files = sorted(self.out.glob("*.parquet"))
        values = [pq.read_table(file)["value"].to_pylist() for file in files]
        return status, [value.decode() for some in values for value in some]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(tmp_path, monkeypatch)


def values(first: int, count: int, text: str = "old") -> list[str]:
    return [f"{text}{n:04}" for n in range(first, first + count)]


@pytest.mark.parametrize("has_files", [True, False])
@pytest.mark.parametrize("is_in_place", [True, False])
def test_a_log_that_is_written_again_meanwhile_is_refused(
    log: Log, has_files: bool, is_in_place: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The new batches have the sizes of the old ones."""

    def write_again() -> None:
        for name, first in ((FIRST, 0), (SECOND, 100)):
            content = batches(first, 100, "new", epoch=1)
            if not is_in_place:
                (log.folder / name).unlink()
            log.put(name, content)

    if not has_files:
        (log.folder / "partition.metadata").unlink()
        (log.folder / LEADER_EPOCHS).unlink()
    log.changes.append(write_again)
    assert log.export() == (1, [])
    error = capsys.readouterr().err
    assert "OffsetOutOfRangeError: the log has changed while it was read: " in error
    assert f"in {log.folder}: run the export again, into another folder if it has records" in error
    assert log.export() == (0, values(0, 200, "new"))


def test_epochs_tell_of_a_truncation_meanwhile(
    log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    def truncate() -> None:
        log.put(SECOND, batches(100, 50) + batches(150, 50, "new", epoch=1))
        log.put(LEADER_EPOCHS, leader_epochs_text([(0, 0), (1, 150)]))

    log.changes.append(truncate)
    assert log.export() == (1, [])
    assert "the log was truncated to offset 150 and written again" in capsys.readouterr().err
    assert log.export() == (0, values(0, 150) + values(150, 50, "new"))


@pytest.mark.parametrize("at", [50, 150])
def test_a_truncation_before_the_commit_is_refused(
    log: Log, at: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next run would go on in the new log."""
    close = exporter.RoundFiles.close

    def slow(files: exporter.RoundFiles) -> object:
        first = batches(0, min(at, 100)) + batches(at, 100 - min(at, 100), "new", epoch=1)
        second = batches(100, max(at - 100, 0)) + batches(max(at, 100), 100, "new", epoch=1)
        log.put(FIRST, first)
        log.put(SECOND, second)
        log.put(LEADER_EPOCHS, leader_epochs_text([(0, 0), (1, at)]))
        return close(files)

    monkeypatch.setattr(exporter.RoundFiles, "close", slow)
    assert log.export() == (0, values(0, 200))
    monkeypatch.undo()
    assert log.export() == (1, values(0, 200))
    assert f"the log was truncated to offset {at} and written again" in capsys.readouterr().err


@pytest.mark.parametrize("step", [10, 20])
@pytest.mark.parametrize("is_torn", [True, False])
def test_a_run_ends_before_a_segment_that_grows(
    log: Log, step: int, is_torn: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy that is being made: the next run goes on there. Steps of 20 lack offsets."""
    whole = batches(0, 200, step=step)
    half = batches(0, 100, step=step)
    log.put(FIRST, half + whole[len(half) :][: 30 * is_torn])
    log.put(SECOND, b"")
    (log.folder / SECOND).unlink()
    log.put(f"{200:020}.log", batches(200, 100, step=step))
    if is_torn:
        log.early.append(lambda: log.put(FIRST, half + whole[len(half) :][:50]))
    else:
        log.changes.append(lambda: log.put(FIRST, whole))
    status, found = log.export()
    assert status == 1
    assert capsys.readouterr().err
    assert found == [] if is_torn else found[-1] == values(80 if step == 20 else 90, 10)[-1]
    log.put(FIRST, whole)
    status, found = log.export()
    assert (status, len(found)) == (0, 30 * 10 * 10 // step)
    assert found == sorted(set(found))


def test_a_parquet_file_that_fails_leaves_no_traceback(
    log: Log, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kafkajit.scan.export.round_files.ROW_GROUP_BYTES", 100)
    damaged = batches(100, 90) + batches(190, 10)[:-1] + b"?"
    log.put(SECOND, damaged + batches(200, 10))
    assert log.export() == (1, [])
    assert "Traceback" not in capfd.readouterr().err
