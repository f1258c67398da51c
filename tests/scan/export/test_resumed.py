"""A run that continues an export, on a log that has changed since the run before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from partitions import data, marker, transactional

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.format.ranges import Range
from kafkajit.scan.export.passed import Passed
from kafkajit.state.leader_epochs import LEADER_EPOCHS, leader_epochs_text

Batches = dict[int, list[tuple[int, int, str]]]  # segments: first offset, records, their content


def write(folder: Path, segments: Batches) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for base_offset, batches in segments.items():
        content = b"".join(batch(*one) for one in batches)
        (folder / f"{base_offset:020}.log").write_bytes(content)


def batch(offset: int, count: int, text: str, kept: Iterable[int] | None = None) -> bytes:
    records = [
        kt.Record(b"k", f"{text}{offset + place}".encode(), offset_delta=place)
        for place in (range(count) if kept is None else kept)
    ]
    return kt.batch(records, base_offset=offset, last_offset_delta=count - 1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of the offsets 0 to 19 in batches of five, which is exported, beside another."""
    folder = tmp_path / "logs" / "orders-0"
    write(folder, {0: [(0, 5, "a"), (5, 5, "a")], 10: [(10, 5, "a"), (15, 5, "a")]})
    write(folder.parent / "payments-0", {0: [(0, 1, "p")]})
    assert export(folder) == 0
    return folder


def export(log: Path, *more: str) -> int:
    out = log.parent.parent / "out"
    return main(["export", str(log.parent), "-o", str(out), "--to", "jsonl", *more])


