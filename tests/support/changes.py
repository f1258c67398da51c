"""Changes of a partition stopped at any step: scenarios, and what must hold after each step.

Files are stand-ins: their bytes name their log, and show whether the file is whole.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from unittest import mock

from kafkajit.change.change import Change
from kafkajit.change.journal import READY, STAGED
from kafkajit.change.lock import FolderLock

SIDES = (".index", ".timeindex", ".txnindex")
# Files that a broker rewrites whenever it loads a log.
A_BROKERS = (*SIDES, ".snapshot", "leader-epoch-checkpoint")


class Segment(NamedTuple):
    """The offsets of a log; the first is in the name of its file."""

    start: int
    end: int
    sides: tuple[str, ...] = (".index", ".timeindex")


class Scenario(NamedTuple):
    """The logs before and after a change, by folder, and the files that change with them."""

    before: dict[str, list[Segment]]
    after: dict[str, list[Segment]]
    # The logs whose bytes do not change, by (folder, start).
    stays: frozenset[tuple[str, int]] = frozenset()
    others: tuple[str, ...] = ()
    absorbed: MappingProxyType[tuple[str, int], tuple[int, ...]] = MappingProxyType({})
    at_once: bool = True  # whether a broker always finds all logs old or all new


TXN = (".index", ".timeindex", ".txnindex")
A, B = "orders-0", "orders-1"
LOGS = [Segment(0, 100), Segment(100, 200, TXN), Segment(200, 300), Segment(300, 400, TXN)]
SCENARIOS = {
    # One loses its aborted transactions, one is cut off behind damage, the last two are removed.
    "repair": Scenario(
        {A: [*LOGS, Segment(400, 500)]},
        {A: [LOGS[0], Segment(100, 200), Segment(200, 250, TXN)]},
        stays=frozenset({(A, 0)}),
        others=(f"{A}/leader-epoch-checkpoint", f"{A}/{250:020d}.snapshot"),
        at_once=False,
    ),
    "append": Scenario(
        {A: LOGS},
        {A: [*LOGS, Segment(400, 500, TXN), Segment(500, 600)]},
        stays=frozenset((A, log.start) for log in LOGS),
        others=(f"{A}/leader-epoch-checkpoint", f"{A}/{600:020d}.snapshot"),
    ),
    "append over an empty active segment": Scenario(
        {A: [*LOGS[:3], Segment(300, 300)]},
        {A: [*LOGS[:3], Segment(300, 400), Segment(400, 450)]},
        stays=frozenset((A, log.start) for log in LOGS[:3]),
    ),
    "compact": Scenario(
        {A: [*LOGS, Segment(400, 500)]},
        {A: [Segment(0, 200), Segment(200, 400, TXN), Segment(400, 500)]},
        stays=frozenset({(A, 400)}),
        others=("cleaner-offset-checkpoint",),
        absorbed=MappingProxyType({(A, 0): (100,), (A, 200): (300,)}),
    ),
    "retain": Scenario(
        {A: LOGS},
        {A: LOGS[2:]},
        stays=frozenset({(A, 200), (A, 300)}),
        others=("log-start-offset-checkpoint",),
        at_once=False,
    ),
    "split": Scenario(
        {A: LOGS},
        {A: [LOGS[0], Segment(100, 130), Segment(130, 170), Segment(170, 200), *LOGS[2:]]},
        stays=frozenset((A, log.start) for log in LOGS if log.start != 100),
    ),
    "overwrite": Scenario(
        {A: LOGS[1:3]},
        {A: [Segment(0, 50), Segment(50, 100)]},
        others=("log-start-offset-checkpoint", f"{A}/leader-epoch-checkpoint"),
        at_once=False,
    ),
    "two partitions": Scenario(
        {A: LOGS[:2]},
        {A: LOGS[:3], B: LOGS[:2]},
        stays=frozenset({(A, 0), (A, 100)}),
        others=(f"{B}/partition.metadata", f"{A}/leader-epoch-checkpoint"),
    ),
    # Several logs are replaced, one is added and one removed, with all files around them.
    "everything": Scenario(
        {A: [*LOGS, Segment(400, 500), Segment(500, 600)]},
        {A: [Segment(100, 200), Segment(200, 400, TXN), LOGS[3]._replace(start=400, end=450)]},
        others=(
            *("cleaner-offset-checkpoint", "log-start-offset-checkpoint"),
            *(f"{A}/leader-epoch-checkpoint", f"{A}/{450:020d}.snapshot"),
        ),
        absorbed=MappingProxyType({(A, 200): (300,)}),
        at_once=False,
    ),
    # The last segment has no whole batch: it becomes empty, without aborted transactions.
    "empty": Scenario(
        {A: LOGS},
        {A: [*LOGS[:3], Segment(300, 300)]},
        stays=frozenset((A, log.start) for log in LOGS[:3]),
        others=(f"{A}/leader-epoch-checkpoint",),
    ),
}
# Together these scenarios cover every step.
VARIED = ("everything", "two partitions", "empty")
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
Files = dict[str, bytes]
Call = tuple[str, tuple[object, ...]]


def stem_of(folder: str, start: int) -> str:
    return f"{folder}/{start:020d}"


def content(name: str, version: str, size: int) -> bytes:
    return f"{version} {name} ".encode() + b"." * size + b" whole\n"


def content_of(log: Segment, name: str, version: str, size: int) -> bytes:
    return content(name, version, size) if log.end > log.start else b""


def files(scenario: Scenario, *, after: bool, size: int = 100) -> Files:
    """All files before or after the change."""
    key = (id(scenario), after, size)
    if key not in _known:
        _known[key] = _files(scenario, after, size)
    return _known[key]


_known: dict[tuple[int, bool, int], Files] = {}


def _files(scenario: Scenario, after: bool, size: int) -> Files:
    found = {}
    for folder, logs in (scenario.after if after else scenario.before).items():
        for log in logs:
            is_new = after and (folder, log.start) not in scenario.stays
            for suffix in (".log", *log.sides, ".snapshot"):
                name = stem_of(folder, log.start) + suffix
                found[name] = content_of(log, name, "new" if is_new else "old", size)
        found[f"{folder}/partition.metadata"] = content(folder, "old", 10)
    for name in scenario.others:
        if after or not name.startswith(B):
            found[name] = content(name, "new" if after else "old", 10)
    return found


def place(root: Path, wanted: Files) -> None:
    for name, bytes_ in wanted.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(bytes_)


def change(root: Path, scenario: Scenario, size: int = 100, *, keep: bool = True) -> Change:
    """Stage the change from before to after."""
    before, after = files(scenario, after=False, size=size), files(scenario, after=True, size=size)
    made = Change(root / A, "test")
    try:
        _stage(made, root, scenario, before, after)
    except OSError:
        made.abort()
        raise
    return made


def _stage(made: Change, root: Path, scenario: Scenario, before: Files, after: Files) -> None:
    for name in after.keys() - before.keys() | {n for n in after if before.get(n) != after[n]}:
        merged: tuple[int, ...] = ()
        if name.endswith(".log"):
            folder, _, file = name.partition("/")
            merged = scenario.absorbed.get((folder, int(file[:20])), ())
        absorbed = [root / (stem_of(A, start) + ".log") for start in merged]
        made.new(root / name, instead_of=absorbed).write_bytes(after[name])
    for name in before.keys() - after.keys():
        if name.endswith(".log"):
            made.remove(root / name)


def live(root: Path) -> Files:
    """The visible files: those that are not in a hidden folder."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = os.path.relpath(folder, root)
        for name in names:
            if not name.startswith("."):
                path = Path(folder, name)
                found[os.path.normpath(f"{inside}/{name}")] = path.read_bytes()
    return found


