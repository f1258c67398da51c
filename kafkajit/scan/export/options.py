"""The options of an export: formats, columns, and how records are divided among files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from numbers import Integral
from pathlib import PurePosixPath
from typing import Any, Self

import pyarrow as pa

from kafkajit.errors import did_you_mean
from kafkajit.format.moment import of_datetime, option_text
from kafkajit.format.suffixes import PACKED, format_in
from kafkajit.format.suffixes import TEXT as TEXT_FILES
from kafkajit.places.left_out import listed, waiting_text
from kafkajit.places.location import shown
from kafkajit.places.named import ALL, Named
from kafkajit.places.uri import parts_of
from kafkajit.scan.options import OPTIONS as SCAN_OPTIONS
from kafkajit.scan.options import SERVED, ScanOptions, number_of_bytes
from kafkajit.schema import RECORD_COLUMNS, check_columns, record_schema
from kafkajit.walk.damage import PERMISSIVE

TEXT, BASE64 = "text", "base64"
STDOUT = "-"

# format: its codecs, the first by default
CODECS: dict[str, tuple[str, ...]] = {
    "parquet": ("zstd", "none", "snappy", "gzip", "lz4", "brotli"),
    "arrow": ("none", "lz4", "zstd"),
    "csv": ("none", "gzip", "zstd"),
    "jsonl": ("none", "gzip", "zstd"),
    "avro": ("snappy", "none", "deflate", "zstd"),
}
FORMATS = tuple(CODECS)
# codec: its least and its greatest level
_LEVELS = {
    "gzip": (1, 9),
    "deflate": (0, 9),
    "lz4": (1, 12),
    "zstd": (-131072, 22),
    "brotli": (0, 11),
}
# Formats that can be streamed, because they have no footer.
STREAMED = ("csv", "jsonl", "arrow")

PARTITION_COLUMNS = ("topic", "partition", "date")
DEFAULT_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
)
ALL_COLUMNS = "all"
DEFAULT_FILE_SIZE = 256 << 20
# What may differ between two runs of one export. Every other option, new ones too, must not.
_MAY_DIFFER = {"scan", "file_size", "codec", "level", "named", "note"}
_SCAN_MAY_DIFFER = {
    "path",
    "paths",
    "kind",
    "mode",
    "endingOffsets",
    "endingTimestamp",
    "checkCrcs",
    "maxDecompressedBytes",
    "maxPartitionBytes",
    "oneTaskPerPartition",
}
# Options whose value may be a URI with credentials.
_PLACES = ("keySchema", "valueSchema", "schemas")
_file_size = number_of_bytes(1 << 10, 1 << 40)


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The records that are exported, and their files."""

    scan: ScanOptions
    format: str
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    partition_by: tuple[str, ...] = ()
    file_size: int = DEFAULT_FILE_SIZE
    codec: str = "none"
    level: int | None = None
    encoding: str = TEXT
    named: Named = ALL
    note: Callable[[str], None] | None = None  # is called with lines about what is left out

    @classmethod
    def of(
        cls,
        paths: Iterable[str],
        *,
        format_: str,
        columns: Iterable[str] | str | None = None,
        partition_by: Iterable[str] | str = (),
        file_size: int | str = DEFAULT_FILE_SIZE,
        codec: str | None = None,
        level: int | None = None,
        encoding: str = TEXT,
        topics: Iterable[str] | str = (),
        partitions: Iterable[str] | str = (),
        scan: Mapping[str, Any],
    ) -> Self:
        """Check options as the command and `export` take them; `scan` has those of kafkaLog.

        >>> ExportOptions.of(["/k"], format_="parquet", scan={"mode": "permissive"}).codec
        'zstd'
        >>> ExportOptions.of(["/k"], format_="orc", scan={})
        Traceback (most recent call last):
        ValueError: unknown format 'orc'; there are: parquet, arrow, csv, jsonl, avro
        """
        _check("format", format_, FORMATS)
        codecs = CODECS[format_]
        codec = codecs[0] if codec is None else codec
        _check(f"codec of {format_}", codec, codecs)
        if level is not None:
            _check_level(codec, level)
        by = _names(partition_by)
        for name in by:
            _check("column to partition by", name, PARTITION_COLUMNS)
        _check("encoding", encoding, (TEXT, BASE64))
        if encoding == BASE64 and format_ not in TEXT_FILES:
            raise ValueError(f"base64 is only for csv and jsonl: {format_} stores bytes unchanged")
        given = {"paths": json.dumps(list(paths)), **_spelled(scan)}
        parsed = ScanOptions.parse(given)
        if parsed.kind != "records":
            raise ValueError(f"only records can be exported, not {parsed.kind}")
        if parsed.overlaps != SERVED:
            raise ValueError(
                "an export has each offset once: kafkajit sql --option overlaps=all -o FILE writes "
                "all records of segments that overlap"
            )
        names = _columns(columns)
        return cls(
            scan=replace(parsed, max_partition_bytes=None),
            format=format_,
            columns=tuple(names),
            partition_by=tuple(dict.fromkeys(by)),
            file_size=_file_size(str(file_size)),
            codec=codec,
            level=level,
            encoding=encoding,
            named=Named.of(topics, partitions),
        )

    @property
    def suffix(self) -> str:
        """The suffix of the files' names."""
        outside = PACKED.get(self.codec, "") if self.format in TEXT_FILES else ""
        return f".{self.format}{outside}"

    def wants(self, place: Mapping[str, Any]) -> bool:
        """Whether a partition is exported, by the values of `topic` and `partition` that are known.

        A caller that has both decides; one that has only the topic may be too lenient.
        """
        return self.named.wants(place)

    def name_left_out(self, topics: Sequence[str]) -> None:
        """Note these topics, and the partitions that are exported only if a path names them."""
        if self.note is None:
            return
        if topics:
            self.note(
                f"left out, because internal topics are exported only if --topic names them: "
                f"{listed(topics)}"
            )
        waiting = waiting_text(self.scan.paths, self.named.has)
        if waiting is not None:
            self.note(waiting)

    def identity(self) -> dict[str, Any]:
        """The options that all runs of one export have in common, by their names.

        >>> ExportOptions.of(["/k"], format_="csv", scan={}).identity()["partitionBy"]
        ()
        """
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _MAY_DIFFER}
        given = {
            name: getattr(self.scan, option.attribute)
            for name, option in SCAN_OPTIONS.items()
            if name not in _SCAN_MAY_DIFFER
        }
        for name in _PLACES:
            if given[name] is not None and parts_of(given[name]):
                given[name] = shown(given[name])
        # The other modes write the same rows.
        mode = PERMISSIVE if self.scan.mode == PERMISSIVE else None
        return {_camel(name): value for name, value in own.items()} | given | {"mode": mode}

    def schema(self) -> pa.Schema:
        """The columns that are exported, with their types in the topic that is planned."""
        if self.scan.typed is not None:
            return self.scan.typed.asked(self.columns, RECORD_COLUMNS)
        return record_schema(check_columns(self.columns, RECORD_COLUMNS))


