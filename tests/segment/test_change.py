"""Changes of a log: whole or not at all, whatever stops them."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from changes import (
    A_BROKERS,
    CLEAN_SHUTDOWN,
    SCENARIOS,
    SIDES,
    A,
    B,
    Call,
    Scenario,
    Stopped,
    as_loaded,
    change,
    check_loads,
    check_whole,
    failing_after,
    files,
    hidden,
    is_log,
    just_committed,
    live,
    place,
    put,
    recording,
    stopped_everywhere,
    stopping_after,
)
from corpus import run_python

from kafkajit.errors import KafkaJitError
from kafkajit.segment.change import Change
from kafkajit.segment.disk import own
from kafkajit.segment.journal import JOURNAL, READY, STAGED, Stage, resume, stages_of
from kafkajit.segment.lock import FolderLock

LOG = f"{0:020d}.log"
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a file system: hundreds of thousands of calls are made."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition of one small segment."""
    place(tmp_path, {f"{A}/{LOG}": b"old log", f"{A}/{0:020d}.index": b"old index"})
    return tmp_path / A


@every_scenario
def test_a_committed_change_is_all_new(scenario: Scenario, tmp_path: Path) -> None:
    change(put(tmp_path, scenario), scenario).commit()
    assert check_whole(tmp_path, scenario) == "new"
    assert (tmp_path / CLEAN_SHUTDOWN).exists()


@every_scenario
def test_what_is_replaced_is_kept_as_it_lay(scenario: Scenario, tmp_path: Path) -> None:
    before, after = files(scenario, after=False), files(scenario, after=True)
    kept = change(put(tmp_path, scenario), scenario).commit()
    gone = {name: was for name, was in before.items() if after.get(name) != was}
    if not gone:
        assert kept is None
        return
    assert kept is not None
    assert kept.parent == tmp_path / A
    assert re.fullmatch(r"\.kafkajit-test-\d{8}T\d{6}Z", kept.name)
    assert live(kept) == gone


@every_scenario
def test_what_is_replaced_goes_where_nobody_keeps_it(scenario: Scenario, tmp_path: Path) -> None:
    assert change(put(tmp_path, scenario), scenario).commit(keep=False) is None
    assert live(tmp_path) == files(scenario, after=True)
    assert hidden(tmp_path) == [CLEAN_SHUTDOWN]


@every_scenario
def test_a_change_that_is_not_committed_leaves_nothing(scenario: Scenario, tmp_path: Path) -> None:
    put(tmp_path, scenario)
    with change(tmp_path, scenario):
        pass
    assert check_whole(tmp_path, scenario) == "old"
    with pytest.raises(ZeroDivisionError), change(tmp_path, scenario):
        raise ZeroDivisionError
    assert check_whole(tmp_path, scenario) == "old"


@every_scenario
def test_a_process_that_dies_anywhere_leaves_a_log_that_loads(
    scenario: Scenario, tmp_path: Path
) -> None:
    outcomes = []
    for root in stopped_everywhere(tmp_path, scenario):
        check_loads(root, scenario)
        is_committed = (root / A / READY).exists()
        finished = resume(root)
        assert finished == ([f"test of {root / A}"] if is_committed else [])
        outcomes.append(check_whole(root, scenario))
        assert (outcomes[-1] == "new") >= is_committed
    assert outcomes == sorted(outcomes, reverse=True)  # first old, then new
    assert {"old", "new"} == set(outcomes)


@every_scenario
def test_finishing_may_be_stopped_anywhere_too(scenario: Scenario, tmp_path: Path) -> None:
    for root in stopped_everywhere(tmp_path, scenario, committed=True):
        for calls in range(5, 1000, 20):
            try:
                with stopping_after(calls):
                    resume(root)
            except Stopped:
                check_loads(root, scenario)
            else:
                break
        assert check_whole(root, scenario) == "new"


@every_scenario
def test_what_is_not_synced_may_reach_the_disk_in_any_order(
    scenario: Scenario, tmp_path: Path
) -> None:
    committed = just_committed(tmp_path / "stopped", scenario)
    shutil.copytree(committed, tmp_path / "synced")
    with recording() as calls:
        resume(committed)
    chance, state = random.Random(1), tmp_path / "state"
    for is_synced, some in groupby(calls, key=lambda call: call[0] == "fsync"):
        unsynced = [] if is_synced else list(some)
        for _ in range(2 * len(unsynced)):
            shutil.copytree(tmp_path / "synced", state)
            replay(chance.sample(unsynced, chance.randint(0, len(unsynced))), committed, state)
            check_loads(state, scenario)
            shutil.rmtree(state)
        replay(unsynced, committed, tmp_path / "synced")
        if not (tmp_path / "synced" / A / READY).exists():
            break
    assert live(tmp_path / "synced") == files(scenario, after=True)


