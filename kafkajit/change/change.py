"""Replace, add or remove several files of a log: all of them or none, whatever happens.

    with FolderLock(folder):
        with Change(folder, "repair") as change:
            write(change.new(folder / "00000000000000000042.log"))
            change.remove(folder / "00000000000000000099.log")
            change.new(folder.parent / "cleaner-offset-checkpoint").write_bytes(offsets)
            kept = change.commit()

All new files are staged in the partition's folder, where a broker looks only at files. They are not
staged in log.dirs: LogManager.loadLogs of Kafka 4.1.1 fails on a folder there that is not named
like a topic-partition, so after a crash the broker would not start. A Change may also name
checkpoints of log.dirs and files of other partitions, which are staged in the same folder.

    orders-0/.kafkajit-change/              being written, for this user alone to see; the next
                                            process removes it
    orders-0/.kafkajit-change.ready/        complete and synced; the rename of the folder above to
                                            this name is the commit; the next process carries the
                                            change out (`resume`)
    orders-0/.kafkajit-change.done/         carried out, but not tidied up yet
    orders-0/.kafkajit-repair-<UTC time>/   the replaced and removed files, laid out as in log.dirs:
                                            a location that every reader accepts

kafkajit/change/journal.py has the steps after the commit, and their order.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType

from kafkajit.change.files import (
    Identity,
    check_link,
    identity,
    link,
    make_folder,
    make_private_folder,
    mode_within,
    own,
    resemble,
    say_where,
)
from kafkajit.change.journal import (
    CLEAN_SHUTDOWN,
    DONE,
    JOURNAL,
    READY,
    STAGED,
    Journal,
    is_log,
    logs_in,
    stages_of,
)
from kafkajit.change.steps import carry_out, tidy
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    is_segment_file,
)
from kafkajit.system import disk
from kafkajit.system.acting import changing_for
from kafkajit.system.durable import sync, sync_all
from kafkajit.system.full_path import full_path

# A file by which a broker decides which files of a change it removes, if it starts in between.
_CLEANED = re.compile(rf"\d+(?:\..*)?{re.escape(CLEANED_SUFFIX)}", re.ASCII)


class Change:
    """A change of the log in a partition's folder, which may not exist yet.

    Paths are those of live files: in this folder, in another partition's folder, or in the log.dirs
    folder around them. Leaving the block without a commit removes what was staged.

    Args:
        folder: the partition's folder.
        action: what is done, such as "repair"; it names the folder of the replaced files.
        models: files and folders: others can do no more with the folder if the change makes it.
    """

    def __init__(
        self, folder: str | os.PathLike[str], action: str, models: Iterable[Path] = ()
    ) -> None:
        # If the folder is a link, log.dirs is the folder that the link is in.
        self.folder = Path(full_path(folder))
        self._root = self.folder.parent
        self._action = action
        self._new: set[str] = set()
        self._removed: set[str] = set()
        self._first: set[str] = set()
        self._absorbed: set[str] = set()
        if (self.folder / READY).exists():
            raise KafkaJitError(
                "an interrupted change must be finished first: lock the folder",
                path=str(self.folder / READY),
            )
        self._staged = self.folder / STAGED
        self._made_folder = not self.folder.exists()
        self._is_open = True
        try:
            if self._made_folder:
                make_folder(self.folder, mode_within(models))
            check_link(self.folder)
            for left in (self._staged, self.folder / DONE):
                tidy(left)
            make_private_folder(self._staged)
            self._begun = {name: identity(self._root / name) for name in logs_in(self.folder)}
        except OSError:
            self.abort()
            raise

    def __enter__(self) -> Change:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            say_where(error, self._staged)
        self.abort()

    def new(
        self,
        path: str | os.PathLike[str],
        *,
        instead_of: Iterable[str | os.PathLike[str]] = (),
        first: bool = False,
    ) -> Path:
        """Return the path under which to write a new live file.

        The indexes of a replaced log are removed, unless they are new too.

        Args:
            path: the path of the live file, which may exist or not.
            instead_of: logs whose offsets are in this new log; they are removed.
            first: put the file in place before any log is touched. A log start offset that goes
                back needs this: a broker deletes a log that ends before its start.
        """
        name = self._name(path)
        self._new.add(name)
        if first:
            self._first.add(name)
        absorbed = {self._name(other) for other in instead_of}
        self._absorbed |= absorbed
        self._removed |= absorbed
        staged = self._staged / "new" / name
        for folder in (self._staged / "new", staged.parent):
            disk.make_folder(folder, 0o700, exist_ok=True)
        return staged

    def remove(self, path: str | os.PathLike[str]) -> None:
        """Remove a live file; a log's indexes and its snapshot go with it, unless they are new."""
        self._removed.add(self._name(path))

    def commit(self, *, keep: bool = True) -> Path | None:
        """Carry out the change.

        If an error is raised before everything is safely on the disk, nothing has changed. After
        that, `resume` finishes the change.

        Returns:
            The folder in which the replaced files are kept, if there are any.
        """
        if not self._is_open:
            raise ValueError("the change is already committed or aborted")
        if not self._new and not self._removed:
            self.abort()
            return None
        with changing_for(self.folder):
            return self._committed(keep=keep)

    def _committed(self, *, keep: bool) -> Path | None:
        self._take_along()
        self._check()
        live = self._live()
        self._check_untouched()
        kept = self._keep(live) if keep else None
        journal = Journal(
            self._action,
            self.folder.name,
            stages_of(self._new, self._removed, self._absorbed, self._first, live.keys()),
            self._synced(),
            live,
            kept,
        )
        journal.write(self._staged / JOURNAL)
        for inside, _, _ in os.walk(self._staged / "old"):
            own(Path(inside), like=self.folder)
        sync_all(Path(inside) for inside, _, _ in os.walk(self._staged, topdown=False))
        ready = self.folder / READY
        disk.rename(self._staged, ready)
        self._is_open = False
        try:
            sync(self.folder)
            carry_out(journal, ready)
        except OSError as error:
            raise KafkaJitError(
                f"{error}: the change is committed but not finished; kafkajit finishes it when it "
                "next locks the folder",
                path=str(ready),
            ) from error
        return self.folder / journal.kept if journal.kept else None

    def abort(self) -> None:
        """Remove what was staged; after a commit this does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        tidy(self._staged)
        if self._made_folder:
            with suppress(OSError):  # another process has put something there
                disk.remove_folder(self.folder)

    def _name(self, path: str | os.PathLike[str]) -> str:
        """A live file's path relative to log.dirs."""
        full = Path(full_path(path))
        if self._root not in (full.parent, full.parent.parent) or full == self._root:
            raise ValueError(f"{full} is neither in {self._root} nor in a partition's folder there")
        return full.relative_to(self._root).as_posix()

    def _take_along(self) -> None:
        """Add the sidecar files that cannot stay without their log, or beside a new one."""
        gone = set(self._removed)
        for name in filter(is_log, self._removed | self._new):
            stem = name.removesuffix(".log")
            suffixes = INDEX_SUFFIXES if name in self._new else (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX)
            gone.update(stem + suffix for suffix in suffixes)
        # Files that do not exist are added as well: a broker may create them before the change is
        # finished.
        self._removed = gone - self._new
        for folder in self._partitions():
            self._removed |= {
                f"{folder.name}/{path.name}"
                for path in folder.glob(f"*{CLEANED_SUFFIX}")
                if is_segment_file(path.name)
            }

    def _check(self) -> None:
        """Raise an error for anything that would stop the change half-way."""
        for log in sorted(filter(is_log, self._new)):
            missing = {
                log.removesuffix(".log") + suffix for suffix in INDEX_SUFFIXES[:2]
            } - self._new
            if missing:
                raise ValueError(f"{log} is new and needs a new {min(missing)}")
        for name in sorted(self._new | self._removed):
            live = self._root / name
            if live.is_dir():
                raise IsADirectoryError(errno.EISDIR, "a folder has a file's name", str(live))
        device = self.folder.stat().st_dev
        if (self._root / CLEAN_SHUTDOWN).exists():
            disk.check_writable(self._root)
        for folder in self._folders():
            there = folder if folder.exists() else self._root
            disk.check_writable(there)
            if there.stat().st_dev != device:
                raise OSError(errno.EXDEV, f"on another file system than {self.folder}", str(there))
            for path in sorted(there.glob(f"*{SWAP_SUFFIX}")):
                if self._name(path) not in self._removed:
                    raise KafkaJitError(
                        "a broker was stopped while it swapped segments, and would finish that "
                        "over this change: run `kafkajit repair` on the folder first",
                        path=str(path),
                    )
            for path in sorted(there.glob(f"[0-9]*{CLEANED_SUFFIX}")):
                if _CLEANED.fullmatch(path.name) and self._name(path) not in self._removed:
                    raise KafkaJitError(
                        "a broker takes the file for an unfinished segment, and would remove new "
                        "files of this change with it: move it away",
                        path=str(path),
                    )

    def _check_untouched(self) -> None:
        """Raise an error if a log of the folder has been written since the change began."""
        logs = {*self._begun, *logs_in(self.folder)}
        for name in sorted(logs):
            if self._begun.get(name) != identity(self._root / name):
                raise KafkaJitError(
                    "the file has been written since the change began, and nothing was changed: is "
                    "a copy still running, or a broker?",
                    path=str(self._root / name),
                )

    def _live(self) -> dict[str, Identity]:
        """The present files that are replaced or removed, and every log beside them."""
        logs = {name for folder in self._partitions() for name in logs_in(folder)}
        found = {name: identity(self._root / name) for name in self._new | self._removed | logs}
        return {name: known for name, known in sorted(found.items()) if known is not None}

    def _synced(self) -> dict[str, Identity]:
        """Sync the new files, and give each the old one's owner and mode."""
        new = {name: self._staged / "new" / name for name in sorted(self._new)}
        for name, staged in new.items():
            live = self._root / name
            if not staged.is_file():
                raise FileNotFoundError(errno.ENOENT, "a new file was not written", str(staged))
            if live.is_symlink() or live.exists():
                resemble(staged, live)
            else:
                own(staged, like=self.folder)
                around = live.parent if live.parent.exists() else self.folder
                mode = staged.stat().st_mode & 0o777
                within = mode_within([around], mode)
                if within != mode:
                    disk.set_mode(staged, within)
        sync_all(new.values())
        found = {name: identity(staged) for name, staged in new.items()}
        return {name: known for name, known in found.items() if known is not None}

    def _keep(self, live: Collection[str]) -> str | None:
        """Link the files that go into the staged folder; return the folder that will keep them."""
        changed = self._new | self._removed
        going = [name for name in live if name in changed]
        for name in going:
            kept = self._staged / "old" / name
            disk.make_folders(kept.parent)
            link(self._root / name, kept)
        if not going:
            return None
        name = f".kafkajit-{self._action}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        names = (f"{name}-{number}" if number else name for number in count())
        return next(name for name in names if not (self.folder / name).exists())

    def _folders(self) -> list[Path]:
        """The folders in which a file changes."""
        return sorted({(self._root / name).parent for name in self._new | self._removed})

    def _partitions(self) -> list[Path]:
        return [folder for folder in self._folders() if folder != self._root]
