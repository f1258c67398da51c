"""The options of `df.write.format("kafkaLog")`: Kafka's and Spark's names, and their values.

Spark hands over option keys in lower case, and values as strings. Kafka's names may be written with
dots or as one word: batch.size or batchSize.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkajit.change.files import local_folder
from kafkajit.encode.encode_options import CompressionType, EncodeOptions
from kafkajit.format.codecs import COMPRESSION_IDS
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.text_options import Option, boolean, is_sparks_own, one_of, suggestion
from kafkajit.format.topic import check_topic
from kafkajit.log.config import TOPIC_CONFIGS, LogConfig
from kafkajit.produce.unmarked import ERROR, OPEN, PLAIN
from kafkajit.scan.options import OPTIONS as SCAN_OPTIONS
from kafkajit.state.text_lines import parse_number
from kafkajit.state.uuid import ZERO, parse_uuid

STATIC = "static"
DYNAMIC = "dynamic"

# The topic configs that control how segments are written.
_CONFIGS = {
    "segment.bytes": "roll a segment before it is larger; 1073741824 by default",
    "segment.ms": "roll it at a timestamp this much later than its first; 604800000 by default",
    "segment.index.bytes": "roll it when an index is full; 10485760 by default",
    "index.interval.bytes": "bytes of log from one index entry to the next; 4096 by default",
    "max.message.bytes": "a larger batch is an error; 1048588 by default",
}


@dataclass(frozen=True, kw_only=True)
class ProduceOptions:
    """The partitioner, topics and segment sizes with which rows become logs."""

    path: Path
    topic: str | None = None
    partitions: int | None = None
    keep_offsets: bool = False
    transactions: str | None = None
    compression_type: CompressionType | None = None
    compression_level: int | None = None
    batch_size: int | None = None
    leader_epoch: int | None = None
    topic_id: str | None = None
    partition_overwrite_mode: str = STATIC
    force: bool = False
    config: LogConfig = field(default_factory=LogConfig)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> ProduceOptions:
        """Parse the options as Spark hands them over.

        >>> options = ProduceOptions.parse({"path": "/k", "compression.type": "zstd"})
        >>> options.compression_type
        'zstd'
        >>> ProduceOptions.parse({"path": "/k", "segmentBytes": "1048576"}).config.segment_bytes
        1048576
        >>> ProduceOptions.parse({"path": "/k", "topik": "orders"})
        Traceback (most recent call last):
        ValueError: unknown option 'topik': did you mean 'topic'?
        """
        names = {_plain(name): name for name in OPTIONS}
        values: dict[str, Any] = {}
        configs: dict[str, str] = {}
        for key, text in given.items():
            if is_sparks_own(key):
                continue
            name = names.get(_plain(key))
            if name in _CONFIGS:
                configs[name] = text
            elif name is not None:
                values[OPTIONS[name].attribute] = _parsed(name, text)
            elif key.lower() in TOPIC_CONFIGS:
                configs[key.lower()] = text
            else:
                raise ValueError(f"unknown option {key!r}{_suggestion(key)}")
        if "path" not in values:
            raise ValueError(
                "option path is missing: pass the log.dirs folder to write to, as in "
                "df.write.format('kafkaLog').mode('append').save('/var/kafka'). Spark does not "
                "pass on the options of tables in its catalog: write to a table's folder, or "
                "INSERT INTO a temporary view of it"
            )
        level = configs.get(f"compression.{values.get('compression_type')}.level")
        if level is not None:
            values.setdefault("compression_level", _parsed("compressionLevel", level))
        if "compression_level" in values and values.get("compression_type") in (None, "none"):
            raise ValueError("option compressionLevel needs a compression.type that has levels")
        options = cls(**values, config=LogConfig.of(configs))
        options.encode_options(0)  # checks the rest
        return options

    def encode_options(self, timestamp: int) -> EncodeOptions:
        """The options of `encode_batches`; rows without a timestamp get this one."""
        return EncodeOptions(
            compression_type=self.compression_type,
            compression_level=self.compression_level,
            batch_size=self.batch_size,
            partition_leader_epoch=self.leader_epoch,
            timestamp=timestamp,
        )


def _plain(name: str) -> str:
    return name.lower().replace(".", "")


def _parsed(name: str, text: str) -> Any:
    try:
        return OPTIONS[name].parse(text)
    except ValueError as error:
        raise ValueError(f"option {name}: {error}") from None


def _suggestion(key: str) -> str:
    if key.lower() in {name.lower() for name in SCAN_OPTIONS}:
        return " for writing: it is an option for reading"
    return suggestion(key, OPTIONS, _plain)


def _count(least: int, what: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = parse_number(text.strip(), 32)
        if number is None or number < least:
            raise ValueError(f"{what} from {least} to {MAX_INT32}, not {text!r}")
        return number

    return parse


def _level(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"a number, not {text!r}") from None


def _codec(text: str) -> str:
    none, *codecs = COMPRESSION_IDS
    name = one_of((none, "uncompressed", *codecs))(text)
    return none if name == "uncompressed" else name


def _topic(text: str) -> str:
    check_topic(text)
    return text


def _topic_id(text: str) -> str:
    found = parse_uuid(text)
    if found in (None, ZERO):
        raise ValueError(f"a topic's id as kafka-topics.sh --describe prints it, not {text!r}")
    return str(found)


OPTIONS: dict[str, Option] = {
    "path": Option(
        "path",
        local_folder,
        "the log.dirs folder to write to; save(…) sets it",
    ),
    "topic": Option("topic", _topic, "the topic of all rows, instead of the column topic"),
    "partitions": Option(
        "partitions",
        _count(1, "a number"),
        "the topic's number of partitions: rows without a partition go to the one that Kafka's "
        "producer chooses for their key, and rows without a key take turns",
    ),
    "compression.type": Option(
        "compression_type", _codec, "none, gzip, snappy, lz4 or zstd; none by default"
    ),
    "compressionLevel": Option(
        "compression_level",
        _level,
        "the codec's level; also as Kafka's compression.zstd.level and so on",
    ),
    "batch.size": Option(
        "batch_size",
        _count(1, "bytes"),
        "bytes of a batch before compression; 16384 by default",
    ),
    "leaderEpoch": Option(
        "leader_epoch",
        _count(0, "a number"),
        "the partitionLeaderEpoch of all batches; by default the log's latest, or 0",
    ),
    "keepOffsets": Option(
        "keep_offsets",
        boolean,
        "whether to restore a log as it was, with the rows' offsets, batches and producers; false "
        "by default",
    ),
    "transactions": Option(
        "transactions",
        one_of((ERROR, PLAIN, OPEN)),
        "with keepOffsets, what becomes of transactions whose markers are not among the rows: "
        "error, the default, refuses them; plain writes their records outside of a transaction, as "
        "rows that were read with read_committed need; open leaves them open",
    ),
    "topicId": Option(
        "topic_id",
        _topic_id,
        "the id to write into partition.metadata; by default the file is not written, or stays",
    ),
    "partitionOverwriteMode": Option(
        "partition_overwrite_mode",
        one_of((STATIC, DYNAMIC)),
        "which partitions the mode overwrite replaces: static, all in the folder; dynamic, those "
        "that have rows; by default as the session's spark.sql.sources.partitionOverwriteMode",
    ),
    "force": Option("force", boolean, "write even if a broker holds the folder; false by default"),
    **{name: Option("config", str, doc) for name, doc in _CONFIGS.items()},
}
