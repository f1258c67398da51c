"""Columns of files → the columns of records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from kafkajit.arrow.arrays import repeated
from kafkajit.format.limits import MAX_INT32
from kafkajit.produce.inputs.header_cells import SUFFIX, headers, of_base64
from kafkajit.produce.inputs.numbers import booleans, integer_of, integers, is_text, shown
from kafkajit.produce.inputs.plain_arrays import BYTES, bytes_of, unwrapped
from kafkajit.produce.inputs.row_checks import check_markers, check_places, check_transactions
from kafkajit.produce.inputs.rows import (
    MISSING,
    NULL,
    STRING,
    BadInputError,
    Column,
    JsonCells,
    Rows,
    in_column,
    is_null,
    refuse,
    separator_hint,
)
from kafkajit.produce.inputs.times import times
from kafkajit.produce.options import ProduceOptions
from kafkajit.records.control_records import CONTROL_TYPES, UNKNOWN
from kafkajit.schema import RECORD_COLUMNS
from kafkajit.storage.globs import glob_to_regex
from kafkajit.storage.source import Int64s, Mask

CORRUPTION = "corruption"  # of an export in the mode PERMISSIVE
_MARKERS = "controlType"
_CONTROL_TYPES = pa.array([*CONTROL_TYPES.values(), UNKNOWN])
_BYTES = ("key", "value")
# Columns of a typed export: why a key or a value could not be decoded, which is then NULL.
_ERRORS = {"key": "keyError", "value": "valueError"}
_ERRORS_OF_CELLS = (ValueError, OverflowError, pa.ArrowException)
# The columns of a record with a new offset. The writer refuses rows with a controlType.
_NEW = ("key", "value", "topic", "partition", "offset", "timestamp", "headers", "controlType")
# Those that a record with a new offset loses, and their values if there is nothing to lose.
_LOST = {
    "timestampType": 0,
    "sequence": -1,
    "coordinatorEpoch": None,
    "producerId": -1,
    "producerEpoch": -1,
    "isTransactional": False,
}
# Those that only describe the old place of a record.
_OF_PLACE = ("baseOffset", "partitionLeaderEpoch", "magic", "position")
# The batches that records are in: some files must not lack what others have.
OF_BATCHES = ("baseOffset", "position")


class Records(NamedTuple):
    """Records of rows."""

    batch: pa.RecordBatch
    damaged: int  # rows that are not records, but damage
    control: int  # rows that are control records, and would become others without their column
    lost: list[str]  # columns that do not go with new offsets, and have something to lose


@dataclass(frozen=True)
class InputColumns:
    """The columns of files from which those of records come.

    Args:
        key: the column of keys.
        value: the column of values.
        timestamp: the column of timestamps.
        ignored: globs of columns that are not to be read.
        options: how the logs are written; the topic and the number of partitions may come from it.
        present: the columns of records that some file has.
    """

    options: ProduceOptions
    key: str = "key"
    value: str = "value"
    timestamp: str = "timestamp"
    ignored: tuple[str, ...] = ()
    present: frozenset[str] = field(default=frozenset())

    @property
    def wanted(self) -> list[str]:
        """The names of columns that are read if they are there."""
        names = [source for name in RECORD_COLUMNS for source in self._sources(name)]
        names += [CORRUPTION, *(error for name, error in _ERRORS.items() if name in names)]
        wanted = [name for name in dict.fromkeys(names) if not self._is_ignored(name)]
        return list(dict.fromkeys([*wanted, _MARKERS]))

    def columns_in(self, names: Collection[str]) -> set[str]:
        """The columns of records that a file with these columns has."""
        return {name for name in RECORD_COLUMNS if self._found(name, names)}

    def check(self, rows: Rows) -> None:
        """Raise unless the columns are there that have been named, and one of values."""
        named = {self.key, self.timestamp} - {"key", "timestamp"}
        for name in sorted({self.key, self.value, self.timestamp} - {"key", "value", "timestamp"}):
            if self._is_ignored(name):
                raise BadInputError(
                    f"the column {name!r} is named, and is to be ignored as well: ignore fewer"
                )
        for name, sources in [
            ("value", self._sources("value")),
            *((name, [name]) for name in named),
        ]:
            if not any(source in rows.names for source in sources):
                there = ", ".join(rows.names) or "none"
                raise BadInputError(
                    f"there is no column {sources[-1] if name == 'value' else name!r}: name it; "
                    f"there are {there:.400}{separator_hint(rows.names)}"
                )

    def not_imported(self, names: Collection[str]) -> list[str]:
        """The columns of a file that are not imported, whatever they have."""
        used = {source for name in self._kept for source in self._found(name, names)}
        used |= {CORRUPTION, *_LOST}
        used |= {error for name, error in _ERRORS.items() if name in self._sources(name)}
        if "offset" in names:
            used |= {"offset", *_OF_PLACE}
        return [name for name in names if name not in used and not self._is_ignored(name)]

    def records(self, rows: Rows, folders: Mapping[str, str]) -> Records:
        """Records of rows, and of the columns in the path of their file."""
        count = rows.count
        damage = rows.columns.get(CORRUPTION)
        rows = rows if damage is None else _filtered_rows(rows, is_null(damage))
        damaged = count - rows.count
        if self._is_ignored(_MARKERS) and _MARKERS in rows.columns:
            rows = _filtered_rows(rows, ~_are_control_types(rows.columns[_MARKERS]))
        columns = {}
        for name in self._kept:
            if name not in self.present and name not in (*_BYTES, "timestamp"):
                continue
            column = self._column(name, rows)
            if name in folders:
                column = _with_folder(name, column, folders[name], rows.count)
            if column is None:
                column = pa.nulls(rows.count, _type(name))
            columns[name] = column
        check_places(columns, self.options)
        if _MARKERS not in rows.names:
            check_markers(rows)
        if self.options.keep_offsets:
            check_transactions(columns)
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        return Records(batch, damaged, count - damaged - rows.count, self._lost(rows))

    @property
    def _kept(self) -> tuple[str, ...]:
        return tuple(RECORD_COLUMNS) if self.options.keep_offsets else _NEW

    def _sources(self, name: str) -> list[str]:
        """The columns that may have a column's cells; the first of them counts."""
        own = {"key": self.key, "value": self.value, "timestamp": self.timestamp}.get(name, name)
        if name not in _BYTES or own != name:
            return [own]
        raw = f"raw{name.capitalize()}"
        return [raw, f"{raw}{SUFFIX}", f"{name}{SUFFIX}", name]

    def read_of(self, given: Collection[str]) -> list[str]:
        """The names without those that are ignored."""
        return [name for name in given if not self._is_ignored(name)]

    def _is_ignored(self, name: str) -> bool:
        return any(glob_to_regex(glob).fullmatch(name) for glob in self.ignored)

    def _found(self, name: str, names: Collection[str]) -> list[str]:
        return [
            source
            for source in self._sources(name)
            if source in names and not self._is_ignored(source)
        ]

    def _column(self, name: str, rows: Rows) -> pa.Array | None:
        """A column of records; None if the rows do not have it."""
        found = [source for source in self._found(name, rows.names) if source in rows.columns]
        if not found:
            return None
        source = found[0]
        with in_column(source):
            # Only an export's own names tell that.
            names = (f"{name}{SUFFIX}", f"raw{name.capitalize()}{SUFFIX}")
            is_base64 = name in _BYTES and source in names
            column = _converted(name, rows.columns[source], is_base64=is_base64)
        for other in found[1:]:
            is_lost = is_null(rows.columns[source]) & ~is_null(rows.columns[other])
            with in_column(other):
                refuse(is_lost, lambda _: f"{source} takes precedence and is NULL, and this is not")
        error = rows.columns.get(_ERRORS.get(name, ""))
        if error is not None and source == name:
            with in_column(name):
                refuse(
                    ~is_null(error),
                    lambda _: f"the export could not decode it: export raw{name.capitalize()}, too",
                )
        return column

    def _lost(self, rows: Rows) -> list[str]:
        if self.options.keep_offsets:
            return []
        lost: list[str] = []
        for name, nothing in _LOST.items():
            for source in self._found(name, rows.names):
                column = rows.columns.get(source)
                if column is not None and _has_other(column, nothing):
                    lost.append(source)
        return lost


