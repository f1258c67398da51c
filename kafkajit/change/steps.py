"""Carry out a committed change step by step, and finish it after a crash.

A killed process leaves some files old and some new. A broker that starts then must still load the
folder, if possible with all of the change's logs or none. So no live file is written. The steps are
links, renames and removals, in the stages of the journal (kafkajit/change/journal.py); each stage
is synced before the next begins.

.kafka_cleanshutdown is put aside meanwhile: a broker that finds it without snapshots believes that
there are no producers, instead of looking for them in the log.

Answers to LocalLog.replaceSegments of Kafka 4.1.1, and to what its LogLoader does with a folder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkajit.change.files import identity, link, make_folder, touch
from kafkajit.change.journal import (
    CLEAN_SHUTDOWN,
    DERIVED,
    DONE,
    JOURNAL,
    OUT,
    READY,
    STAGED,
    SWAP,
    Journal,
    Stage,
    is_log,
    is_offset_index,
    is_other_index,
    logs_in,
)
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import INDEX_SUFFIXES
from kafkajit.system import disk
from kafkajit.system.acting import changing_for
from kafkajit.system.durable import sync, sync_around

# The name of .kafka_cleanshutdown while a change is carried out.
_PUT_ASIDE = ".kafkajit-cleanshutdown"
# A process may change several partitions at a time, which share that file.
_carrying_out = threading.Lock()


def _raise(_: Path, error: KafkaJitError | OSError) -> None:
    raise error


def resume(
    root: str | os.PathLike[str],
    refuse: Callable[[Path, KafkaJitError | OSError], None] = _raise,
) -> list[str]:
    """Finish interrupted changes in the partitions of a log.dirs folder, and describe them.

    The caller holds the folder's lock. So a change that is still being written belongs to a dead
    process, and is removed.

    Args:
        root: the log.dirs folder.
        refuse: called with a partition's folder and the reason if its change cannot be finished.
    """
    finished = []
    with os.scandir(root) as entries:
        folders = sorted(filter(os.path.isdir, (entry.path for entry in entries)))
    for folder in map(Path, folders):
        # Nothing is known of a folder that this process may not enter.
        if not os.access(folder, os.R_OK | os.X_OK):
            continue
        try:
            for left in (STAGED, DONE):
                tidy(folder / left)
            what = finish(folder)
        except (KafkaJitError, OSError) as error:
            refuse(folder, error)
            continue
        finished += [] if what is None else [f"{what} of {folder}"]
    return finished


def finish(folder: Path) -> str | None:
    """Finish the interrupted change of a partition; return what it was, None without one.

    Raises:
        KafkaJitError: it cannot be finished.
        OSError: another user may have planted it, or a file cannot be read or moved.
    """
    ready = folder / READY
    if not ready.is_symlink() and not ready.exists():
        return None
    journal = Journal.read(ready / JOURNAL)
    _check_untouched(journal, ready)
    with changing_for(folder):
        carry_out(journal, ready)
    return journal.what


def carry_out(journal: Journal, ready: Path) -> None:
    """Take the steps of a change that are not yet taken."""
    root, new = ready.parent.parent, ready / "new"
    with _carrying_out, _without_clean_shutdown(root):
        for stage in journal.stages:
            if stage.kind == SWAP:
                _swap(stage, root, new)
                continue
            for name in stage.names:
                if stage.kind == OUT:
                    disk.remove(root / name, missing_ok=True)
                elif (new / name).exists():
                    if not (root / name).parent.exists():
                        make_folder((root / name).parent)
                    disk.rename(new / name, root / name)
            sync_around(root / name for name in stage.names)
    done = ready.with_name(DONE)
    disk.rename(ready, done)
    sync(ready.parent)
    tidy(done)


def tidy(left: Path) -> None:
    """Remove what a change leaves behind; the replaced files that it keeps stay."""
    if left.is_symlink() or not left.is_dir():  # a FIFO would be waited for
        return
    if left.name == DONE and (left / "old").exists():
        kept = Journal.read(left / JOURNAL).kept
        if kept is None:
            raise KafkaJitError(
                "a change that keeps nothing has left files in old/: take what you need, and "
                "remove the folder",
                path=str(left),
            )
        disk.rename(left / "old", left.with_name(kept))
        sync(left.parent)
    disk.remove_tree(left, ignore_errors=True)


@contextmanager
def _without_clean_shutdown(root: Path) -> Iterator[None]:
    """Put the file of a clean shutdown aside; for ever, if this process dies meanwhile.

    The folder is then not as the broker left it.
    """
    path, aside = root / CLEAN_SHUTDOWN, root / _PUT_ASIDE
    disk.remove(aside, missing_ok=True)
    was_clean = path.exists()
    if was_clean:
        disk.rename(path, aside)
        sync(root)
    yield
    if was_clean:
        disk.rename(aside, path)
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
        disk.remove(swap_of(name), missing_ok=True)
        link(staged / name, swap_of(name))

    def drop_indexes(of: list[str]) -> None:
        # .index first: without it, a broker rebuilds all.
        for suffix in INDEX_SUFFIXES if of else ():
            for log in of:
                disk.remove((root / log).with_suffix(suffix), missing_ok=True)
            sync(guard.parent)

    if guard.exists() or not any(swap_of(log).exists() or is_new(log) for log in logs):
        if not guard.parent.exists():
            make_folder(guard.parent)
        touch(guard)
        sync(guard.parent)
        for name in [*sides, *logs]:
            bring(name)
        sync(guard.parent)
        # A broker would not remove the indexes of a log that has no offsets any more.
        drop_indexes([log for log in logs if swap_of(log).stat().st_size == 0])
        disk.remove(guard)
        sync(guard.parent)
    # From here on a broker would finish the swap.
    for log in reversed(stage.gone):
        disk.remove(root / log, missing_ok=True)
        sync(guard.parent)
    drop_indexes([*stage.gone, *(log for log in logs if not is_new(log))])
    others, offset_indexes = (list(filter(of, sides)) for of in (is_other_index, is_offset_index))
    # Logs from the first one on: a broker would remove one between two that are still .swap.
    for names in (*([log] for log in logs), others, offset_indexes):
        for name in names:
            if is_new(name):
                disk.remove(swap_of(name), missing_ok=True)
            else:
                if not swap_of(name).exists():
                    bring(name)
                disk.rename(swap_of(name), root / name)
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
    linked = {name for stage in journal.stages if stage.kind == SWAP for name in stage.names}
    for name in sorted(named):
        staged, live = ready / "new" / name, identity(root / name)
        before, new = journal.live.get(name), journal.new.get(name)
        if staged.exists():
            is_untouched = live in (before, new)
        elif name in linked:
            is_untouched = False
        elif new is not None:
            is_untouched = new in (live, identity(root / f"{name}.swap"))
        else:
            is_untouched = live in (before, None)
        if is_untouched or name.endswith(DERIVED):
            continue
        if "/" not in name and name not in journal.stages[0].names:
            disk.remove(staged, missing_ok=True)
            continue
        raise KafkaJitError(
            f"a change ({journal.what}) was interrupted and cannot be finished, since "
            f"{root / name} has been written after that. The replaced files are in old/, the "
            "remaining new files in new/: take what you need, and remove the folder",
            path=str(ready),
        )
