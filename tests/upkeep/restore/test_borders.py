"""A restored log has the records from one border to the other, and no others behind the last."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kafscale_buckets
import pytest
import reference
from hypothesis import assume, example, given
from hypothesis import strategies as st
from overlapping import (
    Batch,
    Segments,
    consumed,
    only_hidden,
    overlapping_segments,
    write,
)
from strategies import BROKER_TIMESTAMPS, partitions, transactional_logs

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, write_segment
from kafkajit.upkeep.restore.partition_restoration import PartitionRestoration

T = 1_700_000_000_000
Logs = dict[int, bytes]
Row = dict[str, Any]


def write_logs(folder: Path, logs: Logs) -> None:
    folder.mkdir(parents=True)
    for base, log in logs.items():
        (folder / f"{base:020}.log").write_bytes(log)


def restore(source: Path, root: Path, **options: Any) -> PartitionRestoration:
    plan = kafkajit.restore(source, root, **options)
    plan.apply()
    return plan.partitions[0]


def logs_in(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.log"))]


def rows_of(logs: list[bytes]) -> list[Row]:
    """All fields of all records, but the places of their batches in files."""
    places = ("position", "baseOffset")
    return [
        {name: value for name, value in row.items() if name not in places}
        for log in logs
        for row in reference.rows(log)
    ]


def batches_of(logs: list[bytes]) -> list[bytes]:
    return [
        log[batch.position : batch.position + batch.size]
        for log in logs
        for batch in reference.read_batches(log)[0]
    ]


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, int]:
    """Messages and sets of v0 and v1, as a log may begin, and the offset behind them."""
    log, offset = b"", 0
    for _ in range(draw(st.integers(0, 3))):
        magic = draw(st.sampled_from([0, 1]))
        codec = draw(st.sampled_from(["none", "gzip", "lz4", "snappy"]))
        times = draw(st.lists(BROKER_TIMESTAMPS, min_size=1, max_size=4))
        log += kt.message_set(
            [kt.Record(value=b"%d" % at, timestamp=time) for at, time in enumerate(times)],
            base_offset=offset,
            magic=magic,
            codec=codec,
            timestamp=T + 5,
            timestamp_type=draw(st.sampled_from([kt.CREATE_TIME, kt.LOG_APPEND_TIME])),
        )
        offset += len(times) + draw(st.sampled_from([0, 0, 2]))
    return log, offset


@st.composite
def logs_of_all_formats(draw: st.DrawFn) -> Logs:
    log, offset = draw(messages())
    logs = draw(partitions(offset))
    return logs if not log else {0: log, **{max(base, 1): later for base, later in logs.items()}}


BORDERS = st.one_of(st.none(), st.integers(0, 40))
TIMES = st.one_of(st.none(), st.sampled_from([0, T, T + 5, T + 8, T + 10, T + 15, T + 20, T + 99]))


@given(
    logs_of_all_formats(),
    st.tuples(BORDERS, BORDERS),
    st.tuples(TIMES, TIMES),
    st.booleans(),
    st.booleans(),
)
def test_a_log_has_the_records_between_its_borders(
    logs: Logs,
    offsets: tuple[int | None, int | None],
    times: tuple[int | None, int | None],
    is_indexed: bool,
    has_epoch: bool,
) -> None:
    for start, end in (offsets, times):
        assume(start is None or end is None or start < end)
    every = rows_of([*logs.values()])
    first, behind = offsets
    if times[0] is not None:
        first = next((row["offset"] for row in every if row["timestamp"] >= times[0]), 2**63 - 1)
    if times[1] is not None:
        behind = next((row["offset"] for row in every if row["timestamp"] >= times[1]), None)
    options: dict[str, Any] = {
        "starting_offset": offsets[0],
        "ending_offset": offsets[1],
        "starting_timestamp": times[0],
        "ending_timestamp": times[1],
        "leader_epoch": 5 if has_epoch else None,
    }
    expected = [row for row in every if behind is None or row["offset"] < behind]
    for row in expected:
        if has_epoch and row["magic"] == 2:
            row["partitionLeaderEpoch"] = 5
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write_logs(root / "backup" / "t-0", logs)
        source = root / "backup" / "t-0"
        if is_indexed:
            kafkajit.restore(source, root / "indexed").apply()
            source = root / "indexed" / "t-0"
        plan = restore(source, root / "kafka", **options)
        found = logs_in(root / "kafka" / "t-0")
        if not plan.is_needed:
            assert not found
            assert not [row for row in expected if row["offset"] >= (first or 0)]
            return
        rows = rows_of(found)
        # Records before the first border may be there, in its batch, and are hidden.
        assert rows == expected[len(expected) - len(rows) :]
        hidden = [row["offset"] for row in expected[: len(expected) - len(rows)]]
        assert all(offset < plan.start_offset for offset in hidden)
        if first is not None and rows:
            assert plan.start_offset == max(first, plan.segments[0].base_offset)
            (begin, *_) = reference.read_batches(found[0])[0]
            assert begin.base_offset + begin.last_offset_delta >= first
        elif first is None:
            assert len(rows) == len(expected)
        assert plan.size == sum(map(len, found))
        whole = batches_of([*logs.values()])
        if not has_epoch:  # all but the batch at the last border are the source's
            assert [one for one in batches_of(found)[:-1] if one not in whole] == []
        changed = len([one for kept in plan.segments for one in kept.cut])
        assert changed <= 1
        again = kafkajit.Log(root / "kafka" / "t-0")
        assert again.end_offset == plan.end_offset
        assert behind is None or plan.end_offset <= max(behind, plan.start_offset)
        repair = kafkajit.repair(root / "kafka" / "t-0")
        assert not repair.is_needed, str(repair)


@given(logs_of_all_formats(), TIMES)
def test_the_end_is_that_of_the_data_source(logs: Logs, end: int | None) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write_logs(root / "backup" / "t-0", logs)
        kafkajit.restore(root / "backup", root / "kafka", ending_timestamp=end).apply()
        options = {} if end is None else {"ending_timestamp": str(end)}
        names = ["offset", "timestamp", "timestampType", "key", "value", "sequence"]
        wanted = kafkajit.dataset(root / "backup", columns=names, **options).to_table()
        assert wanted.num_rows == 0 or kafkajit.dataset(
            root / "kafka", columns=names
        ).to_table().equals(wanted)


@given(transactional_logs(), st.integers(0, 40))
def test_transactions_and_producers_are_those_of_the_cut_log(logs: Logs, end: int) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write_logs(root / "backup" / "t-0", logs)
        plan = kafkajit.restore(root / "backup", root / "kafka", ending_offset=end)
        try:
            plan.apply()
        except kafkajit.InvalidRecordError as error:  # a producer does what no broker accepts
            advice = re.fullmatch(r"with --ending-offset (\d+) .*", error.advice or "")
            if advice is None:
                return
            plan = kafkajit.restore(root / "backup", root / "kafka", ending_offset=int(advice[1]))
            plan.apply()
        if not plan.is_needed:
            return
        cut = logs_in(root / "kafka" / "t-0")
        aborted, stable = reference.transactions(cut)
        log = kafkajit.Log(root / "kafka" / "t-0")
        assert [
            (row["producerId"], row["firstOffset"], row["lastOffset"])
            for row in log.aborted_transactions(0, 2**62).to_pylist()
        ] == [(one.producer_id, one.first_offset, one.last_offset) for one in aborted]
        assert log.last_stable_offset == stable
        (notes,) = (partition.notes for partition in plan.partitions)
        is_open = [note for note in notes if note.startswith("a transaction is open since offset")]
        assert bool(is_open) == (stable < log.end_offset)
        assert not is_open or f"since offset {stable}," in is_open[0]
        repair = kafkajit.repair(root / "kafka" / "t-0")
        assert not repair.is_needed, str(repair)


# Segments that overlap.

# The second segment begins inside the first, and the third inside both.
THREE_DEEP = {
    0: [Batch(0, (0, 1, 2), 3), Batch(3, (0, 1, 2, 3, 4), 5)],
    4: [Batch(4, (0, 1), 2), Batch(6, (0, 1, 2), 3)],
    7: [Batch(7, (0,), 1), Batch(8, (0, 1), 2)],
}
# The first has all offsets of the second.
COVERED = {0: [Batch(0, (0, 1, 2, 3), 4)], 2: [Batch(2, (0,), 1)], 4: [Batch(4, (0,), 1)]}
# A batch of the second begins inside the first.
STRADDLING = {0: [Batch(0, (0, 1, 2, 3, 4), 5)], 2: [Batch(2, (0, 1, 3, 4, 7), 9)]}


def pairs(folder: Path) -> list[tuple[int, int]]:
    return [(row["offset"], int(row["value"])) for row in rows_of(logs_in(folder))]


@example(THREE_DEEP, None, "none")
@example(COVERED, None, "zstd")
@example(STRADDLING, None, "lz4")
@example(STRADDLING, 7, "none")
@given(overlapping_segments(), BORDERS, st.sampled_from(kt.CODECS))
def test_of_segments_that_overlap_each_offset_comes_once_as_a_consumer_gets_it(
    segments: Segments, end: int | None, codec: str
) -> None:
    wanted = [pair for pair in consumed(segments) if end is None or pair[0] < end]
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write(root / "backup" / "t-0", segments, codec)
        if any(end is None or offset < end for offset in only_hidden(segments)):
            with pytest.raises(kafkajit.InvalidOffsetError, match="which only this one has"):
                restore(root / "backup", root / "kafka", ending_offset=end)
            assert not (root / "kafka").exists()
            return
        restore(root / "backup", root / "kafka", ending_offset=end)
        assert pairs(root / "kafka" / "t-0") == wanted
        if (root / "kafka" / "t-0").exists():
            repair = kafkajit.repair(root / "kafka" / "t-0")
            assert not repair.is_needed, str(repair)


def test_the_plan_names_what_segments_have_twice(tmp_path: Path) -> None:
    for name, segments in (("a-0", THREE_DEEP), ("b-0", COVERED), ("c-0", STRADDLING)):
        write(tmp_path / "backup" / name, segments)
    plan = kafkajit.restore(tmp_path / "backup", tmp_path / "kafka", topic_ids=None)
    log = f"left out: {tmp_path}/backup/{{}}-0/{{:020}}.log"
    why = "because a broker serves segments before it"
    notes = [note for one in plan.partitions for note in one.notes[1:]]
    assert notes == [
        f"{log.format('a', 4)}, {why}",
        f"{log.format('a', 7)} before offset 8, {why} up to there",
        f"{log.format('b', 2)}, {why}",
        "batch at offset 2 is rewritten with 3 of 5 records, offsets 5 to 10",
        f"{log.format('c', 2)} before offset 5, {why} up to there",
    ]
    (rewritten,) = plan.partitions[2].document()["rewrittenBatches"]
    assert rewritten == {
        "segment": f"{tmp_path}/backup/c-0/{2:020}.log",
        "baseOffset": 2,
        "firstOffset": 5,
        "lastOffset": 10,
        "records": 3,
        "recordsBefore": 5,
    }


@example(STRADDLING, None, "none")
@given(overlapping_segments(), BORDERS, st.sampled_from(["none", "zstd"]))
def test_of_tiered_segments_that_overlap_each_offset_comes_once(
    segments: Segments, end: int | None, codec: str
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write(root / "logs", segments, codec)
        for base, batches in segments.items():
            write_segment(
                root / "tier" / f"t-{TOPIC_ID}" / "0",
                base,
                (root / "logs" / f"{base:020}.log").read_bytes(),
                end_offset=max((one.last for one in batches), default=base - 1),
                segment_id=f"{base:022}",
            )
        names = ["offset", "value"]
        rows = kafkajit.dataset(root / "tier", columns=names).to_table().to_pylist()
        wanted = [
            (row["offset"], int(row["value"])) for row in rows if end is None or row["offset"] < end
        ]
        restore(root / "tier", root / "kafka", ending_offset=end)
        assert pairs(root / "kafka" / "t-0") == wanted


def test_a_segment_of_a_lost_leader_ends_where_the_log_has_left_it(tmp_path: Path) -> None:
    """Even inside a batch: the lost leader's batches need not be those of the other."""
    folder = tmp_path / "tier" / f"t-{TOPIC_ID}" / "0"
    for base, count, epochs, id_ in ((0, 6, {0: 0}, 1), (4, 5, {0: 0, 1: 4}, 2)):
        log = kt.batch(
            [kt.Record(value=b"%d" % base)] * count,
            base_offset=base,
            partition_leader_epoch=max(epochs),
        )
        write_segment(
            folder, base, log, end_offset=base + count - 1, epochs=epochs, segment_id=f"{id_:022}"
        )
    plan = restore(tmp_path / "tier", tmp_path / "kafka")
    assert pairs(tmp_path / "kafka" / "t-0") == [(at, 0 if at < 4 else 4) for at in range(9)]
    assert "batch at offset 0 is rewritten with 4 of 6 records, offsets 0 to 3" in plan.notes


