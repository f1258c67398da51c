"""A change of a log is made whole or not at all, whatever stops it."""

from __future__ import annotations

import errno
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from changes import (
    CLEAN_SHUTDOWN,
    SCENARIOS,
    VARIED,
    A,
    B,
    Scenario,
    change,
    check_loads,
    check_whole,
    failing_after,
    files,
    hidden,
    live,
    place,
    put,
    stopped_everywhere,
)
from corpus import run_python

from kafkajit.change.change import Change
from kafkajit.change.journal import READY, STAGED
from kafkajit.change.lock import FolderLock
from kafkajit.change.steps import resume
from kafkajit.errors import KafkaJitError

LOG = f"{0:020d}.log"
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))


@every_scenario
def test_a_committed_change_is_all_new(scenario: Scenario, memory: Path) -> None:
    change(put(memory, scenario), scenario).commit()
    assert check_whole(memory, scenario) == "new"
    assert (memory / CLEAN_SHUTDOWN).exists()


@every_scenario
def test_what_is_replaced_is_kept_as_it_lay(scenario: Scenario, memory: Path) -> None:
    before, after = files(scenario, after=False), files(scenario, after=True)
    kept = change(put(memory, scenario), scenario).commit()
    gone = {name: was for name, was in before.items() if after.get(name) != was}
    if not gone:
        assert kept is None
        return
    assert kept is not None
    assert kept.parent == memory / A
    assert re.fullmatch(r"\.kafkajit-test-\d{8}T\d{6}Z", kept.name)
    assert live(kept) == gone


@every_scenario
def test_what_is_kept_can_be_copied_back(scenario: Scenario, memory: Path) -> None:
    before, after = files(scenario, after=False), files(scenario, after=True)
    kept = change(put(memory, scenario), scenario).commit()
    if kept is None:
        return
    for name in after.keys() - before.keys():
        (memory / name).unlink()
    shutil.copytree(kept, memory, dirs_exist_ok=True)
    assert live(memory) == before


@every_scenario
def test_what_is_replaced_goes_where_nobody_keeps_it(scenario: Scenario, memory: Path) -> None:
    assert change(put(memory, scenario), scenario).commit(keep=False) is None
    assert live(memory) == files(scenario, after=True)
    assert hidden(memory) == [CLEAN_SHUTDOWN]


@every_scenario
def test_a_change_that_is_not_committed_leaves_nothing(scenario: Scenario, memory: Path) -> None:
    put(memory, scenario)
    with change(memory, scenario):
        pass
    assert check_whole(memory, scenario) == "old"
    with pytest.raises(ZeroDivisionError), change(memory, scenario):
        raise ZeroDivisionError
    assert check_whole(memory, scenario) == "old"


ERRORS = [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT]


@pytest.mark.thorough
@pytest.mark.parametrize("name", VARIED)
def test_whatever_call_fails_the_log_is_as_it_was_or_is_finished_later(
    name: str, memory: Path
) -> None:
    scenario = SCENARIOS[name]
    stated: list[type[Exception]] = []
    for calls in range(1000):
        root, code = memory / str(calls), ERRORS[calls % len(ERRORS)]
        place(root, files(scenario, after=False))
        error: Exception | None = None
        try:
            with failing_after(calls, code) as failed, change(root, scenario) as staged:
                staged.commit()
        except (OSError, KafkaJitError) as caught:
            error = caught
        if error is None:
            if not failed:
                break
            resume(root)  # it could not tidy up
            assert check_whole(root, scenario) == "new"
            continue
        stated.append(type(error))
        assert os.strerror(code) in str(error)
        check_loads(root, scenario)
        if isinstance(error, OSError):
            assert error.errno == code
            assert error.filename, "an error names the file"
            assert check_whole(root, scenario) == "old"
        else:
            assert "committed but not finished; kafkajit finishes it when it next" in str(error)
            resume(root)
            assert check_whole(root, scenario) == "new"
        shutil.rmtree(root)
    committed = stated.index(KafkaJitError)
    assert KafkaJitError not in stated[:committed]
    assert set(stated[committed:]) == {KafkaJitError}


