"""Hypothesis strategies for records and batches that a broker could hold, and for some others."""

from __future__ import annotations

from hypothesis import strategies as st

import kafkajit.testing as kt

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
# Values around those at which a varint grows by a byte, with both signs.
_EDGES = [
    sign * 2 ** (7 * n - 1) + step for n in range(1, 10) for sign in (1, -1) for step in (-1, 0, 1)
]
VARINTS = st.one_of(
    INT32, st.sampled_from([edge for edge in _EDGES if -(2**31) <= edge < 2**31]), st.just(0)
)
VARLONGS = st.one_of(INT64, st.sampled_from([*_EDGES, 2**63 - 1, -(2**63)]), st.just(0))

_SIZES = st.sampled_from([0, 1, 62, 63, 64, 65, 127, 128, 300])
DATA = st.one_of(st.binary(max_size=40), _SIZES.map(lambda size: b"x" * size))
NULLABLE = st.one_of(st.none(), DATA)
HEADER = st.tuples(st.one_of(st.text(max_size=10), st.sampled_from(["", "k" * 64])), NULLABLE)
TIMESTAMPS = st.one_of(st.none(), INT64, st.integers(1_700_000_000_000, 1_700_000_100_000))

RECORD = st.builds(
    kt.Record,
    key=NULLABLE,
    value=NULLABLE,
    headers=st.lists(HEADER, max_size=4),
    timestamp=TIMESTAMPS,
    offset_delta=st.one_of(st.none(), VARINTS),
    attributes=st.integers(0, 255),
)

BATCH = st.builds(
    kt.batch,
    st.lists(RECORD, max_size=6),
    base_offset=INT64,
    codec=st.sampled_from(kt.CODECS),
    base_timestamp=st.one_of(INT64, st.just(1_700_000_000_000)),
    max_timestamp=INT64,
    timestamp_type=st.sampled_from([kt.CREATE_TIME, kt.LOG_APPEND_TIME]),
    is_transactional=st.booleans(),
    delete_horizon_ms=st.one_of(st.none(), INT64),
    producer_id=INT64,
    producer_epoch=st.integers(-(2**15), 2**15 - 1),
    base_sequence=st.one_of(
        st.just(-1), st.integers(0, 2**31 - 1), st.integers(2**31 - 5, 2**31 - 1)
    ),
    partition_leader_epoch=INT32,
    last_offset_delta=st.one_of(st.none(), INT32),
)


@st.composite
def honest_batches(draw: st.DrawFn, base_offset: int) -> tuple[bytes, int]:
    """A batch as a broker keeps it, with a true header, and the offset behind it."""
    deltas = draw(st.lists(st.integers(0, 4), max_size=4, unique=True).map(sorted))
    last_delta = max(deltas, default=0) + draw(st.integers(0, 2))  # compaction takes the last
    base_timestamp = draw(BROKER_TIMESTAMPS)
    timestamps = draw(st.lists(BROKER_TIMESTAMPS, min_size=len(deltas), max_size=len(deltas)))
    records = [
        kt.Record(value=b"v%d" % (base_offset + delta), timestamp=timestamp, offset_delta=delta)
        for delta, timestamp in zip(deltas, timestamps, strict=True)
    ]
    timestamp_type = draw(st.sampled_from([kt.CREATE_TIME, kt.CREATE_TIME, kt.LOG_APPEND_TIME]))
    log_append_time = draw(BROKER_TIMESTAMPS)
    batch = kt.batch(
        records,
        base_offset=base_offset,
        codec=draw(st.sampled_from(["none", "none", "lz4"])),
        base_timestamp=base_timestamp,
        max_timestamp=log_append_time if timestamp_type else max(timestamps, default=-1),
        timestamp_type=timestamp_type,
        delete_horizon_ms=draw(st.sampled_from([None, None, None, base_timestamp])),
        last_offset_delta=last_delta,
    )
    return batch, base_offset + last_delta + 1


# Few values, close to each other, so that conditions often match. Spark cannot hold some of them.
BROKER_TIMESTAMPS = st.one_of(
    st.integers(1_700_000_000_000, 1_700_000_000_020),
    st.sampled_from([-1, 0, 1_700_000_000_010, 2**63 - 1, -(2**63)]),
)


@st.composite
def partitions(draw: st.DrawFn, first_offset: int = 0) -> dict[int, bytes]:
    """A partition's segments by base offset: honest batches, rolled anywhere, with gaps between."""
    segments: dict[int, bytes] = {}
    offset = draw(st.integers(first_offset, first_offset + 5))
    for _ in range(draw(st.integers(1, 4))):
        base_offset, log = offset, b""
        offset += draw(st.sampled_from([0, 0, 3]))  # the first batch may be gone
        for _ in range(draw(st.integers(0, 4))):
            batch, offset = draw(honest_batches(offset))
            log += batch
            offset += draw(st.sampled_from([0, 0, 2]))
        segments[base_offset] = log
        offset = max(offset, base_offset + 1)
    return segments


@st.composite
def transactional_logs(draw: st.DrawFn) -> dict[int, bytes]:
    """A partition's segments with the transactions of several producers, some of them open."""
    events = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["send", "send", "send", "commit", "abort", "outside", "roll"]),
                st.integers(1, 3),  # the producer
                st.integers(1, 3),  # how many records
            ),
            max_size=25,
        )
    )
    segments = {0: b""}
    offset = 0
    for event, producer_id, count in events:
        log = max(segments)
        if event == "roll":
            segments.setdefault(offset, b"")
            continue
        if event in ("commit", "abort"):
            segments[log] += kt.control_batch(
                event == "commit", producer_id=producer_id, base_offset=offset
            )
            offset += 1
            continue
        segments[log] += kt.batch(
            [kt.Record(value=b"%d" % (offset + place)) for place in range(count)],
            base_offset=offset,
            codec=draw(st.sampled_from(["none", "none", "zstd"])),
            is_transactional=event == "send",
            # Idempotent producers have ids too; only some of them use transactions.
            producer_id=producer_id
            if event == "send"
            else draw(st.sampled_from([-1, producer_id])),
            base_sequence=0,
        )
        offset += count
    return segments