@pytest.mark.parametrize("end", [1, 5, 7, 20, 23, 36, 39, 40, 99])
def test_segments_of_kafscale_end_exactly_too(end: int, tmp_path: Path) -> None:
    kafscale_buckets.write_partition(tmp_path / "backup" / "t" / "0")
    restore(tmp_path / "backup", tmp_path / "kafka", ending_offset=end)
    assert pairs(tmp_path / "kafka" / "t-0") == [(at, at) for at in range(min(end, 40))]


def test_an_error_of_a_cut_batch_names_its_place_in_the_source(tmp_path: Path) -> None:
    logs = [
        kt.batch(
            [kt.Record()] * 2,
            base_offset=base,
            producer_id=7,
            producer_epoch=0,
            base_sequence=base,
            is_transactional=base == 0,
        )
        for base in (0, 2)  # the transaction is still open
    ]
    write_logs(tmp_path / "backup" / "t-0", {0: b"".join(logs)})
    for end in (3, 4):  # cut, and whole
        plan = kafkajit.restore(tmp_path / "backup", tmp_path / "kafka", ending_offset=end)
        place = f"at position {len(logs[0])}, base offset 2 in {tmp_path}/backup/t-0/{0:020}.log"
        with pytest.raises(kafkajit.InvalidRecordError, match=place) as caught:
            plan.apply()
        assert caught.value.advice == "with --ending-offset 2 the log ends before it"


