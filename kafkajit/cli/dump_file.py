"""Dumps files for dump-log, one after the other, and reports findings at the end.

A file's suffix decides how it is dumped. Kafka collects inconsistencies over all files and prints
them on stderr after the last one.
"""

from __future__ import annotations

import argparse
import errno
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkajit.cli.dump_names import SUFFIXES, DumpedFile
from kafkajit.cli.progress import Progress
from kafkajit.errors import CorruptSnapshotError
from kafkajit.format.kafscale import kafscale_name
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.tiered_names import TIERED_STEM
from kafkajit.storage.source import Source
from kafkajit.text.log_dump import LogDump, Style, json_line
from kafkajit.text.pairs import OffsetPairs, Pair
from kafkajit.topics import TOPICS
from kafkajit.topics.kinds import topic_kind

if TYPE_CHECKING:
    from kafkajit.cli.dump_values import DumpedValues

_MOST_BYTES = 2**31 - 1  # the largest log that Kafka opens
_ESCAPE = "surrogateescape"  # a file name may have any bytes

Pairs = list[Pair] | OffsetPairs


@dataclass
class Findings:
    """Inconsistencies by file: pairs of numbers, as Kafka prints them."""

    index_mismatches: dict[str, Pairs] = field(default_factory=dict)
    time_mismatches: dict[str, Pairs] = field(default_factory=dict)
    out_of_order: dict[str, Pairs] = field(default_factory=dict)
    not_found: dict[str, Pairs] = field(default_factory=dict)
    non_consecutive: dict[str, Pairs] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """All findings, in Kafka's order and words."""
        for finding, path, pairs in self._all():
            yield finding.heading.format(path=path)
            for first, second in pairs:
                yield finding.line.format(first, second)

    def objects(self) -> Iterator[bytes]:
        """The same as JSON, an object for each pair."""
        for finding, path, pairs in self._all():
            for first, second in pairs:
                fields = dict(zip(finding.fields, (first, second), strict=True))
                yield json_line(finding.kind, path=path, **fields)

    def _all(self) -> Iterator[tuple[_Finding, str, Iterator[Pair]]]:
        for name, finding in _FINDINGS.items():
            found: dict[str, Pairs] = getattr(self, name)
            for path, pairs in _in_scalas_order(found, puts_every_pair=finding.is_list):
                # Kafka's lists grow at their fronts.
                yield finding, path, reversed(pairs) if finding.is_list else iter(pairs)


class _Finding(NamedTuple):
    """The text of one kind of finding."""

    heading: str
    line: str
    kind: str
    fields: tuple[str, str]
    is_list: bool = False  # if so, Kafka updates its map once for each pair


# In Kafka's order.
_FINDINGS = {
    "index_mismatches": _Finding(
        "Mismatches in :{path}",
        "  Index offset: {}, log offset: {}",
        "indexMismatch",
        ("indexOffset", "logOffset"),
        is_list=True,
    ),
    "time_mismatches": _Finding(
        "Found timestamp mismatch in :{path}",
        "  Index timestamp: {}, log timestamp: {}",
        "timestampMismatch",
        ("indexTimestamp", "logTimestamp"),
    ),
    "out_of_order": _Finding(
        "Found out of order timestamp in :{path}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
        "timestampOutOfOrder",
        ("indexTimestamp", "previousTimestamp"),
    ),
    "not_found": _Finding(
        "The following indexed offsets are not found in the log.",
        "Indexed offset: {}, found log offset: {}",
        "offsetNotFound",
        ("indexOffset", "logOffset"),
    ),
    "non_consecutive": _Finding(
        "Non-consecutive offsets in {path}",
        "  {} is followed by {}",
        "nonConsecutiveOffsets",
        ("offset", "followedBy"),
        is_list=True,
    ),
}


