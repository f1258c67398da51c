"""Carry out a committed change step by step, and finish it after a crash.

A killed process leaves some files old and some new. A broker that starts then must still load the
folder, if possible with all of the change's logs or none. So no live file is written. The steps are
links, renames and removals, in these stages; each stage is synced before the next begins:

    in      files that go first, and partition.metadata: a broker puts a log without one aside
    out     removed logs at the end, one by one from the last one on; then their indexes
    swap    new logs together with the logs that they replace or whose offsets they have; adjacent
            logs at once, as a broker's cleaner does it (see `_swap`)
    out     other removed logs, one by one from the first one on; then their indexes
    in/out  snapshots, leader epochs
    in/out  .timeindex and .txnindex of logs that stay; then .index, without which LogLoader
            rebuilds all three from the log
    in/out  files of log.dirs, which note how far logs are complete

.kafka_cleanshutdown is put aside meanwhile: a broker that finds it without snapshots believes that
there are no producers, instead of looking for them in the log.

Answers to LocalLog.replaceSegments of Kafka 4.1.1, and to what its LogLoader does with a folder.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

from kafkajit.change.files import Identity, identity, link, make_folder, own
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import INDEX_SUFFIX, INDEX_SUFFIXES, SNAPSHOT_SUFFIX
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.state.partition_metadata import PARTITION_METADATA
from kafkajit.system.durable import sync, sync_around

logger = logging.getLogger("kafkajit")

STAGED = ".kafkajit-change"
READY = ".kafkajit-change.ready"
DONE = ".kafkajit-change.done"
JOURNAL = "change.json"
# Files that a broker rebuilds from the log: if it has done so, nothing is lost.
DERIVED = (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX, f"/{LEADER_EPOCHS}")
# The file that a stopped broker leaves, and its name while a change is carried out. Both are in
# log.dirs, since a partition may be a link to another disk.
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_PUT_ASIDE = ".kafkajit-cleanshutdown"
_LOG = re.compile(r"(?:.*/)?\d{20}\.log")
_IN, _OUT, _SWAP = "in", "out", "swap"
# A process may change several partitions at a time, which share that file.
_carrying_out = threading.Lock()


@dataclass(frozen=True)
class Stage:
    """A stage: what is done to live files, which are named by their paths below log.dirs."""

    kind: str
    names: list[str]
    gone: list[str] = field(default_factory=list)  # in a swap: logs without a successor


@dataclass(frozen=True)
class Journal:
    """A committed change."""

    what: str  # is done, such as "repair"
    home: str  # the name of the partition's folder
    stages: list[Stage]
    new: dict[str, Identity]
    live: dict[str, Identity]  # before the change: the files that go, and all logs beside them
    kept: str | None  # the name of the folder that keeps the replaced files

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1))
        sync(path)

    @classmethod
    def read(cls, path: Path) -> Journal:
        try:
            fields = json.loads(path.read_bytes())
            fields["stages"] = [Stage(**stage) for stage in fields["stages"]]
            for of in ("new", "live"):
                fields[of] = {name: Identity(*value) for name, value in fields[of].items()}
            return cls(**fields)
        except (ValueError, TypeError, KeyError) as error:
            raise KafkaJitError(
                f"the journal of an interrupted change cannot be read ({error})", path=str(path)
            ) from None


def resume(root: str | os.PathLike[str]) -> list[str]:
    """Finish interrupted changes in the partitions of a log.dirs folder, and describe them.

    The caller holds the folder's lock. So a change that is still being written belongs to a dead
    process, and is removed.
    """
    finished = []
    with os.scandir(root) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir())
    for folder in (Path(root) / name for name in folders):
        # Nothing is known of a folder that this process may not enter.
        if not os.access(folder, os.R_OK | os.X_OK):
            continue
        for left in (STAGED, DONE):
            tidy(folder / left)
        ready = folder / READY
        if ready.exists():
            journal = Journal.read(ready / JOURNAL)
            if journal.home != folder.name:
                logger.warning("%s is a change of %s and is left alone", ready, journal.home)
                continue
            _check_untouched(journal, ready)
            carry_out(journal, ready)
            finished.append(f"{journal.what} of {folder}")
    return finished


def carry_out(journal: Journal, ready: Path) -> None:
    """Take the steps of a change that are not yet taken."""
    root, new = ready.parent.parent, ready / "new"
    with _carrying_out, _without_clean_shutdown(root):
        for stage in journal.stages:
            if stage.kind == _SWAP:
                _swap(stage, root, new)
                continue
            for name in stage.names:
                if stage.kind == _OUT:
                    (root / name).unlink(missing_ok=True)
                elif (new / name).exists():
                    if not (root / name).parent.exists():
                        make_folder((root / name).parent)
                    (new / name).rename(root / name)
            sync_around(root / name for name in stage.names)
    done = ready.with_name(DONE)
    ready.rename(done)
    sync(ready.parent)
    tidy(done)


def tidy(left: Path) -> None:
    """Remove what a change leaves behind; the replaced files that it keeps stay."""
    if not left.exists():
        return
    if left.name == DONE and (left / "old").exists():
        kept = Journal.read(left / JOURNAL).kept
        assert kept is not None, "only files to keep are linked"
        (left / "old").rename(left.with_name(kept))
        sync(left.parent)
    shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _without_clean_shutdown(root: Path) -> Iterator[None]:
    """Put the file of a clean shutdown aside; for ever, if this process dies meanwhile.

    The folder is then not as the broker left it.
    """
    path, aside = root / CLEAN_SHUTDOWN, root / _PUT_ASIDE
    aside.unlink(missing_ok=True)
    was_clean = path.exists()
    if was_clean:
        path.rename(aside)
        sync(root)
    yield
    if was_clean:
        aside.rename(path)
        sync(root)


def _swap(stage: Stage, root: Path, staged: Path) -> None:
    """Bring logs in as a broker's cleaner does.

    A broker that loads a log with a file NAME.log.swap removes all segments whose offsets that file
    has, and renames the file to NAME.log. But if there is a .cleaned file of the same offset or a
    lower one, it removes both instead. So the removal of that guard is the one step after which a
    broker loads the new logs instead of the old ones, whatever other steps were taken by then.

    LogLoader opens NAME.index.swap, and creates it, full of zeros, if it does not exist. So the
    indexes must be there first.
    """
    logs = sorted(filter(is_log, stage.names))
    sides = sorted(name for name in stage.names if name not in logs)
    guard = root / f"{logs[0]}.cleaned"

    def is_new(name: str) -> bool:
        live, new = root / name, staged / name
        return live.exists() and live.samefile(new)

    def swap_of(name: str) -> Path:
        return root / f"{name}.swap"

    def bring(name: str) -> None:
        swap_of(name).unlink(missing_ok=True)
        link(staged / name, swap_of(name))

    def drop_indexes(of: list[str]) -> None:
        # .index first: without it, a broker rebuilds all.
        for suffix in INDEX_SUFFIXES if of else ():
            for log in of:
                (root / log).with_suffix(suffix).unlink(missing_ok=True)
            sync(guard.parent)

    if guard.exists() or not any(swap_of(log).exists() or is_new(log) for log in logs):
        if not guard.parent.exists():
            make_folder(guard.parent)
        guard.touch()
        own(guard, like=guard.parent)
        sync(guard.parent)
        for name in [*sides, *logs]:
            bring(name)
        sync(guard.parent)
        # A broker would not remove the indexes of a log that has no offsets any more.
        drop_indexes([log for log in logs if swap_of(log).stat().st_size == 0])
        guard.unlink()
        sync(guard.parent)
    # From here on a broker would finish the swap.
    for log in reversed(stage.gone):
        (root / log).unlink(missing_ok=True)
        sync(guard.parent)
    drop_indexes([*stage.gone, *(log for log in logs if not is_new(log))])
    others, offset_indexes = (list(filter(of, sides)) for of in (_is_other_index, _is_offset_index))
    # Logs from the first one on: a broker would remove one between two that are still .swap.
    for names in (*([log] for log in logs), others, offset_indexes):
        for name in names:
            if is_new(name):
                swap_of(name).unlink(missing_ok=True)
            else:
                if not swap_of(name).exists():
                    bring(name)
                swap_of(name).rename(root / name)
        sync(guard.parent)


def _check_untouched(journal: Journal, ready: Path) -> None:
    """Raise an error if the logs are not those that the change knows: a broker may have run since.

    If it has written files of log.dirs, these stay.
    """
    root = ready.parent.parent
    named = {name for stage in journal.stages for name in [*stage.names, *stage.gone]}
    named |= journal.live.keys()
    folders = {name.rpartition("/")[0] for name in named} - {""}
    named |= {name for folder in folders for name in logs_in(root / folder)}
    for name in sorted(named):
        staged, live = ready / "new" / name, identity(root / name)
        before, new = journal.live.get(name), journal.new.get(name)
        if staged.exists():
            is_untouched = live in (before, new)
        elif new is not None:
            is_untouched = new in (live, identity(root / f"{name}.swap"))
        else:
            is_untouched = live in (before, None)
        if is_untouched or name.endswith(DERIVED):
            continue
        if "/" not in name and name not in journal.stages[0].names:
            staged.unlink(missing_ok=True)
            continue
        raise KafkaJitError(
            f"a change ({journal.what}) was interrupted and cannot be finished, since "
            f"{root / name} has been written after that. The replaced files are in old/, the "
            "remaining new files in new/: take what you need, and remove the folder",
            path=str(ready),
        )


def stages_of(
    new: Collection[str],
    removed: Collection[str],
    absorbed: Collection[str],
    first: Collection[str],
    live: Collection[str],
) -> list[Stage]:
    """The stages of a change; the first stage is always that of the files that go first.

    Args:
        new: the files that come in.
        removed: the files that go out.
        absorbed: the removed logs whose offsets are in new logs.
        first: the files that come in before all others.
        live: the files that are there before the change.
    """
    tails: list[str] = []
    swaps: list[Stage] = []
    heads: list[str] = []
    logs = {name for name in [*new, *live] if is_log(name)}
    staying = {name for name in live if name not in removed}
    for _, inside in groupby(sorted(logs), key=lambda name: name.rpartition("/")[0]):
        segments = list(inside)
        # There must be at least one log at any time.
        while staying & set(segments) and segments[-1] in set(removed) - set(absorbed):
            tails.append(segments.pop())
        for is_touched, run in groupby(segments, key=lambda name: name in new or name in removed):
            side_by_side = list(run)
            while side_by_side and side_by_side[0] in removed:
                heads.append(side_by_side.pop(0))
            if is_touched and side_by_side:
                swaps.append(_swap_of(side_by_side, new))
    swapped = {name for stage in swaps for name in stage.names}
    swapped |= {name for stage in swaps for name in [*stage.gone, *_indexes(stage.gone)]}
    first = {*first, *(name for name in new if name.endswith(f"/{PARTITION_METADATA}"))}
    rest_in = set(new) - swapped - first
    swapped |= {name for stage in swaps for name in _indexes(filter(is_log, stage.names))}
    rest_out = set(removed) - swapped - {*tails, *heads}
    # What a stopped broker's cleaner has left. It would take new .swap files for more of that.
    cleaned = {name for name in rest_out if name.endswith((".cleaned", ".swap"))}
    after = (_is_of_partition, _is_other_index, _is_offset_index, _is_of_log_dirs)
    stages = [
        Stage(_OUT, sorted(cleaned)),
        *(Stage(_OUT, [name]) for name in tails),
        Stage(_OUT, sorted(rest_out & set(_indexes(tails)))),
        *swaps,
        *(Stage(_OUT, [name]) for name in heads),
        Stage(_OUT, sorted(rest_out & set(_indexes(heads)))),
        *(
            Stage(kind, sorted(filter(belongs, rest)))
            for belongs in after
            for kind, rest in ((_IN, rest_in), (_OUT, rest_out - cleaned))
        ),
    ]
    return [Stage(_IN, sorted(first)), *(stage for stage in stages if stage.names)]


def _swap_of(logs: list[str], new: Collection[str]) -> Stage:
    """The stage of adjacent new logs and their indexes."""
    coming = [log for log in logs if log in new]
    sides = [name for name in _indexes(coming) if name in new]
    return Stage(_SWAP, [*coming, *sides], [log for log in logs if log not in new])


def _indexes(logs: Iterable[str]) -> list[str]:
    return [log.removesuffix(".log") + suffix for log in logs for suffix in INDEX_SUFFIXES]


def _is_offset_index(name: str) -> bool:
    return name.endswith(INDEX_SUFFIX)


def _is_other_index(name: str) -> bool:
    return name.endswith(INDEX_SUFFIXES[1:])


def _is_of_log_dirs(name: str) -> bool:
    return "/" not in name


def _is_of_partition(name: str) -> bool:
    return not (_is_offset_index(name) or _is_other_index(name) or _is_of_log_dirs(name))


def is_log(name: str) -> bool:
    """Whether this is the name of a live segment's log."""
    return _LOG.fullmatch(name) is not None


def logs_in(folder: Path) -> list[str]:
    """The live logs of a partition as paths below log.dirs."""
    names = (f"{folder.name}/{path.name}" for path in folder.glob("*.log"))
    return sorted(filter(is_log, names))
