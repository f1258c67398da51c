"""The folder that an export writes to: its files, and the journal of each partition.

A round is some files of one partition that hold all its records up to an offset. The journal, a
small JSON file, is what commits it:

    files under other names ─▶ synced ─▶ journal: next offset, names ─▶ renamed

A run that finds a journal renames the files that it names, if that has not been done, and goes on
at its offset. Object stores have no renames; there a file appears whole when it is closed. A file
whose first offset is not before the journal's was not committed, and is removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from kafkajit.change.files import say_where
from kafkajit.errors import LockedError
from kafkajit.places.location import filesystem_at, shown
from kafkajit.system.durable import sync, sync_all
from kafkajit.system.file_lock import try_lock

JOURNALS = "_kafkajit"  # Spark, DuckDB and Arrow do not read what begins so
_VERSION = 1


@dataclass
class Journal:
    """The progress of a partition, and the files of its last round."""

    next_offset: int | None = None
    gaps: list[tuple[str, int | None]] = field(default_factory=list)  # behind the last record
    files: list[tuple[str, str]] = field(default_factory=list)  # of the last round: written, final


class OutputFolder:
    """A folder, local or on a file system that pyarrow opens."""

    def __init__(self, location: str, identity: Mapping[str, Any], suffix: str) -> None:
        self._fs, self.path = filesystem_at(location)
        self._shown = shown(location)
        self._identity = json.loads(json.dumps(identity))
        self._suffix = suffix
        self._numbers = count(1)  # of files
        # These names are not given to other files: a run that is killed would leave half of one
        # under such a name, and the next run would rename it over a whole file.
        self._journaled: set[str] = set()
        self._locked: Any = None
        self._listed: dict[str, list[tuple[int, str]]] | None = None
        (there,) = self._fs.get_file_info([self.path])
        if there.type == FileType.File:
            raise NotADirectoryError(
                f"{self._shown} is a file: pass a folder, or the name of a new file with the "
                "suffix of its format"
            )
        self._fs.create_dir(f"{self.path}/{JOURNALS}", recursive=True)
        self._lock()

    @property
    def is_local(self) -> bool:
        return isinstance(self._fs, LocalFileSystem)

    def _lock(self) -> None:
        if not self.is_local:
            return
        path = f"{self.path}/{JOURNALS}/.lock"
        self._locked = open(path, "w")  # noqa: SIM115, PTH123  held as long as the export runs
        if not try_lock(self._locked.fileno()):
            raise LockedError(
                f"another export is writing to {self._shown}: wait until it has ended"
            )

    def close(self) -> None:
        """Release the folder's lock."""
        if self._locked is not None:
            self._locked.close()

    def recover(self, partition: str) -> Journal:
        """Finish or undo what a run left of a partition, and return how far it came."""
        journal = self._read(partition)
        for written, final in journal.files:
            if written != final and self._exists(written):
                self._rename(written, final)
        if self.is_local:
            self._journaled.update(written for written, _ in journal.files)
            self._sync_folders([final for _, final in journal.files])
            for path in Path(f"{self.path}/{JOURNALS}").glob(f"{glob_of(partition)}@*"):
                path.unlink()
            return journal
        for first, name in self._files().get(partition, []):
            if journal.next_offset is None or first >= journal.next_offset:
                self._fs.delete_file(f"{self.path}/{name}")
        return journal

    def create(self, partition: str, final: str) -> tuple[str, pa.NativeFile]:
        """Create a file: the name under which it is written, and the file.

        Its bytes are synced when the round is committed.
        """
        written = final
        if self.is_local:
            names = (f"{JOURNALS}/{partition}@{number}" for number in self._numbers)
            written = next(name for name in names if name not in self._journaled)
        return written, _opened(self._fs, f"{self.path}/{written}")

    def discard(self, name: str) -> None:
        """Remove a file that is not committed."""
        with suppress(OSError):
            self._fs.delete_file(f"{self.path}/{name}")

    def commit(self, partition: str, journal: Journal) -> None:
        """Commit a round: its files are whole, under the names that they are written by."""
        if self.is_local:
            for _, final in journal.files:
                if self._exists(final):
                    raise FileExistsError(
                        f"{self._shown}/{final} exists, but no export's journal lists it: "
                        "remove it, or export to another folder"
                    )
            sync_all(Path(f"{self.path}/{written}") for written, _ in journal.files)
        self._write(partition, journal)
        if self.is_local:
            for written, final in journal.files:
                self._rename(written, final)
            self._sync_folders([final for _, final in journal.files])

    def _rename(self, written: str, final: str) -> None:
        target = Path(f"{self.path}/{final}")
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{self.path}/{written}").replace(target)

    def _sync_folders(self, names: list[str]) -> None:
        folders = {
            parent
            for name in names
            for parent in Path(f"{self.path}/{name}").parents
            if str(parent).startswith(self.path)
        }
        sync_all(folder for folder in sorted(folders) if folder.exists())

    def _exists(self, name: str) -> bool:
        (info,) = self._fs.get_file_info([f"{self.path}/{name}"])
        return bool(info.type == FileType.File)

    def _files(self) -> dict[str, list[tuple[int, str]]]:
        """The exported files of each partition, by their first offsets."""
        if self._listed is None:
            self._listed = {}
            named = re.compile(rf"(.+)-(\d{{20}})(?:-damage)?{re.escape(self._suffix)}")
            for info in self._fs.get_file_info(FileSelector(self.path, recursive=True)):
                match = named.fullmatch(info.base_name)
                if match is not None and info.type == FileType.File:
                    name = info.path[len(self.path) + 1 :]
                    self._listed.setdefault(match[1], []).append((int(match[2]), name))
        return self._listed

    def _journal_path(self, partition: str) -> str:
        return f"{self.path}/{JOURNALS}/{partition}.json"

    def _read(self, partition: str) -> Journal:
        path = self._journal_path(partition)
        (info,) = self._fs.get_file_info([path])
        if info.type != FileType.File:
            return Journal()
        with self._fs.open_input_file(path) as file:
            content = file.read()
        try:
            known = json.loads(content)
            identity, version = known["options"], known["version"]
            journal = Journal(
                known["next"],
                [(place, position) for place, position in known["gaps"]],
                [(written, final) for written, final in known["files"]],
            )
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{path} is not the journal of an export: export to another folder"
            ) from None
        if version != _VERSION or identity != self._identity:
            other = [name for name in identity if identity[name] != self._identity.get(name)]
            differs = ", ".join(f"{name} {identity[name]!r}" for name in other)
            raise ValueError(
                f"{self._shown} has an export of {partition} with other options ({differs}): "
                "pass these options to continue it, or export to another folder"
            )
        return journal

    def _write(self, partition: str, journal: Journal) -> None:
        path = self._journal_path(partition)
        content = json.dumps(
            {
                "version": _VERSION,
                "options": self._identity,
                "next": journal.next_offset,
                "gaps": journal.gaps,
                "files": journal.files,
            }
        )
        begun = f"{path}.tmp" if self.is_local else path
        with _opened(self._fs, begun) as file:
            file.write(content.encode())
        if self.is_local:
            sync(Path(begun))
            Path(begun).replace(path)  # on Windows, rename does not overwrite
            sync(Path(path).parent)


def glob_of(name: str) -> str:
    """A glob that only this name matches."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _opened(filesystem: FileSystem, path: str) -> pa.NativeFile:
    try:
        return filesystem.open_output_stream(path, compression=None)
    except OSError as error:
        say_where(error, Path(path))
        raise
