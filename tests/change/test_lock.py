"""The lock of a log.dirs folder against that of a real JVM, and against our own."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from changes import SCENARIOS, A, B, files, just_committed, live, place
from corpus import REPOSITORY, run_python

from kafkajit.change.change import Change
from kafkajit.change.journal import READY
from kafkajit.change.lock import FolderLock, log_dirs_of
from kafkajit.errors import KafkaJitError, LockedError

LOG = f"{0:020d}.log"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM that takes a broker's lock as Kafka's FileLock does."""
    pyspark = pytest.importorskip("pyspark")
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    # The JVM hides the channel's own class.
    options = ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]
    port, token, process = launch_gateway(
        classpath=str(py4j),
        javaopts=options,
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm
    gateway.shutdown()
    process.stdin.close()
    process.wait()


def try_lock(jvm: Any, log_dirs: Path) -> Any:
    """Take the lock as a broker does when it starts; None if it must not."""
    channel = jvm.java.io.RandomAccessFile(str(log_dirs / ".lock"), "rw").getChannel()
    lock = channel.tryLock()
    if lock is None:
        channel.close()
    return lock


@pytest.fixture
def log_dirs(tmp_path: Path) -> Path:
    place(tmp_path, {f"{A}/{LOG}": b"", f"{B}/{LOG}": b"", "meta.properties": b""})
    return tmp_path


@pytest.mark.parametrize("below", ["", A])
def test_a_running_broker_keeps_everybody_out(below: str, jvm: Any, log_dirs: Path) -> None:
    brokers = try_lock(jvm, log_dirs)
    stated = (
        f"stop the broker first: it, or another process of kafkajit, holds the lock in {log_dirs}"
    )
    for _ in range(2):
        with (
            pytest.raises(LockedError, match=f"^{re.escape(stated)}$"),
            FolderLock(log_dirs / below),
        ):
            raise AssertionError
    brokers.acquiredBy().close()
    with FolderLock(log_dirs / below):
        pass


def test_no_broker_starts_while_a_log_is_changed(jvm: Any, log_dirs: Path) -> None:
    with FolderLock(log_dirs / A), FolderLock(log_dirs / B):
        assert try_lock(jvm, log_dirs) is None
    with FolderLock(log_dirs / A):
        assert try_lock(jvm, log_dirs) is None
    try_lock(jvm, log_dirs).acquiredBy().close()


def test_who_must_may_go_on_without_the_lock(
    jvm: Any, log_dirs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    brokers = try_lock(jvm, log_dirs)
    with FolderLock(log_dirs / A, force=True):
        pass
    assert brokers.isValid()
    assert try_lock_elsewhere(log_dirs) is False
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"going on without the lock: another process holds it in {log_dirs}"
    )
    assert (log_dirs / ".lock").exists()
    brokers.acquiredBy().close()


def test_force_takes_a_lock_that_is_free(log_dirs: Path, caplog: pytest.LogCaptureFixture) -> None:
    with FolderLock(log_dirs / A, force=True):
        assert try_lock_elsewhere(log_dirs) is False
    assert caplog.records == []
    assert try_lock_elsewhere(log_dirs) is True


def try_lock_elsewhere(folder: Path) -> bool:
    """Whether another process of ours gets the lock."""
    code = (
        "import sys\n"
        "from kafkajit.change.lock import FolderLock, LockedError\n"
        "try:\n"
        "    with FolderLock(sys.argv[1]): print('True')\n"
        "except LockedError: print('False')\n"
    )
    return run_python(code, str(folder)) == "True\n"


def test_a_process_that_dies_leaves_no_lock(log_dirs: Path) -> None:
    code = (
        "import sys, time\n"
        "from kafkajit.change.lock import FolderLock\n"
        "FolderLock(sys.argv[1]).__enter__()\n"
        "print('locked', flush=True)\n"
        "time.sleep(600)\n"
    )
    dies = subprocess.Popen(
        [sys.executable, "-c", code, str(log_dirs)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert dies.stdout is not None
    assert dies.stdout.readline() == b"locked\n"
    with pytest.raises(LockedError), FolderLock(log_dirs / A):
        raise AssertionError
    dies.kill()
    dies.wait()
    dies.stdout.close()
    with FolderLock(log_dirs / A):
        pass


def test_a_process_changes_a_log_once_at_a_time_and_others_meanwhile(log_dirs: Path) -> None:
    with FolderLock(log_dirs / A):
        stated = f"this process is changing the log already in {log_dirs / A}"
        with pytest.raises(LockedError, match=f"^{stated}$"), FolderLock(log_dirs / A):
            raise AssertionError
        with FolderLock(log_dirs / B):
            pass
        assert try_lock_elsewhere(log_dirs) is False
    with FolderLock(log_dirs / A):
        pass


def test_the_lock_is_an_error_like_others() -> None:
    assert issubclass(LockedError, KafkaJitError)


@pytest.mark.parametrize(
    ("before", "stays"),
    [
        (["meta.properties"], True),
        ([".lock"], True),
        ([".lock", "meta.properties"], True),
        ([], False),
    ],
)
def test_a_lock_file_stays_where_a_broker_may_open_it(
    before: list[str], stays: bool, tmp_path: Path
) -> None:
    (tmp_path / A).mkdir()
    for name in before:
        (tmp_path / name).touch()
    with FolderLock(tmp_path / A):
        assert (tmp_path / ".lock").exists()
    assert (tmp_path / ".lock").exists() == stays
    assert list((tmp_path / A).iterdir()) == []


def test_a_lock_file_belongs_to_whom_the_folder_does(
    log_dirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned = []
    monkeypatch.setattr("kafkajit.change.lock.own", lambda path, like: owned.append((path, like)))
    for _ in range(2):
        with FolderLock(log_dirs / A):
            pass
    assert owned == [(log_dirs / ".lock", log_dirs)]  # once: it stays


def test_a_lock_file_that_is_removed_meanwhile_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / A).mkdir()
    removals = [1, 2]

    def lockf(opened: int, operation: int) -> None:
        real(opened, operation)
        if removals:
            removals.pop()
            (tmp_path / ".lock").unlink()

    real = fcntl.lockf
    monkeypatch.setattr(fcntl, "lockf", lockf)
    with FolderLock(tmp_path / A):
        assert removals == []
        assert try_lock_elsewhere(tmp_path) is False
    assert not (tmp_path / ".lock").exists()


def test_a_file_system_without_locks_is_named(
    log_dirs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lockf(opened: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    with pytest.raises(OSError, match=r"No locks available: '.*/\.lock'"), FolderLock(log_dirs):
        raise AssertionError
    with FolderLock(log_dirs, force=True):
        assert "No locks available" in caplog.text


def test_a_folder_that_is_not_there_is_named_even_with_force(tmp_path: Path) -> None:
    for force in (False, True):
        with (
            pytest.raises(FileNotFoundError, match=r"No such file .*/none"),
            FolderLock(tmp_path / "none" / A, force=force),
        ):
            raise AssertionError


def test_who_has_the_lock_finds_changes_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = SCENARIOS["append"]
    root = just_committed(tmp_path, scenario)
    with FolderLock(root / B):
        assert live(root) == files(scenario, after=True)
    assert caplog.messages == [f"finished an interrupted change: test of {root / A}"]


def test_a_second_lock_leaves_what_this_process_is_writing(log_dirs: Path) -> None:
    with FolderLock(log_dirs / A), Change(log_dirs / A, "test") as made:
        path = made.new(log_dirs / A / "leader-epoch-checkpoint")
        path.write_text("new")
        with FolderLock(log_dirs / B):
            pass
        made.commit()
    assert (log_dirs / A / "leader-epoch-checkpoint").read_text() == "new"


def test_a_lock_that_cannot_be_used_is_given_back(tmp_path: Path) -> None:
    (tmp_path / A / READY).mkdir(parents=True)
    (tmp_path / A / READY / "change.json").write_text("{")
    for _ in range(2):
        with pytest.raises(KafkaJitError, match="cannot be read"), FolderLock(tmp_path / A):
            raise AssertionError
    assert not (tmp_path / ".lock").exists()


# The files in the folder, and whether it is a partition's.
FOLDERS = {
    "orders-0": ([], True),
    "orders-1": ([LOG], True),
    "orders-2": ([LOG, ".lock", "payments-0/"], True),
    "orders": ([LOG], True),
    "kafka-logs": ([], False),
    "kafka-logs-1": (["meta.properties"], False),
    "kafka-logs-2": ([".lock"], False),
    "kafka-logs-3": (["orders-0/"], False),
    "kafka-logs-4": ([".kafkajit-repair-20261122T010203Z/", "leader-epoch-checkpoint"], True),
}


@pytest.mark.parametrize(("name", "inside", "is_partition"), [(k, *v) for k, v in FOLDERS.items()])
def test_log_dirs_is_what_holds_partitions(
    name: str, inside: list[str], is_partition: bool, tmp_path: Path
) -> None:
    for path in inside:
        (tmp_path / name / path).mkdir(parents=True) if path.endswith("/") else place(
            tmp_path, {f"{name}/{path}": b""}
        )
    assert log_dirs_of(tmp_path / name) == (tmp_path if is_partition else tmp_path / name)


def test_a_link_is_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, {f"disk/{A}/{LOG}": b"", "logs/meta.properties": b""})
    (tmp_path / "logs" / A).symlink_to(tmp_path / "disk" / A)
    assert log_dirs_of(tmp_path / "logs" / A) == tmp_path / "logs"
    monkeypatch.chdir(tmp_path / "logs")
    assert log_dirs_of(A) == tmp_path / "logs"
    assert log_dirs_of(".") == tmp_path / "logs"
