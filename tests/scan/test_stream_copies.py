"""Streams over folders that are being copied, compacted or moved, or lack segments."""

from __future__ import annotations

import logging
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from partitions import data, log_name
from streaming import Query, append, finish, started, stream_options

import kafkajit
from kafkajit.errors import LeftOutError, OffsetOutOfRangeError
from kafkajit.log.footing import Footing
from kafkajit.scan.stream.log_stream import LogStream
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.scan.stream.partition import Partition

# The offsets of a log of four segments, by their base offsets.
SEGMENTS = {
    0: data(0, 5) + data(5, 5),
    10: data(10, 3),
    13: data(13, 4) + data(17, 3),
    20: data(20),
}


COMPACTED = {
    0: data(0, 1) + data(4, 2) + data(7, 1),
    10: data(10, 3) + data(14, 2),
    20: data(21, 1) + data(25, 3),
    30: data(30),
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A partition of four segments."""
    folder = tmp_path / "logs" / "orders-0"
    for base, content in SEGMENTS.items():
        append(folder, content, base)
    return folder


def lenient(folder: Path) -> Query:
    return started(folder.parent, failOnDataLoss="false")


@contextmanager
def soon(change: Callable[[], object]) -> Iterator[None]:
    """Let somebody else change something in a moment."""
    other = threading.Timer(0.3, change)
    other.start()
    yield
    other.join()


# Missing segments


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_query_fails_at_a_missing_segment_once_it_has_read_what_is_before(
    orders: Path, *, is_finished: bool
) -> None:
    query = started(orders.parent)
    (orders / log_name(10)).unlink()
    if is_finished:
        finish(orders)
    assert query.offsets() == list(range(10))
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="offsets 10 to 12 are missing"):
            query.offsets()
    append(orders, SEGMENTS[10], 10)
    assert query.restart().offsets() == list(range(10, 22))


def test_a_query_that_goes_on_after_a_loss_waits_for_a_copy(
    orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (orders / log_name(10)).unlink()
    query = lenient(orders)
    with caplog.at_level(logging.WARNING, "kafkajit"):
        assert query.offsets() == list(range(10))
        assert query.offsets() == []
    assert "offsets 10 to 12 are missing" in caplog.text
    assert "the query waits for them" in caplog.text
    append(orders, SEGMENTS[10], 10)
    assert query.offsets() == list(range(10, 22))


def test_a_query_that_goes_on_after_a_loss_passes_what_is_missing_for_a_minute(
    orders: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafkajit.scan.stream.gaps.COPIED_NS", 0)
    (orders / log_name(10)).unlink()
    query = lenient(orders)
    with caplog.at_level(logging.WARNING, "kafkajit"):
        assert query.offsets() == [*range(10), *range(13, 22)]
    assert "offsets 10 to 12 are missing" in caplog.text


def test_a_planned_micro_batch_that_lacks_a_segment_now_is_a_loss(
    orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    strict, query = started(orders.parent), lenient(orders)
    for one in (strict, query):
        assert one.plan()
    (orders / log_name(10)).unlink()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 10 to 12 are missing"):
        strict.restart().read()
    with caplog.at_level(logging.WARNING, "kafkajit"):
        assert query.restart().read().num_rows == 19
    assert "offsets 10 to 12 are missing" in caplog.text


def test_a_new_partition_that_lacks_a_segment_is_a_loss_in_one_trigger_too(orders: Path) -> None:
    (orders / log_name(10)).unlink()
    orders.rename(orders.parent.parent / "late")
    append(orders.parent / "orders-1", data(0))
    query = started(orders.parent)
    (orders.parent.parent / "late").rename(orders)
    query.plan(None)
    assert query.read(["offset"]).num_rows == 2 + 10
    query.commit()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 10 to 12 are missing"):
        query.plan(None)


def test_a_segment_that_goes_at_the_first_look_is_looked_for_again(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    footing = Partition.footing

    def gone(partition: Partition, offset: int) -> Footing:
        monkeypatch.setattr(Partition, "footing", footing)
        raise FileNotFoundError(orders)

    monkeypatch.setattr(Partition, "footing", gone)
    assert started(orders.parent).offsets() == list(range(22))


def test_a_gap_of_compaction_is_not_missing(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 2) + data(5, 2), 0)
    append(folder, data(10, 2), 10)
    query = started(tmp_path)
    assert query.offsets() == [0, 1, 5, 6]  # a copy may be growing
    finish(folder)
    assert query.offsets() == [10, 11]


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_last_look_takes_a_segment_that_rests_for_compacted(
    is_frozen: bool, tmp_path: Path
) -> None:
    """That of `kafkajit tail` and of availableNow: no later one reads what is left."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 2) + data(5, 2), 0)
    append(folder, data(20, 2), 20)
    query = started(tmp_path)
    if is_frozen:
        query.stream.freeze()
    else:
        query.stream = LogStream(replace(query.options, waits_for_copies=False))
    with soon(lambda: append(folder, data(9, 2), 0)):
        assert query.offsets() == [0, 1, 5, 6]
    assert query.offsets() == [9, 10, 20, 21]


def test_a_time_that_has_not_come_yet_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 2) + data(5, 2), 0)
    append(folder, data(20, 2), 20)
    for path in folder.iterdir():
        os.utime(path, (time.time() + 7200,) * 2)
    assert started(tmp_path).offsets() == [0, 1, 5, 6, 20, 21]


