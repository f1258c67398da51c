"""Changes stopped at any step: what a broker then finds, and how they are finished."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import pytest
from changes import (
    A_BROKERS,
    CLEAN_SHUTDOWN,
    SCENARIOS,
    SIDES,
    VARIED,
    A,
    B,
    Call,
    Scenario,
    Stopped,
    as_loaded,
    check_loads,
    check_whole,
    files,
    is_log,
    just_committed,
    live,
    place,
    recording,
    stopped_everywhere,
    stopping_after,
)
from corpus import run_python

from kafkajit.change.change import Change
from kafkajit.change.journal import JOURNAL, READY, Stage, stages_of
from kafkajit.change.steps import resume
from kafkajit.errors import KafkaJitError

LOG = f"{0:020d}.log"

pytestmark = pytest.mark.thorough
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))


@every_scenario
def test_a_process_that_dies_anywhere_leaves_a_log_that_loads(
    scenario: Scenario, memory: Path
) -> None:
    outcomes = []
    for root in stopped_everywhere(memory, scenario):
        check_loads(root, scenario)
        is_committed = (root / A / READY).exists()
        finished = resume(root)
        assert finished == ([f"test of {root / A}"] if is_committed else [])
        outcomes.append(check_whole(root, scenario))
        assert (outcomes[-1] == "new") >= is_committed
    assert outcomes == sorted(outcomes, reverse=True)  # first old, then new
    assert {"old", "new"} == set(outcomes)


@pytest.mark.parametrize("name", VARIED)
def test_finishing_may_be_stopped_anywhere_too(name: str, memory: Path) -> None:
    scenario = SCENARIOS[name]
    for root in stopped_everywhere(memory, scenario, committed=True):
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
    scenario: Scenario, memory: Path
) -> None:
    committed = just_committed(memory / "stopped", scenario)
    shutil.copytree(committed, memory / "synced")
    with recording() as calls:
        resume(committed)
    chance, state = random.Random(1), memory / "state"
    for is_synced, some in groupby(calls, key=lambda call: call[0] == "fsync"):
        unsynced = [] if is_synced else list(some)
        for _ in range(2 * len(unsynced)):
            shutil.copytree(memory / "synced", state)
            replay(chance.sample(unsynced, chance.randint(0, len(unsynced))), committed, state)
            check_loads(state, scenario)
            shutil.rmtree(state)
        replay(unsynced, committed, memory / "synced")
        if not (memory / "synced" / A / READY).exists():
            break
    assert live(memory / "synced") == files(scenario, after=True)


def replay(calls: list[Call], root: Path, other: Path) -> None:
    """Replay system calls of one folder in another, without those whose files are missing there."""
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
    """Do to a partition what LogLoader does, without appends."""
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
    scenario: Scenario, memory: Path
) -> None:
    after = files(scenario, after=True)
    for root in stopped_everywhere(memory, scenario, committed=True):
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
def test_a_log_that_was_written_since_is_left_alone(name: str, memory: Path) -> None:
    root = just_committed(memory, SCENARIOS["append"])
    with (root / A / name).open("ab") as log:
        log.write(b"appended")
    a_broker_runs(root, SCENARIOS["append"])
    path = re.escape(str(root / A / name))
    found, stated = live(root), rf"cannot be finished, since {path} has been written after that"
    for _ in range(2):
        with pytest.raises(KafkaJitError, match=stated) as caught:
            resume(root)
        assert live(root) == found
    assert caught.value.path == str(root / A / READY)
    with pytest.raises(KafkaJitError, match="an interrupted change must be finished first"):
        Change(root / A, "test")


def test_what_a_broker_wrote_into_log_dirs_since_stays(memory: Path) -> None:
    scenario = SCENARIOS["compact"]
    root = just_committed(memory, scenario)
    (root / "cleaner-offset-checkpoint").write_bytes(b"a broker's")
    resume(root)
    assert live(root) == files(scenario, after=True) | {"cleaner-offset-checkpoint": b"a broker's"}


def test_an_index_that_a_broker_has_made_since_goes_with_its_log(memory: Path) -> None:
    scenario = SCENARIOS["retain"]
    root = just_committed(memory, scenario)
    (root / A / f"{0:020d}.txnindex").touch()
    resume(root)
    assert live(root) == files(scenario, after=True)


def test_what_had_to_be_first_must_not_be_written_since(memory: Path) -> None:
    place(memory, {f"{A}/{LOG}": b"old", "log-start-offset-checkpoint": b"old"})
    made = Change(memory / A, "test")
    for name in (LOG, f"{0:020d}.index", f"{0:020d}.timeindex"):
        made.new(memory / A / name).write_bytes(b"new")
    made.new(memory / "log-start-offset-checkpoint", first=True).write_bytes(b"new")
    with stopping_after(45), pytest.raises(Stopped):
        made.commit()
    assert (memory / A / READY).exists()
    (memory / "log-start-offset-checkpoint").write_bytes(b"a broker's")
    with pytest.raises(KafkaJitError, match="log-start-offset-checkpoint has been written after"):
        resume(memory)
    assert live(memory)[f"{A}/{LOG}"] == b"old"


def test_a_journal_that_cannot_be_read_is_named(folder: Path) -> None:
    (folder / READY).mkdir()
    (folder / READY / JOURNAL).write_text('{"what": "repair"}')
    with pytest.raises(
        KafkaJitError, match=f"cannot be read .* in {folder}/.*/change.json: remove its folder"
    ):
        resume(folder.parent)


def test_a_folder_that_was_moved_keeps_its_change(memory: Path) -> None:
    root = just_committed(memory, SCENARIOS["repair"])
    (root / A).rename(root / "orders-7")
    found = live(root)
    with pytest.raises(KafkaJitError, match=f"it is a change of '{A}': was the folder renamed"):
        resume(root)
    assert live(root) == found


def test_what_is_first_comes_before_any_log() -> None:
    new = [f"{A}/{LOG}", "log-start-offset-checkpoint", f"{B}/partition.metadata", f"{B}/{LOG}"]
    first, *rest = stages_of(new, [], [], ["log-start-offset-checkpoint"], [f"{A}/{LOG}"])
    assert first == Stage("in", ["log-start-offset-checkpoint", f"{B}/partition.metadata"])
    assert rest == [Stage("swap", [f"{A}/{LOG}"]), Stage("swap", [f"{B}/{LOG}"])]


def test_killed_at_any_moment_all_is_old_or_new(memory: Path) -> None:
    counts = json.loads(
        run_python("import sys, changes; changes.kill_often(*sys.argv[1:])", str(memory), "210")
    )
    assert counts["old"] + counts["new"] == 211
    assert min(counts.values()) >= 5, counts  # kills hit every stage


def test_a_crash_is_no_clean_shutdown(memory: Path) -> None:
    outcomes = set()
    for root in stopped_everywhere(memory, SCENARIOS["repair"], committed=True):
        was_put_aside = not (root / CLEAN_SHUTDOWN).exists()
        resume(root)
        assert (root / CLEAN_SHUTDOWN).exists() != was_put_aside
        outcomes.add(was_put_aside)
    assert outcomes == {True, False}
