"""No checksum covers the base offset of a batch: a stream does not trust one that does not fit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from partitions import log_name
from streaming import Query, append, finish, started

import kafkajit.testing as kt
from kafkajit.errors import CorruptRecordError, OffsetOutOfRangeError

COUNT = 8  # batches of a log


def batch(number: int, per_batch: int, flipped: int | None = None) -> bytes:
    """A batch of values that are their offsets; perhaps with another bit in its base offset."""
    first = number * per_batch
    records = [kt.Record(value=str(n).encode()) for n in range(first, first + per_batch)]
    return kt.batch(records, base_offset=first ^ (0 if flipped is None else 1 << flipped))


def values(query: Query, **limits: int) -> list[int]:
    """The values of the micro-batches up to the log's end."""
    found = []
    for _ in range(100):
        count = len(query.planned)
        rows = query.trigger(["value"], **limits)
        found += [int(value) for value in rows["value"].to_pylist() if value is not None]
        if len(query.planned) == count:
            return found
    raise AssertionError("the log does not end")


@pytest.mark.parametrize("records", [None, 1, 3])
@pytest.mark.parametrize("per_batch", [1, 2, 5])
@pytest.mark.parametrize("seed", range(6))
def test_the_others_are_read_once_whatever_bit_flips_and_when(
    seed: int, per_batch: int, records: int | None, tmp_path: Path
) -> None:
    """The last batch is read once another one has come behind it."""
    rng = random.Random(f"{seed} {per_batch} {records}")
    wrong, bit = rng.randrange(COUNT - 1), rng.randrange(12)
    limits = {} if records is None else {"records": records}
    folder = tmp_path / "orders-0"
    lenient = {"failOnDataLoss": "false", "mode": rng.choice(["DROPMALFORMED", "PERMISSIVE"])}
    append(folder, b"")
    query = started(tmp_path, **lenient)
    found: list[int] = []
    for number in range(COUNT):
        append(folder, batch(number, per_batch, bit if number == wrong else None))
        if rng.random() < 0.5:
            found += values(query, **limits)
        if rng.random() < 0.3:
            query.restart()
    found += values(query, **limits)
    assert found == [n for n in range(COUNT * per_batch) if n // per_batch != wrong], (wrong, bit)


@pytest.mark.parametrize("bit", range(12))
@pytest.mark.parametrize("wrong", range(COUNT))
def test_a_strict_query_names_it(wrong: int, bit: int, tmp_path: Path) -> None:
    """Whether it is there from the start, or comes while the query runs."""
    folder = tmp_path / "orders-0"
    append(folder, b"")
    running = started(tmp_path)
    found: list[int] = []

    def follow() -> None:
        for number in range(COUNT):
            append(folder, batch(number, 2, bit if number == wrong else None))
            found.extend(values(running))
        values(running)

    with pytest.raises((CorruptRecordError, OffsetOutOfRangeError), match="base offset"):
        follow()
    assert found == list(range(2 * wrong))
    at_once = started(tmp_path)
    with pytest.raises((CorruptRecordError, OffsetOutOfRangeError), match="base offset"):
        values(at_once)


def test_the_last_batch_of_a_segment_ends_before_the_next_segment(
    tmp_path: Path,
) -> None:
    append(tmp_path / "orders-0", batch(0, 2) + batch(1, 2, 35))
    (tmp_path / "orders-0" / log_name(4)).write_bytes(batch(2, 2))
    query = started(tmp_path)
    with pytest.raises(CorruptRecordError, match="which end at 1 and begin at 4"):
        values(query)
    query = started(tmp_path, mode="PERMISSIVE")
    rows = query.trigger(["value", "corruption"]).to_pylist()
    assert [row["value"] for row in rows] == [b"0", b"1", None, b"4", b"5"]
    assert "begin at 4" in rows[2]["corruption"]["reason"]


def test_the_last_batch_waits_for_another_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        append(tmp_path / "orders-0", batch(number, 2, 6 if number == 2 else None))
    end = 2 * len(batch(0, 2))
    what = (
        f"the last batch of {log_name(0)}, at position {end}, begins at offset 68, the one before "
        "it ends at 3, and nothing tells that the log was compacted: its base offset may be damaged"
    )
    strict = started(tmp_path)
    assert values_once(strict) == [0, 1, 2, 3]
    with pytest.raises(OffsetOutOfRangeError) as caught:
        strict.trigger()
    assert what in str(caught.value)
    lenient = started(tmp_path, failOnDataLoss="false")
    assert values(lenient) == [0, 1, 2, 3]
    assert f"{tmp_path}/orders-0: {what}" in caplog.text
    append(tmp_path / "orders-0", kt.batch([kt.Record(value=b"70")], base_offset=70))
    assert values(lenient) == [4, 5, 70]  # it was a hole


def values_once(query: Query) -> list[int]:
    return [int(value) for value in query.trigger(["value"])["value"].to_pylist()]


@pytest.mark.parametrize("how", ["checkpoint", "hole", "later hole"])
def test_a_hole_of_a_compacted_log_is_none(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    first = batch(0, 2)
    if how == "hole":
        first += batch(2, 2)
        append(folder, first)
        append(folder, batch(10, 2), 20)
    else:
        append(folder, first)
    if how == "checkpoint":
        (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    append(folder, batch(40, 2), 20 if how == "hole" else 0)
    if how == "later hole":
        append(folder, batch(41, 2))
    finish(folder)
    query = started(tmp_path)
    assert values(query)[-1] in (81, 83)
    assert query.ends[-1]["orders"]["0"] in (82, 84)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_batch_that_was_taken_for_one_behind_a_hole_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_restarted: bool
) -> None:
    folder = tmp_path / "orders-0"
    for number in range(3):
        append(folder, batch(number, 2, 6 if number == 2 else None))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    strict, lenient = started(tmp_path), started(tmp_path, failOnDataLoss="false")
    assert values(strict) == values(lenient) == [0, 1, 2, 3, 4, 5]
    for number in (3, 4):
        append(folder, batch(number, 2))
    if is_restarted:
        strict.restart()
        lenient.restart()
    what = (
        "its last batch, at offset 68, does not fit between that at 3 and those that have come "
        "behind it: its base offset is damaged"
    )
    with pytest.raises(OffsetOutOfRangeError, match=what):
        strict.trigger()
    lenient = again(lenient, mode="DROPMALFORMED") if is_restarted else lenient
    if is_restarted:
        assert values(lenient) == [6, 7, 8, 9]
        assert what in caplog.text
    else:
        with pytest.raises(CorruptRecordError, match="base offset"):
            values(lenient)


def again(query: Query, **options: str) -> Query:
    """The same query, started anew with other options."""
    found = Query(*query.options.scan.paths, failOnDataLoss="false", **options)
    found.planned, found.committed = list(query.planned), query.committed
    return found


@pytest.mark.parametrize("seed", range(150))
def test_no_record_is_lost_or_comes_twice_in_random_logs(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch of each log has a wrong base offset; a row reports it, unless it is the last."""
    monkeypatch.setattr("kafkajit.scan.stream.log_stream._LOOK_SECONDS", 0)
    rng = random.Random(seed)
    folder = tmp_path / "orders-0"
    append(folder, b"")
    isolation = rng.choice(["read_uncommitted", "read_committed"])
    lenient = {"failOnDataLoss": "false", "mode": "PERMISSIVE", "isolationLevel": isolation}
    query = started(tmp_path, **lenient)
    limits = {"records": rng.choice([1, 3, 7])} if rng.random() < 0.5 else {}
    count = rng.randint(2, 10)
    wrong, offset, position = rng.randrange(count), 0, 0
    expected: list[int] = []
    found: list[int] = []
    gaps: list[int] = []
    for number in range(count):
        records = [kt.Record(value=str(offset + n).encode()) for n in range(rng.randint(1, 4))]
        base = offset ^ (1 << rng.randrange(20) if number == wrong else 0)
        content = kt.batch(records, base_offset=base)
        append(folder, content)
        if number == wrong:
            place = position
        else:
            expected += range(offset, offset + len(records))
        offset, position = offset + len(records), position + len(content)
        if rng.random() < 0.5 or number == count - 1:
            for row in rows_of(query, **limits):
                if row["corruption"]:
                    gaps.append(row["corruption"]["position"])
                else:
                    found.append(int(row["value"]))
        if rng.random() < 0.2:
            query.restart()
    assert found == expected
    assert wrong == count - 1 or place in gaps


def rows_of(query: Query, **limits: int) -> Iterator[dict[str, Any]]:
    for _ in range(100):
        count = len(query.planned)
        yield from query.trigger(["value", "corruption"], **limits).to_pylist()
        if len(query.planned) == count:
            return
