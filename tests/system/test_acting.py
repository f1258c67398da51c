"""Root in another user's folder does no more than that user may do."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from partitions import data, files_in, log_name, make_partition
from strangers import NOBODY, ROOTS, Places

import kafkajit
from kafkajit.change.change import Change
from kafkajit.change.journal import JOURNAL, READY
from kafkajit.cli import main
from kafkajit.format.ranges import Range
from kafkajit.storage.source import SAMPLE_LOGS
from kafkajit.system import disk
from kafkajit.system.acting import (
    Owner,
    acting_as,
    as_owner_of,
    opening,
    owner_of,
    reading_for,
)
from kafkajit.system.durable import sync
from kafkajit.system.new_file import NewFile
from kafkajit.system.open_path import open_path
from kafkajit.upkeep.repair.damaged_batches import damaged_batches
from kafkajit.upkeep.repair.pieces import Extent, part_of

LOG = log_name(0)
THIRD = NOBODY - 1


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in folder.rglob("*")}


def test_root_acts_as_the_owner_of_a_folder_and_of_all_below_it(places: Places) -> None:
    (places.home / "a").mkdir()  # root's own
    link = places.link("b", places.root)
    for path in (places.home, places.home / "a", places.home / "c" / "d", link, link / "e"):
        owner = owner_of(path)
        assert owner is not None
        assert (owner.user, 0 in owner.groups) == (NOBODY, False)
    assert owner_of(places.root) is None


def test_root_is_root_again_after_an_error(places: Places) -> None:
    with pytest.raises(FileNotFoundError):
        as_owner_of(places.home, os.unlink, places.home / "missing")
    assert (places.root / "secret").read_bytes() == ROOTS


def test_root_is_root_again_if_the_system_does_not_let_it_act(places: Places) -> None:
    nobody = Owner((1 << 32) - 1, NOBODY)  # setfsuid takes this number for a question
    with pytest.raises(PermissionError, match="cannot act here as user"):
        acting_as(nobody, os.getuid)
    assert (places.root / "secret").read_bytes() == ROOTS


@pytest.mark.parametrize("user", [1, 12345, 1 << 31, (1 << 32) - 2])
def test_root_acts_as_any_user(user: int, places: Places) -> None:
    os.chown(places.home, user, 0)
    disk.write(places.home / "a", b"x")
    found = (places.home / "a").stat()
    assert (found.st_uid, found.st_gid == 0) == (user, False)


def test_a_folder_that_is_missing_is_not_taken_for_roots(places: Places) -> None:
    with pytest.raises(FileNotFoundError):
        as_owner_of(places.root / "comes" / "later", pytest.fail)


def test_a_signal_does_not_leave_root_as_another_user(places: Places) -> None:
    def interrupt(*_: object) -> None:
        raise InterruptedError

    disk.write(places.home / "a", b"x")
    before = signal.signal(signal.SIGALRM, interrupt)
    gc.collect()
    gc.disable()  # finalizers of other tests' objects are not to be interrupted
    try:
        for number in range(200):
            with suppress(InterruptedError):
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (number % 50 + 1))
                for _ in range(20):
                    disk.set_mode(places.home / "a", 0o640)
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert (places.root / "secret").read_bytes() == ROOTS
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert owners(places.home) == {NOBODY}


@pytest.mark.parametrize("has_openat2", [True, False])
@pytest.mark.parametrize("name", ["cwd", "root", "fd"])
def test_links_below_proc_lead_nowhere_in_another_users_folder(
    name: str, has_openat2: bool, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may read a file if they find the way to it, and root's process is on the way."""
    if not has_openat2:
        monkeypatch.setattr("kafkajit.system.open_path._has_openat2", lambda: False)
    inside = places.root / "inside"
    inside.mkdir(mode=0o777)
    inside.chmod(0o777)
    (inside / "a.csv").write_text("value\nsecret\n")
    (inside / "a.csv").chmod(0o666)
    monkeypatch.chdir(inside)
    opened = os.open(inside, os.O_RDONLY)
    way = {"cwd": "cwd", "root": f"root{inside}", "fd": f"fd/{opened}"}[name]
    link = places.link("link", Path("/proc/self") / way)
    try:
        for act in (
            lambda: disk.write(link / "a.csv", b"x"),
            lambda: disk.remove(link / "a.csv"),
            lambda: disk.rename(link / "a.csv", link / "b.csv"),
            lambda: disk.rename(link / "a.csv", places.home / "b.csv"),
            lambda: disk.make_folder(link / "b"),
            lambda: disk.remove_tree(link),
            lambda: disk.set_mode(link / "a.csv", 0o600),
            lambda: NewFile(link / "b.csv", replaces=True).__enter__(),
        ):
            with pytest.raises(OSError, match=r"one of /proc|symbolic link|Permission"):
                act()
        places.link("in/a.csv", Path("/proc/self") / way / "a.csv")
        target = places.home / "kafka"
        words = ["--topic", "t", "--partitions", "1", "--new-offsets", "--apply"]
        assert main(["import", str(places.home / "in"), str(target), *words]) == 1
        assert not (target / "t-0").exists()
    finally:
        os.close(opened)
    assert [path.name for path in inside.iterdir()] == ["a.csv"]
    assert (inside / "a.csv").read_text() == "value\nsecret\n"