def test_names_are_those_of_log_dirs_and_its_partitions(folder: Path) -> None:
    with Change(folder, "test") as made:
        assert made.new(folder / LOG).name == LOG
        assert made.new(folder.parent / "cleaner-offset-checkpoint").parent.is_dir()
        assert made.new(folder.parent / B / LOG).parent.is_dir()
        assert made.new(os.path.relpath(folder / LOG)) == made.new(folder / LOG)
        for path in (
            folder.parent,
            folder.parent.parent / LOG,
            folder / "inside" / LOG,
            Path("/etc/passwd"),
        ):
            for do in (made.new, made.remove):
                with pytest.raises(ValueError, match=rf"{path} is neither in {folder.parent} nor"):
                    do(path)


def test_all_is_on_the_disk_before_the_commit(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, committed = set(), []

    def rename(source: Path, target: Path) -> None:
        if target.name == READY:
            inside = [source, *source.rglob("*")]
            committed.extend(path for path in inside if path.stat().st_ino not in synced)
            assert len(inside) > 40
        real(source, target)

    real = os.rename
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "fsync", lambda opened: synced.add(os.fstat(opened).st_ino))
    scenario = SCENARIOS["everything"]
    staged = change(put(memory, scenario), scenario)
    staged.commit()
    # Links to old files contain nothing new to sync.
    assert [path for path in committed if "old" not in path.parts] == []


def give(made: Change, folder: Path, *names: str) -> None:
    for name in names:
        made.new(folder / name).write_bytes(b"new")


@pytest.mark.parametrize("missing", [".index", ".timeindex"])
def test_a_new_log_has_new_indexes(missing: str, folder: Path) -> None:
    given = {LOG, f"{0:020d}.index", f"{0:020d}.timeindex"} - {f"{0:020d}{missing}"}
    stated = f"{A}/{LOG} is new and needs a new {A}/{0:020d}{missing}"
    with Change(folder, "test") as made:
        give(made, folder, *given)
        with pytest.raises(ValueError, match=stated):
            made.commit()
    assert live(folder.parent)[f"{A}/{LOG}"] == b"old log"
    assert hidden(folder.parent) == []


def test_a_new_file_that_nobody_wrote_is_named(folder: Path) -> None:
    with Change(folder, "test") as made:
        path = made.new(folder / "leader-epoch-checkpoint")
        with pytest.raises(FileNotFoundError, match=f"a new file was not written: '{path}'"):
            made.commit()
    assert hidden(folder.parent) == []


def test_a_change_of_nothing_does_nothing(folder: Path) -> None:
    found = live(folder.parent)
    with Change(folder, "test") as made:
        assert made.commit() is None
    assert live(folder.parent) == found
    assert hidden(folder.parent) == []


def test_a_change_is_committed_once(folder: Path) -> None:
    with Change(folder, "test") as made:
        give(made, folder, "leader-epoch-checkpoint")
        made.commit()
        with pytest.raises(ValueError, match="the change is already committed or aborted"):
            made.commit()
    assert live(folder.parent)[f"{A}/leader-epoch-checkpoint"] == b"new"


def test_what_is_not_there_needs_no_removing(folder: Path) -> None:
    with Change(folder, "test") as made:
        made.remove(folder / f"{700:020d}.snapshot")
        assert made.commit() is None
    assert hidden(folder.parent) == []


def test_an_index_is_replaced_by_itself(folder: Path) -> None:
    with Change(folder, "test") as made:
        give(made, folder, f"{0:020d}.index")
        made.remove(folder / f"{0:020d}.txnindex")
        made.commit()
    assert live(folder.parent) == {f"{A}/{LOG}": b"old log", f"{A}/{0:020d}.index": b"new"}


def test_changes_of_one_second_are_kept_apart(folder: Path) -> None:
    kept = []
    for _ in range(5):
        with Change(folder, "test") as made:
            give(made, folder, f"{0:020d}.index")
            kept.append(made.commit())
    assert len({path for path in kept if path is not None and path.is_dir()}) == 5


def test_a_folder_that_was_not_there_is_made_and_goes_again(memory: Path) -> None:
    with Change(memory / A, "test") as made:
        give(made, memory / A, "leader-epoch-checkpoint")
    assert list(memory.iterdir()) == []
    with Change(memory / A, "test") as made:
        give(made, memory / A, "leader-epoch-checkpoint")
        made.commit()
    assert live(memory) == {f"{A}/leader-epoch-checkpoint": b"new"}


def test_what_a_dead_process_was_writing_goes(folder: Path) -> None:
    Change(folder, "test").new(folder / LOG).write_bytes(b"half")
    with Change(folder, "test") as made:
        assert not made.new(folder / LOG).exists()
    Change(folder, "test").new(folder / LOG).write_bytes(b"half")
    resume(folder.parent)
    assert hidden(folder.parent) == []