def format_of(out: str, format_: str | None) -> tuple[str, bool]:
    """The format of an export, and whether OUT is a single file.

    >>> format_of("orders.parquet", None), format_of("s3://bucket/orders", "csv")
    (('parquet', True), ('csv', False))
    """
    if out == STDOUT:
        if format_ not in STREAMED:
            raise ValueError(f"the format on stdout is one of {', '.join(STREAMED)}: pass --to")
        return format_, True
    named = format_in(PurePosixPath(shown(out)).name).format
    if named is not None and format_ in (None, named):
        return named, True
    if format_ is None:
        raise ValueError(
            f"the format of {shown(out)} is not known: pass --to {'|'.join(FORMATS)}, or the "
            "name of a file such as orders.parquet"
        )
    return format_, False


def codec_of(out: str, format_: str, codec: str | None) -> str | None:
    """The codec of a single file: the one that is asked for, or that of its name.

    >>> codec_of("orders.csv.gz", "csv", None), codec_of("orders.parquet", "parquet", "snappy")
    ('gzip', 'snappy')
    """
    if out == STDOUT or format_ not in TEXT_FILES or codec not in (None, *CODECS[format_]):
        return codec
    name = PurePosixPath(shown(out)).name
    named = format_in(name).codec
    if codec is not None and (named or "none") != codec:
        right = name.removesuffix(PACKED.get(named or "", "")) + PACKED.get(codec, "")
        raise ValueError(f"{name} is not a name for the codec {codec}: name the file {right}")
    return named


def _check(noun: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        hint = did_you_mean(given, known)
        raise ValueError(
            f"unknown {noun} {given!r}{f': {hint}' if hint else ''}; there are: {', '.join(known)}"
        )


def _check_level(codec: str, level: int) -> None:
    if isinstance(level, bool) or not isinstance(level, Integral):
        raise ValueError(f"a compression level is a number, not {level!r}")
    if codec not in _LEVELS:
        raise ValueError(
            f"a compression level needs a codec with levels: {', '.join(_LEVELS)}, not {codec}"
        )
    least, most = _LEVELS[codec]
    if not least <= level <= most:
        raise ValueError(f"{codec} has levels from {least} to {most}, not {level}")


def _names(given: Iterable[str] | str) -> list[str]:
    names = given.split(",") if isinstance(given, str) else list(given)
    return [name.strip() for name in names if name.strip() and name.strip() != "none"]


def _columns(given: Iterable[str] | str | None) -> list[str]:
    if given is None:
        return list(DEFAULT_COLUMNS)
    names = _names(given)
    return list(RECORD_COLUMNS) if names == [ALL_COLUMNS] else names


def _spelled(scan: Mapping[str, Any]) -> dict[str, str]:
    """Options of kafkaLog by their names there: starting_timestamp is startingTimestamp."""
    spelled = {}
    for name, value in scan.items():
        if value is None:
            continue
        if isinstance(value, datetime):
            value = option_text(of_datetime(value))
        is_plain = isinstance(value, (str, int, bool))
        text = str(value) if is_plain else json.dumps(value)
        spelled[name if "." in name else _camel(name)] = text
    return spelled


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


# A journal lacks an option that did not exist when it was written.
DEFAULT_IDENTITY = ExportOptions(scan=ScanOptions(paths=()), format="").identity()
