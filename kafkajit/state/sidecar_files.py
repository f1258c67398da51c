"""The kinds of files beside a log: their names, their columns, and their parsers.

`SIDECAR_FILES` is the only table of them. A parser gets a file's bytes, its path, and the offset
that its name begins with. It returns an Arrow table with the columns that schema.py has for the
kind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kafkajit.format.log_path import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from kafkajit.format.tiered_names import MAYBE_ID
from kafkajit.schema import (
    CHECKPOINT_COLUMNS,
    CORRUPTION_COLUMNS,
    FILE_COLUMNS,
    FILE_PATH_COLUMNS,
    INDEX_FILE_COLUMNS,
    LEADER_EPOCH_COLUMNS,
    META_PROPERTIES_COLUMNS,
    OFFSET_INDEX_COLUMNS,
    PARTITION_METADATA_COLUMNS,
    PRODUCER_COLUMNS,
    QUORUM_STATE_COLUMNS,
    RECORD_COLUMNS,
    REMOTE_SEGMENT_COLUMNS,
    SCHEMA_COLUMNS,
    SEGMENT_BATCH_COLUMNS,
    TIME_INDEX_COLUMNS,
    TRANSACTION_INDEX_COLUMNS,
    TableColumn,
)
from kafkajit.state.checkpoints import NAMES, parse_offsets
from kafkajit.state.leader_epochs import LEADER_EPOCHS, parse_leader_epochs
from kafkajit.state.meta_properties import META_PROPERTIES, parse_meta_properties
from kafkajit.state.partition_metadata import PARTITION_METADATA, parse_partition_metadata
from kafkajit.state.producer_snapshot import parse_producer_snapshot
from kafkajit.state.quorum_state import parse_quorum_state
from kafkajit.storage.source import Bytes

# content, its path, the offset in the file's name → a table
Parser = Callable[[Bytes, str | None, int | None], pa.Table]


class SidecarFile(NamedTuple):
    """A kind of file; `name` matches the whole name of a file."""

    name: re.Pattern[str]
    called: str  # the name in error messages
    columns: dict[str, TableColumn]  # its contents
    path_columns: tuple[str, ...]  # of FILE_PATH_COLUMNS, in tables of many files
    parse: Parser

    @property
    def folder_columns(self) -> dict[str, TableColumn]:
        """The columns of a table of many files: place, contents, and the path last."""
        where = {name: FILE_PATH_COLUMNS[name] for name in self.path_columns}
        return {**where, **self.columns, "path": FILE_PATH_COLUMNS["path"]}


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """The kind of a file by its name; None if no kind has that name.

    >>> kind_of("/var/kafka/orders-3/00000000000000000042.snapshot.deleted")
    'producers'
    """
    name = Path(path).name
    return next((kind for kind, file in SIDECAR_FILES.items() if file.name.fullmatch(name)), None)


def _whatever_offset(parse: Callable[[Bytes, str | None], pa.Table]) -> Parser:
    """A parser for a file whose entries do not count from the offset in its name."""

    def parser(content: Bytes, path: str | None, _base_offset: int | None) -> pa.Table:
        return parse(content, path)

    return parser


# The parsers of indexes import numba, which takes a while. Code that needs only names or columns
# does without.
def _offset_index(content: Bytes, path: str | None, base_offset: int | None) -> pa.Table:
    from kafkajit.index.offset_index import parse_offset_index

    return parse_offset_index(content, path, base_offset)


def _time_index(content: Bytes, path: str | None, base_offset: int | None) -> pa.Table:
    from kafkajit.index.time_index import parse_time_index

    return parse_time_index(content, path, base_offset)


def _transaction_index(content: Bytes, path: str | None, _base_offset: int | None) -> pa.Table:
    from kafkajit.index.transaction_index import parse_transaction_index

    return parse_transaction_index(content, path)


_PARTITION = ("topic", "partition")

_SEGMENT = (*_PARTITION, "baseOffset")


def _of_segment(suffix: str, *later: str) -> re.Pattern[str]:
    """Match 20 digits and a suffix, and the same on its way out or in."""
    last = "|".join(re.escape(suffix) for suffix in ("", *later))
    return re.compile(rf"\d{{20}}{MAYBE_ID}{re.escape(suffix)}(?:{last})", re.ASCII)


_INDEX_ON_ITS_WAY = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)

SIDECAR_FILES: dict[str, SidecarFile] = {
    "offsetIndex": SidecarFile(
        name=_of_segment(INDEX_SUFFIX, *_INDEX_ON_ITS_WAY),
        called="20 digits and .index",
        columns=OFFSET_INDEX_COLUMNS,
        path_columns=_SEGMENT,
        parse=_offset_index,
    ),
    "timeIndex": SidecarFile(
        name=_of_segment(TIME_INDEX_SUFFIX, *_INDEX_ON_ITS_WAY),
        called="20 digits and .timeindex",
        columns=TIME_INDEX_COLUMNS,
        path_columns=_SEGMENT,
        parse=_time_index,
    ),
    "transactionIndex": SidecarFile(
        name=_of_segment(TXN_INDEX_SUFFIX, *_INDEX_ON_ITS_WAY),
        called="20 digits and .txnindex",
        columns=TRANSACTION_INDEX_COLUMNS,
        path_columns=_SEGMENT,
        parse=_transaction_index,
    ),
    "producers": SidecarFile(
        name=_of_segment(SNAPSHOT_SUFFIX, DELETED_SUFFIX),
        called="20 digits and .snapshot",
        columns=PRODUCER_COLUMNS,
        path_columns=_SEGMENT,
        parse=_whatever_offset(parse_producer_snapshot),
    ),
    "leaderEpochs": SidecarFile(
        name=re.compile(re.escape(LEADER_EPOCHS)),
        called=LEADER_EPOCHS,
        columns=LEADER_EPOCH_COLUMNS,
        path_columns=_PARTITION,
        parse=_whatever_offset(parse_leader_epochs),
    ),
    "checkpoints": SidecarFile(
        name=re.compile("|".join(map(re.escape, NAMES))),
        called=", ".join(NAMES),
        columns=CHECKPOINT_COLUMNS,
        path_columns=("name",),  # topic and partition are in it
        parse=_whatever_offset(parse_offsets),
    ),
    "partitionMetadata": SidecarFile(
        name=re.compile(re.escape(PARTITION_METADATA)),
        called=PARTITION_METADATA,
        columns=PARTITION_METADATA_COLUMNS,
        path_columns=_PARTITION,
        parse=_whatever_offset(parse_partition_metadata),
    ),
    "metaProperties": SidecarFile(
        name=re.compile(re.escape(META_PROPERTIES)),
        called=META_PROPERTIES,
        columns=META_PROPERTIES_COLUMNS,
        path_columns=(),
        parse=_whatever_offset(parse_meta_properties),
    ),
    "quorumState": SidecarFile(
        name=re.compile("quorum-state"),
        called="quorum-state",
        columns=QUORUM_STATE_COLUMNS,
        path_columns=_PARTITION,
        parse=_whatever_offset(parse_quorum_state),
    ),
}

# The kind that has a row for each index file, whatever its contents.
INDEXES = "indexes"

# kind: the columns that a file's path fills; files of these kinds are read whole
PATH_COLUMNS: dict[str, tuple[str, ...]] = {
    INDEXES: (*_SEGMENT, "suffix", "path"),
    **{kind: (*file.path_columns, "path") for kind, file in SIDECAR_FILES.items()},
}

# kind: the columns of a table of a log folder
TABLES: dict[str, Mapping[str, TableColumn]] = {
    "records": RECORD_COLUMNS,
    "batches": SEGMENT_BATCH_COLUMNS,
    "files": FILE_COLUMNS,
    "corruption": CORRUPTION_COLUMNS,
    "schemas": SCHEMA_COLUMNS,
    "remoteSegments": REMOTE_SEGMENT_COLUMNS,
    INDEXES: INDEX_FILE_COLUMNS,
    **{kind: file.folder_columns for kind, file in SIDECAR_FILES.items()},
}

# The kinds whose tables have a row for each damage under PERMISSIVE.
TELLING = ("records", "batches", *SIDECAR_FILES)


def is_live(name: str) -> bool:
    """Whether a file is in use, rather than on its way out or in.

    >>> is_live("00000000000000000042.index"), is_live("00000000000000000042.index.deleted")
    (True, False)
    """
    return not name.endswith(_INDEX_ON_ITS_WAY)


def name_in_sql(kind: str) -> str:
    """A kind as the name of a view or table.

    >>> name_in_sql("offsetIndex")
    'offset_index'
    """
    return re.sub("[A-Z]", r"_\g<0>", kind).lower()
