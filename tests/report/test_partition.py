"""Runs of segments that are read apart and joined give the figures of their partition."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scanning import by_folder, options_of, write_partition

import kafkajit.testing as kt
from kafkajit.log.segment import Segment
from kafkajit.report.headers import TopicFigures
from kafkajit.report.partition import PartitionFigures
from kafkajit.scan.partitions import find_partitions

NOW = 1_000


def read(runs: list[list[Segment]]) -> TopicFigures:
    """The figures of a partition, of which each run is read by another task."""
    topic = TopicFigures("orders", NOW)
    for number, run in enumerate(runs):
        own = TopicFigures("orders", NOW)
        list(own.read(run, continues=number > 0))
        topic.add_all(pickle.loads(pickle.dumps(own)))
    return topic


def figures(topic: TopicFigures) -> tuple[Any, ...]:
    """All that the rest of a report asks for."""
    (partition,) = topic.partitions
    return (
        topic.document(),
        partition.overlaps,
        list(partition.open_transactions.values()),
        partition.ages,
        [(segment.log.path, marks.tolist()) for segment, marks in partition.marks],
    )


def segments_in(folder: Path) -> list[Segment]:
    (segments,) = find_partitions(options_of(folder))
    return segments


def of(first: int, timestamp: int, records: int = 1, **fields: Any) -> bytes:
    return kt.batch(
        [kt.Record(key=b"k", value=b"v")] * records,
        base_offset=first,
        base_timestamp=timestamp,
        **fields,
    )


def open_one(first: int, producer: int) -> bytes:
    return of(first, 100 + first, producer_id=producer, is_transactional=True)


def message(offset: int) -> bytes:
    return kt.message_set([kt.Record(value=b"v")], base_offset=offset, magic=1)


# What may come in a segment of a partition, from an offset on.
CONTENTS = {
    "empty": lambda _: b"",
    "plain": lambda first: of(first, 100 + first, 5) + of(first + 5, 101 + first),
    "behind a gap": lambda first: of(first + 7, 100 + first),
    "back in time": lambda first: of(first, 20) + of(first + 1, 30) + of(first + 2, 25),
    "ahead in time": lambda first: of(first, 5_000) + of(first + 1, 6_000) + of(first + 2, 6_000),
    "untimed": lambda first: of(first, -1) + of(first + 1, -1),
    "overlapping": lambda first: message(max(0, first - 10)) + message(first),
    "backwards": lambda first: message(first + 2) + message(first + 1) + message(first),
    "begun": lambda first: open_one(first, 7) + open_one(first + 1, 8),
    "ended": lambda first: kt.control_batch(1, base_offset=first, producer_id=7),
    "ended and begun": lambda first: (
        kt.control_batch(0, base_offset=first, producer_id=7) + open_one(first + 1, 7)
    ),
    "messages": lambda first: kt.message_set(
        [kt.Record(value=b"v", offset_delta=n) for n in range(3)],
        base_offset=first,
        codec="gzip",
        magic=1,
    ),
}


def test_the_contents_have_all_figures_that_depend_on_segments_before(tmp_path: Path) -> None:
    contents = [CONTENTS[name](10 * number) for number, name in enumerate(CONTENTS)]
    write_partition(tmp_path, {10 * number: each for number, each in enumerate(contents)})
    topic = read([segments_in(tmp_path)])
    document, (partition,) = topic.document(), topic.partitions
    assert min(document["batchesBack"], document["missingOffsets"], partition.overlaps) > 1
    assert sorted(partition.open_transactions) == [7, 8]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(st.sampled_from(sorted(CONTENTS)), min_size=1, max_size=6),
    st.sets(st.integers(1, 5)),
)
def test_runs_give_the_figures_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], cuts: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("partition")
    write_partition(
        folder, {10 * number: CONTENTS[name](10 * number) for number, name in enumerate(names)}
    )
    segments = segments_in(folder)
    ends = [0, *sorted(at for at in cuts if at < len(segments)), len(segments)]
    runs = [segments[start:end] for start, end in pairwise(ends)]
    assert figures(read(runs)) == figures(read([segments]))


@by_folder
def test_each_segment_can_be_a_run(folder: Path) -> None:
    segments = segments_in(folder)
    assert figures(read([[one] for one in segments])) == figures(read([segments]))


def test_a_partition_is_not_a_run_of_the_one_before(tmp_path: Path) -> None:
    for number in range(2):
        write_partition(tmp_path, {0: of(0, 100)}, f"orders-{number}")
    topic = TopicFigures("orders", NOW)
    for partition in find_partitions(options_of(tmp_path)):
        own = TopicFigures("orders", NOW)
        list(own.read(partition))
        topic.add_all(own)
    assert [one.partition for one in topic.partitions] == [0, 1]
    assert topic.document()["batches"] == 2


def test_runs_keep_nothing_else_once_they_are_joined() -> None:
    whole = PartitionFigures(0, "orders-0", 0)
    whole.join(PartitionFigures(0, "orders-0", 10, continues=True))
    assert whole == PartitionFigures(0, "orders-0", 10, _rising=whole._rising)
