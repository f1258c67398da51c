"""The journal of a change: the files that come and go, and the order in which they do.

In an order that a broker can load after each step, if the process is killed there
(kafkajit/change/steps.py carries it out):

    in      files that go first, and partition.metadata: a broker puts a log without one aside
    out     removed logs at the end, one by one from the last one on; then their indexes
    swap    new logs together with the logs that they replace or whose offsets they have; adjacent
            logs at once, as a broker's cleaner does it
    out     other removed logs, one by one from the first one on; then their indexes
    in/out  snapshots, leader epochs
    in/out  .timeindex and .txnindex of logs that stay; then .index, without which LogLoader
            rebuilds all three from the log
    in/out  files of log.dirs, which note how far logs are complete

A journal is carried out by whoever finds it, often root. So it is read only if nobody else can have
written it, and may name only files of the log.dirs folder.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

from kafkajit.change.files import (
    Identity,
    check_link,
    check_trusted_folder,
    read_trusted,
)
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import (
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    SNAPSHOT_SUFFIX,
    UNFINISHED_CHANGE,
    partition_of,
)
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.state.partition_metadata import PARTITION_METADATA
from kafkajit.system.acting import owner_of
from kafkajit.system.disk import create_new
from kafkajit.system.durable import sync

logger = logging.getLogger("kafkajit")

STAGED = ".kafkajit-change"
READY = UNFINISHED_CHANGE
DONE = ".kafkajit-change.done"
JOURNAL = "change.json"
# Files that a broker rebuilds from the log: if it has done so, nothing is lost.
DERIVED = (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX, f"/{LEADER_EPOCHS}")
# The file that a stopped broker leaves. It is in log.dirs, since a partition may be a link to
# another disk.
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_LOG = re.compile(r"(?:.*/)?\d{20}\.log")
IN, OUT, SWAP = "in", "out", "swap"
_KEPT = re.compile(r"\.kafkajit-[a-z]+-\d{8}T\d{6}Z(?:-\d+)?", re.ASCII)
_MOST_BYTES = 256 << 20  # of a journal: 200 for each file that changes


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
        with create_new(path, 0o600) as file:
            file.write(json.dumps(asdict(self), indent=1).encode())
        sync(path)

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read a journal that is to be trusted.

        Raises:
            KafkaJitError: it is not a journal for this folder.
            OSError: it cannot be read, or another user may have written it.
        """
        try:
            home = path.parent.parent
            check_trusted_folder(path.parent, home)
            fields = json.loads(read_trusted(path, _MOST_BYTES, home))
            fields["stages"] = [Stage(**stage) for stage in fields["stages"]]
            for of in ("new", "live"):
                fields[of] = {name: Identity(*value) for name, value in fields[of].items()}
            journal = cls(**fields)
            journal._check(path.parent)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise KafkaJitError(
                f"the journal of an interrupted change cannot be read ({error})",
                path=str(path),
                advice="remove its folder, unless a process of yours has been interrupted there",
            ) from None
        return journal

    def _check(self, folder: Path) -> None:
        """Raise if the journal names anything but files in this log.dirs folder."""
        home, root = folder.parent, folder.parent.parent
        if self.home != home.name:
            raise ValueError(f"it is a change of {self.home!r}: was the folder renamed since?")
        if self.kept is not None and not _KEPT.fullmatch(self.kept):
            raise ValueError(f"it would keep files in {self.kept!r}")
        names = {*self.new, *self.live}
        names.update(name for stage in self.stages for name in (*stage.names, *stage.gone))
        inside = set()
        for name in sorted(names):
            os.fsencode(name)  # another error of values
            around, slash, file = name.rpartition("/")
            # A copy of a partition may have any name.
            is_partition = around == home.name or partition_of(Path(around)).topic is not None
            is_inside = not slash or ("/" not in around and is_partition)
            if not is_inside or file in ("", ".", "..") or "\0" in name:
                raise ValueError(f"it names {name!r}, which is not a file of a log.dirs folder")
            inside.add(root / around)
        for stage in self.stages:
            strange = sorted({*stage.names} - self.new.keys()) if stage.kind != OUT else []
            if strange:
                raise ValueError(f"it brings {strange[0]!r}, of which it has no new file")
            are_logs = all(map(is_log, stage.gone)) and any(map(is_log, stage.names))
            if stage.kind not in (IN, OUT, SWAP) or (stage.kind == SWAP and not are_logs):
                raise ValueError("it has a stage that no change has")
        # Root takes each step as the owner of its folder, who need not be the journal's. In a
        # log.dirs folder of its own it is the partition's owner, too.
        owner, is_roots = owner_of(home), folder.lstat().st_uid == 0
        for there in sorted(inside):
            check_link(there)
            owners = (owner, None) if there == root else (owner,)
            if not is_roots and there.exists() and owner_of(there) not in owners:
                raise ValueError(f"{there} has another owner than {home}")
        staged = folder / "new"
        if staged.is_symlink() or staged.exists():
            for new in (staged, *staged.iterdir()):
                if new == staged or new.name in {there.name for there in inside}:
                    check_trusted_folder(new, home)


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
    after = (_is_of_partition, is_other_index, is_offset_index, _is_of_log_dirs)
    stages = [
        Stage(OUT, sorted(cleaned)),
        *(Stage(OUT, [name]) for name in tails),
        Stage(OUT, sorted(rest_out & set(_indexes(tails)))),
        *swaps,
        *(Stage(OUT, [name]) for name in heads),
        Stage(OUT, sorted(rest_out & set(_indexes(heads)))),
        *(
            Stage(kind, sorted(filter(belongs, rest)))
            for belongs in after
            for kind, rest in ((IN, rest_in), (OUT, rest_out - cleaned))
        ),
    ]
    return [Stage(IN, sorted(first)), *(stage for stage in stages if stage.names)]


def _swap_of(logs: list[str], new: Collection[str]) -> Stage:
    """The stage of adjacent new logs and their indexes."""
    coming = [log for log in logs if log in new]
    sides = [name for name in _indexes(coming) if name in new]
    return Stage(SWAP, [*coming, *sides], [log for log in logs if log not in new])


def _indexes(logs: Iterable[str]) -> list[str]:
    return [log.removesuffix(".log") + suffix for log in logs for suffix in INDEX_SUFFIXES]


def is_offset_index(name: str) -> bool:
    """Whether this is the name of an .index."""
    return name.endswith(INDEX_SUFFIX)


def is_other_index(name: str) -> bool:
    """Whether this is the name of a .timeindex or a .txnindex."""
    return name.endswith(INDEX_SUFFIXES[1:])


def _is_of_log_dirs(name: str) -> bool:
    return "/" not in name


def _is_of_partition(name: str) -> bool:
    return not (is_offset_index(name) or is_other_index(name) or _is_of_log_dirs(name))


def is_log(name: str) -> bool:
    """Whether this is the name of a live segment's log."""
    return _LOG.fullmatch(name) is not None


def logs_in(folder: Path) -> list[str]:
    """The live logs of a partition as paths below log.dirs."""
    names = (f"{folder.name}/{path.name}" for path in folder.glob("*.log"))
    return sorted(filter(is_log, names))
