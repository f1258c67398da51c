from __future__ import annotations

import numpy as np
import pytest
import reference
from compaction_twin import emptied, rewritten, seen
from hypothesis import given
from hypothesis import strategies as st
from strategies import NULLABLE

import kafkajit.testing as kt
from kafkajit.errors import InvalidRecordError
from kafkajit.records.batches import frame
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Source
from kafkajit.upkeep.compact import record_filter
from kafkajit.upkeep.compact.batch_rewriting import COPIED, DROPPED, EMPTIED, REWRITTEN
from kafkajit.upkeep.compact.record_filter import BatchDecisions, Filtered, RecordFilter, Run

TIMES = st.sampled_from([-1, 0, 1_700_000_000_000, 1_700_000_000_500, 2**62])
HORIZON = 1_800_000_000_000


def run_of(log: bytes, is_read: list[bool] | None = None) -> tuple[Run, Source]:
    source = Source(log)
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    batches = frame(source.content).batches
    read = np.array([True] * len(batches) if is_read is None else is_read, dtype=np.bool_)
    asked = batches[read]
    chunk = decoder.decode(asked) if len(asked) else decoder.headers(asked)
    counts = batches.field("recordsCount").astype(np.int64)
    counts[read] = chunk.counts
    return Run(batches, counts, read, chunk), source


def filtered(
    log: bytes,
    superseded: list[bool],
    *,
    is_read: list[bool] | None = None,
    horizon: int = HORIZON,
    first: int = 0,
    **decisions: list[bool],
) -> Filtered:
    run, source = run_of(log, is_read)
    nothing = [False] * len(run.batches)
    masks = [
        np.array(decisions.get(name, nothing), dtype=np.bool_) for name in BatchDecisions._fields
    ]
    bits = np.packbits([False] * first + superseded + [False], bitorder="little")
    return RecordFilter(horizon).filter(run, source.content, BatchDecisions(*masks), bits, first)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[bytes], list[list[bool]]]:
    """Consecutive batches, and which of their records are superseded."""
    made: list[bytes] = []
    superseded: list[list[bool]] = []
    offset = draw(st.sampled_from([0, 2**40]))
    are_messages = draw(st.sampled_from([False, False, True]))
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(1, 5))
        records = [
            kt.Record(
                draw(NULLABLE),
                draw(NULLABLE),
                [] if are_messages else draw(st.sampled_from([[], [("h", b"x"), ("", None)]])),
                timestamp=draw(TIMES),
            )
            for _ in range(count)
        ]
        codec = draw(st.sampled_from(["none", "none", "gzip", "snappy", "lz4"]))
        timestamp_type = draw(st.sampled_from([kt.CREATE_TIME, kt.CREATE_TIME, kt.LOG_APPEND_TIME]))
        if are_messages:
            made.append(
                kt.message_set(
                    records if codec != "none" else records[:1],
                    base_offset=offset,
                    magic=draw(st.sampled_from([0, 1])),
                    codec=codec,
                    timestamp=5,
                    timestamp_type=timestamp_type if codec != "none" else kt.CREATE_TIME,
                )
            )
            count = count if codec != "none" else 1
        else:
            made.append(
                kt.batch(
                    records,
                    base_offset=offset,
                    codec=codec,
                    base_timestamp=draw(TIMES),
                    timestamp_type=timestamp_type,
                    delete_horizon_ms=draw(st.sampled_from([None, None, 0, 1_700_000_000_000])),
                    last_offset_delta=count + 1,
                    producer_id=draw(st.sampled_from([-1, 7])),
                    producer_epoch=3,
                    base_sequence=9,
                    partition_leader_epoch=4,
                    is_transactional=draw(st.booleans()),
                )
            )
        superseded.append(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
        offset += count + 2
    return made, superseded


@given(batches(), st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=4, max_size=4))
def test_what_comes_out_is_what_the_twin_makes(
    made: tuple[list[bytes], list[list[bool]]], flags: list[list[bool]]
) -> None:
    logs, superseded = made
    decisions = dict(
        zip(BatchDecisions._fields, zip(*flags[: len(logs)], strict=True), strict=True)
    )
    expected, actions, kept = b"", [], 0
    for place, (log, lost) in enumerate(zip(logs, superseded, strict=True)):
        (batch,), _ = reference.read_batches(log)
        records = reference.read_records(batch)
        stay = [
            record
            for record, is_lost in zip(records, lost, strict=True)
            if not is_lost
            and not decisions["discards"][place]
            and (record.value is not None or decisions["keeps_tombstones"][place])
        ]
        kept += len(stay)
        horizon = batch.delete_horizon_ms if batch.magic == 2 else None
        needs = horizon is None and (
            decisions["wants_horizon"][place]
            or (
                decisions["ages_tombstones"][place] and any(record.value is None for record in stay)
            )
        )
        if not stay:
            actions.append(EMPTIED if decisions["keeps_header"][place] else DROPPED)
            expected += emptied(batch) if decisions["keeps_header"][place] else b""
        elif stay == records and not needs and batch.magic == 2:
            actions.append(COPIED)
            expected += log
        else:
            actions.append(REWRITTEN)
            expected += rewritten(batch, stay, HORIZON if needs else horizon)
    bits = [lost for of_batch in superseded for lost in of_batch]
    found = filtered(b"".join(logs), bits, **{name: list(mask) for name, mask in decisions.items()})
    content = found.content.tobytes()
    assert found.actions.tolist() == actions
    assert found.records == kept
    assert seen(content) == seen(expected)
    if not any(batch.codec for batch in reference.read_batches(expected)[0]):
        assert content == expected
    written, _ = reference.read_batches(content)
    assert found.batches.position.tolist() == [batch.position for batch in written]
    assert found.batches.size_in_bytes.tolist() == [batch.size for batch in written]
    assert found.batches.field("crc").tolist() == [batch.crc for batch in written]