def test_a_file_of_log_dirs_is_changed_by_itself(folder: Path) -> None:
    with Change(folder, "test") as made:
        made.new(folder.parent / "cleaner-offset-checkpoint").write_bytes(b"new")
        made.commit()
    assert live(folder.parent)["cleaner-offset-checkpoint"] == b"new"


@pytest.mark.parametrize("name", [LOG, f"{700:020d}.log"])
def test_a_log_that_grows_meanwhile_is_in_the_way(name: str, folder: Path) -> None:
    with Change(folder, "test") as made:
        give(made, folder, LOG, f"{0:020d}.index", f"{0:020d}.timeindex")
        with (folder / name).open("ab") as log:
            log.write(b"more")
        found = live(folder.parent)
        with pytest.raises(KafkaJitError, match=f"written since the change began.*{folder}/{name}"):
            made.commit()
    assert live(folder.parent) == found
    assert hidden(folder.parent) == []


def test_a_swap_that_a_broker_would_finish_is_in_the_way(folder: Path) -> None:
    swap = folder / f"{0:020d}.log.swap"
    swap.write_bytes(b"a broker's")
    with Change(folder, "test") as made:
        give(made, folder, f"{0:020d}.index")
        with pytest.raises(KafkaJitError, match=f"stopped while it swapped segments.* in {swap}$"):
            made.commit()
    with Change(folder, "test") as made:  # the caller knows what is in it
        give(made, folder, LOG, f"{0:020d}.index", f"{0:020d}.timeindex")
        made.remove(swap)
        made.commit()
    assert sorted(path.suffix for path in folder.glob("0*")) == [".index", ".log", ".timeindex"]
    assert set(live(folder.parent).values()) == {b"new"}


@pytest.mark.parametrize("keep", [True, False])
def test_a_folder_that_has_a_files_name_is_in_the_way(folder: Path, keep: bool) -> None:
    index = folder / f"{0:020d}.index"
    index.unlink(missing_ok=True)
    index.mkdir()
    with Change(folder, "test") as made:
        made.remove(folder / LOG)  # it would go before that step
        with pytest.raises(IsADirectoryError) as raised:
            made.commit(keep=keep)
    assert raised.value.filename == str(index)
    assert (folder / LOG).exists()
    assert hidden(folder.parent) == []


def test_what_a_broker_was_cleaning_goes(folder: Path) -> None:
    (folder / f"{0:020d}.log.cleaned").touch()
    scenario = SCENARIOS["compact"]
    change(put(folder.parent, scenario), scenario).commit()
    assert live(folder.parent) == files(scenario, after=True)


@pytest.mark.thorough
def test_a_file_system_without_links_is_copied_on(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_link)
    scenario = SCENARIOS["everything"]
    before, after = files(scenario, after=False), files(scenario, after=True)
    kept = change(put(memory / "at once", scenario), scenario).commit()
    assert kept is not None
    assert live(kept) == {name: was for name, was in before.items() if after.get(name) != was}
    assert check_whole(memory / "at once", scenario) == "new"
    for root in stopped_everywhere(memory, scenario, committed=True):
        check_loads(root, scenario)
        resume(root)
        assert check_whole(root, scenario) == "new"


def test_a_partition_on_another_file_system_is_named(folder: Path, memory: Path) -> None:
    (folder.parent / B).symlink_to("/proc")
    with Change(folder, "test") as made:
        made.new(folder.parent / B / "leader-epoch-checkpoint").touch()
        with pytest.raises(OSError, match=f"another file system than {folder}.*{B}") as caught:
            made.commit()
    assert caught.value.errno in (errno.EXDEV, errno.EACCES)
    assert hidden(folder.parent) == []


def test_new_files_have_the_old_ones_mode(folder: Path) -> None:
    (folder / LOG).chmod(0o640)
    with Change(folder, "test") as made:
        give(made, folder, LOG, f"{0:020d}.index", f"{0:020d}.timeindex")
        made.commit()
    assert (folder / LOG).stat().st_mode & 0o777 == 0o640


LIMITED = """
import os, resource, sys
from kafkajit.change.change import Change
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
folder = sys.argv[1]
try:
    with Change(folder, "test") as made:
        path = made.new(folder + "/leader-epoch-checkpoint")
        with path.open("wb") as file:
            file.write(bytes(1 << 20))
        made.commit()
except OSError as error:
    print(error)
"""


