"""Changes of a partition that are stopped anywhere: what there is to change, and what must hold.

Files are stand-ins: their bytes say whose they are, and that they are whole.
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

from kafkajit.segment.change import Change
from kafkajit.segment.journal import STAGED
from kafkajit.segment.lock import FolderLock

SIDES = (".index", ".timeindex", ".txnindex")
# What a broker writes again whenever it loads a log.
A_BROKERS = (*SIDES, ".snapshot", "leader-epoch-checkpoint")


class Segment(NamedTuple):
    """Offsets of a log, whose file has the first for its name."""

    start: int
    end: int
    sides: tuple[str, ...] = (".index", ".timeindex")


class Scenario(NamedTuple):
    """Logs before and after, by their folders, and the files that change with them."""

    before: dict[str, list[Segment]]
    after: dict[str, list[Segment]]
    # Of the logs before, those whose bytes stay, by (folder, start).
    stays: frozenset[tuple[str, int]] = frozenset()
    others: tuple[str, ...] = ()
    absorbed: MappingProxyType[tuple[str, int], tuple[int, ...]] = MappingProxyType({})
    may_shrink: bool = True  # whether its end or its beginning may be missing half-way


TXN = (".index", ".timeindex", ".txnindex")
A, B = "orders-0", "orders-1"
LOGS = [Segment(0, 100), Segment(100, 200, TXN), Segment(200, 300), Segment(300, 400, TXN)]
SCENARIOS = {
    # One is cut off behind damage, one loses its aborted transactions, the last goes away.
    "repair": Scenario(
        {A: LOGS},
        {A: [LOGS[0], Segment(100, 200), Segment(200, 250, TXN)]},
        stays=frozenset({(A, 0)}),
        others=(f"{A}/leader-epoch-checkpoint", f"{A}/{250:020d}.snapshot"),
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
        may_shrink=False,
    ),
    "retain": Scenario(
        {A: LOGS},
        {A: LOGS[2:]},
        stays=frozenset({(A, 200), (A, 300)}),
        others=("log-start-offset-checkpoint",),
    ),
    "split": Scenario(
        {A: LOGS},
        {A: [LOGS[0], Segment(100, 130), Segment(130, 170), Segment(170, 200), *LOGS[2:]]},
        stays=frozenset((A, log.start) for log in LOGS if log.start != 100),
        may_shrink=False,
    ),
    "overwrite": Scenario(
        {A: LOGS[1:3]},
        {A: [Segment(0, 50), Segment(50, 100)]},
        others=("log-start-offset-checkpoint", f"{A}/leader-epoch-checkpoint"),
    ),
    "two partitions": Scenario(
        {A: LOGS[:2]},
        {A: LOGS[:3], B: LOGS[:2]},
        stays=frozenset({(A, 0), (A, 100)}),
        others=(f"{B}/partition.metadata", f"{A}/leader-epoch-checkpoint"),
    ),
    # Several replaced, one added, one removed, and everything around them.
    "everything": Scenario(
        {A: [*LOGS, Segment(400, 500), Segment(500, 600)]},
        {A: [Segment(100, 200), Segment(200, 400, TXN), LOGS[3]._replace(start=400, end=450)]},
        others=(
            *("cleaner-offset-checkpoint", "log-start-offset-checkpoint"),
            *(f"{A}/leader-epoch-checkpoint", f"{A}/{450:020d}.snapshot"),
        ),
        absorbed=MappingProxyType({(A, 200): (300,)}),
    ),
}
Files = dict[str, bytes]


def stem_of(folder: str, start: int) -> str:
    return f"{folder}/{start:020d}"


def content(name: str, version: str, size: int) -> bytes:
    return f"{version} {name} ".encode() + b"." * size + b" whole\n"


def files(scenario: Scenario, *, after: bool, size: int = 100) -> Files:
    """All files of the state before or after."""
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
                found[name] = content(name, "new" if is_new else "old", size)
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
    """The change from before to after, staged."""
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
    """What everybody sees: files that are not in a hidden folder."""
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
    """What must hold at any moment, for readers and for a broker that is started then."""
    before, after = files(scenario, after=False, size=size), files(scenario, after=True, size=size)
    found = live(root)
    for name, bytes_ in found.items():
        assert bytes_ in (before.get(name), after.get(name)), f"{name} is neither old nor new"
    for folder in scenario.before.keys() | scenario.after.keys():
        ranges = []
        for name in sorted(found):
            if not (name.startswith(f"{folder}/") and name.endswith(".log")):
                continue
            of = before if found[name] == before.get(name) else after
            logs = (scenario.before if of is before else scenario.after)[folder]
            stem = name.removesuffix(".log")
            for suffix in SIDES:
                side = found.get(stem + suffix)
                assert side in (None, of.get(stem + suffix)), f"{stem}{suffix} is of another log"
                if stem + ".index" in found:
                    assert side == of.get(stem + suffix), f"{stem}{suffix} is missed by nobody"
            ranges.append(next(log for log in logs if log.start == int(stem[-20:])))
        if folder in scenario.before:
            assert ranges, "a log is never without segments"
        for log, following in pairwise(ranges):
            assert following.start <= log.end, f"a hole behind {log}"
        if ranges:
            assert f"{folder}/partition.metadata" in found
        if not scenario.may_shrink:
            assert ranges[0].start == scenario.before[folder][0].start
            assert max(log.end for log in ranges) == scenario.before[folder][-1].end


def check_whole(root: Path, scenario: Scenario, size: int = 100) -> str:
    """Whether all is old or all is new, and nothing is left behind but what is kept."""
    found = live(root)
    # A process that is killed cannot remove its .lock.
    left = [name for name in hidden(root) if name != ".lock"]
    if found == files(scenario, after=False, size=size):
        assert left == []
        return "old"
    assert found == files(scenario, after=True, size=size)
    assert [re.sub(r"\d", "0", name) for name in left] == [".kafkajit-test-00000000T000000Z"]
    return "new"


class Stopped(BaseException):
    """The process is dead: nothing that it still tries is done."""


# What changes a file system, and so may fail.
CALLS = ("open", "mkdir", "rename", "replace", "link", "unlink", "rmdir", "fsync", "chmod", "chown")


@contextmanager
def stopping_after(calls: int) -> Iterator[None]:
    """Ends the process, as it were, after so many calls of the system."""

    def stop(number: int, _: object) -> None:
        if number >= calls:
            raise Stopped

    with _before_each_call(stop):
        yield


def calls_before_commit(root: Path, scenario: Scenario) -> int:
    """How many calls of the system there are before the one that commits."""
    numbers = []

    def note(number: int, argument: object) -> None:
        if str(argument).endswith(f"/{STAGED}"):
            numbers.append(number)

    with _before_each_call(note), change(root, scenario) as staged:
        staged.commit()
    return numbers[-1]  # the folder is renamed, and no more


@contextmanager
def failing_after(calls: int, code: int) -> Iterator[list[OSError]]:
    """Lets one call of the system fail; gives the error, once it has."""
    errors: list[OSError] = []

    def fail(number: int, argument: object) -> None:
        if number == calls:
            where = None if isinstance(argument, int) else str(argument)
            errors.append(OSError(code, os.strerror(code), where))
            raise errors[0]

    with _before_each_call(fail):
        yield errors


@contextmanager
def _before_each_call(do: Callable[[int, object], None]) -> Iterator[None]:
    numbers = count()

    def counted(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            do(next(numbers), arguments[0])
            return None if name == "fsync" else real(*arguments, **named)

        return call

    with ExitStack() as patches:
        for name in CALLS:
            patches.enter_context(mock.patch.object(os, name, counted(name)))
        yield


def kill_often(folder: str, times: str) -> None:
    """Changes a partition in children that are killed at random moments; prints what came of it.

    Every other one is killed while it commits, and half of those who finish it are killed as well.
    """
    size, scenario = 20_000, SCENARIOS["everything"]
    chance = random.Random(7)
    taken = {"all": 0.0, "commit": 0.0}
    counts = {"old": 0, "new": 0, "interrupted": 0, "half": 0}
    for turn in range(int(times) + 1):
        root = Path(folder) / str(turn)
        place(root, files(scenario, after=False, size=size))
        kind = "commit" if turn % 2 else "all"
        # The first is not killed: it says how long they take.
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
    """Runs it in a fork, killed some time after it began, or began to commit.

    Says when it committed, and how long it took.
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