def replay(calls: list[Call], root: Path, other: Path) -> None:
    """What was called in a folder, in another one; without what cannot be, for want of others."""
    for name, arguments in calls:
        inside = [path for path in arguments if isinstance(path, Path)]
        paths = [other / path.relative_to(root) for path in inside]
        with suppress(FileNotFoundError):
            if name == "open" and isinstance(arguments[1], int) and arguments[1] & os.O_CREAT:
                paths[0].touch()
            elif name in ("mkdir", "unlink"):
                getattr(paths[0], name)()
            elif name in ("rename", "link"):
                getattr(os, name)(*paths)


def a_broker_runs(root: Path, scenario: Scenario) -> None:
    """What LogLoader does to a partition, with nobody appending."""
    found = live(root)
    loaded = as_loaded(found, scenario)
    for name in sorted(found):
        target = name.removesuffix(".swap")
        if target != name and loaded.get(target) == found[name]:
            (root / name).rename(root / target)
        elif name not in loaded:
            (root / name).unlink()
    for name in live(root):
        log = root / name
        if is_log(name) and not log.with_suffix(".index").exists():
            for suffix in SIDES:
                log.with_suffix(suffix).write_bytes(b"made from " + log.read_bytes())
        if name.endswith("leader-epoch-checkpoint"):
            log.write_bytes(b"a broker's")
    (root / CLEAN_SHUTDOWN).touch()


@every_scenario
def test_a_change_is_finished_after_a_broker_has_loaded_the_log(
    scenario: Scenario, tmp_path: Path
) -> None:
    after = files(scenario, after=True)
    for root in stopped_everywhere(tmp_path, scenario, committed=True):
        a_broker_runs(root, scenario)
        resume(root)
        assert (root / CLEAN_SHUTDOWN).exists()
        found = live(root)
        made = {name: found.pop(name) for name in list(found) if name.endswith(A_BROKERS)}
        assert found == {name: new for name, new in after.items() if not name.endswith(A_BROKERS)}
        for name, bytes_ in made.items():
            log = found.get(re.sub(r"\.[a-z]+$", ".log", name), b"")
            assert bytes_ in (after.get(name), b"made from " + log, b"a broker's"), name
        for name in found:
            if is_log(name):
                assert name.replace(".log", ".index") in made


@pytest.mark.parametrize("name", [LOG, f"{300:020d}.log", f"{700:020d}.log"])
def test_a_log_that_was_written_since_is_left_alone(name: str, tmp_path: Path) -> None:
    root = just_committed(tmp_path, SCENARIOS["append"])
    with (root / A / name).open("ab") as log:
        log.write(b"appended")
    a_broker_runs(root, SCENARIOS["append"])
    found, told = live(root), rf"{re.escape(str(root / A / name))} has been written since: it can"
    for _ in range(2):
        with pytest.raises(KafkaJitError, match=told) as caught:
            resume(root)
        assert live(root) == found
    assert caught.value.path == str(root / A / READY)
    with pytest.raises(KafkaJitError, match="an interrupted change is to be finished first"):
        Change(root / A, "test")


def test_what_a_broker_wrote_into_log_dirs_since_stays(tmp_path: Path) -> None:
    scenario = SCENARIOS["compact"]
    root = just_committed(tmp_path, scenario)
    (root / "cleaner-offset-checkpoint").write_bytes(b"a broker's")
    resume(root)
    assert live(root) == files(scenario, after=True) | {"cleaner-offset-checkpoint": b"a broker's"}


def test_what_had_to_be_first_must_not_be_written_since(tmp_path: Path) -> None:
    place(tmp_path, {f"{A}/{LOG}": b"old", "log-start-offset-checkpoint": b"old"})
    made = Change(tmp_path / A, "test")
    for name in (LOG, f"{0:020d}.index", f"{0:020d}.timeindex"):
        made.new(tmp_path / A / name).write_bytes(b"new")
    made.new(tmp_path / "log-start-offset-checkpoint", first=True).write_bytes(b"new")
    with stopping_after(45), pytest.raises(Stopped):
        made.commit()
    assert (tmp_path / A / READY).exists()
    (tmp_path / "log-start-offset-checkpoint").write_bytes(b"a broker's")
    with pytest.raises(KafkaJitError, match="log-start-offset-checkpoint has been written since"):
        resume(tmp_path)
    assert live(tmp_path)[f"{A}/{LOG}"] == b"old"


