"""find_corruption: where a log is damaged, why, and which offsets are missing there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus import by_sound_log, rows_of
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit import testing as kt


def batch(first: int, last: int, codec: str = "none", magic: int = 2) -> bytes:
    """A batch that has these offsets and perhaps some between them."""
    if magic == 2:
        last_record = kt.Record(value=b"last", offset_delta=last - first)
        records = [kt.Record(value=b"first")] * (last > first) + [last_record]
        return kt.batch(records, base_offset=first, codec=codec)
    count = last - first + 1
    return kt.message_set(
        [kt.Record(value=b"v")] * count, base_offset=first, codec=codec, magic=magic
    )


BAD = kt.broken("wrong crc", base_offset=77)
CRC = "CorruptRecordError: Record is corrupt (stored crc = 1, computed crc = "


def found_in(source: Any, **options: Any) -> list[tuple[int, int, int | None, int | None]]:
    columns = ["position", "length", "firstMissingOffset", "lastMissingOffset"]
    table = kafkajit.find_corruption(source, **options)
    return [tuple(row[name] for name in columns) for row in rows_of(table)]


@by_sound_log
def test_a_sound_log_has_no_corruption(path: Path) -> None:
    assert kafkajit.find_corruption(path).num_rows == 0


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_offsets_between_the_batches_around_it_are_missing(magic: int, codec: str) -> None:
    before, behind = batch(10, 14, codec, magic), batch(20, 22, codec, magic)
    assert found_in(before + BAD + behind) == [(len(before), len(BAD), 15, 19)]


def test_nothing_is_missing_if_offsets_go_on_without_a_gap() -> None:
    before, behind = batch(10, 14), batch(15, 16)
    assert found_in(before + b"noise" * 9 + behind) == [(len(before), 45, None, None)]


def test_offsets_of_a_batch_that_compaction_emptied_are_not_missing() -> None:
    before = kt.batch([], base_offset=10, last_offset_delta=9)
    assert found_in(before + BAD + batch(21, 21)) == [(len(before), len(BAD), 20, 20)]


def test_a_set_ends_with_its_last_record_whatever_its_own_offset() -> None:
    before = kt.message_set([kt.Record()] * 5, codec="gzip", wrapper_offset=0)
    assert found_in(before + BAD + batch(9, 9)) == [(len(before), len(BAD), 5, 8)]


def test_offsets_that_go_back_reveal_no_gap() -> None:
    before, behind = batch(10, 14), batch(3, 5)
    assert found_in(before + BAD + behind) == [(len(before), len(BAD), 15, None)]


def test_unknown_values_are_null() -> None:
    assert found_in(BAD) == [(0, len(BAD), None, None)]
    assert found_in(BAD + batch(5, 6)) == [(0, len(BAD), None, 4)]
    before = batch(5, 6)
    assert found_in(before + BAD) == [(len(before), len(BAD), 7, None)]


def test_a_segments_name_is_its_first_offset(tmp_path: Path) -> None:
    segment = tmp_path / f"{40:020}.log"
    segment.write_bytes(BAD + batch(45, 46))
    assert found_in(segment) == [(0, len(BAD), 40, 44)]


def test_adjacent_bad_batches_are_one_stretch_with_their_number() -> None:
    before = batch(1, 1)
    table = kafkajit.find_corruption(before + BAD * 3 + batch(9, 9) + BAD)
    assert [row["length"] for row in rows_of(table)] == [3 * len(BAD), len(BAD)]
    first, second = table["reason"].to_pylist()
    assert first.startswith(CRC)
    assert first.endswith(") (and 2 more)")
    assert second.startswith(CRC)
    assert not second.endswith("more)")


def test_a_torn_end_and_a_preallocated_files_zeros_are_not_damage() -> None:
    for tail in (BAD[:-1], bytes(5000), b"\x01"):
        assert found_in(batch(1, 2) + tail) == []


def test_damage_behind_the_checksum_is_found_too() -> None:
    before, bad = batch(1, 2), kt.broken("cut inside a record", base_offset=3)
    assert found_in(before + bad + batch(9, 9)) == [(len(before), len(bad), 3, 8)]
    marker = kt.repair_crc(kt.control_batch(1, base_offset=3)[:-10] + b"\xff" * 10)
    assert found_in(before + marker + batch(9, 9)) == [(len(before), len(marker), 3, 8)]


def test_checksums_may_be_left_out() -> None:
    assert found_in(batch(1, 2) + BAD, check_crcs=False) == []


def test_a_batch_that_decompresses_to_more_than_allowed_is_damage() -> None:
    bomb = kt.batch([kt.Record(value=bytes(100_000))], codec="zstd", base_offset=3)
    found = found_in(batch(1, 2) + bomb + batch(4, 4), max_decompressed_bytes=1000)
    assert [missing for *_, first, last in found for missing in (first, last)] == [3, 3]


@given(st.lists(st.booleans(), max_size=6))
def test_sound_stretches_and_damage_make_up_the_log(are_good: list[bool]) -> None:
    parts = [batch(3 * i, 3 * i + 2) if good else BAD for i, good in enumerate(are_good)]
    log = b"".join(parts)
    damaged = sum(length for _, length, *_ in found_in(log))
    assert damaged == len(BAD) * are_good.count(False)
    gaps = "".join("ox"[not good] for good in are_good).split("o")
    assert len(found_in(log)) == sum(bool(gap) for gap in gaps)
