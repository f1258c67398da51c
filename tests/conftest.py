from __future__ import annotations

from collections import Counter, defaultdict
from zlib import crc32

import pytest
from corpus import NO_JIT
from hypothesis import HealthCheck, settings

import kafkajit.testing as kt

# A plain run is for while you work: of each test it takes this many parameters and examples, and
# it leaves out the tests marked as thorough. `--thorough` runs everything, as does
# `.ci/run --thorough`.
_PARAMETERS = 8
_EXAMPLES = 20
_THOROUGH_EXAMPLES = 30 if NO_JIT else 100

# Tests of one file that run on one worker, one after the other. Fewer, larger groups cost less
# to hand out; more, smaller ones end at the same time.
_AT_ONCE = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="run every test with every parameter, and more examples of each property",
    )


def pytest_configure(config: pytest.Config) -> None:
    is_thorough = config.getoption("--thorough")
    # derandomize: the same examples in every run, so that a failure in CI is one everywhere.
    settings.register_profile(
        "kafkajit",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=_THOROUGH_EXAMPLES if is_thorough else _EXAMPLES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("kafkajit")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--thorough"):
        quick = _quick(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in quick])
        items[:] = [item for item in items if item in quick]
    _group(items)


def _quick(items: list[pytest.Item]) -> set[pytest.Item]:
    """The tests of a plain run: of many parameters a few, the same in every run."""
    whole = {item for item in items if item.get_closest_marker("whole")}
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("thorough"):
            tests[item.nodeid.partition("[")[0]].append(item)
    return whole | {
        item
        for cases in tests.values()
        # in an order that mixes all parameters of a test that has several
        for item in sorted(cases, key=lambda item: crc32(item.nodeid.encode()))[:_PARAMETERS]
    }


def _group(items: list[pytest.Item]) -> None:
    """Group tests for pytest-xdist: by file, and those that need the cluster on one worker."""
    counts: Counter[str] = Counter()
    for item in items:
        file = str(item.path)
        group = f"{file}-{counts[file] // _AT_ONCE}"
        counts[file] += 1
        if "cluster" in getattr(item, "fixturenames", ()):
            group = "cluster"
        item.add_marker(pytest.mark.xdist_group(group))


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
