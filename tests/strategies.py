"""Hypothesis strategies for records and batches that a broker could hold, and some it would not."""

from __future__ import annotations

from hypothesis import strategies as st

import kafkajit.testing as kt

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
# Values around those where a varint grows by a byte, with both signs.
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