def test_a_journal_that_cannot_be_read_is_named(folder: Path) -> None:
    (folder / READY).mkdir()
    (folder / READY / JOURNAL).write_text('{"what": "repair"}')
    with pytest.raises(KafkaJitError, match=f"cannot be read .* in {folder}/.*/change.json$"):
        resume(folder.parent)


def test_a_folder_that_was_moved_keeps_its_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = just_committed(tmp_path, SCENARIOS["repair"])
    (root / A).rename(root / "orders-7")
    found = live(root)
    assert resume(root) == []
    assert live(root) == found
    assert f"{root}/orders-7/.kafkajit-change.ready is a change of {A}, and left" in caplog.text


def test_what_is_first_comes_before_any_log() -> None:
    new = [f"{A}/{LOG}", "log-start-offset-checkpoint", f"{B}/partition.metadata", f"{B}/{LOG}"]
    first, *rest = stages_of(new, [], [], ["log-start-offset-checkpoint"], [f"{A}/{LOG}"])
    assert first == Stage("in", ["log-start-offset-checkpoint", f"{B}/partition.metadata"])
    assert rest == [Stage("swap", [f"{A}/{LOG}"]), Stage("swap", [f"{B}/{LOG}"])]


def test_killed_at_any_moment_all_is_old_or_new(tmp_path: Path) -> None:
    counts = json.loads(
        run_python("import sys, changes; changes.kill_often(*sys.argv[1:])", str(tmp_path), "250")
    )
    assert counts["old"] + counts["new"] == 251
    assert min(counts.values()) >= 5, counts  # kills came at every stage


ERRORS = [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT]


@every_scenario
def test_whatever_call_fails_the_log_is_as_it_was_or_is_finished_later(
    scenario: Scenario, tmp_path: Path
) -> None:
    told: list[type[Exception]] = []
    for calls in range(1000):
        root, code = tmp_path / str(calls), ERRORS[calls % len(ERRORS)]
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
            resume(root)  # it failed to tidy up
            assert check_whole(root, scenario) == "new"
            continue
        told.append(type(error))
        assert os.strerror(code) in str(error)
        check_loads(root, scenario)
        if isinstance(error, OSError):
            assert error.errno == code
            assert error.filename, "an error says where"
            assert check_whole(root, scenario) == "old"
        else:
            assert "committed but not finished, which is done when kafkajit next" in str(error)
            resume(root)
            assert check_whole(root, scenario) == "new"
        shutil.rmtree(root)
    committed = told.index(KafkaJitError)
    assert KafkaJitError not in told[:committed]
    assert set(told[committed:]) == {KafkaJitError}


def test_a_crash_is_no_clean_shutdown(tmp_path: Path) -> None:
    outcomes = set()
    for root in stopped_everywhere(tmp_path, SCENARIOS["repair"], committed=True):
        was_put_aside = not (root / CLEAN_SHUTDOWN).exists()
        resume(root)
        assert (root / CLEAN_SHUTDOWN).exists() != was_put_aside
        outcomes.add(was_put_aside)
    assert outcomes == {True, False}


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


def give(made: Change, folder: Path, *names: str) -> None:
    for name in names:
        made.new(folder / name).write_bytes(b"new")


@pytest.mark.parametrize("missing", [".index", ".timeindex"])
def test_a_new_log_has_new_indexes(missing: str, folder: Path) -> None:
    given = {LOG, f"{0:020d}.index", f"{0:020d}.timeindex"} - {f"{0:020d}{missing}"}
    told = f"{A}/{LOG} is new, and needs a new {A}/{0:020d}{missing}"
    with Change(folder, "test") as made:
        give(made, folder, *given)
        with pytest.raises(ValueError, match=told):
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
        with pytest.raises(ValueError, match="a change is committed once"):
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


