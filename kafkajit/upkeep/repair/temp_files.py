"""What a broker that was stopped has left in a partition's folder, and what becomes of it.

Answers to LogLoader.removeTempFilesAndCollectSwapFiles and the first half of LogLoader.load of
Kafka 4.1.1:

    NAME.deleted   was to go, and goes
    NAME.cleaned   was being written by the cleaner, and goes
    NAME.swap      was coming in: it takes the place of NAME, and the segments whose offsets its
                   log has go; unless there are .cleaned files from its offset on, then it goes

Nothing is touched: the folder is looked at as if that were done.
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
from kafkajit.walk.walk import DROPMALFORMED, Walk

# Snapshots of Raft are deleted by somebody else.
_RAFT_DELETED = ".checkpoint.deleted"
_OFFSET = re.compile(r"\d+(?=\.)", re.ASCII)


@dataclass
class Leftovers:
    """A partition's folder without them."""

    files: dict[str, Path]  # a live name → where its bytes are now
    removed: dict[str, str] = field(default_factory=dict)  # a name → why it goes

    @property
    def moved(self) -> dict[str, Path]:
        """Live names whose bytes are elsewhere."""
        return {name: path for name, path in self.files.items() if path.name != name}


def without_leftovers(folder: Path) -> Leftovers:
    """The files of a folder as a broker has them when it begins to load the log."""
    found = Leftovers({path.name: path for path in _readable_files(folder)})
    for name in [name for name in found.files if name.endswith(DELETED_SUFFIX)]:
        if not name.endswith(_RAFT_DELETED):
            _remove(found, name, "it was to be deleted")
    cleaned = [name for name in found.files if _is_leftover(name, CLEANED_SUFFIX)]
    least_cleaned = min(map(_offset, cleaned), default=None)
    for name in cleaned:
        _remove(found, name, "the cleaner had not finished it")
    swaps = [name for name in found.files if _is_leftover(name, SWAP_SUFFIX)]
    if least_cleaned is not None:
        for name in [name for name in swaps if _offset(name) >= least_cleaned]:
            _remove(found, name, "the cleaner had not finished what came with it")
            swaps.remove(name)
    _swap(found, swaps)
    return found


def _swap(found: Leftovers, swaps: list[str]) -> None:
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if logs:
        first = min(map(_offset, logs))
        behind = max(_next_offset(found.files[name], _offset(name)) for name in logs)
        for name in sorted(found.files):
            is_numbered = _OFFSET.match(name) is not None and not name.endswith(SWAP_SUFFIX)
            if is_numbered and first <= _offset(name) < behind:
                _remove(found, name, f"{min(logs)} has its offsets")
    for name in swaps:
        found.files[name.removesuffix(SWAP_SUFFIX)] = found.files.pop(name)
        found.removed.pop(name.removesuffix(SWAP_SUFFIX), None)


def _remove(found: Leftovers, name: str, why: str) -> None:
    del found.files[name]
    found.removed[name] = why


def _is_leftover(name: str, suffix: str) -> bool:
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