def test_segments_before_those_that_were_read_are_not_passed_over(orders: Path) -> None:
    (orders / log_name(0)).rename(orders.parent / "late")
    query = started(orders.parent)
    assert query.offsets() == list(range(10, 22))
    (orders.parent / "late").rename(orders / log_name(0))
    with pytest.raises(OffsetOutOfRangeError) as caught:
        query.restart().offsets()
    assert str(caught.value) == (
        "offsets 0 to 9 of orders-0 are in its log, which began at offset 10 when the query read "
        f"it: they are not read in {orders}: a new query reads them; with failOnDataLoss=false "
        "this one goes on without them"
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("segments", [SEGMENTS, COMPACTED], ids=["whole", "compacted"])
def test_each_record_of_a_copy_in_the_making_comes_once(
    segments: Mapping[int, bytes], seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    target = tmp_path / "copy" / "orders-0"
    append(target, segments[0][: rng.choice([0, 100, len(segments[0])])], 0)
    pieces = []
    for base, content in segments.items():
        done = (target / log_name(base)).stat().st_size if base == 0 else 0
        cuts = sorted({done, len(content), *rng.sample(range(done, len(content) + 1), 1)})
        pieces.append([(base, content[: cuts[at]]) for at in range(len(cuts))])
    strict, query = started(target.parent), lenient(target)
    found: dict[bool, list[int]] = {True: [], False: []}
    for _ in range(200):
        rest = [part for part in pieces if part]
        if rest:
            base, content = rng.choice(rest).pop(0)
            path = target / log_name(base)
            if rng.random() < 0.5:  # as rsync, which renames, or as cp
                (target / ".new").write_bytes(content)
                (target / ".new").rename(path)
            else:
                path.write_bytes(content)
        for one in (strict, query):
            try:
                found[one is strict] += one.offsets()
            except OffsetOutOfRangeError:
                one.restart()
        if not rest:
            finish(target)
            break
    for one in (strict, query):
        found[one is strict] += one.offsets()
    whole = b"".join(segments.values())
    offsets = kafkajit.read_records(whole)["offset"].to_pylist()
    assert found == {True: offsets, False: offsets}


# Swaps


def swap(folder: Path) -> Callable[[], object]:
    """Stop the swap of a cleaned segment in the middle; return what completes it."""
    (folder / log_name(0, ".log.swap")).write_bytes(data(3, 1) + data(9, 1))
    (folder / log_name(0)).unlink()
    return lambda: (folder / log_name(0, ".log.swap")).rename(folder / log_name(0))


@pytest.mark.parametrize(
    ("starting", "offsets"),
    [
        ("earliest", [3, 9, *range(10, 22)]),
        ("latest", []),
        ('{"orders": {"0": 9}}', [*range(9, 22)]),
    ],
)
def test_a_new_query_waits_for_a_swap(orders: Path, starting: str, offsets: list[int]) -> None:
    with soon(swap(orders)):
        query = started(orders.parent, startingOffsets=starting)
    assert query.offsets() == offsets


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.scan.stream.followed.SETTLE_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_swap_that_was_left_behind_is_an_error(orders: Path) -> None:
    done = swap(orders)
    with pytest.raises(LeftOutError, match="segments are being swapped or changed: if that was in"):
        started(orders.parent)
    query = Query(orders.parent)
    query.planned, query.committed = [{"orders": {"0": 3}}], 1
    with pytest.raises(LeftOutError, match="completes it"):
        query.stream.freeze()  # a query that reads what is there
    done()
    assert query.restart().offsets()[:2] == [3, 9]


@pytest.mark.usefixtures("impatient")
def test_a_query_that_goes_on_after_a_loss_waits_for_a_swap(
    orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = swap(orders)
    with caplog.at_level(logging.WARNING, "kafkajit"):
        query = lenient(orders)
    assert "completes it; the query waits" in caplog.text
    assert query.offsets() == []
    done()
    assert [*query.offsets(), *query.offsets()] == [3, 9, *range(10, 22)]


@pytest.mark.usefixtures("impatient")
def test_a_query_from_the_latest_offset_does_not_begin_during_a_swap(orders: Path) -> None:
    swap(orders)
    with pytest.raises(LeftOutError, match="until then orders-0 has no latest offset to begin at"):
        started(orders.parent, failOnDataLoss="false", startingOffsets="latest")


# Folders that move


def test_a_partition_may_move_to_another_folder(orders: Path, tmp_path: Path) -> None:
    append(tmp_path / "other" / "payments-0", data(0))
    query = started(orders.parent, tmp_path / "other")
    assert len(query.offsets()) == 24
    append(orders, data(22), 20)
    shutil.copytree(orders, tmp_path / "other" / "orders-0")
    with soon(lambda: shutil.rmtree(orders)):
        assert query.offsets() == [22, 23]


@pytest.mark.usefixtures("impatient")
def test_a_partition_in_two_folders_is_an_error(orders: Path, tmp_path: Path) -> None:
    shutil.copytree(orders, tmp_path / "other" / "orders-0")
    with pytest.raises(ValueError, match="both hold partition orders-0: a stream reads one copy"):
        started(orders.parent, tmp_path / "other")


def test_an_option_with_a_typo_gets_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'maxOffsetsPerTrigger'"):
        StreamOptions.parse({"path": "/logs", "maxOffsetPerTrigger": "5"})
    assert stream_options("/logs", maxOffsetsPerTrigger=5).limits.records == 5
