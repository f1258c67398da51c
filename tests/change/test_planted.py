"""What another user leaves in a log.dirs folder for a process, often root's, to act upon."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from changes import SCENARIOS, A, B, Files, files, just_committed, live, place

import kafkajit
from kafkajit.change.change import Change
from kafkajit.change.files import check_link
from kafkajit.change.journal import CLEAN_SHUTDOWN, DONE, JOURNAL, READY, STAGED
from kafkajit.change.lock import FolderLock
from kafkajit.change.steps import resume
from kafkajit.errors import KafkaJitError
from kafkajit.storage.source import SAMPLE_LOGS

LOG = f"{0:020d}.log"
Plant = Callable[[Path], None]
Fields = dict[str, Any]


@pytest.fixture
def log_dirs(memory: Path) -> Path:
    """A change of orders-0 that was interrupted, and a victim beside the log.dirs folder."""
    root = just_committed(memory, SCENARIOS["two partitions"])
    place(memory, {"victim/a": b"another's", f"victim/{LOG}": b"another's"})
    return root


def journal_with(change: Callable[[Fields], object]) -> Plant:
    def plant(ready: Path) -> None:
        fields = json.loads((ready / JOURNAL).read_text())
        change(fields)
        (ready / JOURNAL).write_text(json.dumps(fields))

    return plant


def stage(kind: str, *names: str, gone: tuple[str, ...] = ()) -> Plant:
    extra = {"kind": kind, "names": list(names), "gone": list(gone)}
    return journal_with(lambda fields: fields["stages"].append(extra))


def links_out(name: str) -> Plant:
    """The journal, or its folder, is a link."""

    def plant(ready: Path) -> None:
        path = ready if name == READY else ready / name
        path.rename(ready.parent.parent.parent / "elsewhere")
        path.symlink_to(ready.parent.parent.parent / "elsewhere")

    return plant


def fifo(ready: Path) -> None:
    (ready / JOURNAL).unlink()
    os.mkfifo(ready / JOURNAL)


def endless(ready: Path) -> None:
    (ready / JOURNAL).unlink()
    (ready / JOURNAL).symlink_to("/dev/zero")


def mode(name: str, bits: int) -> Plant:
    return lambda ready: (ready / name).chmod(bits)


def content(text: str) -> Plant:
    return lambda ready: (ready / JOURNAL).write_text(text) and None


PLANTED: dict[str, tuple[Plant, str]] = {
    "out of log.dirs": (stage("out", "../victim/a"), "names '../victim/a'"),
    "out of the partition": (stage("out", f"{A}/../../victim/a"), "victim/a', which is not a file"),
    "in": (stage("in", "../victim/a"), "names '../victim/a'"),
    "swapped": (stage("swap", f"../victim/{LOG}"), r"names '../victim/0+.log'"),
    "gone": (stage("swap", f"{A}/{LOG}", gone=(f"../victim/{LOG}",)), r"names '../victim/0+.log'"),
    "absolute": (stage("out", "/victim/a"), "names '/victim/a'"),
    "a folder": (stage("out", f"{A}/.."), f"names '{A}/..'"),
    "no partition": (stage("out", "etc/passwd"), "names 'etc/passwd'"),
    "a zero byte": (stage("out", "a\0b"), r"names 'a\\x00b'"),
    "new": (
        journal_with(lambda fields: fields["new"].update({"../victim/a": [1, 1]})),
        "names '../victim/a'",
    ),
    "live": (
        journal_with(lambda fields: fields["live"].update({"../victim/a": [1, 1]})),
        "names '../victim/a'",
    ),
    "kept": (journal_with(lambda fields: fields.update(kept="../../victim/b")), "would keep files"),
    "home": (journal_with(lambda fields: fields.update(home=B)), f"a change of '{B}'"),
    "a swap of nothing": (stage("swap"), "it has a stage that no change has"),
    "a swap without logs": (
        stage("swap", f"{A}/{LOG}", gone=(f"{A}/no_suffix",)),
        "it has a stage that|of which it has no new file",
    ),
    "another kind": (stage("at", "a"), "of which it has no new file"),
    "no kind": (stage("at"), "it has a stage that no change has"),
    "without a new file": (stage("in", f"{A}/other"), f"brings '{A}/other'"),
    "no name of a file": (stage("in", f"{A}/\ud800"), "surrogates not allowed"),
    "numbers": (journal_with(lambda fields: fields.update(stages=[7])), "cannot be read"),
    "not an object": (content("[]"), "cannot be read"),
    "deep": (content("[" * 100_000), "cannot be read"),
    "empty": (content(""), "cannot be read"),
    "a FIFO": (fifo, "because it is not a file"),
    "an endless file": (endless, "because it is a link"),
    "a link to a journal": (links_out(JOURNAL), "because it is a link"),
    "a link to a folder": (links_out(READY), "because it is a link"),
    "a link to new files": (links_out("new"), "because it is a link"),
    "a link to new files of a partition": (links_out(f"new/{B}"), "because it is a link"),
    "others may write the journal": (mode(JOURNAL, 0o602), "can be written to by everybody"),
    "others may write the folder": (mode("", 0o702), "can be written to by everybody"),
}


def everything(root: Path) -> Files:
    """All visible files of the log.dirs folder, and the victim."""
    return live(root) | {
        f"../{name}": (root.parent / name).read_bytes() for name in ("victim/a", f"victim/{LOG}")
    }


@pytest.mark.whole
@pytest.mark.parametrize("what", PLANTED)
def test_a_journal_that_anybody_may_have_planted_is_not_carried_out(
    what: str, log_dirs: Path
) -> None:
    plant, reason = PLANTED[what]
    plant(log_dirs / A / READY)
    before = everything(log_dirs)
    with pytest.raises((KafkaJitError, OSError), match=reason):
        resume(log_dirs)
    with pytest.raises((KafkaJitError, OSError), match=reason), FolderLock(log_dirs / A):
        raise AssertionError
    assert everything(log_dirs) == before
    assert (log_dirs / A / READY).exists()


def of_another_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() == 0:
        os.chown(path, 1234, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 1234)


@pytest.mark.parametrize("name", ["", JOURNAL, "new", f"new/{A}"])
def test_a_journal_of_another_user_is_not_carried_out(
    name: str, log_dirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_another_user(log_dirs / A / READY / name, monkeypatch)
    before = everything(log_dirs)
    with pytest.raises(PermissionError, match=r"does not trust it, because it belongs to user \d+"):
        resume(log_dirs)
    assert everything(log_dirs) == before


@pytest.mark.parametrize("left", [READY, DONE])
def test_a_change_that_cannot_be_finished_stops_its_own_partition_alone(
    left: str, log_dirs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if left == DONE:
        (log_dirs / A / READY).rename(log_dirs / A / DONE)
    (log_dirs / A / left / JOURNAL).write_text("strange")
    (log_dirs / A / left / "old").mkdir(exist_ok=True)
    place(log_dirs, {f"other-0/{LOG}": b"old"})
    with FolderLock(log_dirs / "other-0"), Change(log_dirs / "other-0", "test") as made:
        made.remove(log_dirs / "other-0" / LOG)
        made.commit()
    assert not (log_dirs / "other-0" / LOG).exists()
    assert f"{log_dirs / A}: left alone: the journal of an interrupted change" in caplog.text
    with pytest.raises(KafkaJitError, match="cannot be read"), FolderLock(log_dirs / A):
        raise AssertionError


def test_repair_goes_through_all_other_partitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kafkajit.cli import main

    sample = (SAMPLE_LOGS / "orders-0" / LOG).read_bytes()
    place(tmp_path, {f"{name}/{LOG}": sample for name in (A, B)})
    place(tmp_path, {f"{A}/{READY}/{JOURNAL}": b"strange"})
    assert main(["repair", "--apply", "--no-keep", str(tmp_path)]) == 1
    assert f"{A}/{READY}/{JOURNAL}" in capsys.readouterr().err
    assert not (tmp_path / A / f"{0:020d}.index").exists()
    assert (tmp_path / B / f"{0:020d}.index").exists()
    with kafkajit.LogWriter(tmp_path / "new-0") as writer:
        writer.append(kafkajit.encode_batches(pa.table({"value": [b"1"]})))
    assert (tmp_path / "new-0" / LOG).stat().st_size


@pytest.mark.parametrize(
    "mark", ["meta.properties", ".lock", "cleaner-offset-checkpoint", "log-start-offset-checkpoint"]
)
def test_a_link_does_not_lead_past_the_lock_of_a_broker(mark: str, tmp_path: Path) -> None:
    place(tmp_path, {f"kafka/{A}/{LOG}": b"old", f"kafka/{mark}": b"", "links/note": b""})
    (tmp_path / "links" / A).symlink_to(tmp_path / "kafka" / A)
    before = sorted(tmp_path.rglob("*"))
    why = f"leads into {tmp_path}/kafka, the folder of a broker: name {tmp_path}/kafka/{A}"
    with FolderLock(tmp_path / "links"), pytest.raises(PermissionError, match=why):
        Change(tmp_path / "links" / A, "test")
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "whole").symlink_to(tmp_path / "kafka")  # has the lock of the folder itself
    with FolderLock(tmp_path / "whole"), Change(tmp_path / "whole" / A, "test") as made:
        made.remove(tmp_path / "whole" / A / LOG)
        made.commit(keep=False)
    assert not (tmp_path / "kafka" / A / LOG).exists()


def test_a_partition_is_not_a_link_to_files_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, {f"disk/{A}/{LOG}": b"old", "logs/meta.properties": b""})
    (tmp_path / "logs" / A).symlink_to(tmp_path / "disk" / A)
    check_link(tmp_path / "logs" / A)  # a link to another disk
    real = os.stat

    def owned(path: Any, **named: Any) -> Any:
        found = real(path, **named)
        if Path(path) != tmp_path / "logs" / A or not named.get("follow_symlinks", True):
            return found
        return os.stat_result((*found[:4], 1234, *found[5:]))

    monkeypatch.setattr(os, "stat", owned)
    with pytest.raises(PermissionError, match=r"leads to a folder of user 1234.*same owner"):
        Change(tmp_path / "logs" / A, "test")


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    place(tmp_path, {f"logs/{A}/{LOG}": b"old"})
    (tmp_path / "logs" / ".lock").symlink_to(tmp_path / "victim")
    with (
        pytest.raises(OSError, match=rf"never a link: remove it: '{tmp_path}/logs/.lock'"),
        FolderLock(tmp_path / "logs"),
    ):
        raise AssertionError
    assert not (tmp_path / "victim").exists()


def test_new_files_are_written_where_nobody_else_looks(folder: Path) -> None:
    with Change(folder, "test") as made:
        staged = made.new(folder / LOG)
        for inside in (staged.parent, staged.parent.parent, staged.parent.parent.parent):
            assert inside.stat().st_mode & 0o777 == 0o700


def test_a_file_that_replaces_a_link_has_no_rights_of_its_target(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "target").chmod(0o6755)
    epochs = folder / "leader-epoch-checkpoint"
    epochs.symlink_to(tmp_path / "target")
    with Change(folder, "test") as made:
        made.new(epochs).write_bytes(b"new")
        made.commit()
    assert epochs.stat().st_mode & 0o7777 == 0o644
    assert not epochs.is_symlink()
    assert (tmp_path / "target").read_bytes() == b""


def test_a_guard_is_not_written_through_a_link(memory: Path) -> None:
    root = just_committed(memory, SCENARIOS["append over an empty active segment"])
    guard = root / A / f"{300:020d}.log.cleaned"
    guard.symlink_to(memory / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        resume(root)
    assert not (memory / "victim").exists()
    guard.unlink()
    resume(root)
    assert live(root) == files(SCENARIOS["append over an empty active segment"], after=True)


def test_files_of_a_change_that_keeps_nothing_stop_their_partition_alone(log_dirs: Path) -> None:
    done = (log_dirs / A / READY).rename(log_dirs / A / DONE)
    (done / "old").mkdir(exist_ok=True)
    journal_with(lambda fields: fields.update(kept=None))(done)
    refused: list[Path] = []
    assert resume(log_dirs, lambda folder, _: refused.append(folder)) == []
    assert refused == [log_dirs / A]


def test_folders_that_are_too_deep_to_remove_stop_their_partition_alone(log_dirs: Path) -> None:
    (log_dirs / A / READY).rename(log_dirs / "elsewhere")
    deep = log_dirs / A / STAGED
    opened = os.open(log_dirs / A, os.O_RDONLY)
    for name in (STAGED, *["a"] * 3000):
        os.mkdir(name, dir_fd=opened)
        inner = os.open(name, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.close(opened)
    try:
        assert resume(log_dirs) == []
    finally:
        subprocess.run(["rm", "-rf", deep], check=True)


def test_a_change_without_one_of_its_new_logs_takes_no_step(log_dirs: Path) -> None:
    ready = log_dirs / A / READY
    stages = json.loads((ready / JOURNAL).read_text())["stages"]
    new = next(name for one in stages if one["kind"] == "swap" for name in one["names"])
    (log_dirs / new).unlink(missing_ok=True)
    (ready / "new" / new).rename(log_dirs / new)  # so that it looks like a step that was taken
    (log_dirs / CLEAN_SHUTDOWN).touch()
    before = everything(log_dirs)
    with pytest.raises(KafkaJitError, match="cannot be finished"):
        resume(log_dirs)
    assert everything(log_dirs) == before
    assert (log_dirs / CLEAN_SHUTDOWN).exists()
