from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retaining import TIME

import kafkajit
from kafkajit.format.ranges import Range
from kafkajit.log.segment import Segment
from kafkajit.log.timestamps import LargestTimestamp
from kafkajit.storage.stored_file import StoredFile
from kafkajit.upkeep.retain import expiry as module
from kafkajit.upkeep.retain.expiry import Expiry


class Given(NamedTuple):
    """A segment: its base offset, its size and its largest timestamp."""

    base: int
    size: int
    timestamp: int = TIME


class Asked(NamedTuple):
    """A log and its limits."""

    segments: list[Given]
    end: int
    start: int = 0
    high_watermark: int | None = None
    new_start: int | None = None
    retention_bytes: int = -1
    retention_ms: int = -1
    now: int = TIME


class Told(NamedTuple):
    """The base offsets of the segments that go, and the log start offset after that."""

    gone: list[int]
    start: int


def choose(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> tuple[Told, Expiry]:
    """The segments that are chosen; none of them is on a disk."""
    timestamps = {given.base: given.timestamp for given in asked.segments}

    def largest(segment: Segment, at_least: int, **_: int) -> LargestTimestamp:
        return LargestTimestamp(timestamps[segment.base_offset], is_of_record=True)

    monkeypatch.setattr(module, "largest_timestamp", largest)
    expiry = Expiry(
        [segment_of(given) for given in asked.segments],
        asked.start,
        asked.end,
        asked.end if asked.high_watermark is None else asked.high_watermark,
        -1,
    )
    if asked.new_start is not None:
        expiry.raise_start(asked.new_start)
    expiry.before_start()
    expiry.beyond_size(asked.retention_bytes)
    expiry.beyond_time(asked.retention_ms, asked.now)
    return Told([one.base_offset for one in expiry.expired], expiry.log_start_offset), expiry


def segment_of(given: Given) -> Segment:
    name = f"/kafka/orders-0/{given.base:020d}.log"
    log = StoredFile(name, given.size, 0, name, None)
    path = kafkajit.parse_log_path(name)
    return Segment(log, path, Range(given.base), None, None, None)


def deleted_by_kafka(asked: Asked) -> Told:
    """UnifiedLog.deleteOldSegments, step by step."""
    segments, start = list(asked.segments), asked.start
    high_watermark = asked.end if asked.high_watermark is None else asked.high_watermark
    if asked.new_start is not None:
        start = max(start, high_watermark if asked.new_start == -1 else asked.new_start)
    gone: list[Given] = []
    for reason in ("start", "size", "time"):
        diff = sum(segment.size for segment in segments) - asked.retention_bytes
        if reason == "size" and (asked.retention_bytes < 0 or diff < 0):
            continue
        if reason == "time" and asked.retention_ms < 0:
            continue
        deletable = 0
        while deletable < len(segments):
            segment = segments[deletable]
            following = segments[deletable + 1] if deletable + 1 < len(segments) else None
            upper = asked.end if following is None else following.base
            if reason == "start":
                breached = following is not None and following.base <= start
            elif reason == "size":
                breached = diff - segment.size >= 0
                diff -= segment.size if breached else 0
            else:
                breached = asked.now - segment.timestamp > asked.retention_ms
            if following is None and segment.size == 0:
                break
            if not breached or high_watermark < upper:
                break
            deletable += 1
        if deletable:
            if deletable == len(segments):
                segments.append(Given(asked.end, 0))
            gone += segments[:deletable]
            segments = segments[deletable:]
            start = max(start, segments[0].base)
    return Told([segment.base for segment in gone], start)


def log(*segments: tuple[int, int], **asked: int) -> Asked:
    """A log of segments with these sizes and ages, and ten offsets each."""
    given = [Given(10 * at, size, TIME - age) for at, (size, age) in enumerate(segments)]
    return Asked(given, end=10 * len(segments), **asked)


CASES: Sequence[tuple[str, Asked, Told]] = [
    ("without a limit all stay", log((5, 9), (5, 9)), Told([], 0)),
    ("what is older goes", log((5, 9), (5, 8), (5, 7), retention_ms=7), Told([0, 10], 20)),
    ("what is as old stays", log((5, 7), (5, 7), retention_ms=7), Told([], 0)),
    (
        "a young one keeps those behind it",
        log((5, 9), (5, 1), (5, 9), retention_ms=7),
        Told([0], 10),
    ),
    ("all go, the last one too", log((5, 9), (5, 8), retention_ms=7), Told([0, 10], 20)),
    ("not an empty last one", log((5, 9), (0, 9), retention_ms=7), Told([0], 10)),
    (
        "an empty one in the midst goes",
        log((5, 9), (0, 9), (5, 1), retention_ms=7),
        Told([0, 10], 20),
    ),
    ("a time to come keeps it", log((5, -9), (5, 9), retention_ms=0), Told([], 0)),
    ("what is too much goes", log((5, 9), (5, 9), (5, 9), retention_bytes=5), Told([0, 10], 20)),
    ("never more than that", log((5, 9), (5, 9), (5, 9), retention_bytes=6), Told([0], 10)),
    ("nothing of a log as large", log((5, 9), (5, 9), retention_bytes=10), Told([], 0)),
    ("but what is empty", log((0, 9), (5, 9), retention_bytes=5), Told([0], 10)),
    ("nothing may stay", log((5, 9), (5, 9), retention_bytes=0), Told([0, 10], 20)),
    ("a smaller log stays", log((0, 9), (5, 9), retention_bytes=6), Told([], 0)),
    ("what is before the start goes", log((5, 9), (5, 9), (5, 9), new_start=20), Told([0, 10], 20)),
    ("not what has it", log((5, 9), (5, 9), (5, 9), new_start=19), Told([0], 19)),
    ("nor the last one", log((5, 9), (5, 9), new_start=20), Told([0], 20)),
    (
        "-1 is the high watermark",
        log((5, 9), (5, 9), new_start=-1, high_watermark=15),
        Told([0], 15),
    ),
    ("a start does not go back", log((5, 9), (5, 9), new_start=3, start=7), Told([], 7)),
    (
        "what was before the start goes without a limit",
        log((5, 9), (5, 9), start=12),
        Told([0], 12),
    ),
    (
        "what goes behind the start moves it",
        log((5, 9), (5, 9), start=3, retention_ms=7),
        Told([0, 10], 20),
    ),
    (
        "nothing above the high watermark",
        log((5, 9), (5, 9), retention_ms=7, high_watermark=19),
        Told([0], 10),
    ),
    (
        "by no reason",
        log((5, 9), (5, 9), retention_bytes=0, start=10, high_watermark=9),
        Told([], 10),
    ),
]


@pytest.mark.parametrize(
    ("asked", "stated"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_what_kafka_would_delete_goes(
    asked: Asked, stated: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose(asked, monkeypatch)[0] == stated
    assert deleted_by_kafka(asked) == stated


@st.composite
def logs(draw: st.DrawFn) -> Asked:
    bases = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=8)))
    segments = [
        Given(base, draw(st.integers(0, 4)), TIME + draw(st.integers(-8, 3))) for base in bases
    ]
    end = bases[-1] + (draw(st.integers(1, 9)) if segments[-1].size else 0)
    start = draw(st.integers(bases[0], end))
    high_watermark = draw(st.one_of(st.just(end), st.integers(start, end)))
    limits = st.one_of(st.just(-1), st.integers(0, 12))
    new_start = draw(st.one_of(st.none(), st.integers(-1, high_watermark)))
    return Asked(segments, end, start, high_watermark, new_start, draw(limits), draw(limits))


@given(asked=logs())
def test_it_is_what_kafkas_three_passes_delete(asked: Asked) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        stated, expiry = choose(asked, monkeypatch)
    assert stated == deleted_by_kafka(asked)
    assert expiry.size == sum(s.size for s in asked.segments if s.base not in stated.gone)


def test_each_is_told_with_its_reason_in_kafkas_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = log((5, 9), (5, 9), (5, 9), (5, 1), start=12, retention_bytes=10, retention_ms=7)
    _, expiry = choose(asked, monkeypatch)
    assert [
        (one.base_offset, one.size, one.largest_timestamp, one.reason) for one in expiry.expired
    ] == [
        (0, 5, TIME - 9, "log start offset 12 breach"),
        (10, 5, TIME - 9, "log retention size 10 breach"),
        (20, 5, TIME - 9, "log retention time 7ms breach"),
    ]


def test_what_keeps_a_segment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _, expiry = choose(log((5, -9), (5, 9), retention_ms=0), monkeypatch)
    assert expiry.notes == [
        "00000000000000000000.log contains future timestamp(s), making it ineligible to be deleted"
    ]
    _, expiry = choose(log((5, 9), (5, 9), retention_ms=7, high_watermark=4), monkeypatch)
    assert expiry.notes == ["00000000000000000000.log reaches beyond the high watermark 4"]


def test_a_start_beyond_the_high_watermark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = log((5, 9), (5, 9), high_watermark=15, new_start=16)
    with pytest.raises(kafkajit.OffsetOutOfRangeError) as raised:
        choose(asked, monkeypatch)
    assert raised.value.message == (
        "Cannot increment the log start offset to 16 since it is larger than the high watermark 15"
    )


def test_an_index_that_was_not_believed_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = log((5, 9), (5, 9))
    expiry = Expiry([segment_of(one) for one in asked.segments], 0, asked.end, asked.end, TIME)
    looked_at: list[tuple[int, int, int]] = []

    def largest(segment: Segment, at_least: int, *, proven_before: int) -> LargestTimestamp:
        looked_at.append((segment.base_offset, at_least, proven_before))
        return LargestTimestamp(TIME, is_of_record=True, problem="it has zeros")

    monkeypatch.setattr(module, "largest_timestamp", largest)
    expiry.beyond_time(5, TIME + 1)
    expiry.beyond_time(0, TIME + 1)
    # The known timestamp is the last segment's.
    assert looked_at == [(0, -1, TIME - 4), (0, -1, TIME + 1), (10, TIME, TIME + 1)]
    assert expiry.notes == [
        f"{10 * at:020d}.log: it has zeros; the log was read instead" for at in (0, 1)
    ]


def test_a_segment_whose_time_cannot_be_told_goes_for_another_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def largest(segment: Segment, at_least: int, **_: int) -> LargestTimestamp:
        raise kafkajit.CorruptRecordError("no batch")

    monkeypatch.setattr(module, "largest_timestamp", largest)
    asked = log((5, 9), (5, 9))
    expiry = Expiry([segment_of(one) for one in asked.segments], 0, asked.end, asked.end, TIME)
    expiry.beyond_size(5)
    (gone,) = expiry.expired
    assert (gone.largest_timestamp, gone.is_of_record) == (0, False)
    with pytest.raises(kafkajit.CorruptRecordError):
        expiry.beyond_time(5, TIME)