def test_a_folder_that_was_not_there_is_made_and_goes_again(tmp_path: Path) -> None:
    with Change(tmp_path / A, "test") as made:
        give(made, tmp_path / A, "leader-epoch-checkpoint")
    assert list(tmp_path.iterdir()) == []
    with Change(tmp_path / A, "test") as made:
        give(made, tmp_path / A, "leader-epoch-checkpoint")
        made.commit()
    assert live(tmp_path) == {f"{A}/leader-epoch-checkpoint": b"new"}


def test_what_a_dead_process_was_writing_goes(folder: Path) -> None:
    Change(folder, "test").new(folder / LOG).write_bytes(b"half")
    with Change(folder, "test") as made:
        assert not made.new(folder / LOG).exists()
    Change(folder, "test").new(folder / LOG).write_bytes(b"half")
    resume(folder.parent)
    assert hidden(folder.parent) == []


def test_a_swap_that_a_broker_would_finish_is_in_the_way(folder: Path) -> None:
    swap = folder / f"{0:020d}.log.swap"
    swap.write_bytes(b"a broker's")
    with Change(folder, "test") as made:
        give(made, folder, f"{0:020d}.index")
        with pytest.raises(KafkaJitError, match=f"stopped in a swap of segments.* in {swap}$"):
            made.commit()
    with Change(folder, "test") as made:  # by who knows what is in it
        give(made, folder, LOG, f"{0:020d}.index", f"{0:020d}.timeindex")
        made.remove(swap)
        made.commit()
    assert sorted(path.suffix for path in folder.glob("0*")) == [".index", ".log", ".timeindex"]
    assert set(live(folder.parent).values()) == {b"new"}


def test_what_a_broker_was_cleaning_goes(folder: Path) -> None:
    (folder / f"{0:020d}.log.cleaned").touch()
    scenario = SCENARIOS["compact"]
    change(put(folder.parent, scenario), scenario).commit()
    assert live(folder.parent) == files(scenario, after=True)


def test_a_file_system_without_links_is_copied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_link)
    scenario = SCENARIOS["everything"]
    before, after = files(scenario, after=False), files(scenario, after=True)
    kept = change(put(tmp_path / "at once", scenario), scenario).commit()
    assert kept is not None
    assert live(kept) == {name: was for name, was in before.items() if after.get(name) != was}
    assert check_whole(tmp_path / "at once", scenario) == "new"
    for root in stopped_everywhere(tmp_path, scenario, committed=True):
        check_loads(root, scenario)
        resume(root)
        assert check_whole(root, scenario) == "new"


def test_a_partition_on_another_file_system_is_named(folder: Path, tmp_path: Path) -> None:
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


def test_what_root_makes_belongs_to_whom_the_folder_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(os, "chown", lambda path, *owner: given.append((path, owner)))
    brokers = SimpleNamespace(stat=lambda: SimpleNamespace(st_uid=7, st_gid=8))
    own(folder / LOG, like=brokers)  # type: ignore[arg-type]
    own(folder / LOG, like=folder / LOG)
    assert given == [(folder / LOG, (7, 8))]


LIMITED = """
import os, resource, sys
from kafkajit.segment.change import Change
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


def test_partitions_are_changed_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / CLEAN_SHUTDOWN).touch()

    def do(partition: int) -> None:
        folder = tmp_path / f"orders-{partition}"
        for _ in range(20):
            with FolderLock(folder), Change(folder, "test") as made:
                give(made, folder, LOG, f"{0:020d}.index", f"{0:020d}.timeindex")
                made.commit(keep=False)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(do, range(8)))
    assert len(live(tmp_path)) == 24
    assert hidden(tmp_path) == [CLEAN_SHUTDOWN]


READ_ONLY = """
import os, sys
from pathlib import Path
from kafkajit.segment.change import Change
root = Path(sys.argv[1])
if os.geteuid() == 0:  # who may write everywhere
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
"""


def test_a_folder_that_may_not_be_written_is_named_and_nothing_changes() -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        place(root, {f"{A}/{LOG}": b"old", f"{B}/{LOG}": b"old"})
        (root / B).chmod(0o777)
        (root / A).chmod(0o555)
        root.chmod(0o555)
        found = live(root)
        said = run_python(READ_ONLY, name)
        root.chmod(0o755)
        (root / A).chmod(0o755)
        assert said.splitlines() == [
            f"[Errno 13] Permission denied: '{root / A / STAGED}'",
            f"[Errno 13] no permission to change this folder: '{root / A}'",
            f"[Errno 13] no permission to change this folder: '{root}'",
        ]
        assert live(root) == found
        assert hidden(root) == []
