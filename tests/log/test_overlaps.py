"""Segments that overlap: each offset once, and the record that a consumer gets, everywhere."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from overlapping import (
    Batch,
    Segments,
    consumed,
    only_hidden,
    overlapping_segments,
    write,
)
from partitions import CONFIG, drop_kept
from scanning import far_away
from streaming import finish, started

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.errors import CorruptRecordError
from kafkajit.log import overlaps
from kafkajit.report.take import DEPTHS, HEADERS, ReportOptions, take
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.partitions import find_partitions
from kafkajit.scan.table import plan_tasks, read_task, schema_of

# The second segment begins inside the first, and the third inside both.
THREE_DEEP = {
    0: [Batch(0, (0, 1, 2), 3), Batch(3, (0, 1, 2, 3, 4), 5)],
    4: [Batch(4, (0, 1), 2), Batch(6, (0, 1, 2), 3)],
    7: [Batch(7, (0,), 1), Batch(8, (0, 1), 2)],
}
# The first has all offsets of the second.
COVERED = {0: [Batch(0, (0, 1, 2, 3), 4)], 2: [Batch(2, (0,), 1)], 4: [Batch(4, (0,), 1)]}

NOT_READ = "it is not read, because a broker serves segments before it"
READ_FROM_8 = "it is read from offset 8 on, because a broker serves segments before it up to there"


def pairs(rows: pa.Table | pa.RecordBatch) -> list[tuple[int, int]]:
    return list(zip(rows["offset"].to_pylist(), map(int, rows["value"].to_pylist()), strict=True))


def rows_of(folder: Path | str, predicates: Any = (), **options: str) -> pa.Table:
    parsed = ScanOptions.parse({"path": str(folder), **options})
    schema = schema_of(parsed)
    rows = [
        rows for task in plan_tasks(parsed, predicates) for rows in read_task(task, schema, parsed)
    ]
    return pa.Table.from_batches(rows, schema=schema)


@example(THREE_DEEP, 3, "none")
@example(COVERED, 0, "lz4")
@given(overlapping_segments(), st.integers(0, 90), st.sampled_from(["none", "lz4"]))
def test_every_reader_returns_what_a_consumer_gets(
    segments: Segments, start: int, codec: str
) -> None:
    wanted = consumed(segments)
    with TemporaryDirectory() as root:
        folder = Path(root) / "orders-0"
        write(folder, segments, codec)
        # A last batch behind a gap counts as damaged unless the log was compacted.
        (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 1000\n")
        assert pairs(kafkajit.dataset(folder).to_table(columns=["offset", "value"])) == wanted
        later = kafkajit.dataset(folder, filters=[("offset", ">=", start)])
        assert pairs(later.to_table(columns=["offset", "value"])) == [
            pair for pair in wanted if pair[0] >= start
        ]
        log = kafkajit.Log(folder)
        assert pairs(log.read(log.start_offset, 10_000)) == wanted
        report = take(ReportOptions((str(folder),), depth=HEADERS))
        assert report["totals"]["records"] == len(wanted)
        query = started(folder)
        assert pairs(query.trigger(["offset", "value"])) == wanted
        if wanted:
            kafkajit.export(folder, f"{root}/a.parquet")
            assert pairs(pq.read_table(f"{root}/a.parquet")) == wanted


# A segment, its last batch's base offset with a wrong bit, and where the segment behind begins.
LEAPS: dict[str, tuple[list[Batch], int, int]] = {
    "the only batch": ([Batch(5, (0, 1, 2, 3, 4, 5), 6)], 7, 11),
    "the last batch": ([Batch(5, (0, 1), 2), Batch(7, (0, 1, 2, 3), 4)], 15, 11),
    "far behind a gap": ([Batch(5, (0, 1), 2), Batch(8, (0,), 1)], 8 + (1 << 21), 11),
    "the last of many": ([Batch(5 + n, (0,), 1) for n in range(8)], 28, 13),
}


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("name", LEAPS)
def test_a_segment_that_overlaps_only_by_a_wrong_bit_is_damaged(
    name: str, has_index: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches, wrong, bound = LEAPS[name]
    begin = batches[-1].base
    behind = [Batch(bound, (0,), 1), Batch(bound + 1, (0, 1, 2, 3), 4)]
    sound = {0: [Batch(0, (0, 1, 2, 3, 4), 5)], 5: batches[:-1], bound: behind}
    folder = tmp_path / "logs" / "orders-0"
    write(folder, sound | {5: batches})
    if has_index:
        kafkajit.repair(folder, config=CONFIG).apply()
        drop_kept(folder)
    path = folder / f"{5:020}.log"
    content = path.read_bytes()
    position = content.rindex(begin.to_bytes(8, "big") + b"\0\0\0")
    path.write_bytes(content[:position] + wrong.to_bytes(8, "big") + content[position + 8 :])
    finish(folder)
    logs, wanted = str(tmp_path / "logs"), consumed(sound)
    place = f"which end at {[4, *(one.last for one in batches[:-1])][-1]} and begin at {bound}"
    with pytest.raises(CorruptRecordError, match=place):
        rows_of(logs)
    assert pairs(rows_of(logs, mode="DROPMALFORMED")) == wanted
    for words, status in ((["tail", "-n", "all"], 1), (["grep", "-c", "."], 2)):
        assert main([*words, logs]) == status
        assert place in capsys.readouterr().err
    out = str(tmp_path / "a.parquet")
    assert main(["export", logs, "-o", out, "--mode", "DROPMALFORMED"]) == 2
    assert pairs(pq.read_table(out)) == wanted
    assert main(["restore", "--apply", logs, str(tmp_path / "restored")]) == 1
    assert place in capsys.readouterr().err
    assert len(rows_of(logs, mode="DROPMALFORMED", overlaps="all")) > len(wanted)


@pytest.mark.parametrize("begin", [5, 6, 8, 9])
def test_a_segment_that_overlaps_otherwise_is_served(begin: int, tmp_path: Path) -> None:
    """Compaction leaves such gaps, too."""
    behind = [Batch(11, (0,), 1), Batch(12, (0, 1, 2, 3), 4)]
    segments = {5: [Batch(begin, (0, 1, 2, 3, 4, 5), 6)], 11: behind}
    write(tmp_path / "orders-0", segments)
    assert pairs(rows_of(tmp_path / "orders-0")) == consumed(segments)


@given(overlapping_segments(), st.integers(0, 4), st.integers(1, 70))
@example({0: [Batch(0, (0, 1), 2), Batch(2, (0,), 1)], 3: [Batch(3, (0,), 1)]}, 0, 4)
def test_a_segment_under_the_name_of_another_one_is_read_as_a_broker_serves_it(
    segments: Segments, which: int, later: int
) -> None:
    base = sorted(segments)[which % len(segments)]
    segments = {base + later: segments[base]} | segments
    wanted = consumed(segments)
    with TemporaryDirectory() as root:
        folder = Path(root) / "orders-0"
        write(folder, segments)
        damage = rows_of(folder, kind="corruption")["reason"].to_pylist()
        assume(not any("The base offset does not fit" in reason for reason in damage))
        dataset = kafkajit.dataset(folder)
        assert pairs(dataset.to_table(columns=["offset", "value"])) == wanted
        report = take(ReportOptions((str(folder),), depth=HEADERS))
        assert report["totals"]["records"] == len(wanted)
        query = started(folder, failOnDataLoss="false")
        found = pairs(query.trigger(["offset", "value"]))
        assert found == wanted[: len(found)]  # it waits for segments that are missing


def test_a_stream_reads_on_in_a_segment_under_the_name_of_another_one(tmp_path: Path) -> None:
    copied = [Batch(2, (0,), 1), Batch(3, (0, 1), 2)]
    write(tmp_path / "orders-0", {0: [Batch(0, (0, 1, 2), 3), Batch(3, (0,), 1)], 9: copied})
    query = started(tmp_path / "orders-0", failOnDataLoss="false")
    assert pairs(query.trigger(["offset", "value"])) == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 9)]


@pytest.mark.parametrize("copied", [[Batch(0, (0,), 1), Batch(1, (0,), 1)], []])
def test_a_position_stands_on_a_batch_that_is_served(
    copied: list[Batch], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(
        tmp_path / "orders-0",
        {
            0: [Batch(0, (0,), 1), Batch(1, (0, 1, 2), 3)],
            1: [Batch(1, (0,), 1), Batch(2, (0,), 1)],
            9: copied,
        },
    )
    query = started(tmp_path / "orders-0", failOnDataLoss="false", mode="DROPMALFORMED")
    query.restart()
    rows = pairs(query.trigger(["offset", "value"]))
    query.restart()
    assert rows + pairs(query.trigger(["offset", "value"])) == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert "is not the one that was read" not in caplog.text


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_a_copy_under_a_later_name_is_not_read_twice(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = [Batch(0, (0, 1), 2), Batch(2, (0,), 1)]
    write(tmp_path / "logs" / "orders-0", {0: batches, 3: [Batch(3, (0,), 1)], 7: batches})
    root = tmp_path / "logs"
    path = far_away(monkeypatch, root) if place == "bucket" else str(root)
    assert pairs(rows_of(path)) == [(0, 0), (1, 0), (2, 0), (3, 3)]
    assert main(["grep", "-c", ".", path]) == 0
    assert capsys.readouterr().out == "orders-0\t4\n"
    rows = rows_of(path, kind="corruption").to_pylist()
    assert [(row["position"], row["length"]) for row in rows][-1] == (
        0,
        (root / "orders-0" / f"{7:020}.log").stat().st_size,
    )
    assert "it is read from offset 4 on" in rows[-1]["reason"]


def test_a_first_batch_that_goes_back_is_damage(tmp_path: Path) -> None:
    back = Batch(1, (0,), 1)  # a flipped bit in the base offset: it is 5
    write(
        tmp_path / "orders-0",
        {
            0: [Batch(0, (0, 1, 2, 3), 4)],
            4: [Batch(4, (0,), 1)],
            5: [back, Batch(6, (0,), 1)],
        },
    )
    found = rows_of(tmp_path, mode="DROPMALFORMED")
    assert found["offset"].to_pylist() == [0, 1, 2, 3, 4, 6]
    with pytest.raises(CorruptRecordError, match="which is named by offset 5"):
        rows_of(tmp_path)


def test_a_wrong_end_hides_no_segment(tmp_path: Path) -> None:
    wrong = Batch(1, (0,), 1)  # a flipped bit in the base offset: it is 7
    write(
        tmp_path / "orders-0",
        THREE_DEEP | {10: [Batch(10, (0, 1), 2), wrong], 14: [Batch(14, (0,), 1)]},
    )
    found = rows_of(tmp_path, mode="DROPMALFORMED")
    assert pairs(found)[-3:] == [(10, 10), (11, 10), (14, 14)]


def test_a_report_names_what_consumers_do_not_get(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", THREE_DEEP)
    for depth in DEPTHS:
        found = take(ReportOptions((str(tmp_path),), depth=depth))
        told = [
            (one["kind"], Path(one["path"]).name, one["position"], one["problem"])
            for one in found["trouble"]
        ]
        (log,) = (tmp_path / "orders-0").glob("*4.log")
        assert found["trouble"][0]["length"] == log.stat().st_size
        assert told == [
            ("overlap", f"{4:020}.log", 0, NOT_READ),
            (
                "overlap",
                f"{7:020}.log",
                0,
                READ_FROM_8,
            ),
        ]
        assert found["topics"][0]["eachPartition"][0]["endOffset"] == 10


@given(overlapping_segments(), st.integers(0, 90))
def test_a_look_up_begins_in_the_segment_that_an_offset_belongs_to(
    segments: Segments, start: int
) -> None:
    with TemporaryDirectory() as root:
        folder = Path(root) / "orders-0"
        write(folder, segments)
        log = kafkajit.Log(folder)
        if log.start_offset <= start <= log.end_offset:
            assert pairs(log.read(start, 10_000)) == consumed(segments, start)


@pytest.mark.parametrize("segments", [THREE_DEEP, COVERED], ids=["three deep", "covered"])
def test_a_bucket_is_read_as_a_folder_is(
    segments: Segments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "orders-0", segments)
    uri = far_away(monkeypatch, tmp_path)
    found = rows_of(uri)  # type: ignore[arg-type]
    assert pairs(found) == consumed(segments)


def test_small_and_large_last_batches_are_found(tmp_path: Path) -> None:
    for name, size in (("a-0", 10), ("b-0", 20 << 10), ("c-0", 300 << 10), ("d-0", 5 << 20)):
        folder = tmp_path / name
        folder.mkdir()
        values = [b"first", b"x" * size]
        log = b"".join(
            kt.batch([kt.Record(value=value)], base_offset=n) for n, value in enumerate(values)
        )
        (folder / f"{0:020}.log").write_bytes(log)
        second = kt.batch([kt.Record(value=b"second")] * 2, base_offset=1)
        (folder / f"{1:020}.log").write_bytes(second)
        values = kafkajit.dataset(folder).to_table(columns=["value"])["value"].to_pylist()
        assert values == [b"first", b"x" * size, b"second"]


@pytest.mark.parametrize("end", [bytes(5000), b"torn"], ids=["zeros", "a torn batch"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_old_messages_and_what_comes_after_the_last_batch_do_not_hide_it(
    magic: int, end: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    if magic == 2:
        first = kt.batch([kt.Record(value=b"first")] * 4, base_offset=0)
    else:
        first = b"".join(
            kt.message(kt.Record(value=b"first"), offset=n, magic=magic) for n in range(4)
        )
    (folder / f"{0:020}.log").write_bytes(first + end)
    second = kt.batch([kt.Record(value=b"second")] * 4, base_offset=2)
    (folder / f"{2:020}.log").write_bytes(second)
    found = rows_of(folder, mode="DROPMALFORMED")["value"].to_pylist()
    assert found == [b"first"] * 4 + [b"second"] * 2


def test_a_wrong_base_offset_does_not_hide_the_segments_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    batches = [
        kt.batch([kt.Record(value=b"v")] * 2, base_offset=at) for at in (0, 2, 4 + (1 << 30))
    ]
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    later = kt.batch([kt.Record(value=b"w")] * 2, base_offset=6)
    (folder / f"{6:020}.log").write_bytes(later)
    found = rows_of(folder, mode="DROPMALFORMED")
    assert found["offset"].to_pylist() == [0, 1, 2, 3, 6, 7]
    with pytest.raises(CorruptRecordError, match="which end at 3 and begin at 6"):
        rows_of(folder)
    position = 2 * len(batches[0])
    assert (
        f"the batch at position {position} begins at offset {4 + (1 << 30)}, and should begin at "
        "4, since the next segment begins at 6: it is not taken for an overlap"
    ) in caplog.text


def test_what_is_not_read_is_told_once_and_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kafkajit")
    write(tmp_path / "orders-0", COVERED | {3: [Batch(3, (0, 1, 2), 3)]})
    for _ in range(2):
        assert pairs(rows_of(tmp_path)) == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 4)]
    second, third = (f"{tmp_path}/orders-0/{base:020}.log" for base in (2, 3))
    hidden = f"{NOT_READ}. The option overlaps=all reads all of it"
    lost = f"{third}: offset 5 is left out, because a broker serves another segment there"
    assert [message.partition(", which")[0] for message in caplog.messages] == [
        f"{second}: {hidden}",
        f"{third}: {hidden}",
        lost,
    ]
    both = rows_of(tmp_path, overlaps="all")
    assert sorted(both["offset"].to_pylist()) == [0, 1, 2, 2, 3, 3, 4, 4, 5]
    batches = rows_of(tmp_path, kind="batches")
    assert batches["baseOffset"].to_pylist() == [0, 4]


def test_the_table_of_corruption_has_what_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", THREE_DEEP)
    found = rows_of(tmp_path, kind="corruption").select(["path", "position", "length", "reason"])
    logs = {base: tmp_path / "orders-0" / f"{base:020}.log" for base in THREE_DEEP}
    one = len(kt.batch([kt.Record(b"k", b"7")]))
    assert found.to_pylist() == [
        {
            "path": str(logs[4]),
            "position": 0,
            "length": logs[4].stat().st_size,
            "reason": NOT_READ,
        },
        {
            "path": str(logs[7]),
            "position": 0,
            "length": one,
            "reason": READ_FROM_8,
        },
    ]
    assert rows_of(tmp_path, kind="corruption", overlaps="all").num_rows == 0


def test_grep_finds_each_record_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "orders-0", THREE_DEEP)
    assert main(["grep", "--format", "json", ".", str(tmp_path)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["offset"], int(line["value"])) for line in lines] == consumed(THREE_DEEP)


def test_tail_prints_the_records_of_the_end_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "orders-0", THREE_DEEP)
    assert main(["tail", "-n", "all", str(tmp_path)]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(int(line[1]), int(line[4])) for line in lines] == consumed(THREE_DEEP)


def test_an_end_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "orders-0", THREE_DEEP)
    rows_of(tmp_path)
    monkeypatch.setattr(overlaps, "_last_offset", lambda *_: pytest.fail("it is looked up again"))
    rows_of(tmp_path)


# The segment with offsets 5 to 8 is not served, because the first one ends
# after it.
LEAPING = {0: [Batch(0, (0, 1, 2, 3, 4), 5), Batch(9, (0,), 1)], 5: [Batch(5, (0, 1, 3), 4)]}


@given(overlapping_segments())
@example(LEAPING)
def test_records_that_only_hidden_segments_have_are_named(segments: Segments) -> None:
    with TemporaryDirectory() as root:
        write(Path(root) / "orders-0", segments)
        found: list[Exception] = []
        options = replace(ScanOptions.parse({"path": root}), failed=found.append)
        find_partitions(options)
        named = [
            offset
            for error in found
            for first, last in re.findall(
                r"offsets? (\d+)(?: to (\d+))? (?:is|are) left", str(error)
            )
            for offset in range(int(first), int(last or first) + 1)
        ]
    assert set(named) == only_hidden(segments)


def test_commands_name_them_and_end_with_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "logs" / "orders-0", LEAPING)
    out = tmp_path / "out.jsonl"
    path = str(tmp_path / "logs")
    line = f"{path}/orders-0/{5:020}.log: offsets 5 to 6 are left out"
    for code, words in (
        (1, ["export", path, "-o", str(out)]),
        (2, ["grep", ".", path]),
        (1, ["tail", "-n", "all", path]),
    ):
        assert main(words) == code, words
        assert line in capsys.readouterr().err
