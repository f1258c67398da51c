"""Tables of the files beside logs: plans which files a query has to read, and reads their rows.

find files ─▶ drop by path ─▶ pack │ read ─▶ parse ─▶ rows of many files in one record batch

Files are read whole: the largest, an index, has 10 MiB.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from kafkajit.arrow.arrays import repeated
from kafkajit.arrow.record_batches import table_in_microseconds
from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import (
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_log_path,
)
from kafkajit.index.verify import verify_offset_index, verify_time_index
from kafkajit.index.verify_transactions import verify_transaction_index
from kafkajit.places.location import shown
from kafkajit.places.locations import find_named
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.packing import packed, task_share
from kafkajit.scan.predicates import Predicate, meets, wanted_by
from kafkajit.state.sidecar_files import INDEXES, PATH_COLUMNS, SIDECAR_FILES, is_live, kind_of
from kafkajit.storage.globs import glob_to_regex
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.source import Bytes, Source, as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import FAILFAST, PERMISSIVE

logger = logging.getLogger("kafkajit")

# The rows of small files go to Spark together, up to this number at a time.
_BATCH_ROWS = 1 << 16
# How often an index with problems is looked at that is being changed.
_LOOKS = 4
_PAUSE_SECONDS = 0.05
_CHANGING_NS = 2_000_000_000
# suffix: the kind of index, and the column that has its entries' offsets
_INDEXES = {
    INDEX_SUFFIX: ("offsetIndex", "offset"),
    TIME_INDEX_SUFFIX: ("timeIndex", "offset"),
    TXN_INDEX_SUFFIX: ("transactionIndex", "lastOffset"),
}
_VERIFY: dict[str, Callable[[Source, Bytes, int | None], pa.Table]] = {
    "offsetIndex": verify_offset_index,
    "timeIndex": verify_time_index,
    "transactionIndex": lambda log, index, _: verify_transaction_index(log, index),
}


class SidecarSplit(NamedTuple):
    """A file, and the log beside it if that is read too."""

    file: StoredFile
    log: StoredFile | None = None

    @property
    def size(self) -> int:
        return self.file.size + (self.log.size if self.log is not None else 0)


def plan_sidecar_files(
    options: ScanOptions, predicates: Sequence[Predicate]
) -> list[list[SidecarSplit]]:
    """The files of a kind that a query has to read, task by task."""
    kinds = [kind for kind, _ in _INDEXES.values()] if options.kind == INDEXES else [options.kind]
    names = [SIDECAR_FILES[kind].name for kind in kinds]
    if options.path_glob_filter is not None:
        names = [glob_to_regex(options.path_glob_filter)]
    called = ", ".join(SIDECAR_FILES[kind].called for kind in kinds)
    # Other kinds lie in the root, or name topics inside.
    by_path = {"topic", "partition"} <= {*PATH_COLUMNS[options.kind]}
    wanted = wanted_by(predicates) if by_path else None
    found, files = find_named(
        options.paths, names, called, options.private_keys, wanted, options.layout
    )
    if options.path_glob_filter is None:
        found = [file for file in found if is_live(file.name)]
    elif options.kind == INDEXES:  # the glob may match other files too, which have no rows
        found = [file for file in found if kind_of(file.name) in kinds]
    splits = [
        SidecarSplit(file, files.get(_log_beside(file)) if options.kind == INDEXES else None)
        for file in found
        if meets(_place(file, options.kind), predicates)
    ]
    tasks = packed(splits, task_share(options, ((split.file, split.size) for split in splits)))
    where = ", ".join(map(shown, options.paths))
    logger.info("%s: %d of %d files in %d tasks", where, len(splits), len(found), len(tasks))
    return tasks


def _place(file: StoredFile, kind: str) -> dict[str, Any]:
    """The columns of a file's rows that follow from its path."""
    path = parse_log_path(file.path)
    said = {
        "topic": path.topic,
        "partition": path.partition,
        "baseOffset": path.base_offset,
        "suffix": path.suffix,
        "name": file.name,
        "path": file.path,
    }
    return {name: said[name] for name in PATH_COLUMNS[kind]}


def _log_beside(index: StoredFile) -> str:
    stem, _, *later = index.name.split(".")
    return f"{index.folder}/{'.'.join([stem, 'log', *later])}"


