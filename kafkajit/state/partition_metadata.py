"""partition.metadata: the id of a partition's topic (PartitionMetadataFile, PartitionMetadata).

Reads the bytes into one row, and writes them. The file has two lines, `version: 0` and `topic_id:
…`; as in Kafka, the text before the colons and behind the second line is ignored.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import pyarrow as pa

from kafkajit.errors import CorruptCheckpointError
from kafkajit.schema import PARTITION_METADATA_COLUMNS, table_schema
from kafkajit.state.text_lines import lines, malformed_line, parse_number
from kafkajit.state.uuid import ZERO, parse_uuid
from kafkajit.storage.source import Bytes, whole

PARTITION_METADATA = "partition.metadata"
VERSION = 0

_SEPARATOR = re.compile(r":[ \t\n\x0b\f\r]+")


def read_partition_metadata(source: Any) -> pa.Table:
    r"""Read a partition.metadata file, in `kafkajit.schema.PARTITION_METADATA_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> read_partition_metadata(b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA").to_pylist()
    [{'version': 0, 'topicId': 'pUM3BMsVQk2fe-klgEgLLA'}]
    """
    return parse_partition_metadata(*whole(source))


def parse_partition_metadata(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_partition_metadata`, from bytes and the path that they came from."""
    first, second, *_ = [*islice(lines(content, path), 2), None, None]
    version = parse_number(_value(first, 1, path), 32)
    if version is None:
        raise malformed_line(first or "", 1, path)
    if version < 0:
        raise CorruptCheckpointError(
            f"Unrecognized version of partition metadata file: {version}", path=path, line=1
        )
    topic_id = parse_uuid(_value(second, 2, path))
    if topic_id is None:
        raise malformed_line(second or "", 2, path)
    if topic_id == ZERO:
        raise CorruptCheckpointError(
            "Invalid topic ID in partition metadata file", path=path, line=2
        )
    row = {"version": version, "topicId": topic_id}
    return pa.Table.from_pylist([row], table_schema(PARTITION_METADATA_COLUMNS))


def partition_metadata_text(topic_id: str) -> bytes:
    r"""Write a topic's id as Kafka does.

    >>> partition_metadata_text("pUM3BMsVQk2fe-klgEgLLA")
    b'version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA'
    """
    return f"version: {VERSION}\ntopic_id: {topic_id}".encode()


def _value(line: str | None, number: int, path: str | None) -> str:
    if line is None:
        raise CorruptCheckpointError("File ended prematurely", path=path, line=number)
    parts = _SEPARATOR.split(line)
    while parts and not parts[-1]:  # Java's split drops empty parts at the end
        parts.pop()
    if len(parts) != 2:
        raise malformed_line(line, number, path)
    return parts[1]
