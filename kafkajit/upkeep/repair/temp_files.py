"""The temporary files of a broker that was stopped, and what becomes of them.

Answers to LogLoader.removeTempFilesAndCollectSwapFiles and the first half of LogLoader.load of
Kafka 4.1.1:

    NAME.deleted   waits to be deleted: it goes
    NAME.cleaned   the cleaner was writing it: it goes
    NAME.swap      it takes the place of NAME, and the segments whose offsets its log has go; but
                   it goes itself if there are .cleaned files of its offset or a higher one

A salvage does not complete a swap that was spoilt, as long as the segments have its offsets.

Nothing is changed: the result describes the folder as it is after that.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kafkajit.format.log_path import CLEANED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX
from kafkajit.storage.source import Source
from kafkajit.upkeep.repair.spoilt_swaps import why_not_swapped
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.walk import Walk

# Raft deletes its snapshots itself.
_RAFT_DELETED = ".checkpoint.deleted"
_OFFSET = re.compile(r"\d+(?=\.)", re.ASCII)


@dataclass
class LiveFiles:
    """The files of a partition's folder without the temporary ones."""

    files: dict[str, Path]  # a live name → the file that has its bytes now
    removed: dict[str, str] = field(default_factory=dict)  # a name → why it goes
    waiting: set[str] = field(
        default_factory=set
    )  # of these: a broker removes them in its own time
    replaced: dict[str, str] = field(default_factory=dict)  # of these: a log → the swap for it

    @property
    def moved(self) -> dict[str, Path]:
        """The live names whose bytes are in a file of another name."""
        return {name: path for name, path in self.files.items() if path.name != name}

    def matching(self, name: re.Pattern[str]) -> Iterator[tuple[str, Path]]:
        """The files whose live names match."""
        return (pair for pair in self.files.items() if name.fullmatch(pair[0]))


def live_files(folder: Path, *, salvage: bool = False) -> LiveFiles:
    """The files of a folder as a broker sees them when it begins to load the log.

    With `salvage`, as they are if swaps that are spoilt go.
    """
    found = LiveFiles({path.name: path for path in _readable_files(folder)})
    for name in [name for name in found.files if name.endswith(DELETED_SUFFIX)]:
        if not name.endswith(_RAFT_DELETED):
            _remove(found, name, "it waits to be deleted")
            found.waiting.add(name)
    cleaned = [name for name in found.files if _is_temporary(name, CLEANED_SUFFIX)]
    least_cleaned = min(map(_offset, cleaned), default=None)
    for name in cleaned:
        _remove(found, name, "the cleaner had not finished it")
    swaps = [name for name in found.files if _is_temporary(name, SWAP_SUFFIX)]
    if least_cleaned is not None:
        for name in [name for name in swaps if _offset(name) >= least_cleaned]:
            _remove(found, name, "the cleaner had not finished what came with it")
            swaps.remove(name)
    _swap(found, swaps, salvage=salvage)
    return found


def _swap(found: LiveFiles, swaps: list[str], *, salvage: bool) -> None:
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if logs:
        first = min(map(_offset, logs))
        behind = max(_next_offset(found.files[name], _offset(name)) for name in logs)
        numbered = [
            name
            for name in sorted(found.files)
            if _OFFSET.match(name) is not None and not name.endswith(SWAP_SUFFIX)
        ]
        gone = [name for name in numbered if first <= _offset(name) < behind]
        found.replaced = {name: min(logs) for name in gone if name.endswith(LOG_SUFFIX)}
        for name in logs:  # one without batches has no offsets
            live = name.removesuffix(SWAP_SUFFIX)
            if live in found.files:
                found.replaced.setdefault(live, name)
        if salvage and found.replaced:
            why = why_not_swapped(
                [found.files[name] for name in sorted(logs)],
                [found.files[name] for name in found.replaced],
            )
            if why is not None:
                found.replaced = {}
                for name in swaps:
                    _remove(found, name, why if name in logs else "its log goes")
                return
        for name in gone:
            _remove(found, name, f"{min(logs)} has its offsets")
    for name in swaps:
        live = name.removesuffix(SWAP_SUFFIX)
        found.files[live] = found.files.pop(name)
        found.removed.pop(live, None)


def _remove(found: LiveFiles, name: str, why: str) -> None:
    del found.files[name]
    found.removed[name] = why


def _is_temporary(name: str, suffix: str) -> bool:
    return name.endswith(suffix) and _OFFSET.match(name) is not None


def _offset(name: str) -> int:
    found = _OFFSET.match(name)
    assert found is not None
    return int(found[0])


def _next_offset(log: Path, base_offset: int) -> int:
    following = base_offset
    for batches in Walk(Source(log), mode=DROPMALFORMED).framed():
        following = int(batches.last_offset[-1]) + 1
    return following


def _readable_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_file():
            if not os.access(path, os.R_OK):
                raise PermissionError(errno.EACCES, "no permission to read this file", str(path))
            yield path
