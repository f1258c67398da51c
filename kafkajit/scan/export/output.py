"""The folder that an export writes to: its files, and the journal of each partition.

A round is some files of one partition that hold all its records up to an offset. The journal
commits it (kafkajit/scan/export/journal.py):

    entry: a name that is begun ─▶ file ─▶ synced ─▶ entry: next offset, files ─▶ renamed

A run that finds a journal renames the files that it lists, if that has not been done, removes those
that were begun and not committed, and continues at its offset. It touches no other file: a file
that has the name of a new one is an error. Object stores have no renames; there a file appears
whole when it is closed.
"""

from __future__ import annotations

import json
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kafkajit.errors import LockedError
from kafkajit.scan.export.journal import (
    ExportedFile,
    FileNames,
    Journal,
    NotAJournalError,
    entry_name,
    last_of,
)
from kafkajit.scan.export.options import DEFAULT_IDENTITY

logger = logging.getLogger("kafkajit")

_TYPES = "types"  # of the columns


class PartitionOutput:
    """The files and the journal of one partition.

    Making one finishes or undoes what an earlier run left.

    Args:
        folder: the folder of the export.
        names: the partition's files.
        identity: the options that all runs of one export have in common.
    """

    def __init__(self, folder: OutputFolder, names: FileNames, identity: Mapping[str, Any]) -> None:
        self._folder = folder
        self._names = names
        self._identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._entries: list[str] = []  # the journal's, as far as this run knows it
        self._last: str | None = None
        self._is_in_doubt = False  # whether the last round is committed
        self.journal = self._read()
        folder.finish(self.journal.files)
        begun = set(self.journal.begun) - {file.written for file in self.journal.files}
        if begun:
            self._write(self.journal)  # whoever else has begun them stops from here on
            for name in sorted(filter(folder.exists, begun)):
                folder.remove(name)
            self.journal = replace(self.journal, begun=())

    def create(self, final: str) -> tuple[str, pa.NativeFile]:
        """Create a file: the name under which it is written, and the file."""
        self._check_free(final)
        written = self._folder.written(self._names, final)
        self._write(self.journal.with_begun(written))
        return written, self._folder.opened(written)

    def complete(self, written: str, sink: pa.NativeFile) -> None:
        """Close a file whose bytes are all written; they are safe once the round is committed."""
        self._check_alone()
        if self._folder.shows_when_closed and self._folder.exists(written):
            self._write(self.journal.without_begun(written))  # it is somebody else's
            self._check_free(written)
        sink.close()
        if self._folder.shows_when_closed:
            self._check_alone(
                f"again to a new folder, because this run may have replaced its file {written}"
            )

    def abandon(self, written: str, sink: pa.NativeFile) -> None:
        """Remove a file that is not committed."""
        if self._is_in_doubt or written in {file.written for file in self.journal.files}:
            return
        self._folder.drop(sink)
        if written not in self.journal.begun:
            return
        with suppress(OSError, LockedError):  # the journal has its name, for the next run
            self._check_alone()
            self._folder.remove(written)

    def commit(self, journal: Journal) -> None:
        """Commit a round: its files are whole, under the names that they are written by."""
        journal = replace(journal, rounds=self.journal.rounds + 1)
        for file in journal.files:
            if file.written != file.final:
                self._check_free(file.final)
        self._folder.check_complete(journal.files)
        # A store may have the entry although the request for it failed.
        self._is_in_doubt = True
        self._write(journal)
        self._is_in_doubt = False
        self._folder.finish(journal.files)

    def _check_free(self, final: str) -> None:
        if self._folder.exists(final):
            raise FileExistsError(
                f"{self._folder.name}/{final} exists, but no export's journal lists it: remove it, "
                "or export to another folder"
            )

    def _check_alone(self, how: str = "again") -> None:
        """Raise if another run has added an entry to the journal since."""
        found = self._folder.entries(self._names.journal)
        if not set(found) <= set(self._entries):
            raise LockedError(
                f"another export is writing {self._names.stem} to {self._folder.name}: run one at "
                f"a time, and export this partition {how}"
            )

    def _read(self) -> Journal:
        folder = self._names.journal
        self._entries = self._folder.entries(folder)
        paths = {f"{folder}/{name}": name for name in self._entries}
        paths = paths or {self._names.first_journal: ""}
        entries = []
        try:
            for path, name in paths.items():
                content = self._folder.content(path)
                if content is not None:
                    entries.append(self._names.entry_in(content, name))
            if not entries:
                return Journal()
            journal, last = last_of(entries)
        except NotAJournalError as error:
            raise ValueError(
                f"{self._folder.name}/{path} is not the journal of this export ({error}): export "
                "to another folder"
            ) from None
        self._check_identity(last.options)
        self._last = last.name or None
        return journal

    def _check_identity(self, known: Mapping[str, Any]) -> None:
        """Raise if an earlier run had other options."""
        here = self._identity
        # An earlier version of kafkajit did not have an option that its journal lacks.
        there = {**here, **json.loads(json.dumps(DEFAULT_IDENTITY)), **known}
        differs = [name for name in sorted({*here, *there}) if there[name] != here.get(name)]
        if differs == [_TYPES]:  # else they follow from the other options
            same = [one for one in here[_TYPES] if one in there[_TYPES]]
            there, here = (
                {_TYPES: [one for one in part[_TYPES] if one not in same]} for part in (there, here)
            )
        elif differs:
            differs = [name for name in differs if name != _TYPES]
        if differs:
            before, now = (
                ", ".join(f"{name} {_shown(options.get(name))}" for name in differs)
                for options in (there, here)
            )
            raise ValueError(
                f"{self._folder.name} has an export of {self._names.topic}-{self._names.partition} "
                f"with other options ({before}; now {now}): pass the same options to continue it, "
                "or export to another folder"
            )

    def _write(self, journal: Journal) -> None:
        """Add an entry, unless another run has added one; then remove those before it."""
        folder = self._names.journal
        name = entry_name(self._entries, self._folder.run)
        self._entries.append(name)
        self._folder.put(f"{folder}/{name}", journal.encoded(self._identity, self._last))
        try:
            self._check_alone()
        except LockedError:
            self._remove_entry(name)
            raise
        self._last, self.journal = name, journal
        # An entry that stays is before the last one in the chain, and is removed after the next.
        self._entries = [old for old in self._entries[:-1] if not self._remove_entry(old)]
        self._entries.append(name)

    def _remove_entry(self, name: str) -> bool:
        """Remove an entry; False if the store does not do it now."""
        try:
            self._folder.remove(f"{self._names.journal}/{name}")
        except FileNotFoundError:  # another run has seen it, and added its own
            pass
        except OSError as error:
            logger.info("%s/%s stays: %s", self._names.journal, name, error)
            return False
        return True


