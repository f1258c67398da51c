"""Every state that an interrupted change leaves, loaded by Kafka's own log.

    PYTHONPATH=.:tests:tests/support python tests/broker/interrupted_changes.py 3

In: how many random logs each kind of change is tried on. A log is written by Kafka, and changed by
Kafka; then a `Change` does the same to the first, and is stopped before each call of the system
that would change something. Kafka loads what is there then: with segments, producers, leader
epochs, last stable offset and aborted transactions as before or as after the change, or, where logs
go one by one, some way between. Then the change is finished, and Kafka has to find what it made
itself. Out: a line for each log.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from changes import CLEAN_SHUTDOWN, A, Files, Stopped, live, place, recording, stopping_after
from log_operations import Answer, Config, Log, LogOperations
from log_scripts import DAY, TIME, Shape, random_log

from kafkajit.change.change import Change
from kafkajit.change.journal import READY, STAGED, is_log
from kafkajit.change.steps import resume

LATER = TIME + DAY
# No producer expires meanwhile.
OPENED = {"now": TIME, "producerIdExpirationMs": 20 * DAY}


class History(NamedTuple):
    """A log before and after Kafka has changed it, and how it is opened then."""

    before: Files
    after: Files
    config: Config
    log_start_offset: int = 0


class Kind(NamedTuple):
    """A way to change logs."""

    change: Callable[[Log], object] | None
    config: Config = MappingProxyType({})
    appended: float = 1.0  # how much of the log is there before
    prepare: Callable[[Log], object] | None = None
    at_once: bool = True  # whether Kafka has to find all old or all new
    cuts_end: bool = False


def _end(log: Log) -> int:
    return int(log.do("state")["logEndOffset"])


def _truncate(log: Log) -> None:
    log.do("truncateTo", offset=_end(log) // 3)


def _retain(log: Log) -> None:
    log.do("deleteRecords", offset=_end(log) // 2)
    log.do("deleteOldSegments", now=LATER)


def _compact(log: Log) -> None:
    log.clean(evenIfClean=True, firstDirtyOffset=0, now=LATER)


COMPACT = {"cleanup.policy": "compact"}
KINDS = {
    "append": Kind(None, appended=0.6),
    "truncate": Kind(_truncate, at_once=False, cuts_end=True),
    "retain": Kind(_retain, at_once=False),
    "compact": Kind(_compact, COMPACT),
    "merge": Kind(_compact, COMPACT, prepare=_compact),
    "roll otherwise": Kind(None),
}


def history(kafka: LogOperations, work: Path, name: str, seed: int) -> History:
    """What a kind of change does to a random log."""
    kind = KINDS[name]
    is_compacted = "cleanup.policy" in kind.config
    shape = Shape(
        batches=60,
        keys=2 if is_compacted else 15,
        codecs=("none",) if is_compacted else ("none", "lz4"),
        transactional=0.3 if is_compacted else 0.5,
        stays_open=0 if is_compacted else 0.5,
        cleaned=0 if is_compacted else 0.1,
        old=0,
        no_timestamp=0,
        append_time=0,
    )
    batches = random_log(f"{name} {seed}", shape)
    largest = max(map(len, batches))
    config = {"index.interval.bytes": 100, "segment.bytes": 4 * largest, **kind.config}
    folder = work / A
    folder.parent.mkdir(parents=True)
    log = kafka.open(folder, config, **OPENED)
    first = round(len(batches) * kind.appended)
    log.append(b"".join(batches[:first]))
    end = _end(log)
    if kind.prepare is not None:
        kind.prepare(log)
    before = _closed(kafka, log)
    if name == "roll otherwise":
        config["segment.bytes"] = 3 * largest + 17
        for path in folder.iterdir():
            path.unlink()
    log = kafka.open(folder, config, **OPENED)
    log.append(b"".join(batches[0 if name == "roll otherwise" else first :]))
    if kind.change is not None:
        kind.change(log)
    after = _closed(kafka, log)
    return History(before, after, config, end // 2 if name == "retain" else 0)


def _closed(kafka: LogOperations, log: Log) -> Files:
    kafka.clock(LATER + DAY)  # what is to be deleted is
    log.do("close")
    kafka.clock(TIME)
    return live(log.folder.parent)


def staged(root: Path, history: History, kind: Kind) -> Change:
    """The change from before to after."""
    before, after = history.before, history.after
    made = Change(root / A, "test")
    logs = sorted(filter(is_log, after))
    gone = sorted(name for name in before if name not in after)
    for name, content in after.items():
        log = f"{name.rpartition('.')[0]}.log"
        if before.get(name) == content and before.get(log) == after.get(log):
            continue
        absorbed: list[Path] = []
        if is_log(name) and not kind.cuts_end:
            following = min((other for other in logs if other > name), default="~")
            absorbed = [root / old for old in gone if is_log(old) and name < old < following]
        made.new(root / name, instead_of=absorbed).write_bytes(content)
    for name in gone:
        made.remove(root / name)
    return made


def interrupted(work: Path, history: History, kind: Kind) -> Iterator[Path]:
    """Folders of logs whose change was stopped somewhere behind its commit, each state once."""
    whole = _put(work / "whole", history)
    with recording() as calls:
        staged(whole, history, kind).commit()
    assert live(whole) == history.after
    start = calls.index(("rename", (whole / A / STAGED, whole / A / READY)))
    seen = set()
    for number, (name, _) in enumerate(calls):
        if number <= start or name in ("open", "fsync"):
            continue
        root = _put(work / str(number), history)
        with suppress(Stopped), stopping_after(number):
            staged(root, history, kind).commit()
        state = frozenset(live(root).items()), (root / CLEAN_SHUTDOWN).exists()
        if state not in seen:
            seen.add(state)
            yield root


def _put(root: Path, history: History) -> Path:
    place(root, history.before)
    (root / CLEAN_SHUTDOWN).touch()
    return root


def load(kafka: LogOperations, root: Path, history: History) -> Answer:
    """Start Kafka's log here, return its state, and close it again."""
    mark = root / CLEAN_SHUTDOWN
    clean = mark.exists()
    mark.unlink(missing_ok=True)
    start = history.log_start_offset
    log = kafka.open(root / A, history.config, clean=clean, logStartOffset=start, **OPENED)
    state = log.do("state")
    log.do("close")
    mark.touch()
    of_log = ("logEndOffset", "lastStableOffset", "producers", "leaderEpochs")
    of_segments = ("baseOffset", "nextOffset", "size", "largestTimestamp", "abortedTransactions")
    segments = [{name: one[name] for name in of_segments} for one in state["segments"]]
    return {name: state[name] for name in of_log} | {"segments": segments}