def exported(log: Path) -> list[tuple[int, str]]:
    files = (log.parent.parent / "out").glob("orders*.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted((row["offset"], row["value"]) for row in rows)


BEFORE = [(offset, f"a{offset}") for offset in range(20)]
MORE = [(offset, f"a{offset}") for offset in range(20, 25)]


@pytest.mark.parametrize(
    ("segments", "why"),
    [
        pytest.param({0: [(0, 5, "b")]}, "it ends before offset 20", id="made again, shorter"),
        pytest.param({0: []}, "it ends before offset 20", id="made again, empty"),
        pytest.param(
            {0: [(at, 5, "b") for at in range(0, 20, 5)]}, "offset 19 is not", id="made again"
        ),
        pytest.param(
            {0: [(at, 1, "b") for at in range(30)]}, "offset 19 is not", id="made again, longer"
        ),
        pytest.param(
            {0: [(0, 5, "a"), (5, 5, "a"), (10, 5, "a")]}, "before offset 20", id="truncated"
        ),
        pytest.param(
            {0: [(0, 5, "a"), (5, 5, "a"), (10, 5, "a"), (15, 10, "b")]},
            "offset 19 is not",
            id="truncated and written again",
        ),
    ],
)
def test_another_log_is_refused_and_the_others_are_exported(
    segments: Batches, why: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(log, segments)
    write(log.parent / "payments-0", {0: [(0, 1, "p"), (1, 1, "p")]})
    assert export(log) == 1
    captured = capsys.readouterr()
    assert "payments-0: 1 record, offset 1" in captured.out
    assert "the topic was made again, or the log truncated: it" in captured.err
    assert why in captured.err
    assert f"in {log}: export it into another folder" in captured.err
    assert exported(log) == BEFORE
    with pytest.raises(OffsetOutOfRangeError, match=why):
        kafkajit.export(log, log.parent.parent / "out", to="jsonl")


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param({10: [(10, 5, "a"), (15, 5, "a"), (20, 5, "a")]}, id="expired, in part"),
        pytest.param({20: [(20, 5, "a")]}, id="expired"),
        pytest.param({0: [(0, 5, "a"), (8, 1, "a")], 20: [(20, 5, "a")]}, id="compacted"),
        pytest.param({0: [(15, 5, "a"), (20, 5, "a")]}, id="compacted before the last batch"),
    ],
)
def test_the_same_log_continues(
    segments: Batches, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(log, segments)
    assert export(log) == 0
    assert capsys.readouterr().err == ""
    assert exported(log) == BEFORE + MORE


def test_a_last_batch_that_a_cleaner_changed_is_the_same_one(log: Path) -> None:
    marked = kt.batch(
        [kt.Record(b"k", f"a{15 + place}".encode(), offset_delta=place) for place in range(5)],
        base_offset=15,
        delete_horizon_ms=1,
    )
    for cleaned in (batch(15, 5, "a", kept=[4]), batch(15, 5, "a", kept=[]), marked):
        (log / f"{10:020}.log").write_bytes(cleaned)
        assert export(log) == 0
    (log / f"{10:020}.log").write_bytes(cleaned + batch(20, 5, "a"))
    assert export(log) == 0
    assert exported(log) == BEFORE + MORE


def test_what_retention_took_before_it_was_exported_is_named_once(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(log, {30: [(30, 2, "a")]})
    assert export(log) == 1
    lost = (
        "orders-0: offsets 20 to 29 are gone from the log, and had not been exported before: "
        "retention has removed them"
    )
    assert capsys.readouterr().err == f"kafkajit export: {lost}\n"
    assert exported(log) == [*BEFORE, (30, "a30"), (31, "a31")]
    assert export(log) == 0
    write(log, {40: [(40, 1, "a")]})
    result = kafkajit.export(log, log.parent.parent / "out", to="jsonl")
    assert result.lost == [lost.replace("20 to 29", "32 to 39")]


def test_a_log_that_expired_to_its_end_has_lost_nothing(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(log, {20: []})
    assert export(log) == 0
    assert capsys.readouterr().err == ""


def test_a_journal_without_a_last_batch_gets_one(log: Path) -> None:
    (entry,) = (log.parent.parent / "out" / "_kafkajit" / "orders-0").iterdir()
    document = json.loads(entry.read_text())
    assert document["last"][:2] == [15, 19]
    del document["last"]
    entry.write_text(json.dumps(document))
    write(log, {0: [(at, 5, "a") for at in range(0, 25, 5)]})
    assert export(log) == 0
    (entry,) = (log.parent.parent / "out" / "_kafkajit" / "orders-0").iterdir()
    assert json.loads(entry.read_text())["last"][:2] == [20, 24]
    write(log, {0: [(at, 5, "b") for at in range(0, 25, 5)]})
    assert export(log) == 1


def test_the_start_is_looked_up_once(tmp_path: Path) -> None:
    """The record with the starting timestamp has expired, and later ones have earlier times."""
    folder, out = tmp_path / "orders-0", tmp_path / "out"
    folder.mkdir()

    def at(offset: int, timestamp: int) -> bytes:
        return kt.batch([kt.Record(timestamp=timestamp)], base_offset=offset)

    start = 1_767_225_600_000
    (folder / f"{0:020}.log").write_bytes(at(0, start - 1) + at(1, start))
    (folder / f"{2:020}.log").write_bytes(at(2, start - 9))

    def run() -> int:
        return kafkajit.export(folder, out, to="csv", starting_timestamp=start).records

    assert run() == 2
    (folder / f"{0:020}.log").unlink()
    with (folder / f"{2:020}.log").open("ab") as file:
        file.write(at(3, start - 8))
    assert run() == 1


def test_a_last_batch_in_an_overlap_is_the_one_that_was_read(log: Path) -> None:
    """A second segment begins before the end of the first, which is compacted between two runs."""
    out, other = log.parent / "overlap", log.parent / "other"
    for folder in (out, other):
        write(log, {0: [(0, 5, "a"), (5, 5, "a")], 7: [(7, 3, "b")]})
        assert kafkajit.export(log, folder, to="csv").records == 10
    write(log, {0: [(5, 5, "a")], 7: [(7, 3, "b"), (10, 1, "b")]})
    assert kafkajit.export(log, out, to="csv").records == 1
    write(log, {0: [(0, 5, "c"), (5, 5, "c")], 7: [(7, 3, "b")]})
    with pytest.raises(OffsetOutOfRangeError, match="offset 9 is not"):
        kafkajit.export(log, other, to="csv")


def test_what_retention_took_behind_the_ending_offset_is_no_loss(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--partition", "orders-0", "--ending-offset", "10", "-o", str(log.parent / "some")]
    words += ["--to", "csv", str(log)]
    assert main(["export", *words]) == 0
    write(log, {15: [(15, 5, "a")]})
    capsys.readouterr()
    assert main(["export", *words]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [2**63, -1, 1.0, True, "1"])
def test_a_journal_with_numbers_that_no_log_has_is_refused(number: object, log: Path) -> None:
    (entry,) = (log.parent.parent / "out" / "_kafkajit" / "orders-0").iterdir()
    document = json.loads(entry.read_text())
    for field in range(5):
        last = list(document["last"])
        last[field] = number
        entry.write_text(json.dumps({**document, "last": last}))
        with pytest.raises(ValueError, match="journal"):
            kafkajit.export(log, log.parent.parent / "out", to="jsonl")


FIRST_ID, SECOND_ID = "pUM3BMsVQk2fe-klgEgLLA", "Q2FtZW1iZXJ0LW9yZGVycw"


def set_id(log: Path, topic_id: str) -> None:
    (log / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def test_a_topic_of_another_id_is_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an id it would count as continued, or as shortened by retention."""
    set_id(log, FIRST_ID)
    assert export(log) == 0  # which takes the id
    for start in (20, 25):
        write(log, {start: [(start, 5, "b")]})
        set_id(log, SECOND_ID)
        capsys.readouterr()
        assert export(log) == 1
        assert capsys.readouterr().err == (
            f"kafkajit export: OffsetOutOfRangeError: the topic was made again: its id is "
            f"{SECOND_ID}, and that of the log that was read is {FIRST_ID} in {log}: export it "
            "into another folder\n"
        )
    assert exported(log) == BEFORE
    set_id(log, FIRST_ID)
    assert export(log) == 1  # the offsets 20 to 24 are gone


def test_a_topic_without_an_id_continues_and_its_id_stays(log: Path) -> None:
    set_id(log, FIRST_ID)
    assert export(log) == 0
    (log / "partition.metadata").unlink()
    (log / f"{10:020}.log").write_bytes(b"".join(batch(at, 5, "a") for at in (10, 15, 20)))
    assert export(log) == 0
    assert exported(log) == BEFORE + MORE
    set_id(log, SECOND_ID)
    assert export(log) == 1


def set_epochs(log: Path, *epochs: tuple[int, int]) -> None:
    (log / LEADER_EPOCHS).write_bytes(leader_epochs_text(epochs))


@pytest.mark.parametrize("has_id", [True, False])
def test_epochs_tell_of_a_truncation_when_the_last_batch_is_gone(
    has_id: bool, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The records from offset 12 on are of another history, and a cleaner has taken the rest."""
    if has_id:
        set_id(log, FIRST_ID)
    set_epochs(log, (0, 0), (3, 18))
    assert export(log) == 0  # which takes the id and the epochs
    for segments in ({0: [(0, 5, "a"), (22, 5, "b")]}, {22: [(22, 5, "b")]}):
        write(log, segments)
        if has_id:
            set_id(log, FIRST_ID)
        set_epochs(log, (0, 0), (4, 12))
        capsys.readouterr()
        assert export(log) == 1
        assert capsys.readouterr().err == (
            "kafkajit export: OffsetOutOfRangeError: the log was truncated to offset 12 and "
            "written again: leader epoch 4 follows there, and epoch 0 was read in "
            f"{log}: export it into another folder\n"
        )
    assert exported(log) == BEFORE


@pytest.mark.parametrize("stale", [(), (4,), (4, 7), (4, 7, 12)], ids=len)
def test_a_last_batch_behind_hidden_segments_is_remembered(
    stale: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short copies of a part lie within the segment that a broker serves."""
    log = tmp_path / "logs" / "orders-0"
    hidden: Batches = {base: [(base, 1, "a")] for base in stale}
    write(log, {0: [(at, 5, "a") for at in (0, 5, 10, 15)], **hidden})
    assert export(log) == 0
    whole = [(at, 5, "a") for at in (0, 5)] + [(at, 5, "b") for at in (10, 15, 20, 25)]
    write(log, {0: whole, **hidden})
    assert export(log) == 1
    assert "its batch at offset 19 is not the one that was read" in capsys.readouterr().err
    assert exported(log) == BEFORE


def test_a_log_with_new_epochs_behind_what_was_read_continues(log: Path) -> None:
    set_id(log, FIRST_ID)
    set_epochs(log, (0, 0))
    assert export(log) == 0
    write(log, {0: [(0, 5, "a"), (8, 1, "a"), (20, 5, "a")], 25: []})
    set_id(log, FIRST_ID)
    set_epochs(log, (0, 18), (4, 20), (5, 23))
    assert export(log) == 0
    assert exported(log) == BEFORE + MORE


def test_a_copy_may_have_older_epochs_than_its_batches(log: Path) -> None:
    set_id(log, FIRST_ID)
    set_epochs(log, (0, 0))
    last = kt.batch([kt.Record(b"k", b"a20")], base_offset=20, partition_leader_epoch=1)
    (log / f"{20:020}.log").write_bytes(last)
    assert export(log) == 0
    assert export(log) == 0
    (log / f"{20:020}.log").write_bytes(
        kt.batch([kt.Record(b"k", b"a24")], base_offset=24, partition_leader_epoch=1)
    )
    (log.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 24\n")
    set_epochs(log, (0, 0), (1, 17))
    assert export(log) == 0
    assert exported(log) == [*BEFORE, (20, "a20"), (24, "a24")]


def test_a_lower_epoch_behind_what_was_read_is_that_of_another_log(log: Path) -> None:
    """The batches have epochs, too, if a copy lacks the files beside them."""
    last = kt.batch([kt.Record(b"k", b"a20")], base_offset=20, partition_leader_epoch=3)
    (log / f"{20:020}.log").write_bytes(last)
    (log.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 21\n")
    assert export(log) == 0
    for epoch, status in ((2, 1), (3, 0)):
        follows = kt.batch([kt.Record(b"k", b"c")], base_offset=21, partition_leader_epoch=epoch)
        (log / f"{20:020}.log").write_bytes(follows)
        assert export(log) == status
    assert exported(log) == [*BEFORE, (20, "a20"), (21, "c")]


def test_a_damaged_id_is_named_and_counts_as_none(
    log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    set_id(log, FIRST_ID)
    assert export(log) == 0
    set_id(log, "?")
    assert export(log) == 0
    assert "the topic's id is not known" in caplog.text


def test_an_id_of_tiered_objects_is_kept(tmp_path: Path) -> None:
    for topic_id, text in ((FIRST_ID, "a"), (SECOND_ID, "b")):
        folder = tmp_path / text / f"orders-0-{topic_id}"
        folder.mkdir(parents=True)
        (folder / f"{0:020}-{FIRST_ID}.log").write_bytes(batch(0, 5, "a"))
        (folder / f"{0:020}-{FIRST_ID}.snapshot").touch()
    assert kafkajit.export(tmp_path / "a", tmp_path / "out", to="csv").records == 5
    with pytest.raises(OffsetOutOfRangeError, match=f"its id is {SECOND_ID}"):
        kafkajit.export(tmp_path / "b", tmp_path / "out", to="csv")


@pytest.mark.parametrize(
    "fields",
    [
        {"topicId": 1},
        {"topicId": "../x"},
        {"logStart": -1},
        {"logStart": "0"},
        {"epochs": [[0, -1]]},
        {"epochs": [["0", 1]]},
        {"epochs": [[0, 1, 2]]},
        {"epochs": 7},
    ],
)
def test_a_journal_with_an_id_or_a_start_that_no_log_has_is_refused(
    fields: dict[str, object], log: Path
) -> None:
    (entry,) = (log.parent.parent / "out" / "_kafkajit" / "orders-0").iterdir()
    entry.write_text(json.dumps(json.loads(entry.read_text()) | fields))
    with pytest.raises(ValueError, match="journal"):
        kafkajit.export(log, log.parent.parent / "out", to="jsonl")


EARLY = (
    "orders-0: offsets 0 to 9 are in the log, which began at offset 10 when it was exported first: "
    "export it into another folder"
)


@pytest.mark.parametrize("more", [{}, {"starting_timestamp": 0}, {"starting_offsets": None}])
def test_records_before_the_first_segment_of_an_export_are_named(
    more: dict[str, object], log: Path
) -> None:
    out = log.parent / "some"
    if "starting_offsets" in more:
        more = {"starting_offsets": {"orders": {"0": 5}}}
    assert kafkajit.export(log / f"{10:020}.log", out, to="csv", **more).records == 10
    for _ in range(2):
        (line,) = kafkajit.export(log, out, to="csv", **more).lost
        assert line == (EARLY.replace("0 to 9", "5 to 9") if "starting_offsets" in more else EARLY)


def test_records_before_the_first_segment_that_nobody_asked_for_are_not_named(log: Path) -> None:
    out, more = log.parent / "some", {"starting_offsets": {"orders": {"0": 12}}}
    assert kafkajit.export(log / f"{10:020}.log", out, to="csv", **more).records == 8
    assert kafkajit.export(log, out, to="csv", **more).lost == []


def test_a_journal_without_a_start_gets_one(log: Path) -> None:
    out = log.parent / "some"
    kafkajit.export(log / f"{10:020}.log", out, to="csv")
    (entry,) = (out / "_kafkajit" / "orders-0").iterdir()
    document = json.loads(entry.read_text())
    assert document.pop("logStart") == 10
    entry.write_text(json.dumps(document))
    assert kafkajit.export(log / f"{10:020}.log", out, to="csv").lost == []
    assert kafkajit.export(log, out, to="csv").lost == [EARLY]


def test_offsets_that_were_gone_and_are_back_are_named(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of some segments takes the others for removed."""
    write(log, {30: [(30, 2, "a")]})
    assert export(log) == 1
    write(log, {0: [(at, 5, "a") for at in range(0, 30, 5)], 30: [(30, 2, "a")]})
    capsys.readouterr()
    assert export(log) == 1
    assert capsys.readouterr().err == f"kafkajit export: {LATE}\n"


MISSING = (
    "orders-0: offsets 20 to 29 are missing between 00000000000000000010.log and "
    "00000000000000000030.log, and nothing tells that the log was compacted"
)
LATE = (
    "orders-0: an earlier run lacked offsets 20 to 29, and the log has some of them now: export it "
    "into another folder"
)


def lacks_a_segment(log: Path) -> Path:
    """The log goes on after the next segment, which is missing."""
    for base_offset in (30, 40):
        (log / f"{base_offset:020}.log").write_bytes(batch(base_offset, 10, "a"))
    return log


def test_a_missing_segment_is_named_once(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(lacks_a_segment(log)) == 1
    assert capsys.readouterr().err == f"kafkajit export: {MISSING}\n"
    assert exported(log) == [*BEFORE, *((offset, f"a{offset}") for offset in range(30, 50))]
    assert export(log) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("late", [0, 1])
def test_missing_markers_of_exported_records_are_named(
    late: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The export ends before them, at another open transaction."""
    log = tmp_path / "logs" / "orders-0"
    log.mkdir(parents=True)
    first = transactional(0, 3) + data(2, 2) + transactional(4, 1)
    (log / f"{0:020}.log").write_bytes(first)
    last = transactional(10, 3, 2) + marker(12, 3, control_type=1 - late)
    (log / f"{10:020}.log").write_bytes(last)
    assert export(log, "--isolation-level", "read_committed") == 1
    assert "a transaction is open there since offset 0" in capsys.readouterr().err
    (log / f"{6:020}.log").write_bytes(marker(6, 3, control_type=late) + data(7, 3))
    assert export(log, "--isolation-level", "read_committed") == 0
    out = log.parent.parent / "whole"
    arguments = ["export", str(log.parent), "-o", str(out), "--to", "jsonl"]
    assert main([*arguments, "--isolation-level", "read_committed"]) == 0


def test_records_of_a_hidden_segment_are_named_when_they_are_served_later(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = {base: log / f"{base:020}.log" for base in (20, 30, 40)}
    for base, other in ((20, 30), (30, 20), (40, 40)):  # two have each other's names
        logs[base].write_bytes(batch(other, 10, "a"))
    assert export(log) == 1
    assert "offsets 20 to 29 are left out" in capsys.readouterr().err
    for base in logs:
        logs[base].write_bytes(batch(base, 10, "a"))
    assert export(log) == 1
    assert capsys.readouterr().err == f"kafkajit export: {LATE}\n"


@pytest.mark.parametrize(
    ("times", "offsets", "is_named"),
    [
        ((0, None), [*range(20), *range(30, 50)], True),
        ((19, None), [19, *range(30, 50)], True),
        ((25, None), [*range(30, 50)], True),
        ((30, None), [*range(30, 50)], True),
        ((31, None), [*range(31, 50)], False),
        ((45, None), [*range(45, 50)], False),
        ((90, None), [], False),
        ((22, 25), [], True),
        ((10, 20), [*range(10, 20)], True),
        ((10, 19), [*range(10, 19)], False),
        ((0, 5), [*range(5)], False),
    ],
)
def test_a_missing_segment_is_named_if_the_timestamps_may_be_there(
    times: tuple[int, int | None],
    offsets: list[int],
    is_named: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each offset has its own number of milliseconds as its timestamp."""
    log, out = tmp_path / "orders-0", tmp_path / "rows.parquet"
    log.mkdir()
    for base in (0, 10, 30, 40):
        records = [kt.Record(value=b"v", timestamp=at) for at in range(base, base + 10)]
        content = kt.batch(records, base_offset=base, base_timestamp=base)
        (log / f"{base:020}.log").write_bytes(content)
    words = ["export", str(log), "-o", str(out), "--starting-timestamp", f"{times[0]}ms"]
    words += [] if times[1] is None else ["--ending-timestamp", f"{times[1]}ms"]
    assert main(words) == int(is_named)
    assert capsys.readouterr().err == (f"kafkajit export: {MISSING}\n" if is_named else "")
    assert pq.read_table(out)["offset"].to_pylist() == offsets


def test_a_missing_segment_behind_the_last_record_may_have_any_later_timestamp(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "orders-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(kt.batch([kt.Record(value=b"v", timestamp=1)] * 10))
    (log / f"{20:020}.log").touch()
    words = ["export", str(log), "-o", str(tmp_path / "rows.parquet")]
    assert main([*words, "--starting-timestamp", "7ms"]) == 1
    assert "orders-0: offsets 10 to 19 are missing between" in capsys.readouterr().err


def test_a_missing_segment_that_arrives_later_is_named(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(lacks_a_segment(log)) == 1
    (log / f"{20:020}.log").write_bytes(batch(20, 10, "a"))
    for _ in range(2):
        capsys.readouterr()
        assert export(log) == 1
        assert capsys.readouterr().err == f"kafkajit export: {LATE}\n"
    result = kafkajit.export(log, log.parent.parent / "out", to="jsonl")
    assert result.lost == [LATE]


def test_a_journal_has_only_missing_offsets_that_an_export_has_passed() -> None:
    """A segment that arrives before that is exported."""
    passed = Passed(next_offset=30, missing=[Range(20, 29), Range(50, 59)])
    assert passed.journal().missing == (Range(20, 29),)


def test_gaps_of_a_compacted_log_are_none(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lacks_a_segment(log)
    (log.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 40\n")
    assert export(log) == 0
    (log.parent / "cleaner-offset-checkpoint").unlink()
    (log / f"{40:020}.log").write_bytes(batch(40, 10, "a", kept=[1, 9]))
    shutil.rmtree(log.parent.parent / "out")
    assert export(log) == 0
    assert capsys.readouterr().err == ""


def test_segments_that_the_reader_leaves_out_are_not_missing(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lacks_a_segment(log) / f"{20:020}.log").write_bytes(batch(20, 10, "a"))
    out = str(log.parent.parent / "some.jsonl")
    assert main(["export", str(log / "*[14]0.log"), "-o", out]) == 0
    one = ["export", str(log), "--partition", "orders-0"]
    assert main([*one, "--ending-offset", "20", "-o", f"{out}.csv"]) == 0
    (log / f"{20:020}.log").unlink()
    assert main([*one, "--ending-offset", "20", "-o", f"{out}.avro"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*one, "--starting-offset", "25", "-o", f"{out}.arrow"]) == 1
    assert "orders-0: offsets 20 to 29 are missing between" in capsys.readouterr().err


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("first", "goes_on"), [(5, False), (9, False), (10, True), (12, True)])
def test_a_set_of_messages_is_judged_by_its_first_offset(
    first: int, goes_on: bool, magic: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its header has the last one: a cleaner leaves later sets, and no set over what was read."""

    def messages(begin: int, end: int, text: str, codec: str = "none") -> bytes:
        records = [kt.Record(b"k", f"{text}{at}".encode()) for at in range(begin, end)]
        return kt.message_set(records, base_offset=begin, magic=magic, codec=codec)

    log = tmp_path / "logs" / "orders-0"
    log.mkdir(parents=True)
    path = log / f"{0:020}.log"
    path.write_bytes(messages(0, 10, "a"))
    assert export(log) == 0
    path.write_bytes(messages(0, 5, "a") + messages(first, 15, "b", "gzip"))
    assert export(log) == (0 if goes_on else 1)
    if not goes_on:
        assert "its batch at offset 9 is not the one that was read" in capsys.readouterr().err
    later = [(at, f"b{at}") for at in range(first, 15)] if goes_on else []
    assert exported(log) == [*BEFORE[:10], *later]


@pytest.mark.parametrize("gone", ["compacted", "segment"])
def test_a_later_leader_epoch_before_the_last_batch_is_of_another_history(
    gone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last batch is gone, and no file has the epochs, but those of batches never fall."""
    folder = tmp_path / "logs" / "orders-0"

    def rewrite(segments: dict[int, list[tuple[int, int]]]) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for base, batches in segments.items():
            content = [data(at, 1, partition_leader_epoch=epoch) for at, epoch in batches]
            (folder / f"{base:020}.log").write_bytes(b"".join(content))

    rewrite({0: [(at, 0) for at in range(10)]})
    assert export(folder) == 0
    before = [(at, 0) for at in range(5)]
    if gone == "compacted":
        rewrite({0: [*before, *((at, 1) for at in (5, 6, 7, 8, 10, 11))], 12: [(12, 1)]})
        (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    else:
        rewrite({0: [*before, (5, 1), (6, 1)], 10: [(10, 1), (11, 1)]})
    capsys.readouterr()
    assert export(folder) == 1
    assert "had epoch 0" in capsys.readouterr().err
    assert [offset for offset, _ in exported(folder)] == list(range(10))


def test_a_last_batch_that_was_compacted_away_is_passed(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "orders-0"
    folder.mkdir(parents=True)
    epochs = {at: at // 4 for at in range(14)}
    batches = [data(at, 1, partition_leader_epoch=epochs[at]) for at in epochs]
    (folder / f"{0:020}.log").write_bytes(b"".join(batches[:10]))
    assert export(folder) == 0
    (folder / f"{0:020}.log").write_bytes(b"".join([*batches[:3], *batches[11:12]]))
    (folder / f"{12:020}.log").write_bytes(b"".join(batches[12:]))
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    assert export(folder) == 0
    assert [offset for offset, _ in exported(folder)] == [*range(10), 11, 12, 13]
