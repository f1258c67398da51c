from __future__ import annotations

from pathlib import Path

from partitions import data, log_name

from kafkajit.upkeep.repair.segment_names import name_segments


def named(folder: Path, logs: dict[int, bytes], *, salvage: bool = False) -> dict[int, int]:
    """The base offsets in the names of logs → those in their new names."""
    paths = {}
    for base_offset, content in logs.items():
        paths[base_offset] = folder / log_name(base_offset)
        paths[base_offset].write_bytes(content)
    found = name_segments(paths, salvage=salvage)
    assert [segment.base_offset for segment in found] == sorted(s.base_offset for s in found)
    return {int(segment.log.stem): segment.base_offset for segment in found}


def test_a_name_may_be_before_the_first_offset(tmp_path: Path) -> None:
    assert named(tmp_path, {0: data(4), 10: data(17), 30: b""}) == {0: 0, 10: 10, 30: 30}


def test_a_name_behind_the_first_offset_is_put_right_where_there_is_room(tmp_path: Path) -> None:
    logs = {0: data(0), 250: data(100) + data(110), 200: data(200)}
    assert named(tmp_path, logs) == {0: 0, 250: 100, 200: 200}


def test_exchanged_names_are_put_right(tmp_path: Path) -> None:
    logs = {0: data(0), 10: data(30), 20: data(10), 30: data(21)}
    assert named(tmp_path, logs) == {0: 0, 10: 30, 20: 10, 30: 21}


def test_an_exchanged_log_that_is_damaged_is_put_right_to_be_salvaged(tmp_path: Path) -> None:
    damaged = bytearray(data(20) + data(22) + data(24))
    damaged[len(data(20)) + 30] ^= 1
    for salvage, bases in ((False, {10: 10, 20: 20}), (True, {10: 20, 20: 10})):
        folder = tmp_path / str(salvage)
        folder.mkdir()
        assert named(folder, {10: bytes(damaged), 20: data(10)}, salvage=salvage) == bases


def test_a_segment_with_offsets_of_others_keeps_its_name(tmp_path: Path) -> None:
    for place, logs in enumerate(
        [
            {0: data(0) + data(2), 1: data(0) + data(2)},  # a copy
            {0: data(0) + data(50), 60: data(40)},  # a log before has these offsets
            {0: data(0), 45: data(45), 60: data(40) + data(50)},  # a log begins between them
            {50: data(40) + data(38)},  # not in order
            {50: data(40) + data(42)[:-9]},  # damaged
        ]
    ):
        folder = tmp_path / str(place)
        folder.mkdir()
        assert named(folder, logs) == {base: base for base in logs}


def test_a_segment_limits_those_before_it_by_batches_of_its_own(tmp_path: Path) -> None:
    logs = {
        0: data(0) + data(90),
        10: b"",
        20: data(0),
        30: data(30)[:-9],
        40: data(40)[:-9] + data(42),
        50: data(6) + data(50),
    }
    for salvage in (False, True):
        folder = tmp_path / str(salvage)
        folder.mkdir()
        paths = {}
        for base, content in logs.items():
            paths[base] = folder / log_name(base)
            paths[base].write_bytes(content)
        found = name_segments(paths, salvage=salvage)
        assert [segment.base_offset for segment in found if segment.has_batches] == (
            [0, 40, 50] if salvage else [0, 50]
        )