def test_a_write_beyond_a_limit_changes_nothing_and_says_where(folder: Path) -> None:
    found = live(folder.parent)
    assert run_python(LIMITED, str(folder)) == f"[Errno 27] File too large: '{folder / STAGED}'\n"
    assert live(folder.parent) == found
    assert hidden(folder.parent) == []


def test_a_partition_may_be_a_link_to_another_disk(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("log.dirs")
    (root / A).symlink_to(folder)
    (root / CLEAN_SHUTDOWN).touch()
    with Change(root / A, "test") as made:
        give(made, root / A, LOG, f"{0:020d}.index", f"{0:020d}.timeindex")
        made.commit()
    assert set(live(folder.parent).values()) == {b"new"}
    assert hidden(root)[0] == CLEAN_SHUTDOWN


def test_partitions_are_changed_at_the_same_time(memory: Path) -> None:
    (memory / CLEAN_SHUTDOWN).touch()

    def do(partition: int) -> None:
        folder = memory / f"orders-{partition}"
        for _ in range(20):
            with FolderLock(folder), Change(folder, "test") as made:
                give(made, folder, LOG, f"{0:020d}.index", f"{0:020d}.timeindex")
                made.commit(keep=False)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(do, range(8)))
    assert len(live(memory)) == 24
    assert hidden(memory) == [CLEAN_SHUTDOWN]


READ_ONLY = """
import os, sys
from pathlib import Path
from kafkajit.change.change import Change
root = Path(sys.argv[1])
if os.geteuid() == 0:  # root may write everywhere
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for folder, others in (("orders-0", []), ("orders-1", ["orders-0/x"]), ("orders-1", ["x"])):
    try:
        with Change(root / folder, "test") as made:
            for name in others:
                made.new(root / name).write_bytes(b"new")
            made.commit()
    except OSError as error:
        print(error)
with Change(root / "orders-1", "test") as made:  # without files outside of it
    made.remove(root / "orders-1/00000000000000000000.log")
    made.commit(keep=False)
"""


def test_a_folder_that_may_not_be_written_is_named_and_nothing_changes() -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        place(root, {f"{A}/{LOG}": b"old", f"{B}/{LOG}": b"old", f"{B}/{0:020d}.index": b""})
        (root / B).chmod(0o777)
        (root / A).chmod(0o555)
        root.chmod(0o555)
        said = run_python(READ_ONLY, name)
        root.chmod(0o755)
        (root / CLEAN_SHUTDOWN).touch()  # this must be put aside
        place(root, {f"{B}/{LOG}": b"old"})
        root.chmod(0o555)
        with pytest.raises(AssertionError, match=f"PermissionError: .* this folder: '{root}'"):
            run_python(READ_ONLY, name)
        root.chmod(0o755)
        (root / A).chmod(0o755)
        assert said.splitlines() == [
            f"[Errno 13] Permission denied: '{root / A / STAGED}'",
            f"[Errno 13] no permission to change this folder: '{root / A}'",
            f"[Errno 13] no permission to change this folder: '{root}'",
        ]
        assert live(root) == {f"{A}/{LOG}": b"old", f"{B}/{LOG}": b"old"}
        assert hidden(root) == [CLEAN_SHUTDOWN]


def test_only_unfinished_segments_of_a_broker_go_with_a_change(memory: Path) -> None:
    scenario = next(iter(SCENARIOS.values()))
    put(memory, scenario)
    brokers = [memory / A / f"{99:020d}{end}.cleaned" for end in (".log", ".index")]
    others = [memory / A / name for name in ("notes.cleaned", "notes-7.txt.cleaned")]
    for path in (*brokers, *others):
        path.write_text("by hand")
    change(memory, scenario).commit(keep=False)
    assert not any(path.exists() for path in brokers)
    assert [path.read_text() for path in others] == ["by hand"] * 2


@pytest.mark.parametrize("name", ["7.cleaned", f"{99:020d}.json.cleaned"])
def test_a_file_that_a_broker_takes_for_an_unfinished_segment_stops_a_change(
    name: str, memory: Path
) -> None:
    scenario = next(iter(SCENARIOS.values()))
    before = live(put(memory, scenario))
    (memory / A / name).write_text("by hand")
    with pytest.raises(KafkaJitError, match=f"move it away in .*{name}"):
        change(memory, scenario).commit()
    (memory / A / name).unlink()
    assert live(memory) == before
