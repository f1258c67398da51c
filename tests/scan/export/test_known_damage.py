"""Damage that an earlier run has reported, and other damage in its place."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from streaming import finish

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main

PLAIN = kt.batch([kt.Record(value=b"v")] * 10)
GOOD = kt.batch([kt.Record(value=b"v")] * 10, base_offset=10)
BAD = GOOD[:-3] + b"\xff" + GOOD[-2:]
AFTER = kt.batch([kt.Record(value=b"v")] * 10, base_offset=20)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log whose damaged end, the tail of a crash, is reported."""
    path = tmp_path / "logs" / "orders-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(PLAIN + GOOD[:40] + bytes(1000))
    assert len(run(path).gaps) == 1
    return path


def run(log: Path, mode: str = "DROPMALFORMED") -> kafkajit.ExportResult:
    return kafkajit.export(log.parent, log.parents[2] / "out", to="jsonl", mode=mode)


def test_known_damage_is_reported_once(log: Path) -> None:
    assert run(log).gaps == []
    log.write_bytes(log.read_bytes()[: len(PLAIN)] + GOOD[:40] + bytes(1000))
    assert run(log).gaps == []


def test_other_damage_at_the_place_of_known_damage_is_reported(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write_bytes(PLAIN + BAD + AFTER)
    words = [str(log.parent), "-o", str(log.parents[2] / "out"), "--to", "jsonl"]
    assert main(["export", *words, "--mode", "dropmalformed"]) == 2
    captured = capsys.readouterr()
    assert "offsets 20 to 29" in captured.out
    assert f"at position {len(PLAIN)}: {len(BAD)} bytes are damaged" in captured.err


def test_damage_of_the_same_length_is_another_if_its_bytes_differ(log: Path) -> None:
    for last in (b"\1", b"\2"):
        log.write_bytes(PLAIN + GOOD[:-1] + last)
        (gap,) = run(log).gaps
        assert (gap["position"], gap["length"]) == (len(PLAIN), len(GOOD))
        assert run(log).gaps == []


def test_damage_in_a_journal_of_an_earlier_version_is_reported_again(log: Path) -> None:
    """That journal has only its place."""
    (entry,) = (log.parents[2] / "out" / "_kafkajit" / "orders-0").iterdir()
    document = json.loads(entry.read_text())
    (gap,) = document["gaps"]
    entry.write_text(json.dumps({**document, "gaps": [gap[:2]]}))
    assert len(run(log).gaps) == 1
    assert run(log).gaps == []


def test_each_round_of_damage_alone_has_a_file_of_its_own(log: Path) -> None:
    """The next offset is the same in all of them."""
    out = log.parents[2] / "rounds"
    log.write_bytes(PLAIN)
    for base_offset in (10, 20, 30):
        kafkajit.export(log.parent, out, to="jsonl", mode="PERMISSIVE")
        bad = kt.broken("wrong crc", base_offset=base_offset)
        (log.parent / f"{base_offset:020}.log").write_bytes(bad)
    assert len(kafkajit.export(log.parent, out, to="jsonl", mode="PERMISSIVE").gaps) == 1
    first, *damage = (path.name for path in sorted(out.glob("*.jsonl")))
    assert damage == [f"orders-0-{10:020}-d{number:05}.jsonl" for number in (1, 2, 3)]
    assert sum(len((out / name).read_text().splitlines()) for name in damage) == 3
    assert first == f"orders-0-{0:020}.jsonl"


MENDED = (
    "orders-0: offsets 10 to 19 had damage in an earlier run, and the log has records of them now: "
    "export it into another folder"
)


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("first", [PLAIN, b""], ids=["in the middle", "at the start"])
def test_records_where_an_earlier_run_found_damage_are_named(
    mode: str, first: bytes, log: Path
) -> None:
    out = log.parents[2] / "some"

    def export() -> list[str]:
        return kafkajit.export(log.parent, out, to="jsonl", mode=mode).lost

    log = log.rename(log.with_name(f"{0 if first else 10:020}.log"))
    log.write_bytes(first + BAD + AFTER)
    assert export() == export() == []
    log.write_bytes(first + BAD[:-3] + b"\xee" + BAD[-2:] + AFTER)  # other damage
    assert export() == []
    log.write_bytes(first + GOOD + AFTER)
    assert export() == export() == [MENDED]


def test_damage_that_the_next_record_ends_is_kept_by_the_run_that_sees_the_record(
    log: Path,
) -> None:
    log.write_bytes(PLAIN + BAD)
    assert len(run(log).gaps) == 1
    log.write_bytes(PLAIN + BAD + AFTER)
    assert run(log).lost == []
    log.write_bytes(PLAIN + GOOD + AFTER)
    assert run(log).lost == [MENDED]


def test_damage_at_the_end_that_is_mended_is_exported(log: Path) -> None:
    log.write_bytes(PLAIN + GOOD + AFTER)
    found = run(log)
    assert (found.records, found.lost) == (20, [])


def test_damage_that_is_too_long_to_be_compared_is_read_again(log: Path) -> None:
    large = kt.batch([kt.Record(value=bytes(20_000))] * 10, base_offset=10)
    damaged = bytearray(large)
    damaged[150_000] ^= 1
    log.write_bytes(PLAIN + damaged + AFTER)
    out = log.parents[2] / "some"

    def export() -> list[str]:
        return kafkajit.export(log.parent, out, to="jsonl", mode="DROPMALFORMED").lost

    assert export() == export() == []
    log.write_bytes(PLAIN + large + AFTER)
    assert export() == [MENDED]


def test_the_rest_of_a_segment_that_was_cut_is_named_when_it_comes(log: Path) -> None:
    log.write_bytes(PLAIN + GOOD[:-40])
    later = log.with_name(f"{20:020}.log")
    later.write_bytes(AFTER)
    finish(log.parent)
    assert len(run(log).gaps) == 1
    assert run(log).lost == []
    log.write_bytes(PLAIN + GOOD)
    (lost,) = run(log).lost
    assert lost == MENDED


def test_a_journal_without_the_sizes_of_damaged_files_is_read(log: Path) -> None:
    log.write_bytes(PLAIN + BAD + AFTER)
    run(log)
    for entry in (log.parents[2] / "out" / "_kafkajit" / "orders-0").iterdir():
        document = json.loads(entry.read_text())
        (left,) = document["leftOut"]
        entry.write_text(json.dumps({**document, "leftOut": [left[:2]]}))
    assert run(log).lost == []
    log.write_bytes(PLAIN + GOOD + AFTER)
    assert run(log).lost == [MENDED]


def test_known_damage_is_reported_once_wherever_the_folder_lies(log: Path) -> None:
    there = log.parents[2] / "disk2" / "orders-0"
    there.parent.mkdir()
    log.parent.rename(there)
    out = log.parents[2] / "out"
    assert kafkajit.export(there, out, to="jsonl", mode="DROPMALFORMED").gaps == []


def test_a_mended_marker_is_no_record(log: Path) -> None:
    fields = {"is_transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = kt.batch([kt.Record(value=b"v")] * 10, **fields)
    marker = kt.control_batch(1, producer_id=7, base_offset=10)
    after = kt.batch([kt.Record(value=b"v")] * 10, base_offset=11)
    log.write_bytes(first + marker[:-1] + b"\xee" + after)
    to_b = partial(kafkajit.export, log.parent, log.parents[2] / "b", to="jsonl")
    assert len(to_b(mode="DROPMALFORMED").gaps) == 1
    log.write_bytes(first + marker + after)
    assert to_b(mode="DROPMALFORMED").lost == []
