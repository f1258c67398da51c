"""A segment that comes while a command runs: its records are read, or named as not read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exporting import records_in
from partitions import data, log_name, marker, transactional

import kafkajit
from kafkajit.cli import main
from kafkajit.log import live_segments, segment_gaps
from kafkajit.log.log import Log
from kafkajit.log.segment_gaps import gaps_between

Arriving = Callable[[str, dict[int, bytes]], None]
# What a folder has when it is listed, and what comes before its gaps are looked for.
FIRST = {0: data(0, 5), 10: data(10, 5), 15: data(15, 5)}
LATE = {5: data(5, 5)}
ALL = list(range(20))


def put(folder: Path, segments: dict[int, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for base_offset, content in segments.items():
        (folder / log_name(base_offset)).write_bytes(content)
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    put(tmp_path / "logs" / "orders-0", FIRST)
    return tmp_path / "logs"


@pytest.fixture
def arriving(logs: Path, monkeypatch: pytest.MonkeyPatch) -> Arriving:
    """Lets segments come just before a module looks for gaps."""

    def arrive(module: str, segments: dict[int, bytes]) -> None:
        def look(*given: Any) -> Any:
            put(logs / "orders-0", segments)
            return gaps_between(*given)

        monkeypatch.setattr(f"kafkajit.{module}.gaps_between", look)

    return arrive


def offsets_in(folder: Path, tmp_path: Path) -> list[int]:
    kafkajit.import_files(folder, tmp_path / "back").apply()
    (rows,) = records_in(tmp_path / "back").values()
    return [row["offset"] for row in rows]


@pytest.mark.parametrize("first", [FIRST, FIRST | {5: b""}], ids=["missing", "empty"])
def test_an_export_leaves_what_is_behind_a_late_segment_to_a_later_run(
    first: dict[int, bytes],
    logs: Path,
    tmp_path: Path,
    arriving: Arriving,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(logs / "orders-0", first)
    arriving("scan.export.partition_rows", LATE)
    words = ["export", str(logs), "-o", str(tmp_path / "out"), "--to", "parquet"]
    assert main(words) == 1
    assert "offsets 5 to 9 are in a segment that has come since" in capsys.readouterr().err
    assert main(words) == 0
    assert offsets_in(tmp_path / "out", tmp_path) == ALL


def test_what_came_and_what_is_still_missing_are_named(
    logs: Path, tmp_path: Path, arriving: Arriving
) -> None:
    (logs / "orders-0" / log_name(10)).unlink()
    arriving("scan.export.partition_rows", LATE)
    first = kafkajit.export(logs, tmp_path / "out", to="parquet")
    (text,) = first.lost
    assert "offsets 5 to 9 are in a segment that has come since" in text
    second = kafkajit.export(logs, tmp_path / "out", to="parquet")
    assert "offsets 10 to 14 are missing" in "".join(second.lost)
    expected = [offset for offset in ALL if not 10 <= offset < 15]
    assert offsets_in(tmp_path / "out", tmp_path) == expected


def test_a_later_run_names_what_named_segments_lacked(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(logs / "orders-0", LATE)
    words = ["-o", str(tmp_path / "out"), "--to", "parquet"]
    assert main(["export", f"{logs}/orders-0/*[05].log", "--partition=orders-0", *words]) == 0
    (logs / "orders-0" / log_name(15)).touch()
    (tmp_path / "out").rename(tmp_path / "other")
    some = [str(logs / "orders-0" / log_name(base)) for base in (0, 10, 15)]
    assert main(["export", *some, *words]) == 0
    capsys.readouterr()
    assert main(["export", str(logs), *words]) == 1
    assert "an earlier run lacked offsets 5 to 9" in capsys.readouterr().err


def test_grep_names_a_late_segment(
    logs: Path,
    arriving: Arriving,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arriving("scan.search", LATE)
    assert main(["grep", "00000007", str(logs)]) == 2
    assert "offsets 5 to 9 are in a segment that has come since" in capsys.readouterr().err


def test_restore_names_a_late_segment_and_one_that_has_grown(
    logs: Path,
    tmp_path: Path,
    arriving: Arriving,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = data(0, 3) + data(3, 2)
    put(logs / "orders-0", {0: whole[: len(data(0, 3))]})
    arriving("upkeep.restore.source_logs", LATE | {0: whole})
    words = ["restore", "--apply", str(logs), str(tmp_path / "kafka")]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "has grown since it was listed" in said
    assert "offsets 3 to 9 are in a segment that has come since" in said


@pytest.mark.parametrize("gone", [(0,), (20,), (0, 20)])
def test_a_gap_beside_a_segment_that_is_gone_has_not_come(
    gone: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention, or a broker that deletes the topic, removes segments after they were listed."""
    folder = put(tmp_path / "orders-0", {0: data(0, 5), 20: data(20, 5)})
    listed = Log(folder).segments

    def listed_again(*given: Any) -> Any:
        for base_offset in gone:
            (folder / log_name(base_offset)).unlink()
        return live_segments.listed_again(*given)

    monkeypatch.setattr(segment_gaps, "listed_again", listed_again)
    assert gaps_between(listed) == segment_gaps.Gaps([], [])