def test_root_has_no_other_rights_either_while_it_acts(places: Places) -> None:
    def rights() -> list[str]:
        lines = Path("/proc/thread-self/status").read_text().splitlines()
        return [line.split()[1] for line in lines if line.startswith(("CapEff", "CapPrm"))]

    assert as_owner_of(places.home, rights) == ["0" * 16] * 2
    assert rights() != ["0" * 16] * 2


def test_nothing_of_proc_is_read_for_another_user(places: Places) -> None:
    link = places.link("maps", Path("/proc/self/maps"))
    with reading_for(places.home), pytest.raises(PermissionError, match="leads into /proc"):
        opening(link, open_path, link, os.O_RDONLY)


def test_a_journal_of_the_owner_of_a_partition_changes_no_other_owners_files(
    places: Places, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = places.put("kafka/orders-0", SAMPLE_LOGS / "orders-0")
    other = places.put("kafka/payments-0", SAMPLE_LOGS / "payments-0")
    for path in (other, *other.iterdir()):
        os.chown(path, 0, 0)
    os.chown(places.home / "kafka", 0, 0)
    os.chown(places.home, 0, 0)
    victim = other / LOG
    status = victim.stat()
    known = {f"payments-0/{LOG}": [status.st_size, status.st_mtime_ns]}
    ready = log / READY
    places.make(ready)
    ready.chmod(0o700)
    fields = {"what": "repair", "home": "orders-0", "new": {}, "live": known, "kept": None}
    stage = {"kind": "out", "names": [f"payments-0/{LOG}"], "gone": []}
    (ready / JOURNAL).write_text(json.dumps({**fields, "stages": [stage]}))
    os.chown(ready / JOURNAL, NOBODY, NOBODY)
    assert main(["repair", "--apply", str(log)]) == 1
    assert "has another owner" in capsys.readouterr().err
    assert victim.exists()


ACTIONS: dict[str, Callable[[Path], object]] = {
    "create": disk.create,
    "create_new": disk.create_new,
    "open_to_lock": disk.open_to_lock,
    "extend": disk.extend,
    "open_to_change": disk.open_to_change,
    "open_to_copy": disk.open_to_copy,
    "open_stream": disk.open_stream,
    "write": lambda path: disk.write(path, b"x"),
    "remove": disk.remove,
    "rename": lambda path: disk.rename(path, path.with_name("new")),
    "set_mode": lambda path: disk.set_mode(path, 0o666),
    "set_times": lambda path: disk.set_times(path, ns=(0, 0)),
    "remove_tree": disk.remove_tree,
    "make_folder": lambda path: disk.make_folder(path.with_name("new")),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_no_function_of_the_disk_reaches_a_file_of_roots_through_a_link(
    action: str, places: Places
) -> None:
    places.link("folder", places.root)
    with pytest.raises(OSError, match=r"ermission|oo many"):
        ACTIONS[action](places.home / "folder" / "secret")
    assert [path.name for path in places.root.iterdir()] == ["secret"]


def test_segments_that_lead_to_roots_log_are_not_repaired_or_restored(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    make_partition(places.root / "orders-0", {0: [data(0, 5)]})
    places.link(f"kafka/orders-0/{log_name(3)}", places.root / "orders-0" / LOG)
    assert main(["repair", "--apply", str(places.home / "kafka" / "orders-0")]) == 1
    places.link(f"backup/orders-0/{LOG}", places.root / "orders-0" / LOG)
    words = [str(places.home / "backup"), str(places.home / "new")]
    assert main(["restore", "--apply", *words]) == 1
    out = ["-o", str(places.home / "out"), "--to", "jsonl"]
    assert main(["export", words[0], *out]) == 1
    assert "Permission denied" in capsys.readouterr().err
    assert not [path for path in places.home.rglob("*.jsonl") if path.stat().st_size]
    assert [path.name for path in places.home.rglob("*.log")] == [log_name(3), LOG]


def test_a_file_of_roots_is_not_imported(places: Places) -> None:
    (places.root / "a.csv").write_text("value\nsecret\n")
    places.link("in/a.csv", places.root / "a.csv")
    words = [str(places.home / "in"), str(places.home / "kafka"), "--topic", "orders"]
    assert main(["import", "--apply", "--partitions", "1", *words]) == 1
    assert not list(places.home.rglob("*.log"))


def test_an_export_neither_writes_nor_removes_files_of_roots(places: Places) -> None:
    (places.root / "vault").mkdir()
    places.link("out/topic=orders", places.root / "vault")
    words = ["-o", str(places.home / "out"), "--to", "csv", "--topic", "orders"]
    assert main(["export", "sample:", *words, "--partition-by", "topic"]) == 1
    assert not list((places.root / "vault").iterdir())


def test_results_belong_to_the_owner_of_the_folder(places: Places, tmp_path: Path) -> None:
    log = places.put("kafka/orders-0", SAMPLE_LOGS / "orders-0")
    (log / "leader-epoch-checkpoint").unlink(missing_ok=True)
    assert main(["repair", "--apply", str(log)]) == 0
    assert main(["restore", "--apply", f"{SAMPLE_LOGS}/orders-0", f"{places.home}/new"]) == 0
    assert main(["export", str(log), "-o", f"{places.home}/out", "--to", "csv"]) == 0
    assert main(["report", str(log), "-o", f"{places.home}/page.html"]) == 0
    (tmp_path / "a.csv").write_text("value\na\n")
    words = ["--apply", "--topic", "t", "--partitions", "1", str(tmp_path / "a.csv")]
    assert main(["import", *words, f"{places.home}/imported"]) == 0
    with kafkajit.LogWriter(places.home / "imported" / "t-0") as writer:
        writer.append(data(1, 5))
    assert owners(places.home) == {NOBODY}


class Exchanged:
    """The other user exchanges the folder of staged files for one of their own."""

    def __init__(self, places: Places, target: str) -> None:
        self.places, self.target = places, target

    def __call__(self, staged: Path) -> None:
        staged.rename(staged.with_name("aside"))
        shutil.copytree(staged.with_name("aside"), staged)
        for path in (staged, *staged.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        if self.target in ("new", "old"):
            shutil.rmtree(staged / self.target, ignore_errors=True)
            (staged / self.target).symlink_to(self.places.root)
        else:
            for path in (staged / "new").rglob("*.*"):
                path.unlink()
                path.symlink_to(self.places.root / "secret")


@pytest.mark.parametrize("target", ["new", "old", "files"])
@pytest.mark.parametrize("step", ["new", "_take_along", "_keep", "_synced"])
def test_a_staged_folder_that_is_exchanged_leads_to_nothing_of_roots(
    step: str, target: str, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = places.put("kafka/orders-0", SAMPLE_LOGS / "orders-0")
    for name in ("leader-epoch-checkpoint", f"{0:020}.index", f"{0:020}.timeindex"):
        (log / name).unlink(missing_ok=True)
    (places.root / "orders-0").mkdir()
    attack, before = Exchanged(places, target), getattr(Change, step)

    def exchanged(self: Change, *given: object, **options: object) -> object:
        monkeypatch.setattr(Change, step, before)
        found = before(self, *given, **options)
        attack(self._staged)
        return found

    monkeypatch.setattr(Change, step, exchanged)
    main(["repair", "--apply", str(log)])
    assert sorted(path.name for path in places.root.rglob("*")) == ["orders-0", "secret"]
    assert owners(places.root) == {0}


def test_roots_file_is_copied_to_a_user_who_may_not_take_it(places: Places) -> None:
    for act in (disk.rename, disk.link):
        source = places.root / "made"
        source.write_bytes(b"x")
        os.utime(source, ns=(5, 7))  # a change knows a file by its time
        act(source, places.home / "made")
        found = (places.home / "made").stat()
        assert (found.st_uid, (places.home / "made").read_bytes()) == (NOBODY, b"x")
        assert found.st_mtime_ns == 7
        assert [path.name for path in places.home.iterdir()] == ["made"]
        assert source.exists() == (act is disk.link)
        (places.home / "made").unlink()


def test_a_plan_does_not_read_what_links_lead_to(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    make_partition(places.root / "orders-0", {0: [data(0, 5)]})
    make_partition(places.root / "own-0", {0: [data(0, 1)]})
    places.put("orders-0", places.root / "own-0")
    places.link(f"orders-0/{log_name(1)}", places.root / "orders-0" / LOG)
    assert main(["repair", "--apply", str(places.home / "orders-0")]) == 1
    assert "Permission denied" in capsys.readouterr().err


def test_a_fifo_in_another_users_folder_is_not_waited_for(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = places.home / "a.html"
    os.mkfifo(pipe)
    assert main(["report", "sample:", "-o", str(pipe)]) == 1
    assert "is another user's FIFO" in capsys.readouterr().err


# The modes of root's log.dirs folder, with the group of the partition's owner, and of its
# checkpoint: whether the owner may change both.
LAYOUTS = [
    (0o775, 0o644, True),
    (0o755, 0o644, False),
    (0o755, 0o600, False),
    (0o775, 0o600, False),
]


@pytest.mark.parametrize(("of_folder", "of_checkpoint", "may"), LAYOUTS)
def test_the_owner_of_a_partition_changes_checkpoints_in_roots_folder_or_nobody_does(
    of_folder: int, of_checkpoint: int, may: bool, places: Places
) -> None:
    logs = places.root.parent / "logs"
    logs.mkdir()
    os.chown(logs, 0, NOBODY)
    logs.chmod(of_folder)
    log = logs / "orders-0"
    shutil.copytree(SAMPLE_LOGS / "orders-0", log)
    for path in (log, *log.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    checkpoint = logs / "log-start-offset-checkpoint"
    text = "0\n1\nother 0 1234567\n"
    checkpoint.write_text(text)
    checkpoint.chmod(of_checkpoint)
    before = files_in(log)
    words = ["retain", str(log), "--log-start-offset", "4", "--apply"]
    assert main(words) == (0 if may else 1)
    assert not (log / READY).exists()
    assert owners(log) == {NOBODY}
    if may:
        assert checkpoint.read_text().endswith("orders 0 4\n")
        assert checkpoint.stat().st_uid == NOBODY
    else:
        assert files_in(log) == before
        assert checkpoint.read_text() == text
    assert main(["repair", str(log), "--apply"]) == 0


def test_a_link_of_another_user_leads_to_no_device(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    drop = places.root.parent / "drop"  # root's, and others may put links into it
    drop.mkdir()
    drop.chmod(0o1777)
    for folder in (places.home, drop):
        link = folder / "a.html"
        link.symlink_to("/dev/null")
        os.lchown(link, NOBODY, NOBODY)
        assert main(["report", "sample:", "-o", str(link)]) == 1
        assert "another user's link: name a file" in capsys.readouterr().err


def test_a_link_of_another_user_in_a_folder_of_roots_is_read_as_that_user(places: Places) -> None:
    drop = places.root.parent / "drop"
    drop.mkdir()
    drop.chmod(0o1777)
    link = drop / "a.csv"
    link.symlink_to(places.root / "secret")
    os.lchown(link, NOBODY, NOBODY)
    with reading_for(places.home), pytest.raises(PermissionError):
        opening(link, open_path, link, os.O_RDONLY)
    assert opening(link, open_path, link, os.O_RDONLY) >= 0


def test_a_link_of_a_user_in_a_third_users_folder_is_read_as_the_one_who_made_it(
    places: Places,
) -> None:
    drop = places.root.parent / "drop"
    drop.mkdir()
    os.chown(drop, THIRD, THIRD)
    drop.chmod(0o1777)
    link = drop / "a.csv"
    link.symlink_to(places.root / "secret")
    os.lchown(link, NOBODY, NOBODY)
    with reading_for(places.home), pytest.raises(PermissionError):
        opening(link, open_path, link, os.O_RDONLY)


def test_a_restoration_reads_no_file_of_roots_through_a_users_link(places: Places) -> None:
    make_partition(places.root / "own-0", {0: [data(0, 1)]})
    places.put("backup/orders-0", places.root / "own-0")
    (places.root / "starts").write_text("0\n1\norders 0 1\n")
    places.link("backup/log-start-offset-checkpoint", places.root / "starts")
    words = [str(places.home / "backup"), str(places.home / "new")]
    assert main(["restore", "--apply", *words]) == 1
    assert not list(places.home.glob("new/*-checkpoint"))


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_no_sync_opens_what_a_users_link_leads_to(places: Places, kind: str) -> None:
    target = places.root / "target"
    if kind == "fifo":
        os.mkfifo(target, 0o600)
    else:
        target.symlink_to("/dev/mem")
    link = places.link("part", target)
    with pytest.raises(OSError, match="denied"):
        sync(link)


@pytest.mark.parametrize("function", ["part_of", "damaged_batches"])
def test_a_repair_reads_no_log_through_a_users_link(places: Places, function: str) -> None:
    make_partition(places.root / "own-0", {0: [data(0, 5)]})
    log = places.link(f"orders-0/{LOG}", places.root / "own-0" / LOG)
    read = {
        "part_of": lambda: part_of(Extent(log, 0, 90), Range()),
        "damaged_batches": lambda: damaged_batches(log, 0, 90, 0, None),
    }[function]
    with reading_for(log.parent), pytest.raises(PermissionError):
        read()


def test_a_fifo_of_another_user_in_roots_sticky_folder_gets_no_report(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    drop = places.root.parent / "drop"
    drop.mkdir()
    drop.chmod(0o1777)
    os.mkfifo(drop / "a.html")
    os.chown(drop / "a.html", NOBODY, NOBODY)
    assert main(["report", "sample:", "-o", str(drop / "a.html")]) == 1
    assert "is another user's FIFO" in capsys.readouterr().err


def test_a_link_of_another_user_before_two_dots_counts(places: Places) -> None:
    """As for a shell: the two dots lead to the folder around the link's target."""
    drop = places.root.parent / "drop"
    drop.mkdir()
    drop.chmod(0o1777)
    (places.root / "sub").mkdir()
    link = drop / "link"
    link.symlink_to(places.root / "sub")
    os.lchown(link, NOBODY, NOBODY)
    assert main(["report", "sample:", "-o", str(link / ".." / "a.html")]) == 1
    assert sorted(path.name for path in places.root.iterdir()) == ["secret", "sub"]
    assert [path.name for path in drop.iterdir()] == ["link"]
