"""Rows → the partition of each, from its columns, or from its key as Kafka's producer does.

Answers to KafkaRowWriter of Spark's format("kafka") and to KafkaProducer.partition, except for
records without a key. A producer sends those to one partition until a batch is full, which depends
on time; here they go to each partition in turn, the same way every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.encode.partitioner import NO_KEY, partitions_of
from kafkajit.encode.rows import byte_strings_of, missing_column, numbers_of
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.topic import check_topic
from kafkajit.produce.options import ProduceOptions
from kafkajit.storage.source import Int64s

_NO_PARTITION = -1


class TopicPartition(NamedTuple):
    """A partition; its text is the name of its folder."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Router:
    """Finds the partitions of rows; `partitions` lists those found so far.

    Args:
        options: may set the topic and the number of partitions.
        turn: the partition of the first row without a key.
    """

    def __init__(self, options: ProduceOptions, turn: int = 0) -> None:
        self.partitions: list[TopicPartition] = []
        self._options = options
        self._turn = turn
        self._topics: dict[str, int] = {}
        self._numbers: dict[int, int] = {}  # (topic, partition) as one number → index

    def route(self, records: pa.RecordBatch) -> Int64s:
        """For each row the index of its partition in `partitions`."""
        said = self._topics_of(records) << 31 | self._partitions_of(records)
        # A hash table: sorting, as np.unique does, takes longer than everything after this.
        found = pa.array(said).dictionary_encode()
        topics = list(self._topics)
        known = [self._number(value, topics) for value in found.dictionary.to_pylist()]
        routed: Int64s = np.array(known, dtype=np.int64)[found.indices.to_numpy()]
        return routed

    def _number(self, said: int, topics: Sequence[str]) -> int:
        if said not in self._numbers:
            self._numbers[said] = len(self.partitions)
            self.partitions.append(TopicPartition(topics[said >> 31], said & MAX_INT32))
        return self._numbers[said]

    def _topics_of(self, records: pa.RecordBatch) -> Int64s:
        if self._options.topic is not None:
            number = self._topics.setdefault(self._options.topic, 0)
            return np.full(len(records), number, dtype=np.int64)
        if "topic" not in records.schema.names or records.column("topic").null_count:
            raise ValueError(
                "null topic present in the data: fill the column topic, or set the option topic "
                "for all rows"
            )
        encoded = records.column("topic").dictionary_encode()
        numbers = [
            self._topics.setdefault(check_topic(name), len(self._topics))
            for name in encoded.dictionary.to_pylist()
        ]
        named: Int64s = np.array(numbers, dtype=np.int64)[encoded.indices.to_numpy()]
        return named

    def _partitions_of(self, records: pa.RecordBatch) -> Int64s:
        most = self._options.partitions
        if "partition" in records.schema.names:
            column = records.column("partition")
            said = numbers_of(column, "partition", null=_NO_PARTITION)
            is_missing = column.is_null().to_numpy(False)
        else:
            said = np.full(len(records), _NO_PARTITION, dtype=np.int64)
            is_missing = np.ones(len(records), dtype=np.bool_)
        if is_missing.any():
            said = np.where(is_missing, self._by_key(records, is_missing), said)
        bad = (said < 0) | (said > (MAX_INT32 if most is None else most - 1))
        if bad.any():
            number = said[np.argmax(bad)]
            of = (
                ""
                if most is None
                else f" in a topic of {most}, the number that the option partitions gives"
            )
            raise ValueError(f"there is no partition {number}{of}")
        return said

    def _by_key(self, records: pa.RecordBatch, is_missing: npt.NDArray[np.bool_]) -> Int64s:
        most = self._options.partitions
        if most is None:
            raise ValueError(
                "null partition present in the data: fill the column partition, or set the option "
                "partitions to the topic's number of them; a row's key then decides, as in Kafka's "
                "producer"
            )
        has_key = "key" in records.schema.names
        keys = (
            byte_strings_of(records.column("key"), "key")
            if has_key
            else missing_column(len(records))
        )
        found = partitions_of(keys, most)
        in_turn = np.flatnonzero((found == NO_KEY) & is_missing)
        found[in_turn] = (self._turn + np.arange(in_turn.size)) % most
        self._turn = (self._turn + in_turn.size) % most
        return found