def test_gaps_are_those_of_the_segments_that_were_listed(tmp_path: Path) -> None:
    folder = put(tmp_path / "orders-0", {0: data(0, 5), 20: data(20, 5)})
    listed = Log(folder).segments
    assert [(gap.first, gap.last) for gap in gaps_between(listed).missing] == [(5, 19)]
    put(folder, {10: data(10, 5)})
    gaps = gaps_between(listed)
    assert [(gap.first, gap.last) for gap in gaps.missing] == [(5, 9), (15, 19)]
    assert gaps.come == [(10, 14)]
    put(folder, {5: data(5, 5), 15: data(15, 5)})
    assert gaps_between(listed) == segment_gaps.Gaps([], [(5, 19)])


def test_markers_behind_a_late_segment_do_not_decide_about_what_is_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs" / "orders-0"
    put(folder, {0: transactional(0, 1) + data(2, 3), 10: marker(10, 1, 0) + data(11, 4)})

    def look(*given: Any) -> Any:
        put(folder, {5: marker(5, 1, 1) + transactional(6, 1, 2) + transactional(8, 1, 4)})
        return gaps_between(*given)

    with monkeypatch.context() as patch:
        patch.setattr("kafkajit.scan.export.partition_rows.gaps_between", look)
        first = kafkajit.export(
            folder.parent, tmp_path / "out", to="parquet", isolation_level="read_committed"
        )
        assert first.lost
    second = kafkajit.export(
        folder.parent, tmp_path / "out", to="parquet", isolation_level="read_committed"
    )
    assert not second.lost
    assert offsets_in(tmp_path / "out", tmp_path) == [*range(5), *range(11, 15)]


def test_a_late_segment_may_have_the_timestamp_at_which_an_export_starts(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*given: Any) -> Any:
        put(logs / "orders-0", LATE)
        return gaps_between(*given)

    options = {"to": "parquet", "starting_timestamp": 1_700_000_000_000 + 1000 * 5}
    with monkeypatch.context() as patch:
        patch.setattr("kafkajit.scan.export.partition_rows.gaps_between", look)
        first = kafkajit.export(logs, tmp_path / "out", **options)
        assert "offsets 5 to 9 are in a segment that has come since" in "".join(first.lost)
    assert not kafkajit.export(logs, tmp_path / "out", **options).lost
    assert offsets_in(tmp_path / "out", tmp_path) == [offset for offset in ALL if offset >= 5]


@pytest.mark.parametrize(("field", "size"), [("recordsCount", 57), ("lastOffsetDelta", 23)])
def test_a_flipped_bit_is_no_evidence_that_a_log_was_compacted(
    field: str, size: int, logs: Path
) -> None:
    batch = bytearray(data(0, 3))
    batch[size + 3] ^= 1
    assert batch[size + 3] == {"recordsCount": 2, "lastOffsetDelta": 3}[field]
    put(logs / "orders-0", {0: bytes(batch) + data(3, 2)})
    listed = Log(logs / "orders-0").segments
    assert [(gap.first, gap.last) for gap in gaps_between(listed).missing] == [(5, 9)]
