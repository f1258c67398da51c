from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from producing import Job, files_of, holding, log_of, rows, write

import kafkajit
from kafkajit import LogWriter
from kafkajit.change.change import Change
from kafkajit.change.journal import READY
from kafkajit.change.lock import FolderLock
from kafkajit.errors import CorruptCheckpointError, CorruptRecordError, LockedError
from kafkajit.produce import commit
from kafkajit.state.partition_metadata import partition_metadata_text

CHECKPOINTS = (
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


def one(topic: str, partition: int, value: bytes, count: int = 1) -> list:
    return [rows(topic=[topic] * count, partition=[partition] * count, value=[value] * count)]


def partitions(folder: Path) -> dict[str, list[bytes]]:
    return {
        path.name: [row[0] for row in log_of(path, "value")]
        for path in sorted(folder.iterdir())
        if path.is_dir()
    }


def test_append_goes_on_where_logs_end(tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1"), one("b", 3, b"2")])
    write(tmp_path, [one("a", 0, b"3", 2), one("c", 1, b"4")])
    assert partitions(tmp_path) == {"a-0": [b"1", b"3", b"3"], "b-3": [b"2"], "c-1": [b"4"]}
    assert kafkajit.Log(tmp_path / "a-0").end_offset == 3


def test_overwrite_replaces_every_partition_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1", 500)], **{"segment.bytes": 200, "batch.size": 1})
    write(tmp_path, [one("b", 3, b"2")])
    (tmp_path / "notes-1").mkdir()
    (tmp_path / "notes-1" / "todo.txt").write_text("not a log's")
    write(tmp_path, [one("a", 0, b"5"), one("c", 0, b"6")], mode="overwrite")
    assert partitions(tmp_path) == {"a-0": [b"5"], "c-0": [b"6"], "notes-1": []}
    assert kafkajit.Log(tmp_path / "a-0").end_offset == 1
    assert sorted(path.suffix for path in (tmp_path / "a-0").iterdir()) == [
        *("", ".index", ".log", ".snapshot", ".timeindex")
    ]
    assert (tmp_path / "notes-1" / "todo.txt").exists()


def test_overwrite_may_replace_only_partitions_that_rows_are_for(tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1"), one("a", 1, b"2")])
    write(tmp_path, [one("a", 1, b"3")], mode="overwrite", partitionOverwriteMode="dynamic")
    assert partitions(tmp_path) == {"a-0": [b"1"], "a-1": [b"3"]}


@pytest.mark.parametrize("how", ["static", "dynamic"])
def test_overwrite_replaces_partitions_of_topics_whose_names_begin_with_a_dot(
    how: str, tmp_path: Path
) -> None:
    for value in (b"1", b"2"):
        write(tmp_path, [one(".a", 0, value)], mode="overwrite", partitionOverwriteMode=how)
    assert partitions(tmp_path) == {".a-0": [b"2"]}


@pytest.mark.parametrize(("how", "left"), [("static", {}), ("dynamic", {"a-0": [b"1"]})])
def test_overwriting_with_nothing(how: str, left: dict, tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1")])
    write(tmp_path, [[one("a", 0, b"")[0][:0]]], mode="overwrite", partitionOverwriteMode=how)
    assert partitions(tmp_path) == left


def test_appending_nothing_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "new" / "folder", [[one("a", 0, b"")[0][:0]]])
    assert files_of(tmp_path / "new" / "folder") == {}


def test_replaced_partitions_begin_anew_in_the_checkpoints_of_log_dirs(tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1", 9), one("b", 0, b"2", 9)])
    for name in CHECKPOINTS:
        (tmp_path / name).write_text("0\n2\na 0 5\nb 0 7\n")
    write(tmp_path, [one("a", 0, b"3")], mode="overwrite", partitionOverwriteMode="dynamic")
    for name in CHECKPOINTS:
        assert (tmp_path / name).read_text() == "0\n1\nb 0 7\n"
    assert kafkajit.Log(tmp_path / "a-0").start_offset == 0


def test_an_append_leaves_checkpoints_alone(tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1", 9)])
    (tmp_path / CHECKPOINTS[1]).write_text("0\n2\na 0 5\nb 0 7\n")
    write(tmp_path, [one("a", 0, b"1"), one("b", 0, b"2")])
    assert (tmp_path / CHECKPOINTS[1]).read_text() == "0\n2\na 0 5\nb 0 7\n"
    logs = [kafkajit.Log(tmp_path / name) for name in ("a-0", "b-0")]
    # A log that is written again after its records were deleted continues at that offset.
    assert [(log.start_offset, log.end_offset) for log in logs] == [(5, 10), (7, 8)]


def test_only_the_segments_of_attempts_that_count_are_committed(tmp_path: Path) -> None:
    job = Job(tmp_path, one("a", 0, b"")[0].schema)
    with pytest.raises(ValueError, match="null topic"):
        job.attempt([*one("a", 0, b"1"), rows(topic=[None], partition=[0], value=[b""])])
    message = job.attempt(one("a", 0, b"1"))
    job.attempt(one("a", 0, b"1"))  # a speculative attempt, or one whose executor was lost
    job.commit([message])
    assert partitions(tmp_path) == {"a-0": [b"1"]}
    assert {path.name for path in tmp_path.iterdir()} == {"a-0"}


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_job_that_fails_leaves_what_was_there(mode: str, there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "some" / "where"
    if there:
        write(folder, [one("a", 0, b"1"), one("b", 0, b"2")])
    before = files_of(tmp_path)
    bad = [*one("a", 0, b"3", 1000), rows(topic=[None], partition=[0], value=[b""])]
    with pytest.raises(ValueError, match="null topic"):
        write(folder, [one("c", 0, b"1"), bad], mode=mode)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_commit_that_fails_leaves_what_was_there(
    mode: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    if there:
        write(folder, [one("a", 0, b"1"), one("b", 0, b"2")])
    before = files_of(tmp_path)

    def fail(change: Change, **_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Change, "commit", fail)
    with pytest.raises(OSError, match="No space left"):
        write(folder, [one("a", 0, b"3"), one("c", 0, b"4")], mode=mode)
    assert files_of(tmp_path) == before


def test_a_log_that_is_torn_stops_the_whole_job(tmp_path: Path) -> None:
    write(tmp_path, [one("b", 0, b"2")])
    with (tmp_path / "b-0" / f"{0:020}.log").open("ab") as log:
        log.write(b"torn")
    before = files_of(tmp_path)
    with pytest.raises(CorruptRecordError, match="repair"):
        write(tmp_path, [one("a", 0, b"3"), one("b", 0, b"4")])
    assert files_of(tmp_path) == before


def test_tasks_that_go_on_when_a_job_is_given_up_leave_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path / "logs", one("a", 0, b"")[0].schema, **{"segment.bytes": 100})

    def task():
        yield from one("a", 0, b"1")
        job.abort()
        yield from one("a", 0, bytes(40), 9)

    with pytest.raises(FileNotFoundError):
        job.attempt(task())
    with pytest.raises(FileNotFoundError, match=r"the job was aborted, or executors do not"):
        job.attempt(one("a", 0, b"1"))
    assert files_of(tmp_path) == {}


def test_what_an_executor_wrote_elsewhere_is_missed(tmp_path: Path) -> None:
    job = Job(tmp_path / "logs", one("a", 0, b"")[0].schema)
    message = job.attempt(one("a", 0, b"1"))
    message.staged[0].path(".log").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="driver and executors must share the folder"):
        job.commit([message])
    assert files_of(tmp_path) == {}


def test_a_topics_id_is_one_topics(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="topicId is for one topic, and rows are for a, b"):
        write(tmp_path, [one("a", 0, b""), one("b", 0, b"")], topicId="pUM3BMsVQk2fe-klgEgLLA")
    assert files_of(tmp_path) == {}


def test_a_job_waits_for_another_to_be_committed(tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1")])
    with holding(tmp_path, 1):
        begun = time.monotonic()
        write(tmp_path, [one("a", 0, b"2")])
    assert time.monotonic() - begun > 0.8
    assert partitions(tmp_path) == {"a-0": [b"1", b"2"]}


def test_a_folder_that_stays_locked_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "_PATIENCE_SECONDS", 0.3)
    write(tmp_path, [one("a", 0, b"1")])
    before = files_of(tmp_path)
    with holding(tmp_path, 60) as holder:
        with pytest.raises(LockedError, match="stop the broker first"):
            write(tmp_path, [one("a", 0, b"2")])
        assert {name for name in files_of(tmp_path) if name != ".lock"} == before.keys()
        write(tmp_path, [one("a", 0, b"3")], force="true")
        holder.kill()
    assert partitions(tmp_path)["a-0"] == [b"1", b"3"]


def test_jobs_on_one_folder_are_committed_one_after_the_other(tmp_path: Path) -> None:
    schema = one("a", 0, b"")[0].schema
    jobs = [Job(tmp_path, schema) for _ in range(6)]
    messages = [job.attempt(one("a", n % 2, b"%d" % n, 3)) for n, job in enumerate(jobs)]
    threads = [
        threading.Thread(target=job.commit, args=([message],))
        for job, message in zip(jobs, messages, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(2):
        offsets, values = zip(*log_of(tmp_path / f"a-{n}", "offset", "value"), strict=True)
        assert offsets == tuple(range(9))
        assert sorted(values) == sorted([b"%d" % m for m in (n, n + 2, n + 4)] * 3)
    assert {path.name for path in tmp_path.iterdir()} == {"a-0", "a-1"}


def test_a_driver_that_dies_in_a_commit_has_it_finished_by_whoever_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [one("a", 0, b"1"), one("b", 0, b"2")])
    monkeypatch.setattr("kafkajit.change.change.carry_out", _die)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, [one("a", 0, b"3"), one("b", 0, b"4"), one("c", 0, b"5")])
    monkeypatch.undo()
    assert (tmp_path / "a-0" / READY).exists()
    with FolderLock(tmp_path / "a-0"):
        pass
    assert partitions(tmp_path) == {"a-0": [b"1", b"3"], "b-0": [b"2", b"4"], "c-0": [b"5"]}


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_other_peoples_logs_can_be_appended_to(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "a-0", start_offset=100) as log:
        log.append(kafkajit.encode_batches(one("x", 0, b"1")[0].select(["value"]), base_offset=100))
    write(tmp_path, [one("a", 0, b"2")])
    assert log_of(tmp_path / "a-0", "offset", "value") == [(100, b"1"), (101, b"2")]


OF_A_LOG = (
    f"{0:020}.index",
    f"{0:020}.timeindex",
    f"{0:020}.txnindex",
    f"{1:020}.snapshot",
    f"{0:020}.log.deleted",
    f"{0:020}.log.cleaned",
    f"{0:020}.log.swap",
    "leader-epoch-checkpoint",
)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("name", [*OF_A_LOG, "partition.metadata"])
def test_a_new_log_replaces_and_removes_no_files_of_others(
    name: str, mode: str, tmp_path: Path
) -> None:
    (tmp_path / "a-0").mkdir()
    (tmp_path / "a-0" / name).write_bytes(b"somebody else's")
    before = files_of(tmp_path)
    with pytest.raises((FileExistsError, CorruptCheckpointError), match=f"a-0/{name}"):
        write(tmp_path, [one("a", 0, b"1")], mode=mode)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("names", [[], ["partition.metadata"], ["partition.metadata", "notes.txt"]])
def test_a_new_log_may_begin_in_a_folder_without_files_of_a_log(
    names: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a-0").mkdir()
    for name in names:
        (tmp_path / "a-0" / name).write_bytes(partition_metadata_text("pUM3BMsVQk2fe-klgEgLLA"))
    before = files_of(tmp_path)
    write(tmp_path, [one("a", 0, b"1")])
    assert partitions(tmp_path) == {"a-0": [b"1"]}
    assert {**files_of(tmp_path), **before} == files_of(tmp_path)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_only_a_logs_own_files_are_removed_beside_it(mode: str, tmp_path: Path) -> None:
    write(tmp_path, [one("a", 0, b"1")])
    for name in ("notes.cleaned", "00000000000000000000-notes.txt"):
        (tmp_path / "a-0" / name).write_bytes(b"somebody else's")
    before = {path for path in (tmp_path / "a-0").iterdir() if "notes" in path.name}
    write(tmp_path, [one("a", 0, b"2")], mode=mode)
    assert before <= set((tmp_path / "a-0").iterdir())


def test_a_file_with_a_partitions_name_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a-0").write_bytes(b"somebody else's")
    with pytest.raises(NotADirectoryError, match="a-0 is not a folder"):
        write(tmp_path, [one("a", 0, b"1")])