def hidden(root: Path) -> list[str]:
    return sorted(path.name for path in [*root.glob(".*"), *root.glob("*/.*")])


def check_loads(root: Path, scenario: Scenario, size: int = 100) -> None:
    """Check what must hold after every step, for readers and for a broker that starts then."""
    found = live(root)
    loaded = as_loaded(found, scenario)
    for names in (found, loaded):
        check_reads(names, scenario, size)
    after = files(scenario, after=True, size=size)
    if (root / CLEAN_SHUTDOWN).exists():
        assert found in (files(scenario, after=False, size=size), after)
    for folder, before in scenario.before.items():
        logs = []
        for name in sorted(name for name in loaded if is_log(name) and name.startswith(folder)):
            of = scenario.after[folder] if loaded[name] == after.get(name) else before
            logs += [log for log in of if stem_of(folder, log.start) + ".log" == name]
        assert logs, "a log is never without segments"
        for log, following in pairwise(logs):
            assert log.end == following.start, f"{log} and {following}"
        if scenario.at_once:
            assert logs in (before, scenario.after[folder])
    for folder in scenario.after.keys() - scenario.before.keys():
        if any(name.startswith(f"{folder}/") for name in found):
            assert f"{folder}/partition.metadata" in found


def is_log(name: str) -> bool:
    return re.fullmatch(r"[^/]+/\d{20}\.log", name) is not None


