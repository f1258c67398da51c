"""The journal of an exported partition: how far it is exported, and which files are its own.

Only files that a journal names are ever renamed or removed. So a file is named here before its
first byte is written, and a journal is read as strictly as if somebody else had written it: a name
in it is one that this export would give to a file of this partition.

A journal is a chain of small files that are never overwritten, since object stores have neither
locks nor renames. Each entry names the one before it, which is removed afterwards:

    _kafkajit/orders-0/00000004-<run>.json

A run adds an entry and then lists the folder. If there is an entry of another run that it has not
read, it removes its own and stops. If two runs add entries at the same time, the later one sees the
other's entry. So at most one continues, whatever the order of their requests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.log.footing import Footing, ReadBatch
from kafkajit.scan.export.known_damage import KnownDamage, LeftOut
from kafkajit.state.uuid import parse_uuid
from kafkajit.walk.damage import PERMISSIVE

JOURNALS = "_kafkajit"  # the folder; Spark, DuckDB and Arrow skip names with this prefix
MOST_BYTES = 64 << 20  # of an entry
_VERSION = 2
_ENTRY = re.compile(r"(\d{8,})-[0-9a-f]{16}\.json", re.ASCII)
# The longest name of a file on common file systems.
_LONGEST = 255
# What follows a partition's name in the longest name: an offset, the mark of damage and .jsonl.zst.
_REST = len(f"-{0:020}-d00000.jsonl.zst")
_HASH = 16  # hexadecimal digits


@dataclass(frozen=True)
class ExportedFile:
    """A file of a round: the name that it is written under, and the one that it gets."""

    written: str
    final: str
    size: int | None = None  # in bytes; unknown in journals of version 1


@dataclass(frozen=True)
class Journal:
    """The progress of a partition, and the files of its last round."""

    next_offset: int | None = None
    # What the offset stands on, as far as the journal's version knew; its start is that of the log
    # when the export began.
    footing: Footing = field(default_factory=Footing)
    gaps: tuple[KnownDamage, ...] = ()  # after the last record
    missing: tuple[Range, ...] = ()  # offsets that the log lacked
    left_out: tuple[LeftOut, ...] = ()  # offsets that were damaged, before the last record
    files: tuple[ExportedFile, ...] = ()  # of the last round
    begun: tuple[str, ...] = ()  # files that a run may have begun and did not commit
    rounds: int = 0  # that were committed

    def with_begun(self, name: str) -> Journal:
        return replace(self, begun=(*self.begun, name))

    def without_begun(self, name: str) -> Journal:
        return replace(self, begun=tuple(one for one in self.begun if one != name))

    def encoded(self, identity: Mapping[str, Any], parent: str | None) -> bytes:
        """An entry with this state, after the entry of that name."""
        document = {
            "version": _VERSION,
            "parent": parent,
            "options": identity,
            "next": self.next_offset,
            "last": self.footing.last,
            "topicId": self.footing.topic_id,
            "epochs": self.footing.epochs,
            "logStart": self.footing.log_start,
            "gaps": self.gaps,
            "missing": self.missing,
            "leftOut": self.left_out,
            "files": [[file.written, file.final, file.size] for file in self.files],
            "begun": self.begun,
            "rounds": self.rounds,
        }
        return json.dumps(document).encode()


@dataclass(frozen=True)
class Entry:
    """An entry of a journal."""

    name: str
    parent: str | None
    journal: Journal
    options: dict[str, Any]


def entry_name(after: Sequence[str], run: str) -> str:
    """The name of an entry after these.

    >>> entry_name(["00000007-00000000000000aa.json"], "00000000000000bb")
    '00000008-00000000000000bb.json'
    """
    numbers = [int(match[1]) for match in map(_ENTRY.fullmatch, after) if match is not None]
    return f"{max(numbers, default=0) + 1:08}-{run}.json"


def damage_only(next_offset: int, rounds: int) -> str:
    """The place of the first offset in the name of a file without records.

    Several rounds may find damage, and no record after it. So their number is in the name.

    >>> damage_only(10, 1)
    '00000000000000000010-d00001'
    """
    return f"{next_offset:020}-d{rounds:05}"


def is_entry(name: str) -> bool:
    """Whether an entry of a journal has such a name."""
    return _ENTRY.fullmatch(name) is not None


def last_of(entries: Sequence[Entry]) -> tuple[Journal, Entry]:
    """The state of a partition, and the entry that has it: that of the most rounds.

    A run that saw another one's entry may have been killed before it removed its own.
    """
    parents = {entry.parent for entry in entries}
    heads = [entry for entry in entries if entry.name not in parents]
    rounds = max(entry.journal.rounds for entry in heads)
    last = [entry for entry in heads if entry.journal.rounds == rounds]
    first, *others = last
    for other in others:
        if replace(other.journal, begun=()) != replace(first.journal, begun=()):
            raise NotAJournalError(f"{first.name} and {other.name} contradict each other")
    begun = dict.fromkeys(name for entry in last for name in entry.journal.begun)
    return replace(first.journal, begun=tuple(begun)), first


class NotAJournalError(ValueError):
    """The bytes are not the journal of an export of this partition."""


@dataclass(frozen=True)
class FileNames:
    """The names of a partition's files in an export."""

    topic: str
    partition: int
    suffix: str = field(kw_only=True)

    @property
    def stem(self) -> str:
        """The partition's name at the beginning of its files' names.

        Kafka's longest topics would make names that no file system accepts. They are cut, and have
        the hash of the whole name after a ~, which no topic's name contains.

        >>> FileNames("orders", 0, suffix=".csv").stem
        'orders-0'
        >>> FileNames("x" * 249, 0, suffix=".csv").stem[-22:]
        'xxxxx~2541f3342ec0c21f'
        """
        whole = f"{self.topic}-{self.partition}"
        if len(whole.encode()) + _REST <= _LONGEST:
            return whole
        digest = hashlib.sha256(whole.encode()).hexdigest()[:_HASH]
        return whole.encode()[: _LONGEST - _REST - _HASH - 1].decode(errors="ignore") + f"~{digest}"

    @property
    def journal(self) -> str:
        """The folder of the journal's entries."""
        return f"{JOURNALS}/{self.stem}"

    @property
    def first_journal(self) -> str:
        """The only file of a journal of version 1."""
        return f"{JOURNALS}/{self.stem}.json"

    def written(self, token: str) -> str:
        """The name of a local file until it is complete."""
        return f"{JOURNALS}/{self.stem}@{token}"

    def final(self, folders: str, first: str) -> str:
        """The name of a file, in its folders, by its first offset."""
        return f"{folders}{self.stem}-{first}{self.suffix}"

    def has_written(self, name: str) -> bool:
        """Whether `written` may have made this name."""
        return re.fullmatch(rf"{JOURNALS}/{re.escape(self.stem)}@[0-9a-f]+", name) is not None

    def has_final(self, name: str) -> bool:
        """Whether `final` may have made this name."""
        folders = r"(?:(?:topic|partition|date)=[^/\0]+/)*"
        rest = r"\d{20}(?:-d\d{5,}|-damage)?\.[a-z.]+"  # -damage: of earlier versions
        return re.fullmatch(rf"{folders}{re.escape(self.stem)}-{rest}", name, re.ASCII) is not None

    def entry_in(self, content: bytes, name: str) -> Entry:
        """Read an entry.

        Raises:
            NotAJournalError: something else, or a name that is not one of this partition.
        """
        try:
            known = json.loads(content)
            version, options = known["version"], dict(known["options"])
            if version == 1:
                options["mode"] = PERMISSIVE if options.pop("hasCorruption") else None
                known = {"begun": [], "rounds": 1, "parent": None, **known}
            entry = Entry(
                name,
                known["parent"],
                Journal(
                    known["next"],
                    Footing(
                        known.get("topicId"),
                        _batch_in(known.get("last")),
                        tuple((epoch, first) for epoch, first in known.get("epochs", ())),
                        known.get("logStart"),
                    ),
                    tuple(KnownDamage(*gap) for gap in known["gaps"]),
                    tuple(Range(first, last) for first, last in known.get("missing", ())),
                    tuple(
                        LeftOut(
                            Range(*offsets),
                            tuple(KnownDamage(*gap) for gap in damage),
                            *map(tuple, sizes),
                        )
                        for offsets, damage, *sizes in known.get("leftOut", ())
                    ),
                    tuple(ExportedFile(*file) for file in known["files"]),
                    tuple(known["begun"]),
                    known["rounds"],
                ),
                options,
            )
            is_ours = version in (1, _VERSION) and self._are_ours(entry.journal)
            is_ours &= entry.parent is None or isinstance(entry.parent, str)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise NotAJournalError(f"{type(error).__name__}: {error}") from None
        if not is_ours:
            raise NotAJournalError("it has names that are not those of this export's files")
        return entry

    def _are_ours(self, journal: Journal) -> bool:
        id_, last, epochs, log_start = journal.footing
        return (
            all(one is None or _is_number(one) for one in (journal.next_offset, log_start))
            and (id_ is None or parse_uuid(id_) is not None)
            and _is_batch(last)
            and all(_is_number(number) for epoch in epochs for number in epoch)
            and all(_is_number(offset) for lacking in journal.missing for offset in lacking)
            and all(_is_number(offset) for one in journal.left_out for offset in one.offsets)
            and all(_is_damage(damage) for one in journal.left_out for damage in one.damage)
            and all(
                size is None or _is_number(size) for one in journal.left_out for size in one.sizes
            )
            and type(journal.rounds) is int
            and all(self.has_final(file.final) for file in journal.files)
            and all(
                file.written == file.final or self.has_written(file.written)
                for file in journal.files
            )
            and all(self.has_final(name) or self.has_written(name) for name in journal.begun)
        )


def _is_number(value: object) -> bool:
    """Whether a value of JSON is an offset, a size or a checksum."""
    return type(value) is int and 0 <= value <= MAX_INT64


def _is_damage(damage: KnownDamage) -> bool:
    """Whether the values may be the path of a file, a stretch of it, and a digest."""
    path, *stretch, digest = damage
    return type(path) is str and type(digest) is str and all(map(_is_number, stretch))


def _is_batch(batch: ReadBatch | None) -> bool:
    """Whether the numbers may be those of a batch, of which the epoch may be unknown."""
    if batch is None:
        return True
    *numbers, epoch = batch
    return all(map(_is_number, numbers)) and (_is_number(epoch) or epoch == -1)


def _batch_in(numbers: list[int] | None) -> ReadBatch | None:
    return None if numbers is None else ReadBatch(*numbers)