def read_sidecar_files(
    task: Sequence[SidecarSplit], schema: pa.Schema, options: ScanOptions
) -> Iterator[pa.RecordBatch]:
    """A task's rows, as record batches of the schema's columns."""
    parts: list[pa.Table] = []
    rows = 0
    for split in task:
        if options.kind == INDEXES:
            row = _settled_index_row(split)
            part = pa.Table.from_pylist([] if row is None else [row], schema=schema)
        else:
            part = _rows_of(split, schema, options)
        parts.append(part)
        rows += part.num_rows
        if rows >= _BATCH_ROWS or split is task[-1]:
            whole = pa.concat_tables(parts).combine_chunks()
            yield from whole.to_batches(max_chunksize=_BATCH_ROWS)
            parts, rows = [], 0


def _rows_of(split: SidecarSplit, schema: pa.Schema, options: ScanOptions) -> pa.Table:
    place = _place(split.file, options.kind)
    content = as_bytes(split.file.read_now())
    side = SIDECAR_FILES[options.kind]
    try:
        table = side.parse(content, split.file.path, place.get("baseOffset"))
    except KafkaJitError as error:
        if options.mode == FAILFAST:
            raise
        if options.mode != PERMISSIVE or "corruption" not in schema.names:
            return schema.empty_table()
        gap = {
            "path": split.file.path,
            "position": 0,
            "length": int(content.size),
            "reason": _reason(error),
        }
        return pa.Table.from_pylist([place | {"corruption": gap}], schema=schema)
    table = table_in_microseconds(table)
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in side.columns
        else repeated(place.get(field.name), table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _settled_index_row(split: SidecarSplit) -> dict[str, Any] | None:
    """The row of an index that nobody changes while it is read; None if it is deleted meanwhile.

    A broker writes a batch before its entries, cuts preallocated zeros off, and replaces a log and
    its indexes one after the other. So a problem has to be there when both are looked at again.
    """
    row = None
    for look in range(_LOOKS):
        if look:
            time.sleep(_PAUSE_SECONDS)
        before = _state(split)
        try:
            row = _index_row(split)
        except FileNotFoundError:
            row = None
            continue
        is_old = before == _state(split) and all(
            one is None or time.time_ns() - (one.modified_ns or 0) > _CHANGING_NS for one in before
        )
        if not row["problems"] or is_old:
            break
    if row is None:
        logger.info("%s: deleted meanwhile", split.file.path)
    return row


def _state(split: SidecarSplit) -> list[LiveFile | None]:
    """An index and its log as they are now; None for those that are gone, or not local."""
    states: list[LiveFile | None] = []
    for file in (split.file, split.log):
        state = None
        if file is not None and file.is_local:
            with suppress(FileNotFoundError):
                state = LiveFile.at(file.key)
        states.append(state)
    return states


def _index_row(split: SidecarSplit) -> dict[str, Any]:
    """The row of an index in the table of indexes; its problems are values, never errors."""
    row = _place(split.file, INDEXES) | {"problems": 0}
    kind, offsets = _INDEXES[f".{split.file.name.split('.')[1]}"]
    content = as_bytes(split.file.read_now())
    try:
        last = SIDECAR_FILES[kind].parse(content, split.file.path, row["baseOffset"])[offsets]
    except KafkaJitError as error:
        row |= {"problems": 1, "problem": _reason(error)}
    else:
        row |= {"entries": len(last), "lastOffset": last[-1].as_py() if len(last) else None}
    if split.log is not None:
        found = _VERIFY[kind](_as_now(split.log).open(), content, row["baseOffset"])
        row["problems"] = max(row["problems"], found.num_rows)
        if "problem" not in row and found.num_rows:
            entry, problem = found["entry"][0].as_py(), found["problem"][0].as_py()
            row["problem"] = problem if entry is None else f"entry {entry}: {problem}"
    return row


def _as_now(log: StoredFile) -> StoredFile:
    """The log with its size now: the index may have entries for what was appended meanwhile."""
    if log.filesystem is not None:
        return log
    return replace(log, size=Path(log.key).stat().st_size)


def _reason(error: KafkaJitError) -> str:
    """The problem and its position, without the file, which has a column of its own."""
    return str(type(error)(error.message, position=error.position, line=error.line))