def check_reads(found: Files, scenario: Scenario, size: int) -> None:
    """Check that files are whole, and that indexes belong to the log beside them."""
    before, after = files(scenario, after=False, size=size), files(scenario, after=True, size=size)
    for name, bytes_ in found.items():
        if not name.endswith((".swap", ".cleaned")):
            assert bytes_ in (before.get(name), after.get(name)), f"{name} is neither old nor new"
    for name in filter(is_log, found):
        of = before if found[name] == before.get(name) else after
        stem = name.removesuffix(".log")
        for side in (stem + suffix for suffix in SIDES):
            assert found.get(side) in (None, of.get(side)), f"{side} is of another log"
            if stem + ".index" in found:
                assert found.get(side) == of.get(side), f"{side} is missed by nobody"


def as_loaded(found: Files, scenario: Scenario) -> Files:
    """The files after LogLoader has renamed and removed some, and before it reads one."""
    loaded = dict(found)
    for folder in {name.partition("/")[0] for name in found if "/" in name}:
        inside = [name for name in found if name.startswith(f"{folder}/0")]
        starts = {name: int(name.partition("/")[2][:20]) for name in inside}
        cleaned = [name for name in inside if name.endswith(".cleaned")]
        cleaned_from = min((starts[name] for name in cleaned), default=1 << 63)
        swaps = [name for name in inside if name.endswith(".swap")]
        invalid = [name for name in swaps if starts[name] >= cleaned_from]
        for name in cleaned + invalid:
            del loaded[name]
        valid = [name for name in swaps if name not in invalid]
        ends = {log.start: log.end for log in scenario.after[folder]}
        logs = [name for name in valid if name.endswith(".log.swap")]
        for name in logs:
            assert name.replace(".log", ".index") in valid, "LogLoader would make one of zeros"
        lowest = min((starts[name] for name in logs), default=0)
        highest = max((ends[starts[name]] for name in logs), default=0)
        for name in set(inside) - set(swaps) - set(cleaned):
            if lowest <= starts[name] < highest:
                del loaded[name]
        for name in valid:
            loaded[name.removesuffix(".swap")] = loaded.pop(name)
        for name in inside:
            log = re.sub(r"\.[a-z]+$", ".log", name)
            if name.endswith(SIDES) and log not in loaded:
                loaded.pop(name, None)
    return loaded


def check_whole(root: Path, scenario: Scenario, size: int = 100) -> str:
    """Whether all files are old or all new, with nothing left behind but kept files."""
    found = live(root)
    # A killed process cannot remove its .lock.
    left = [name for name in hidden(root) if name not in (CLEAN_SHUTDOWN, ".lock")]
    if found == files(scenario, after=False, size=size):
        assert left == []
        return "old"
    assert found == files(scenario, after=True, size=size)
    assert [re.sub(r"\d", "0", name) for name in left] == [".kafkajit-test-00000000T000000Z"]
    return "new"


class Stopped(BaseException):
    """Raised when the simulated process dies; its further calls do nothing."""


# Calls that change a file system and so may fail.
CALLS = ("open", "mkdir", "rename", "replace", "link", "unlink", "rmdir", "fsync", "chmod", "chown")


@contextmanager
def stopping_after(calls: int) -> Iterator[None]:
    """Simulate the end of the process after a number of system calls."""
    numbers = count()

    def stop(*_: object) -> None:
        if next(numbers) >= calls:
            raise Stopped

    with _before_each_call(stop):
        yield


@contextmanager
def failing_after(calls: int, code: int) -> Iterator[list[OSError]]:
    """Let one system call fail, and yield the error once it has."""
    numbers, errors = count(), []

    def fail(_: str, arguments: tuple[object, ...]) -> None:
        if next(numbers) == calls:
            where = None if isinstance(arguments[0], int) else str(arguments[0])
            errors.append(OSError(code, os.strerror(code), where))
            raise errors[0]

    with _before_each_call(fail):
        yield errors


