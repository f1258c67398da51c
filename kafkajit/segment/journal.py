"""What a committed change does to live files, step by step, and how it goes on after a crash.

A process that is killed leaves some files old and some new, and a broker that is started then must
load them. Nothing is written under a live name: every step is a rename or a removal, and they are
done in these stages, each on the disk before the next begins:

    1  what is asked to be first, and partition.metadata: a broker puts a log without one aside
    2  indexes of logs that change or go away, .index before the others: without it LogLoader
       recovers the segment, which makes all three from the log; without another one alone it would
       believe that there are no aborted transactions, or no timestamps
    3  logs: those behind others go before new ones come, from the last one on; those at the start
       afterwards, from the first one on. So a log loses its end or its beginning, and there always
       is one. A merged log comes as a broker's cleaner brings it: while NAME.log.swap is there, a
       broker removes by itself the segments whose offsets it has
    4  snapshots, leader epochs: while a segment has no .index both are made from its log
    5  .timeindex and .txnindex, and when these are on the disk .index
    6  files of log.dirs, which say up to where logs are whole

The invariant: beside every .log there are its own indexes, or no .index.

Answers to Kafka's LocalLog.replaceSegments, and to what LogLoader makes of a folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import KafkaJitError

STAGED = ".kafkajit-change"
READY = ".kafkajit-change.ready"
DONE = ".kafkajit-change.done"
JOURNAL = "change.json"
INDEXES = (".index", ".timeindex", ".txnindex")
# What a broker makes again from the log: it may have, and nothing is lost.
DERIVED = (*INDEXES, ".snapshot")
_LOG = re.compile(r"(?:.*/)?\d{20}\.log")
# What is done with a live name.
_IN, _OUT, _TO_SWAP, _FROM_SWAP = "in", "out", "to swap", "from swap"


class Step(NamedTuple):
    """One rename or removal; the name is a live file's path below log.dirs."""

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
    stages: list[list[Step]]
    new: dict[str, Identity]
    old: dict[str, Identity]  # what is live before
    kept: str | None  # the folder that keeps it

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1))
        sync(path)

    @classmethod
    def read(cls, path: Path) -> Journal:
        fields = json.loads(path.read_bytes())
        fields["stages"] = [[Step(*step) for step in stage] for stage in fields["stages"]]
        for of in ("new", "old"):
            fields[of] = {name: Identity(*value) for name, value in fields[of].items()}
        return cls(**fields)


def resume(root: str | os.PathLike[str]) -> list[str]:
    """Finishes what was interrupted in the partitions of a log.dirs folder, and says what it was.

    Whoever calls it holds the folder's lock: what is being written there is a dead process's, and
    is removed.
    """
    finished = []
    for folder in sorted(path for path in Path(root).iterdir() if path.is_dir()):
        for left in (STAGED, DONE):
            tidy(folder / left)
        ready = folder / READY
        if ready.exists():
            journal = Journal.read(ready / JOURNAL)
            _check_untouched(journal, ready)
            carry_out(journal, ready)
            finished.append(f"{journal.what} of {folder}")
    return finished


def carry_out(journal: Journal, ready: Path) -> None:
    """Does those steps of a change that are not yet done."""
    root = ready.parent.parent
    for stage in journal.stages:
        for step in stage:
            _do(step, journal, root, ready / "new")
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
    shutil.rmtree(left)


def _do(step: Step, journal: Journal, root: Path, staged: Path) -> None:
    live, new = root / step.name, staged / step.name
    if step.kind == _OUT:
        # What has already come in by this name is not what was to go.
        if step.name not in journal.new or new.exists():
            live.unlink(missing_ok=True)
        return
    swap = live.with_name(f"{live.name}.swap")
    source, target = {
        _IN: (new, live),
        _TO_SWAP: (new, swap),
        _FROM_SWAP: (swap, live),
    }[step.kind]
    if source.exists():
        if not target.parent.exists():
            make_folder(target.parent)
        source.rename(target)