class FileDump:
    """Dumps files according to the options, and collects findings."""

    def __init__(self, style: Style, options: argparse.Namespace) -> None:
        self.findings = Findings()
        self._style = style
        self._options = options
        self._values: DumpedValues | None = None

    def file(self, file: DumpedFile) -> None:
        """Dump one file; raise an error only after printing everything that could be read."""
        self._file, name = file, file.file_name
        if file.is_folder:
            raise IsADirectoryError(
                0,
                f"no file of this folder can be dumped ({', '.join(SUFFIXES)}); a log.dirs folder "
                "has them in its partitions' folders, such as orders-0",
            )
        try:
            self._dump(name)
        except (OSError, ValueError):
            # Kafka's tool checks the name before it looks for the file.
            if not file.exists:
                raise FileNotFoundError(errno.ENOENT, "no such file") from None
            raise

    def _dump(self, name: str) -> None:
        if "." not in name:
            raise ValueError(f"the file's name has no suffix; there are: {', '.join(SUFFIXES)}")
        dump = _DUMPED.get(name[name.rindex(".") :])
        if dump is not None:
            dump(self, name)
        elif self._file.exists:
            _complain(f"Ignoring unknown file {self._file.name}")
        else:
            raise FileNotFoundError

    def _log(self, name: str) -> None:
        options = self._options
        self.say(*_heading(name))
        source = self._file.source()
        if source.content.size > _MOST_BYTES:
            raise ValueError(
                f"the segment's size ({source.content.size}) is larger than Kafka's maximum "
                f"{_MOST_BYTES}"
            )
        if options.max_bytes < 0:
            raise ValueError(f"Invalid size: {options.max_bytes}")
        kind = _kind(Path(self._file.path), options.topics or [])
        dump = LogDump(
            source,
            replace(self._style, topic=topic_kind(kind) if kind else None, **self._texts(kind)),
            max_bytes=options.max_bytes,
            max_decompressed_bytes=options.max_decompressed_bytes,
            mode=options.mode,
        )
        total = min(source.content.size, options.max_bytes)
        with Progress(before_output=False) as progress:
            progress.watch(lambda: (name, dump.position, total))
            for text in dump.text():
                sys.stdout.buffer.write(text)
        if dump.error is not None:
            raise dump.error
        _keep(self.findings.non_consecutive, self._file, dump.non_consecutive)

    # Reading schemas, or the files beside a log, imports pyarrow: dumping a log does not need it.

    def _texts(self, kind: str | None) -> dict[str, Any]:
        """The texts of keys and values that have a schema; an internal topic has no such texts."""
        if kind or not (self._options.key_decoder or self._options.value_decoder):
            return {}
        if self._values is None:
            from kafkajit.cli.dump_values import DumpedValues

            self._values = DumpedValues(self._options)
        return self._values.texts(self._file.path)

    def _offset_index(self, name: str) -> None:
        from kafkajit.index.offset_index import OffsetIndex
        from kafkajit.text.sidecar_dump import OffsetIndexDump

        index = OffsetIndex(self._whole(), _offset_in(name))
        log = self._file.beside(".log")
        if index.max_entries == 0:
            self.say(f"{self._file.name} is empty.", {"kind": "empty", "path": self._file.name})
            return
        if self._options.index_sanity_check:
            index.sanity_check()
            self._say_sane()
            return
        most = self._options.max_message_size
        dump = OffsetIndexDump(index, log, max_message_size=most, json=self._style.json)
        try:
            self._print_entries(dump.text())
        finally:
            _keep(self.findings.index_mismatches, self._file, dump.mismatches)

    def _time_index(self, name: str) -> None:
        from kafkajit.index.offset_index import OffsetIndex
        from kafkajit.index.time_index import TimeIndex
        from kafkajit.text.sidecar_dump import TimeIndexDump

        base_offset = _offset_in(name)
        time_index = TimeIndex(self._whole(), base_offset)
        log = self._file.beside(".log")
        index = OffsetIndex(self._file.beside(".index"), base_offset)
        if self._options.index_sanity_check:
            time_index.sanity_check()
            self._say_sane()
            return
        dump = TimeIndexDump(
            time_index,
            index,
            log,
            max_decompressed_bytes=self._options.max_decompressed_bytes,
            json=self._style.json,
        )
        try:
            self._print_entries(dump.text())
        finally:
            _keep(self.findings.time_mismatches, self._file, dump.mismatches)
            _keep(self.findings.out_of_order, self._file, dump.out_of_order)
            _keep(self.findings.not_found, self._file, dump.not_found)

    def say(self, kafkas: str, fields: dict[str, Any]) -> None:
        """Print a line on standard output, in Kafka's words or as JSON with these fields."""
        line = json_line(**fields) if self._style.json else f"{kafkas}\n".encode(errors=_ESCAPE)
        sys.stdout.buffer.write(line)

    def _whole(self) -> Source:
        """All bytes of the file; an error if some cannot be read."""
        source = self._file.source()
        source.load(source.content.size)
        return source

    def _say_sane(self) -> None:
        self.say(
            f"{self._file.name} passed sanity check.", {"kind": "sane", "path": self._file.name}
        )

    def _print_entries(self, text: Iterator[bytes]) -> None:
        for lines in text:
            if not self._options.verify_index_only:
                sys.stdout.buffer.write(lines)

    def _transaction_index(self, name: str) -> None:
        from kafkajit.text.sidecar_dump import transaction_index_text

        _offset_in(name)
        source = self._whole()
        for lines in transaction_index_text(source.content, source.path, json=self._style.json):
            sys.stdout.buffer.write(lines)

    def _snapshot(self, _: str) -> None:
        from kafkajit.text.sidecar_dump import snapshot_complaint, snapshot_text

        source = self._whole()
        try:
            for lines in snapshot_text(source.content, source.path, json=self._style.json):
                sys.stdout.buffer.write(lines)
        except CorruptSnapshotError as error:
            # Kafka prints this and exits as if nothing were wrong.
            if self._style.json:
                self.say(
                    "", {"kind": "corruptSnapshot", "path": self._file.name, "reason": str(error)}
                )
            else:
                _complain(snapshot_complaint(error))


