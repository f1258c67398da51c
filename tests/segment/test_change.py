"""Changes of a log: whole or not at all, whatever stops them."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from changes import (
    A_BROKERS,
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
from kafkajit.segment.journal import JOURNAL, READY, Stage, resume, stages_of

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
    assert hidden(tmp_path) == []


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
        is_committed = any(name.startswith(READY) for name in hidden(root))
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
        if hidden(tmp_path / "synced") and not (tmp_path / "synced" / A / READY).exists():
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
    (root / ".kafka_cleanshutdown").touch()


@every_scenario
def test_a_change_is_finished_after_a_broker_has_loaded_the_log(
    scenario: Scenario, tmp_path: Path
) -> None:
    after = files(scenario, after=True)
    for root in stopped_everywhere(tmp_path, scenario, committed=True):
        a_broker_runs(root, scenario)
        resume(root)
        assert (root / ".kafka_cleanshutdown").exists()
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