THREE = [
    kt.batch([kt.Record(b"%d" % n, b"v"), kt.Record(b"%d" % n, b"v")], base_offset=2 * n)
    for n in range(3)
]


def test_batches_that_were_not_read_stay_whole_or_go() -> None:
    is_read = [False, True, False]
    lost = [True, True, False, True, False, False]
    found = filtered(b"".join(THREE), lost, is_read=is_read)
    assert found.actions.tolist() == [DROPPED, REWRITTEN, COPIED]
    assert found.content.tobytes()[-len(THREE[2]) :] == THREE[2]
    discards = [False, False, True]
    found = filtered(b"".join(THREE), lost, is_read=is_read, discards=discards)
    assert found.actions.tolist() == [DROPPED, REWRITTEN, DROPPED]
    assert found.records == 1


def test_bits_begin_with_the_number_of_the_first_record() -> None:
    found = filtered(THREE[0], [False, True], first=13)
    assert found.records == 1


def test_what_loses_nothing_is_the_source_s_own_bytes() -> None:
    log = b"".join(THREE)
    found = filtered(log, [False] * 6)
    assert found.content.tobytes() == log
    assert found.content.base is not None
    assert found.batches.position.tolist() == [0, len(THREE[0]), len(THREE[0]) * 2]


def test_a_negative_horizon_is_none() -> None:
    log = kt.batch([kt.Record(b"k", None)])
    (batch,), _ = reference.read_batches(
        filtered(log, [False], horizon=-5, keeps_tombstones=[True]).content.tobytes()
    )
    assert batch.delete_horizon_ms is None


def test_markers_stay_whatever_bits_say() -> None:
    log = kt.control_batch(1)
    assert filtered(log, [True]).content.tobytes() == log


def test_a_batch_that_would_pass_the_largest_size_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_filter, "MAX_INT32", 60)
    with pytest.raises(InvalidRecordError, match=r"would grow to \d+ bytes at position 0"):
        filtered(THREE[0], [True, False])
