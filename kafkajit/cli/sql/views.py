"""The views over a log folder: what they are called, what they hold, and how Spark comes by them.

Nothing here needs Java: a folder without segments is refused before it is started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkajit.cli.sql.words import BINARY_FILE
from kafkajit.schema import (
    CORRUPTION_COLUMNS,
    FILE_COLUMNS,
    GAP_TYPE,
    MICROSECONDS_TYPE,
    RECORD_COLUMNS,
    SEGMENT_BATCH_COLUMNS,
    Column,
    in_microseconds,
)
from kafkajit.storage import StoredFile, absolute, find_segments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_CONTENT_COLUMNS = {
    "path": Column(pa.string(), "the segment's file"),
    "modificationTime": Column(MICROSECONDS_TYPE, "of the file"),
    "length": Column(pa.int64(), "in bytes"),
    "content": Column(pa.binary(), "its bytes, for kafka_records(content) and the like"),
}

# view: its columns
VIEWS: dict[str, Mapping[str, Column]] = {
    "records": RECORD_COLUMNS,
    "batches": SEGMENT_BATCH_COLUMNS,
    "files": FILE_COLUMNS,
    "corruption": CORRUPTION_COLUMNS,
    BINARY_FILE: _CONTENT_COLUMNS,
}

_GLOB_LETTERS = re.compile(r"[\\*?\[\]{}]")
_REMOVE_SCHEME = "regexp_replace(path, '^file:/+', '/')"
_CORRUPTION = Column(GAP_TYPE, "under PERMISSIVE: what is damaged; NULL for sound rows")


class Place:
    """Where the logs are, and how to read them."""

    def __init__(self, paths: Sequence[str], options: Mapping[str, str]) -> None:
        # Java and Spark's workers may run in other folders.
        self.paths = [absolute(path) for path in paths]
        self.options = options
        self._given = {name.lower(): value for name, value in options.items()}

    def find_segments(self) -> list[StoredFile]:
        """The segments there, or an error that says what is wrong with the path or an option."""
        if self.options:
            from kafkajit.scan.options import Options  # with numba: not where there is none

            Options.parse({**self.options, "paths": json.dumps(self.paths)})
        logs, _ = find_segments(self.paths, self._given.get("pathglobfilter"))
        return logs

    def columns_of(self, view: str) -> Mapping[str, Column]:
        """A view's columns under these options."""
        columns = VIEWS[view]
        if view in ("records", "batches") and self._given.get("mode", "").upper() == "PERMISSIVE":
            return {**columns, "corruption": _CORRUPTION}
        return columns

    def load(
        self,
        spark: SparkSession,
        view: str,
        columns: Sequence[str] | None,
        *,
        pushes: bool = False,
    ) -> DataFrame:
        """The rows of a view, of these columns only or of all; `pushes`: it is read only once."""
        if view == BINARY_FILE:
            return self._load_contents(spark)
        options = {"pushDownPredicate": str(pushes).lower(), **self.options, "kind": view}
        reader = spark.read.format("kafkaLog").options(**options)
        if columns is not None:
            reader = reader.schema(self._spark_schema(view, columns))
        return reader.load(self.paths)

    def _spark_schema(self, view: str, columns: Sequence[str]) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        known = self.columns_of(view)
        fields = [pa.field(name, known[name].type) for name in columns]
        return from_arrow_schema(in_microseconds(pa.schema(fields)))

    def _load_contents(self, spark: SparkSession) -> DataFrame:
        # Spark takes a path for a glob.
        paths = [_GLOB_LETTERS.sub(r"\\\g<0>", file.path) for file in self.find_segments()]
        files = spark.read.format("binaryFile").load(paths)
        # Spark makes a URI of a local path: here it is the one that the other views have.
        path = f"{_REMOVE_SCHEME} AS path"
        return files.selectExpr(path, "modificationTime", "length", "content")