def load_whole(
    kafka: LogOperations, root: Path, files: Files, history: History
) -> tuple[Answer, Answer]:
    """What Kafka finds in what it has written itself, if it was stopped cleanly, and if not."""
    found = []
    for was_clean in (True, False):
        there = root / str(was_clean)
        place(there, files)
        if was_clean:
            (there / CLEAN_SHUTDOWN).touch()
        found.append(load(kafka, there, history))
    return found[0], found[1]


def check(kafka: LogOperations, work: Path, name: str, history: History) -> Counter[str]:
    """Load every state of one history, and print how many are old and new."""
    kind, counts = KINDS[name], Counter[str]()
    old = load_whole(kafka, work / "old", history.before, history)
    new = load_whole(kafka, work / "new", history.after, history)
    known = [segment for state in old + new for segment in state["segments"]]
    for root in interrupted(work, history, kind):
        where = f"{name}, {root.name}: {sorted(live(root))}"
        found = load(kafka, root, history)
        which = "old" if found in old else "new" if found in new else "between"
        counts[which] += 1
        assert which != "between" or not kind.at_once, where
        assert all(segment in known for segment in found["segments"]), where
        resume(root)
        logs = {name: content for name, content in live(root).items() if is_log(name)}
        assert logs == {log: was for log, was in history.after.items() if is_log(log)}, where
        assert load(kafka, root, history) in new, where
        shutil.rmtree(root)
    return counts


def main(logs: str) -> None:
    with TemporaryDirectory() as work, LogOperations(Path(work)) as kafka:
        for name in KINDS:
            for seed in range(int(logs)):
                there = Path(work) / f"{name} {seed}"
                made = history(kafka, there / "kafka", name, seed)
                counts = check(kafka, there, name, made)
                before, after = (sum(map(is_log, of)) for of in (made.before, made.after))
                print(f"{name} {seed}: {before} logs, then {after}; loaded: {dict(counts)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