@pytest.mark.parametrize("border", [{"ending_offset": 12}, {"ending_timestamp": T + 12}])
def test_an_error_of_a_cut_batch_advises_to_end_before_it(
    border: dict[str, int], tmp_path: Path
) -> None:
    batches = [
        kt.batch([kt.Record(timestamp=T + base + at) for at in range(5)], base_offset=base)
        for base in (0, 5, 10, 15)
    ]
    batches[2] = batches[2][:-1] + b"~"
    write_logs(tmp_path / "orders-0", {0: b"".join(batches)})
    with pytest.raises(kafkajit.CorruptRecordError, match="with --ending-offset 10 the log ends"):
        kafkajit.restore(tmp_path / "orders-0", tmp_path / "kafka", **border)
    restored = restore(tmp_path / "orders-0", tmp_path / "kafka", ending_offset=10)
    assert restored.end_offset == 10


def test_a_last_batch_whose_base_offset_may_be_damaged_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "backup" / "t-0"
    folder.mkdir(parents=True)
    one, other = (kt.batch([kt.Record(value=b"0")] * 2, base_offset=at) for at in (0, 1026))
    (folder / f"{0:020}.log").write_bytes(one + other)
    plan = kafkajit.restore(tmp_path / "backup", tmp_path / "kafka", topic_ids=None)
    (loss,) = plan.partitions[0].losses
    assert "begins at offset 1026, the one before it ends at 1" in str(loss)
    assert loss.advice == "with --ending-offset 2 the log ends before it"
    plan = kafkajit.restore(
        tmp_path / "backup", tmp_path / "kafka", topic_ids=None, ending_offset=2
    )
    assert plan.partitions[0].losses == []


def test_a_hidden_segment_with_a_negative_base_offset_is_an_error(tmp_path: Path) -> None:
    """One bit of a base offset; a log with gaps, as compaction leaves them."""
    folder = tmp_path / "backup" / "t-0"
    folder.mkdir(parents=True)
    for base, first, count in ((0, 0, 3), (16, 18, 4), (32, 33, 2)):
        log = bytearray(kt.batch([kt.Record(value=b"0")] * count, base_offset=first))
        log[0] ^= 0x80 * (base == 16)
        (folder / f"{base:020}.log").write_bytes(log)
    (tmp_path / "backup" / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 35\n")
    with pytest.raises(kafkajit.InvalidOffsetError, match="which only this one has"):
        restore(tmp_path / "backup", tmp_path / "kafka")
    restore(tmp_path / "backup", tmp_path / "kafka", ending_offset=10)
    assert [offset for offset, _ in pairs(tmp_path / "kafka" / "t-0")] == [0, 1, 2]