@contextmanager
def recording() -> Iterator[list[Call]]:
    """Yield the system calls with their arguments."""
    calls: list[Call] = []
    with _before_each_call(lambda name, arguments: calls.append((name, arguments))):
        yield calls


@contextmanager
def _before_each_call(do: Callable[[str, tuple[object, ...]], None]) -> Iterator[None]:
    def counted(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            do(name, arguments)
            return None if name == "fsync" else real(*arguments, **named)

        return call

    with ExitStack() as patches:
        for name in CALLS:
            patches.enter_context(mock.patch.object(os, name, counted(name)))
        yield


def put(root: Path, scenario: Scenario) -> Path:
    """The partition as a stopped broker has left it."""
    place(root, files(scenario, after=False))
    (root / CLEAN_SHUTDOWN).touch()
    return root


def stopped_everywhere(
    root: Path, scenario: Scenario, *, committed: bool = False
) -> Iterator[Path]:
    """Yield the partition of a process that dies before each call that changes something."""
    put(root / "all", scenario)
    with recording() as calls, change(root / "all", scenario) as staged:
        staged.commit()
    shutil.rmtree(root / "all")
    commit = calls.index(("rename", (root / "all" / A / STAGED, root / "all" / A / READY)))
    for number, (name, _) in enumerate(calls):
        if name in ("open", "fsync") or (committed and number <= commit):
            continue
        put(root / str(number), scenario)
        with suppress(Stopped), stopping_after(number):
            change(root / str(number), scenario).commit()
            raise AssertionError("it was not stopped")
        yield root / str(number)
        shutil.rmtree(root / str(number))


def just_committed(folder: Path, scenario: Scenario) -> Path:
    """The partition of a process that dies just after its commit."""
    root = next(stopped_everywhere(folder, scenario, committed=True))
    assert (root / A / READY).exists()
    return root


def kill_often(folder: str, times: str) -> None:
    """Change a partition in children that are killed at random moments, and print the outcomes.

    Every other child is killed while it commits. Half of the processes that finish a commit are
    killed as well.
    """
    size, scenario = 20_000, SCENARIOS["everything"]
    chance = random.Random(7)
    taken = {"all": 0.0, "commit": 0.0}
    counts = {"old": 0, "new": 0, "interrupted": 0, "half": 0}
    for turn in range(int(times) + 1):
        root = Path(folder) / str(turn)
        place(root, files(scenario, after=False, size=size))
        (root / CLEAN_SHUTDOWN).touch()
        kind = "commit" if turn % 2 else "all"
        # The first is not killed: it shows how long a change takes.
        after = taken[kind] * chance.random() if turn else None
        begun, seconds = _in_child(lambda r=root: _do_change(r, scenario, size), kind, after)
        if turn == 0:
            taken = {"all": seconds, "commit": seconds - begun}
        check_loads(root, scenario, size)
        names = hidden(root)
        counts["interrupted"] += ".kafkajit-change.ready" in names
        if chance.random() < 0.5:
            _in_child(lambda r=root: _finish(r), "all", taken["commit"] * chance.random())
            check_loads(root, scenario, size)
        found = live(root)
        counts["half"] += found not in (
            files(scenario, after=False, size=size),
            files(scenario, after=True, size=size),
        )
        _finish(root)
        counts[check_whole(root, scenario, size)] += 1
        shutil.rmtree(root)
    sys.stdout.write(json.dumps(counts))


def _do_change(root: Path, scenario: Scenario, size: int) -> None:
    with FolderLock(root / A), change(root, scenario, size) as made:
        os.write(1, b"c")
        made.commit()


def _finish(root: Path) -> None:
    with FolderLock(root / A):
        pass


def _in_child(work: Callable[[], None], kind: str, after: float | None) -> tuple[float, float]:
    """Run a change in a fork that is killed some time after its start, or after its commit began.

    Returns the seconds until its commit began, if there was one, and until it ended.
    """
    reading, writing = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.closerange(3, 20)
        try:
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    begun = 0.0
    if kind == "commit" or after is None:
        os.read(reading, 1)
        begun = time.monotonic() - start
    if after is not None:
        time.sleep(after)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reading)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return begun, time.monotonic() - start


if __name__ == "__main__":
    kill_often(*sys.argv[1:])