def _filtered_rows(rows: Rows, is_record: Mask) -> Rows:
    """The rows that are records."""
    if is_record.all():
        return rows
    kept = np.flatnonzero(is_record)
    columns = {name: _filtered(column, kept) for name, column in rows.columns.items()}
    return Rows(columns, kept.size, rows.names, lambda row: rows.place(int(kept[row])))


def _are_control_types(column: Column) -> Mask:
    try:
        texts = _text(column)
    except (BadInputError, *_ERRORS_OF_CELLS):
        return np.zeros(len(column), dtype=np.bool_)  # another program's
    found: Mask = pc.is_in(texts, _CONTROL_TYPES).to_numpy(zero_copy_only=False)
    return found


def _filtered(column: Column, kept: Int64s) -> Column:
    """Some rows of a column. Arrow filters no views."""
    runs = np.split(kept, np.flatnonzero(np.diff(kept) != 1) + 1)
    array = column.texts if isinstance(column, JsonCells) else column
    slices = [array.slice(int(run[0]), run.size) for run in runs if run.size]
    found = pa.concat_arrays(slices or [array.slice(0, 0)])
    return JsonCells(found, column.letters[kept]) if isinstance(column, JsonCells) else found


def _has_other(column: Column, nothing: int | bool | None) -> bool:
    """Whether a column has a value that is neither NULL nor `nothing`."""
    if nothing is None:
        return not is_null(column).all()
    try:
        values = booleans(column) if isinstance(nothing, bool) else integers(column)
    except BadInputError:
        return True
    return bool(pc.any(pc.not_equal(values, nothing)).as_py())


