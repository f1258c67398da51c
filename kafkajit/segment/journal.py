"""What a committed change does to live files, step by step, and how it goes on after a crash.

A process that is killed leaves some files old and some new, and a broker that is started then must
load them. Nothing is written under a live name: every step is a rename or a removal, and they are
done in these stages, each on the disk before the next begins:

    1  what is asked to be first, and partition.metadata: a broker puts a log without one aside
    2  indexes of logs that change or go away, .index before the others: without it LogLoader
       recovers the segment, which makes all three from the log; without another one alone it would
       believe that there are no aborted transactions, or no timestamps
    3  logs, one by one. First those behind others go, from the last one on. Then new ones come,
       those before others from the last one on, the rest from the first one on. Then those at the
       start go, from the first one on, and those whose offsets are in new ones, from the last one
       on. So a log may have lost its end or its beginning, or have offsets twice, which whoever
       reads on skips; but it has no hole, and there is one at any time
    4  snapshots, leader epochs: while a segment has no .index both are made from its log
    5  .timeindex and .txnindex, and when these are on the disk .index
    6  files of log.dirs, which say up to where logs are whole

The invariant: beside every .log there are its own indexes, or no .index.

NAME.log.swap, which makes a broker finish a swap by itself, is no help: Kafka 4.1.1 makes a
NAME.index.swap full of zeros where there is none, and then takes that for the segment's index.

Answers to Kafka's LocalLog.replaceSegments, and to what LogLoader makes of a folder.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import KafkaJitError

logger = logging.getLogger("kafkajit")

STAGED = ".kafkajit-change"
READY = ".kafkajit-change.ready"
DONE = ".kafkajit-change.done"
JOURNAL = "change.json"
INDEXES = (".index", ".timeindex", ".txnindex")
# What a broker makes again from the log: it may have done so, and nothing is lost.
DERIVED = (*INDEXES, ".snapshot", "/leader-epoch-checkpoint")
_LOG = re.compile(r"(?:.*/)?\d{20}\.log")
# What is done with a live name.
_IN, _OUT = "in", "out"


class Step(NamedTuple):
    """A new file comes in, or an old one goes out. Its name is its path below log.dirs."""

    kind: str
    name: str


class Identity(NamedTuple):
    """What tells a file from another of its name: a rename keeps it, who writes changes it."""

    size: int
    modified_ns: int


@dataclass(frozen=True)
class Journal:
    """A change that is to be carried out."""

    what: str
    home: str  # the folder that it is made in
    stages: list[list[Step]]
    new: dict[str, Identity]
    live: dict[str, Identity]  # before: what is to go, and all logs beside it
    kept: str | None  # the folder for what goes

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1))
        sync(path)

    @classmethod
    def read(cls, path: Path) -> Journal:
        try:
            fields = json.loads(path.read_bytes())
            fields["stages"] = [[Step(*step) for step in stage] for stage in fields["stages"]]
            for of in ("new", "live"):
                fields[of] = {name: Identity(*value) for name, value in fields[of].items()}
            return cls(**fields)
        except (ValueError, TypeError, KeyError) as error:
            raise KafkaJitError(
                f"the journal of an interrupted change cannot be read ({error})", path=str(path)
            ) from None


def resume(root: str | os.PathLike[str]) -> list[str]:
    """Finishes what was interrupted in the partitions of a log.dirs folder, and says what it was.

    Whoever calls it holds the folder's lock: what is being written there is a dead process's, and
    is removed.
    """
    finished = []
    with os.scandir(root) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir())
    for folder in (Path(root) / name for name in folders):
        # Of a folder that nobody lets us into, nothing is known.
        if not os.access(folder, os.R_OK | os.X_OK):
            continue
        for left in (STAGED, DONE):
            tidy(folder / left)
        ready = folder / READY
        if ready.exists():
            journal = Journal.read(ready / JOURNAL)
            if journal.home != folder.name:
                logger.warning("%s is a change of %s, and left alone", ready, journal.home)
                continue
            _check_untouched(journal, ready)
            carry_out(journal, ready)
            finished.append(f"{journal.what} of {folder}")
    return finished


def carry_out(journal: Journal, ready: Path) -> None:
    """Does those steps of a change that are not yet done."""
    root = ready.parent.parent
    for stage in journal.stages:
        for step in stage:
            _do(step, journal, root / step.name, ready / "new" / step.name)
        for folder in sorted({(root / step.name).parent for step in stage}):
            if folder.exists():
                sync(folder)
    done = ready.with_name(DONE)
    ready.rename(done)
    sync(ready.parent)
    tidy(done)


def tidy(left: Path) -> None:
    """Removes what a change leaves behind; of one that was carried out, what it keeps stays."""
    if not left.exists():
        return
    if left.name == DONE and (left / "old").exists():
        kept = Journal.read(left / JOURNAL).kept
        assert kept is not None, "what is not to be kept was not linked"
        (left / "old").rename(left.with_name(kept))
        sync(left.parent)
    shutil.rmtree(left, ignore_errors=True)


def _do(step: Step, journal: Journal, live: Path, new: Path) -> None:
    is_staged = new.exists()
    if step.kind == _IN and is_staged:
        if not live.parent.exists():
            make_folder(live.parent)
        new.rename(live)
    # What has come in by this name is not what was to go.
    if step.kind == _OUT and (is_staged or step.name not in journal.new):
        live.unlink(missing_ok=True)


def _check_untouched(journal: Journal, ready: Path) -> None:
    """Whether the logs are those that the change knows: a broker may have run since.

    What it has written into files of log.dirs stays.
    """
    root = ready.parent.parent
    first = {step.name for step in journal.stages[0]}
    for name in _named(journal) | _logs(root, journal):
        staged = ready / "new" / name
        before, live = journal.live.get(name), identity(root / name)
        if staged.exists():
            is_untouched = live == before
        elif name in journal.new:
            is_untouched = live == journal.new[name]
        else:
            is_untouched = live in (before, None)
        if is_untouched or name.endswith(DERIVED):
            continue
        if "/" not in name and name not in first:
            staged.unlink(missing_ok=True)
            continue
        raise KafkaJitError(
            f"a change ({journal.what}) was interrupted, and {root / name} has been written since: "
            "it cannot be finished. What it replaced is in old/, what did not come in is in new/: "
            "take what you need, and remove the folder",
            path=str(ready),
        )


def _named(journal: Journal) -> set[str]:
    return {step.name for stage in journal.stages for step in stage} | journal.live.keys()


def _logs(root: Path, journal: Journal) -> set[str]:
    """Those that are live now in the partitions of a change."""
    folders = {name.rpartition("/")[0] for name in _named(journal)} - {""}
    return {name for folder in folders for name in logs_in(root / folder)}


def logs_in(folder: Path) -> list[str]:
    """The live logs of a partition, by their names below log.dirs."""
    names = (f"{folder.name}/{path.name}" for path in folder.glob("*.log"))
    return sorted(filter(is_log, names))


def stages_of(
    new: Collection[str],
    removed: Collection[str],
    absorbed: Collection[str],
    first: Collection[str],
    live: Collection[str],
) -> list[list[Step]]:
    """The stages of a change.

    Args:
        new: what comes in.
        removed: what goes out.
        absorbed: logs among it whose offsets others have now.
        first: what comes in before all others.
        live: what is there before.
    """
    old_logs = [name for name in live if is_log(name)]
    logs = [name for name in new if is_log(name)]
    gone = [name for name in removed if is_log(name)]
    staying = [name for name in old_logs if name not in removed]
    tail = [n for n in gone if n not in absorbed and any(_is_before(log, n) for log in staying)]
    head = [n for n in gone if not any(_is_before(log, n) for log in [*staying, *logs])]
    between = [n for n in logs if n not in live and any(_is_before(n, log) for log in old_logs)]
    stems = {name.removesuffix(".log") for name in [*logs, *gone]}
    indexes = [stem + suffix for stem in stems for suffix in INDEXES]
    indexes = [name for name in indexes if name in new or name in removed]
    first = {*first, *(name for name in new if name.endswith("/partition.metadata"))}
    stages = [
        _steps(_IN, first),
        _steps(_OUT, filter(_is_offset_index, indexes)),
        _steps(_OUT, filter(_is_other_index, indexes)),
        # One by one: a file system may bring the steps of a stage to the disk in any order.
        *([step] for step in reversed(_steps(_OUT, tail))),
        *([step] for step in reversed(_steps(_IN, between))),
        *([step] for step in _steps(_IN, set(logs) - set(between))),
        *([step] for step in _steps(_OUT, head)),
        *([step] for step in reversed(_steps(_OUT, {*gone} - {*tail, *head}))),
    ]
    came = {step.name for stage in stages for step in stage if step.kind == _IN}
    went = {step.name for stage in stages for step in stage if step.kind == _OUT}
    stages += [
        _steps(_IN, filter(belongs, set(new) - came))
        + _steps(_OUT, filter(belongs, set(removed) - went))
        for belongs in (_is_of_partition, _is_other_index, _is_offset_index, _is_of_log_dirs)
    ]
    # The first stage stays where it is even if it is empty.
    return stages[:1] + [stage for stage in stages[1:] if stage]


def _steps(kind: str, names: Iterable[str]) -> list[Step]:
    return [Step(kind, name) for name in sorted(names)]


def _is_before(log: str, other: str) -> bool:
    """Whether it is an earlier segment of the same partition."""
    return log.rpartition("/")[0] == other.rpartition("/")[0] and log < other


def _is_offset_index(name: str) -> bool:
    return name.endswith(INDEXES[0])


def _is_other_index(name: str) -> bool:
    return name.endswith(INDEXES[1:])


def _is_of_log_dirs(name: str) -> bool:
    return "/" not in name


def _is_of_partition(name: str) -> bool:
    return not (_is_offset_index(name) or _is_other_index(name) or _is_of_log_dirs(name))


def is_log(name: str) -> bool:
    """Whether this is a segment's log, and live."""
    return _LOG.fullmatch(name) is not None


def identity(path: Path) -> Identity | None:
    """Of the file that is there now, if one is."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return Identity(found.st_size, found.st_mtime_ns)


def sync(path: Path) -> None:
    """Brings a file's bytes, or a folder's names, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(opened)


def make_folder(path: Path) -> None:
    """Makes a folder that belongs to whom the folder around it does."""
    path.mkdir()
    own(path, path.parent)
    sync(path.parent)


def own(path: Path, like: Path) -> None:
    """Gives a file to whom another one belongs: a broker must open what root has repaired."""
    model, found = like.stat(), path.stat()
    if (found.st_uid, found.st_gid) != (model.st_uid, model.st_gid):
        with suppress(PermissionError):
            os.chown(path, model.st_uid, model.st_gid)
