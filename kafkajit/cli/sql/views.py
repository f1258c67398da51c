"""The views over a log folder: their names, their columns, and how Spark loads them.

Finding segments does not need Java: a folder without any is refused before Java starts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkajit.cli.sql.topic_views import TOPIC_VIEWS, no_rows, taken_apart
from kafkajit.cli.sql.view_names import BINARY_FILE
from kafkajit.errors import Failed, LeftOutError, RemoteStorageError
from kafkajit.format.log_path import parse_log_path
from kafkajit.places.layouts import AUTO
from kafkajit.places.location import READABLE_NAME, absolute, as_location, shown
from kafkajit.places.locations import find_files, find_segments
from kafkajit.places.wanted import of_topics
from kafkajit.scan.used_options import is_used
from kafkajit.schema import GAP_TYPE, MICROSECONDS_TYPE, TableColumn
from kafkajit.state.sidecar_files import PATH_COLUMNS, TABLES, TELLING, kind_of, name_in_sql
from kafkajit.storage.stored_file import StoredFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CONTENT_COLUMNS = {
    "path": TableColumn(pa.string(), "the segment's file"),
    "modificationTime": TableColumn(MICROSECONDS_TYPE, "of the file"),
    "length": TableColumn(pa.int64(), "in bytes"),
    "content": TableColumn(pa.binary(), "its bytes, for kafka_records(content) and the like"),
}


# The data source of all views except binaryFile.
KAFKA_LOG = "kafkaLog"
_TOPIC = "kafkajit.topic"
_OF_TYPES = ("valueschema", "keyschema", "valuemessage", "keymessage", "schemas", "framing")

# view: the data source's kind
KINDS = {name_in_sql(kind): kind for kind in TABLES}

# view: its columns
VIEWS: dict[str, Mapping[str, TableColumn]] = {
    **{view: TABLES[kind] for view, kind in KINDS.items()},
    BINARY_FILE: _CONTENT_COLUMNS,
    **{name: view.columns for name, view in TOPIC_VIEWS.items()},
}

_GLOB_LETTERS = re.compile(r"[\\*?\[\]{}]")
_REMOVE_SCHEME = "regexp_replace(path, '^file:/+', '/')"
_CORRUPTION = TableColumn(
    GAP_TYPE, "under PERMISSIVE the damage that the row reports; NULL for sound rows"
)


def topics_of(logs: Iterable[StoredFile]) -> list[str]:
    """The topics of these segments that can have a view: SQL does not tell `a` from `A`."""
    found = {parse_log_path(file.path).topic for file in logs}
    topics = [topic for topic in found if topic is not None]
    names = Counter(name.lower() for name in (*topics, *VIEWS))
    return sorted(topic for topic in topics if names[topic.lower()] == 1)


class Logs:
    """The paths of the logs, and the options to read them with."""

    def __init__(
        self, paths: Sequence[str], options: Mapping[str, str], failed: Failed = None
    ) -> None:
        # Java and Spark's workers may have other working folders.
        self.paths = [absolute(path) for path in paths]
        self.options = options
        self._given = {name.lower(): value for name, value in options.items()}
        self._topics: list[str] | None = None
        self._failed = failed  # is called with the errors of parts that are left out

    def find_segments(self, topic: str | None = None) -> list[StoredFile]:
        """The segments at the paths, or those of one topic; an error if a path or option is wrong.

        The list may be empty if there are other files of Kafka, such as indexes.
        """
        layout = AUTO
        if self.options:
            from kafkajit.scan.options import (
                ScanOptions,
            )  # this imports numba, so only with options

            options = {"schemas": "auto", **self.options, "paths": json.dumps(self.paths)}
            layout = ScanOptions.parse(options).layout
        found: dict[str, StoredFile] = {}
        for path in self.paths:
            try:
                logs, _ = find_segments(
                    [path],
                    self._given.get("pathglobfilter"),
                    wanted=None if topic is None else of_topics([topic]),
                    layout=layout,
                    failed=None if self._failed is None else self._add,
                )
            except (FileNotFoundError, LeftOutError) as error:
                if not any(kind_of(file.path) for file in find_files(path, failed=self._failed)):
                    raise
                if isinstance(error, LeftOutError):
                    self._add(error)
                continue
            found |= {log.path: log for log in logs}
        logs = list(found.values())
        if topic is None:
            self._topics = topics_of(logs)
        return logs

    def _add(self, error: Exception) -> None:
        """Name a part that is left out; raise an error of one that a query needs."""
        if isinstance(error, (OSError, RemoteStorageError)) or self._failed is None:
            raise error
        self._failed(error)

    def leave_out_empty(self, failed: Callable[[Exception], None]) -> None:
        """Leave out paths without files of Kafka's, if others have some; their errors are named."""
        if len(self.paths) == 1:
            return
        every = self.paths
        problems = {}
        for path in every:
            self.paths = [path]
            try:
                self.find_segments()
            except (FileNotFoundError, LeftOutError) as error:
                find_files(path, failed=failed)  # raises an error if there is nothing at the path
                problems[path] = error
        self.paths = [path for path in every if path not in problems]
        if not self.paths:
            raise problems[every[0]]
        for problem in problems.values():
            failed(problem)

    def topics(self, *, anew: bool = False) -> list[str]:
        """The topics that have a view of their own, as they were last listed."""
        if self._topics is None or anew:
            with suppress(OSError):  # a query that reads them reports it
                self.find_segments()
        return self._topics or []

    def columns_of(self, view: str) -> Mapping[str, TableColumn]:
        """A view's columns under these options."""
        columns = VIEWS[view]
        if KINDS.get(view) in TELLING and self._mode == "PERMISSIVE":
            return {**columns, "corruption": _CORRUPTION}
        return columns

    def load(self, spark: SparkSession, view: str) -> DataFrame:
        """Load the rows of a view."""
        if view == BINARY_FILE:
            return self._load_contents(spark)
        if view in TOPIC_VIEWS:
            return self._load_internal_topic(spark, view)
        kind = KINDS[view]
        if kind == "schemas" and not self._has_registry():
            return no_rows(VIEWS[view], spark)
        # A view of several topics has keys and values as bytes.
        options = {
            name: value
            for name, value in self.options.items()
            if name.lower() not in _OF_TYPES and is_used(name, kind)
        } | {"kind": kind}
        if kind in PATH_COLUMNS:  # these kinds do not look at the names of segments
            options = {
                name: value for name, value in options.items() if name.lower() != "pathglobfilter"
            }
        return spark.read.format(KAFKA_LOG).options(**options).load(self._paths_for(kind))

    def _paths_for(self, kind: str) -> list[str]:
        """The paths with segments or files of a kind: others may have files of other views."""
        if len(self.paths) == 1 or kind == "files":
            return self.paths
        glob = self._given.get("pathglobfilter")
        kept = [
            path
            for path in self.paths
            if glob is not None
            or any(
                READABLE_NAME.fullmatch(file.name) or kind_of(file.path) == kind
                for file in find_files(path)
            )
        ]
        return kept or self.paths

    def load_topic(self, spark: SparkSession, topic: str) -> DataFrame:
        """Load the records of one topic, with typed keys and values if their schemas are known."""
        options = {"schemas": "auto", **self.options, "kind": "records", _TOPIC: topic}
        paths = self._paths_for("records")
        records = spark.read.format(KAFKA_LOG).options(**options).load(paths)
        return records.where(records["topic"] == topic)

    def _has_registry(self) -> bool:
        topics = {parse_log_path(file.path).topic for file in self.find_segments("_schemas")}
        return "_schemas" in topics

    @property
    def _mode(self) -> str:
        return self._given.get("mode", "").upper()

    def _load_internal_topic(self, spark: SparkSession, name: str) -> DataFrame:
        """Load the records of an internal topic, without reading the logs of others."""
        view = TOPIC_VIEWS[name]
        given = [shown(path) for path in self.paths]
        places = {
            file.path if file.path in given else file.folder
            for file in self.find_segments(view.topic)
            if parse_log_path(file.path).topic == view.topic
        }
        if not places:
            return no_rows(view.columns, spark)
        records = (
            spark.read.format(KAFKA_LOG)
            .options(**self.options)
            .load([as_location(place, self.paths) for place in sorted(places)])
        )
        return taken_apart(
            view,
            records,
            lenient=self._mode not in ("", "FAILFAST"),
            is_committed=self._given.get("isolationlevel", "").lower() == "read_committed",
        )

    def _load_contents(self, spark: SparkSession) -> DataFrame:
        # Spark interprets each path as a glob.
        paths = [_GLOB_LETTERS.sub(r"\\\g<0>", file.path) for file in self.find_segments()]
        if not paths:
            return no_rows(_CONTENT_COLUMNS, spark)
        files = spark.read.format("binaryFile").load(paths)
        # Spark turns a local path into a URI; it is turned back into the path of the other views.
        path = f"{_REMOVE_SCHEME} AS path"
        return files.selectExpr(path, "modificationTime", "length", "content")