def _type(name: str) -> pa.DataType:
    return BYTES if name in _BYTES else RECORD_COLUMNS[name].type


def _converted(name: str, column: Column, *, is_base64: bool) -> pa.Array:
    kind = _type(name)
    if name in _BYTES:
        convert = _decoded if is_base64 else _bytes
    elif name == "headers":
        convert = headers
    elif name == "timestamp":
        convert = times
    elif pt.is_string(kind):
        convert = _text
    elif pt.is_boolean(kind):
        convert = booleans
    elif pt.is_timestamp(kind):
        convert = times
    else:
        return integers(column, kind)
    return _located(convert, column)


def _located(convert: Callable[[Column], pa.Array], column: Column) -> pa.Array:
    """Convert a column; an error of Arrow's gets the first row that has it."""
    try:
        return convert(column)
    except _ERRORS_OF_CELLS as error:
        reason = str(error).partition("\n")[0]
        if isinstance(column, JsonCells):
            raise BadInputError(reason) from None
        low, high = 0, len(column)  # the first `low` rows can be converted, and not `high`
        while high - low > 1:
            middle = (low + high) // 2
            try:
                convert(column.slice(low, middle - low))
                low = middle
            except _ERRORS_OF_CELLS as inner:
                reason = str(inner).partition("\n")[0]
                high = middle
        raise BadInputError(reason, row=low) from None


def _bytes(column: Column) -> pa.Array:
    return column.texts if isinstance(column, JsonCells) else bytes_of(column)


def _decoded(column: Column) -> pa.Array:
    texts = _strings(column)
    contents = [
        None if text is None else of_base64(text, row)
        for row, text in enumerate(texts.cast(pa.large_binary()).to_pylist())
    ]
    return pa.array(contents, BYTES)


def _text(column: Column) -> pa.Array:
    return _strings(column).cast(BYTES).cast(pa.binary()).cast(pa.string())


def _strings(column: Column) -> pa.Array:
    """Text, of which a column may have no other values."""
    if isinstance(column, JsonCells):
        letters = column.letters
        is_good = (letters == STRING) | (letters == NULL) | (letters == MISSING)
        refuse(~is_good, lambda row: f"{shown(column.texts[row].as_py())} is not a string")
        return column.texts
    array = unwrapped(column)
    kind = array.type
    is_bytes = pt.is_null(kind) or pt.is_binary(kind) or pt.is_large_binary(kind)
    if not (is_text(kind) or is_bytes):
        raise BadInputError(f"it must be text, not {kind}")
    return array


def _with_folder(name: str, column: pa.Array | None, text: str, rows: int) -> pa.Array:
    """The column that a folder such as topic=orders gives; the file's own must be the same."""
    value: str | int | None = text
    if name == "partition":
        value = integer_of(text.encode())
        if value is None or not 0 <= value <= MAX_INT32:
            raise BadInputError(f"the folder {name}={text} does not have the number of a partition")
    if column is None:
        return repeated(value, rows, _type(name))
    differs = pc.fill_null(pc.not_equal(column, pa.scalar(value, _type(name))), True)
    with in_column(name):
        refuse(
            differs.to_numpy(zero_copy_only=False),
            lambda row: f"{column[row].as_py()} is not that of the folder {name}={text}",
        )
    return column
