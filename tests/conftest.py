from __future__ import annotations

from collections import Counter

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

# Tests of one file that run on one worker, one after the other. Fewer, larger groups cost less
# to hand out; more, smaller ones end at the same time.
_AT_ONCE = 100


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group tests for pytest-xdist: a Spark session or a cluster is started on one worker only."""
    counts: Counter[str] = Counter()
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        shared = next((name for name in ("cluster", "spark") if name in fixtures), None)
        file = str(item.path)
        item.add_marker(pytest.mark.xdist_group(shared or f"{file}-{counts[file] // _AT_ONCE}"))
        counts[file] += 1
    # The largest groups first: the others fill the gaps at the end.
    items.sort(key=lambda item: "spark" not in item.path.parts)


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