# How the files of each suffix are dumped.
_DUMPED: dict[str, Callable[[FileDump, str], None]] = dict(
    zip(
        SUFFIXES,
        (
            FileDump._log,
            FileDump._log,
            FileDump._offset_index,
            FileDump._time_index,
            FileDump._transaction_index,
            FileDump._snapshot,
            FileDump._log,
        ),
        strict=True,
    )
)


def _complain(line: str) -> None:
    sys.stdout.flush()
    print(line, file=sys.stderr)


def _keep(findings: dict[str, Pairs], file: DumpedFile, pairs: Pairs) -> None:
    if pairs:
        known = findings.setdefault(file.absolute, pairs)
        if known is not pairs:
            known.extend(pairs)  # type: ignore[arg-type]  # each kind has one type


def _kind(path: Path, kinds: list[str]) -> str | None:
    """The kind of internal topic that a file's records are read as."""
    if len(set(kinds)) == 1:
        return kinds[0]
    if path.suffix == ".checkpoint":
        topic: str | None = TOPICS["cluster_metadata"]
    else:
        topic = parse_log_path(path.absolute()).topic
    return next((kind for kind in kinds if TOPICS[kind] == topic), None)


def _heading(name: str) -> tuple[str, dict[str, Any]]:
    """The line that Kafka derives from the file's name, and the same as fields of JSON."""
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot", {"kind": "bootstrap"}
    snapshot = re.fullmatch(r"(\d{20})-(\d{10}).*\.checkpoint", name)
    if snapshot:
        end_offset, epoch = int(snapshot[1]), int(snapshot[2])
        return (
            f"Snapshot end offset: {end_offset}, epoch: {epoch}",
            {"kind": "snapshot", "endOffset": end_offset, "epoch": epoch},
        )
    start = _offset_in(name)
    return f"Log starting offset: {start}", {"kind": "log", "startingOffset": start}


def _offset_in(name: str) -> int:
    """The number that a file's name begins with, parsed as Java's toLong does."""
    kafscale = kafscale_name(name)
    if kafscale is not None:
        return kafscale.base_offset
    base_offset = name.split(".")[0]
    tiered = TIERED_STEM.fullmatch(base_offset)
    base_offset = tiered[1] if tiered else base_offset
    if not re.fullmatch(r"[+-]?\d+", base_offset) or not -(2**63) <= int(base_offset) < 2**63:
        raise ValueError(f"the file's name does not begin with an offset: {base_offset!r}")
    return int(base_offset)


def _in_scalas_order(
    findings: dict[str, Pairs], *, puts_every_pair: bool = False
) -> Iterator[tuple[str, Pairs]]:
    """Sort findings in the order of Scala's mutable.HashMap, in which Kafka prints them."""
    size = 16
    for held, pairs in enumerate(findings.values()):
        # The map grows before it looks up the key.
        for known in (held, held + 1)[: len(pairs) if puts_every_pair else 1]:
            if known + 1 >= size * 3 // 4:
                size *= 2
    for path in sorted(findings, key=lambda path: _scala_map_order(path, size)):
        yield path, findings[path]


def _scala_map_order(path: str, size: int) -> tuple[int, int]:
    """The sort key of a string in a hash table of that size."""
    hash_ = 0
    utf16 = path.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(utf16), 2):
        hash_ = (31 * hash_ + int.from_bytes(utf16[i : i + 2])) & 0xFFFFFFFF
    improved = hash_ ^ (hash_ >> 16)
    return improved & (size - 1), (improved ^ 0x80000000) - 0x80000000