def _check_untouched(journal: Journal, ready: Path) -> None:
    """Whether files are still those that the change knows: a broker may have run since."""
    root = ready.parent.parent
    for name in journal.old.keys() | journal.new.keys():
        if name.endswith(DERIVED):
            continue
        old, new = journal.old.get(name), journal.new.get(name)
        live = identity(root / name)
        if new is None:
            is_untouched = live in (old, None)
        elif (ready / "new" / name).exists():
            is_untouched = live == old
        else:
            is_untouched = new in (live, identity(root / f"{name}.swap"))
        if not is_untouched:
            raise KafkaJitError(
                f"a change ({journal.what}) was interrupted, and {root / name} has been written "
                "since: it cannot be finished. What it replaced is in old/, what did not come in "
                "is in new/; take what you need, and remove the folder",
                path=str(ready),
            )


def stages_of(
    new: Collection[str],
    removed: Collection[str],
    merged: Mapping[str, Collection[str]],
    first: Collection[str],
    live: Collection[str],
) -> list[list[Step]]:
    """The stages of a change: what is new, removed, merged into what, first, and live before."""
    first = {*first, *(name for name in new if name.endswith("/partition.metadata"))}
    logs = {name for name in new if is_log(name)}
    absorbed = {name for names in merged.values() for name in names}
    gone = sorted(name for name in removed if is_log(name) and name not in absorbed)
    staying = [name for name in live if is_log(name) and name not in removed]
    tail = [name for name in gone if any(_is_before(log, name) for log in staying)]
    stems = {name.removesuffix(".log") for name in {*logs, *gone, *absorbed}}
    touched = {*new, *removed}

    def indexes(*suffixes: str) -> list[str]:
        names = (stem + suffix for stem in sorted(stems) for suffix in suffixes)
        return [name for name in names if name in touched]

    stages = [
        _steps(_IN, first),
        [Step(_OUT, name) for name in indexes(".index")],
        [Step(_OUT, name) for name in indexes(".timeindex", ".txnindex")],
        [Step(_OUT, name) for name in reversed(tail)],
    ]
    for is_merged, names in groupby(sorted(logs), key=lambda log: log in merged):
        if is_merged:
            for name in names:
                stages.append([Step(_TO_SWAP, name)])
                stages.append(_steps(_OUT, merged[name]))
                stages.append([Step(_FROM_SWAP, name)])
        else:
            stages.append(_steps(_IN, names))
    stages.append([Step(_OUT, name) for name in gone if name not in tail])

    rest: tuple[Callable[[str], bool], ...] = (
        lambda name: "/" in name and not name.endswith(INDEXES),
        lambda name: name.endswith(INDEXES[1:]),
        lambda name: name.endswith(INDEXES[:1]),
        lambda name: "/" not in name,
    )
    came = {step.name for stage in stages for step in stage if step.kind != _OUT}
    went = {step.name for stage in stages for step in stage if step.kind == _OUT}
    for belongs in rest:
        coming = [name for name in new if belongs(name) and name not in came]
        going = [name for name in removed if belongs(name) and name not in went]
        stages.append([*_steps(_IN, coming), *_steps(_OUT, going)])
    return [stage for stage in stages if stage]


def _steps(kind: str, names: Iterable[str]) -> list[Step]:
    return [Step(kind, name) for name in sorted(names)]


def _is_before(log: str, other: str) -> bool:
    """Whether it is an earlier segment of the same partition."""
    return log.rpartition("/")[0] == other.rpartition("/")[0] and log < other


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
    finally:
        os.close(opened)


def make_folder(path: Path) -> None:
    """Makes a folder that belongs to whom the folder around it does."""
    path.mkdir()
    own(path, path.parent)
    sync(path.parent)


def own(path: Path, like: Path) -> None:
    """Gives a file to whom another one belongs: a broker must open what root has repaired."""
    model = like.stat()
    is_ours = (model.st_uid, model.st_gid)
    found = path.stat()
    if (found.st_uid, found.st_gid) != is_ours:
        with suppress(PermissionError):
            os.chown(path, *is_ours)
