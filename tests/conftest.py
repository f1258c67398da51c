from __future__ import annotations

import pytest
from corpus import NO_JIT
from hypothesis import HealthCheck, settings

import kafkajit.testing as kt

# derandomize: the same examples in every run, so that a failure in CI is one everywhere.
settings.register_profile(
    "kafkajit",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=30 if NO_JIT else 100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("kafkajit")


@pytest.fixture
def three_batches() -> bytes:
    """A small log of one plain, one compressed and one transactional batch: offsets 5 to 11."""
    return (
        kt.batch([kt.Record(b"a", b"1"), kt.Record(None, b"2"), kt.Record(b"c")], base_offset=5)
        + kt.batch([kt.Record(b"d", b"4" * 50, [("h", b"x")])] * 2, base_offset=8, codec="zstd")
        + kt.batch(
            [kt.Record(b"e", b"6"), kt.Record(b"f", b"")],
            base_offset=10,
            is_transactional=True,
            producer_id=7,
            producer_epoch=1,
            base_sequence=3,
        )
    )
