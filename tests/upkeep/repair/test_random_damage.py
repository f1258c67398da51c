"""Random damage of every kind, against the slow twin. repair_differential.py runs more."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import NO_JIT
from partition_damages import KINDS, make_partition, starts_of
from repair_differential import Case, run

import kafkajit.testing as kt

# The kinds that there were when the seeds below were found.
SEEDED = sorted(set(KINDS) - {"spoilt_swaps"})


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.whole
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_repair_keeps_and_lists_what_it_must(kind: str, tmp_path: Path) -> None:
    number = sorted(KINDS).index(kind)
    partition = make_partition(number, tmp_path / "partition" / "orders-0")
    Case(partition, kind, number, tmp_path / "work").check(tmp_path / "work")


@pytest.mark.whole
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(2_000_535, id="a damaged marker, and another batch with its offset"),
        pytest.param(2_005_384, id="a marker far ahead of the last batch of a compacted log"),
        pytest.param(2_005_917, id="a snapshot between two gaps that has the transaction open"),
        pytest.param(2_009_947, id="a marker under the offset of another in a compacted log"),
        pytest.param(3_000_105, id="an empty log, and another under its name"),
        pytest.param(3_003_849, id="an empty segment of a compacted log"),
        pytest.param(3_008_763, id="zeros for a segment's last marker, and another log"),
        pytest.param(3_008_919, id="a torn marker, and another log with its offset"),
        pytest.param(3_007_476, id="a lost last segment, and damage at the end before it"),
    ],
)
def test_a_repair_tells_outcomes_in_odd_cases(seed: int) -> None:
    assert run(1, seed, None, SEEDED)["transactions"]


@pytest.mark.whole
def test_a_marker_before_all_holes_is_found_among_what_is_cut_away() -> None:
    assert run(1, 20_008_404, None, ["bit_in_base_offset"])["transactions"]


@pytest.mark.whole
def test_a_copy_of_a_batch_that_is_out_of_order_is_no_loss() -> None:
    assert not run(1, 3_009_387, None, SEEDED)["sound records lost"]


@pytest.mark.whole
def test_batches_of_another_log_stay_where_damage_comes_before_a_base_offset_that_lies() -> None:
    counts = run(1, 3_020_463, None, SEEDED)
    assert (counts["records"], counts["sound records lost"]) == (22, 1)


@pytest.mark.whole
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(3_008_217, id="a last base offset that lies in a log with a wrong name"),
        pytest.param(4_001_078, id="batches behind a gap of a compacted log, and another log"),
    ],
)
def test_a_repair_keeps_what_a_consumer_gets_if_segments_overlap(seed: int) -> None:
    assert run(1, seed, None, SEEDED)["records"]


@pytest.mark.whole
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(5_000_037, id="a link whose target is gone"),
        pytest.param(5_000_106, id="a log under the name of a missing one, in a compacted log"),
        pytest.param(5_000_204, id="a swap that lacks offsets of a log that it replaces"),
        pytest.param(5_000_417, id="an abort whose records are behind a length that lies"),
        pytest.param(5_000_481, id="a gap whose batch another segment has"),
        pytest.param(5_000_864, id="a torn end, and another log with the offset of an abort"),
        pytest.param(5_000_948, id="an abort that only the .txnindex knows"),
        pytest.param(5_001_205, id="an empty .txnindex proves no commit"),
        pytest.param(5_001_297, id="a link to itself"),
    ],
)
def test_several_damages_at_once_are_repaired(seed: int) -> None:
    assert run(1, seed, None, ["several"])


def test_a_batch_whose_length_lies_makes_no_file_larger() -> None:
    content = kt.batch([kt.Record(b"k", b"v")])
    for length in (-(2**31), -12, -1, 2**31 - 1):
        lying = content[:8] + length.to_bytes(4, signed=True) + content[12:]
        assert starts_of(content + lying)[-1] == 2 * len(content)


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="thousands of logs, with kernels that are interpreted")
def test_many_repairs_keep_and_list_what_they_must() -> None:
    counts = run(20 * len(KINDS), 500, None, SEEDED)
    assert counts["outcomes changed, and told"] > 10
    assert counts["sound records lost"] > 10
