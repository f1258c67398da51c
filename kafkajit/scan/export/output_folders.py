"""Folders that an export writes to: on a disk, and in an object store.

On a disk, files are written in the folder of journals, and get their names when a round is
committed. An object store has no renames; there a file appears when it is closed.
"""

from __future__ import annotations

import ctypes
import os
import secrets
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow as pa
from pyarrow.fs import FileSelector, FileType

from kafkajit.change.files import read_regular
from kafkajit.change.lock import broker_folder_of
from kafkajit.errors import LockedError
from kafkajit.places.location import filesystem_at, shown
from kafkajit.scan.export.journal import (
    JOURNALS,
    MOST_BYTES,
    ExportedFile,
    FileNames,
    is_entry,
)
from kafkajit.scan.export.output import OutputFolder
from kafkajit.state.meta_properties import META_PROPERTIES
from kafkajit.storage.remote_store import RemoteStore
from kafkajit.system import disk
from kafkajit.system.acting import reading_for
from kafkajit.system.durable import sync_all
from kafkajit.system.file_lock import try_lock
from kafkajit.system.new_file import NewFile


class LocalFolder(OutputFolder):
    """A folder on a disk: files get their names when a round is committed."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        journals = Path(path, JOURNALS)
        disk.make_folders(journals)
        if journals.is_symlink():
            raise NotADirectoryError(f"{journals} is a link: export to another folder")
        self._locked = disk.open_to_lock(journals / ".lock")
        if not try_lock(self._locked):
            os.close(self._locked)
            raise LockedError(f"another export is writing to {name}: wait until it has ended")
        self._reading = ExitStack()
        self._reading.enter_context(reading_for(path))

    def close(self) -> None:
        self._reading.close()
        os.close(self._locked)

    def written(self, names: FileNames, final: str) -> str:  # noqa: ARG002
        return names.written(secrets.token_hex(8))

    def opened(self, written: str) -> pa.NativeFile:
        return pa.PythonFile(disk.create_new(self._at(written)), "w")

    def drop(self, sink: pa.NativeFile) -> None:
        with suppress(OSError):  # such as a full disk, again
            sink.close()

    def check_complete(self, files: Iterable[ExportedFile]) -> None:
        sync_all(self._at(file.written) for file in files)

    def finish(self, files: Iterable[ExportedFile]) -> None:
        renamed = []
        for file in files:
            written, final = self._at(file.written), self._at(file.final)
            if file.written == file.final or not written.exists():
                continue
            disk.make_folders(final.parent)
            if final.exists() and final.samefile(written):  # killed between link and unlink
                disk.remove(written)
            else:
                disk.rename_new(written, final)
            renamed.append(final)
        top = Path(self.path)
        folders = {
            folder
            for final in renamed
            for folder in final.parents
            if folder == top or top in folder.parents
        }
        sync_all(sorted(folders))

    def entries(self, journal: str) -> list[str]:
        try:
            names = [path.name for path in self._at(journal).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(filter(is_entry, names))

    def content(self, name: str) -> bytes | None:
        try:
            return read_regular(self._at(name), MOST_BYTES)
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        path = self._at(name)
        disk.make_folder(path.parent, exist_ok=True)
        with NewFile(path, replaces=False) as file:
            file.write(content)

    def exists(self, name: str) -> bool:
        return os.path.lexists(self._at(name))

    def remove(self, name: str) -> None:
        disk.remove(self._at(name))

    def _at(self, name: str) -> Path:
        return Path(self.path, name)


class RemoteFolder(OutputFolder):
    """A folder of an object store: files have their names from the start, and appear whole."""

    shows_when_closed = True

    def __init__(self, store: RemoteStore, path: str, name: str) -> None:
        super().__init__(path, name)
        self._store = store
        self._store.create_dir(f"{path}/{JOURNALS}")

    def close(self) -> None:
        """Do nothing: there is no lock."""

    def written(self, names: FileNames, final: str) -> str:  # noqa: ARG002
        return final

    def opened(self, written: str) -> pa.NativeFile:
        return self._store.open_output_stream(self._at(written))

    def drop(self, sink: pa.NativeFile) -> None:
        never_close(sink)

    def check_complete(self, files: Iterable[ExportedFile]) -> None:
        for file in files:
            if self._size(file.written) != file.size:
                raise OSError(self._not_as_written(file))

    def finish(self, files: Iterable[ExportedFile]) -> None:
        """Check the files, which have their names already; some may be gone since."""
        for file in files:
            size = self._size(file.written)
            if None not in (size, file.size) and size != file.size:
                raise OSError(
                    f"{self._not_as_written(file)}; or remove the file to continue after it"
                )

    def _size(self, name: str) -> int | None:
        """The size of a file; None if it is missing."""
        (info,) = self._store.get_file_info([self._at(name)])
        return info.size if info.type == FileType.File else None

    def _not_as_written(self, file: ExportedFile) -> str:
        return (
            f"{self.name}/{file.written} does not have the {file.size:,} bytes that were written, "
            "since another export ran at the same time, or another program has changed it: export "
            "to another folder"
        )

    def entries(self, journal: str) -> list[str]:
        selector = FileSelector(self._at(journal), allow_not_found=True)
        found = (info.base_name for info in self._store.get_file_info(selector))
        return sorted(filter(is_entry, found))

    def content(self, name: str) -> bytes | None:
        (info,) = self._store.get_file_info([self._at(name)])
        if info.type != FileType.File:
            return None
        with self._store.open_input_file(self._at(name)) as file:
            return file.read(MOST_BYTES)

    def put(self, name: str, content: bytes) -> None:
        with self._store.open_output_stream(self._at(name)) as file:
            file.write(content)

    def exists(self, name: str) -> bool:
        (info,) = self._store.get_file_info([self._at(name)])
        return bool(info.type != FileType.NotFound)

    def remove(self, name: str) -> None:
        self._store.delete_file(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"


def output_folder(location: str) -> OutputFolder:
    """The folder at a location, which is made if it is missing."""
    storage, path = filesystem_at(location)
    (there,) = storage.get_file_info([path])
    if there.type not in (FileType.NotFound, FileType.Directory):
        raise NotADirectoryError(
            f"{shown(location)} is a file: pass a folder, or the name of a new file with the "
            "suffix of its format"
        )
    if isinstance(storage, RemoteStore):
        return RemoteFolder(storage, path, shown(location))
    _check_outside_of_brokers(Path(path), shown(location))
    return LocalFolder(path, shown(location))


def _check_outside_of_brokers(path: Path, name: str) -> None:
    """Raise if a folder is in a broker's log.dirs, which may have folders of partitions only."""
    folder = broker_folder_of(path)
    if folder is not None:
        raise ValueError(
            f"cannot export to {name}: {folder} is a broker's folder (it has {META_PROPERTIES}), "
            "and a broker does not start with a folder there that is not a partition's: choose "
            "another place"
        )


# Streams that must never be closed. Arrow's streams to object stores have no abort: closing one, or
# freeing it, would make half of a file appear.
_never_closed: list[pa.NativeFile] = []


def never_close(sink: pa.NativeFile) -> None:
    """Give up a stream to an object store without making its object appear."""
    _never_closed.append(sink)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(sink))  # also when the process ends