class OutputFolder(ABC):
    """A folder of exported files, which are named by their paths in it.

    Args:
        path: the folder's path on its file system.
        name: the folder as errors name it.
    """

    shows_when_closed = False  # whether a file appears under its final name when it is closed

    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name
        self.run = secrets.token_hex(8)

    @abstractmethod
    def close(self) -> None:
        """Release the folder's lock, if it has one."""

    @abstractmethod
    def written(self, names: FileNames, final: str) -> str:
        """The name under which a file is written."""

    @abstractmethod
    def opened(self, written: str) -> pa.NativeFile:
        """Create a file."""

    @abstractmethod
    def drop(self, sink: pa.NativeFile) -> None:
        """Give up a file that is not completely written."""

    @abstractmethod
    def check_complete(self, files: Iterable[ExportedFile]) -> None:
        """Raise unless the files of a round are all there and safe."""

    @abstractmethod
    def finish(self, files: Iterable[ExportedFile]) -> None:
        """Give committed files their names."""

    @abstractmethod
    def entries(self, journal: str) -> list[str]:
        """The names of a journal's entries."""

    @abstractmethod
    def content(self, name: str) -> bytes | None:
        """The bytes of an entry; None if there is no such file."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Write an entry, whole or not at all."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether something has this name."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file."""


def _shown(value: Any) -> str:
    """An option's value, or an unset option."""
    return "not given" if value in (None, "", [], {}) else repr(value)
