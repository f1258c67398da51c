"""Several files of a log replaced, added or removed: all of them or none, whatever happens.

    with FolderLock(folder):
        with Change(folder, "repair") as change:
            write(change.new(folder / "00000000000000000042.log"))
            change.remove(folder / "00000000000000000099.log")
            change.new(folder.parent / "cleaner-offset-checkpoint").write_bytes(offsets)
            kept = change.commit()

Everything lies in the partition's folder, where a broker looks at files only. It does not in its
log.dirs: LogManager.loadLogs of Kafka 4.1.1 dies of a folder there that is no topic-partition, so a
crash of ours would keep a broker from starting. Checkpoints of log.dirs and files of other
partitions are named in the same Change, and staged here with the rest.

    orders-0/.kafkajit-change/              being written: whoever finds it removes it
    orders-0/.kafkajit-change.ready/        whole and synced, renamed from the above, which is the
                                            commit: whoever finds it carries it out (`resume`)
    orders-0/.kafkajit-change.done/         carried out, to be tidied
    orders-0/.kafkajit-repair-<UTC time>/   what was replaced or removed, laid out as in log.dirs:
                                            a location that every reader takes

What is done then, and in which order, is kafkajit/change/journal.py.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType

from kafkajit.change.files import (
    Identity,
    identity,
    link,
    make_folder,
    own,
    say_where,
    sync,
    sync_all,
)
from kafkajit.change.journal import (
    CLEAN_SHUTDOWN,
    DONE,
    JOURNAL,
    READY,
    STAGED,
    Journal,
    carry_out,
    is_log,
    logs_in,
    stages_of,
    tidy,
)
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import INDEX_SUFFIXES, SNAPSHOT_SUFFIX


class Change:
    """A change of the log in a partition's folder, which may not be there yet.

    Paths are those of live files: in this folder, in another partition's, or in the log.dirs folder
    around them. What is not committed when the block is left is removed.
    """

    def __init__(self, folder: str | os.PathLike[str], what: str) -> None:
        # Of a link to a folder, log.dirs is what the link is in.
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100
        self._root = self.folder.parent
        self._what = what
        self._new: set[str] = set()
        self._removed: set[str] = set()
        self._first: set[str] = set()
        self._absorbed: set[str] = set()
        if (self.folder / READY).exists():
            raise KafkaJitError(
                "an interrupted change is to be finished first", path=str(self.folder / READY)
            )
        self._staged = self.folder / STAGED
        self._made_folder = not self.folder.exists()
        self._is_open = True
        try:
            if self._made_folder:
                make_folder(self.folder)
            for left in (self._staged, self.folder / DONE):
                tidy(left)
            make_folder(self._staged)
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
        """Where to write the file that is to be live under this path.

        The indexes of a log that is replaced go away, unless they are new too.

        Args:
            path: of the live file, which may be there or not.
            instead_of: logs whose offsets are in this new log, and which go away.
            first: it goes in before any log is touched, as a log start offset that goes back must:
                a broker deletes a log that ends before its start.
        """
        name = self._name(path)
        self._new.add(name)
        if first:
            self._first.add(name)
        absorbed = {self._name(other) for other in instead_of}
        self._absorbed |= absorbed
        self._removed |= absorbed
        staged = self._staged / "new" / name
        staged.parent.mkdir(parents=True, exist_ok=True)
        return staged

    def remove(self, path: str | os.PathLike[str]) -> None:
        """Takes a file away; with a log its indexes and its snapshot, unless they are new."""
        self._removed.add(self._name(path))

    def commit(self, *, keep: bool = True) -> Path | None:
        """Carries it out, and returns the folder where the replaced files are kept, if any are.

        An error before everything is safely on the disk changes nothing. After that the change is
        finished by `resume`.
        """
        if not self._is_open:
            raise ValueError("a change is committed once")
        if not self._new and not self._removed:
            self.abort()
            return None
        self._take_along()
        self._check()
        live = self._live()
        self._check_untouched()
        kept = self._keep(live) if keep else None
        journal = Journal(
            self._what,
            self.folder.name,
            stages_of(self._new, self._removed, self._absorbed, self._first, live.keys()),
            self._synced(),
            live,
            kept,
        )
        journal.write(self._staged / JOURNAL)
        folders = [Path(inside) for inside, _, _ in os.walk(self._staged, topdown=False)]
        for inside in folders:
            own(inside, like=self.folder)
        sync_all(folders)
        ready = self.folder / READY
        self._staged.rename(ready)
        self._is_open = False
        try:
            sync(self.folder)
            carry_out(journal, ready)
        except OSError as error:
            raise KafkaJitError(
                f"{error}: the change is committed but not finished, which is done when kafkajit "
                "next locks the folder to change it",
                path=str(ready),
            ) from error
        return self.folder / journal.kept if journal.kept else None

    def abort(self) -> None:
        """Removes what was staged; after a commit there is nothing to do."""
        if not self._is_open:
            return
        self._is_open = False
        shutil.rmtree(self._staged, ignore_errors=True)
        if self._made_folder:
            with suppress(OSError):  # somebody else has put something there
                self.folder.rmdir()

    def _name(self, path: str | os.PathLike[str]) -> str:
        """A live file's path from log.dirs on."""
        full = Path(os.path.abspath(path))  # noqa: PTH100
        if self._root not in (full.parent, full.parent.parent) or full == self._root:
            raise ValueError(f"{full} is neither in {self._root} nor in a partition's folder there")
        return full.relative_to(self._root).as_posix()

    def _take_along(self) -> None:
        """Side files that cannot stay without their log, or beside another one."""
        gone = set(self._removed)
        for name in filter(is_log, self._removed | self._new):
            stem = name.removesuffix(".log")
            suffixes = INDEX_SUFFIXES if name in self._new else (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX)
            gone.update(stem + suffix for suffix in suffixes)
        # Those that are not there go as well: a broker may make them before a change is finished.
        self._removed = gone - self._new
        for folder in self._partitions():
            self._removed |= {f"{folder.name}/{path.name}" for path in folder.glob("*.cleaned")}

    def _check(self) -> None:
        """What would stop the change half-way is found before it begins."""
        for log in sorted(filter(is_log, self._new)):
            missing = {
                log.removesuffix(".log") + suffix for suffix in INDEX_SUFFIXES[:2]
            } - self._new
            if missing:
                raise ValueError(f"{log} is new, and needs a new {min(missing)}")
        for name in sorted(self._new | self._removed):
            live = self._root / name
            if live.is_dir():
                raise IsADirectoryError(errno.EISDIR, "a folder has a file's name", str(live))
        device = self.folder.stat().st_dev
        if (self._root / CLEAN_SHUTDOWN).exists():
            _check_access(self._root)
        for folder in self._folders():
            there = folder if folder.exists() else self._root
            _check_access(there)
            if there.stat().st_dev != device:
                raise OSError(errno.EXDEV, f"on another file system than {self.folder}", str(there))
            for path in sorted(there.glob("*.swap")):
                if self._name(path) not in self._removed:
                    raise KafkaJitError(
                        "a broker was stopped in a swap of segments, which it would finish over "
                        "this change",
                        path=str(path),
                    )

    def _check_untouched(self) -> None:
        """Raise where a log of the folder is another than when this began: a copy may go on."""
        logs = {*self._begun, *logs_in(self.folder)}
        for name in sorted(logs):
            if self._begun.get(name) != identity(self._root / name):
                raise KafkaJitError(
                    "it has been written since the change began, and nothing was changed: is "
                    "somebody copying, or a broker running?",
                    path=str(self._root / name),
                )

    def _live(self) -> dict[str, Identity]:
        """What is to be replaced or to go, and every log beside it, as they are now."""
        logs = {name for folder in self._partitions() for name in logs_in(folder)}
        found = {name: identity(self._root / name) for name in self._new | self._removed | logs}
        return {name: known for name, known in sorted(found.items()) if known is not None}

    def _synced(self) -> dict[str, Identity]:
        """The new files, each brought to the disk, and belonging to whom the old one does."""
        new = {name: self._staged / "new" / name for name in sorted(self._new)}
        for name, staged in new.items():
            live = self._root / name
            if not staged.is_file():
                raise FileNotFoundError(errno.ENOENT, "a new file was not written", str(staged))
            if live.exists():
                staged.chmod(live.stat().st_mode)
            own(staged, like=live if live.exists() else self.folder)
        sync_all(new.values())
        found = {name: identity(staged) for name, staged in new.items()}
        return {name: known for name, known in found.items() if known is not None}

    def _keep(self, live: Collection[str]) -> str | None:
        """Links to what is to go, so that its names can be given away; where they will be."""
        going = [name for name in live if name in self._new | self._removed]
        for name in going:
            kept = self._staged / "old" / name
            kept.parent.mkdir(parents=True, exist_ok=True)
            link(self._root / name, kept)
        if not going:
            return None
        name = f".kafkajit-{self._what}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        names = (f"{name}-{number}" if number else name for number in count())
        return next(name for name in names if not (self.folder / name).exists())

    def _folders(self) -> list[Path]:
        """Those in which something is to change."""
        return sorted({(self._root / name).parent for name in self._new | self._removed})

    def _partitions(self) -> list[Path]:
        return [folder for folder in self._folders() if folder != self._root]


def _check_access(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "no permission to change this folder", str(folder))
