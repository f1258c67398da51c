"""A bucket and a broker's folder of one topic: what one of them lacks comes from the other."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scanning import read_table

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, write_segment
from kafkajit.cli import main
from kafkajit.report.info import info
from kafkajit.report.take import HEADERS, ReportOptions, take

BASES = (0, 10, 20, 30)
EVERY = list(range(40))
BATCH = len(kt.batch([kt.Record(value=b"0000")] * 2))


def batches(base: int, text: bytes = b"%04d") -> bytes:
    """A segment of five batches with two records each."""
    return b"".join(
        kt.batch([kt.Record(value=text % n) for n in (first, first + 1)], base_offset=first)
        for first in range(base, base + 10, 2)
    )


class Places:
    def __init__(self, root: Path) -> None:
        self.bucket, self.log_dirs = root / "tier", root / "logs"
        self.out = root / "out"
        self.folder = self.log_dirs / "orders-0"
        self.folder.mkdir(parents=True)
        (self.folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
        for base in BASES:
            self.log(base).write_bytes(batches(base))
        self.tier(*BASES[:3])

    def log(self, base: int) -> Path:
        return self.folder / f"{base:020}.log"

    def tier(self, *bases: int) -> None:
        for base in bases:
            folder = self.bucket / f"orders-{TOPIC_ID}" / "0"
            id_ = f"{base:04}MKeZwStOEOwRzT3L5o"
            write_segment(
                folder, base, batches(base), end_offset=base + 9, segment_id=id_, indexes={}
            )

    def read(self) -> list[int]:
        return list(map(int, read_table(self.bucket, self.log_dirs)["value"].to_pylist()))

    def restored(self, words: str = "") -> tuple[int, list[int]]:
        found = self.out / "restored"
        places = str(self.bucket), str(self.log_dirs), str(found)
        status = main(["restore", "--apply", *words.split(), *places])
        logs = sorted(found.glob("orders-0/*.log"))
        values = [kafkajit.read_records(log)["value"].to_pylist() for log in logs]
        return status, [int(value) for one in values for value in one]

    def exported(self) -> tuple[int, list[int]]:
        self.out.mkdir(exist_ok=True)
        found = self.out / "rows.parquet"
        status = main(["export", str(self.bucket), str(self.log_dirs), "-o", str(found)])
        values = pq.read_table(found)["value"].to_pylist() if found.exists() else []
        return status, list(map(int, values))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.mark.parametrize(
    "left", [None, 0, BATCH, 3 * BATCH, 3 * BATCH - 1, BATCH - 1], ids=lambda left: f"left={left}"
)
@pytest.mark.parametrize("base", BASES[:3])
def test_a_bucket_has_what_a_local_segment_lacks(
    places: Places, base: int, left: int | None
) -> None:
    """The folder has the segment not at all, empty, of an older copy, or torn."""
    places.log(base).write_bytes(batches(base)[:left])
    if left is None:
        places.log(base).unlink()
    assert places.read() == EVERY
    assert places.restored() == (0, EVERY)
    assert places.exported() == (0, EVERY)


def test_the_broker_s_checkpoint_says_where_a_log_starts_whose_first_segments_are_tiered(
    places: Places,
) -> None:
    for base in BASES[:2]:
        places.log(base).unlink()
    (places.log_dirs / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n")
    paths = str(places.bucket), str(places.log_dirs)
    for document in (info(paths), take(ReportOptions(paths, depth=HEADERS))):
        (topic,) = document["topics"]
        assert [one["startOffset"] for one in topic["eachPartition"]] == [7]


def test_a_transaction_whose_marker_may_not_be_tiered_is_no_warning(tmp_path: Path) -> None:
    begun = kt.batch([kt.Record(b"k", b"v")], producer_id=7, is_transactional=True)
    later = kt.batch([kt.Record(b"k", b"v")], base_offset=1, base_timestamp=1_800_000_000_000)
    folder = tmp_path / f"orders-{TOPIC_ID}" / "0"
    id_ = "0000MKeZwStOEOwRzT3L5o"
    write_segment(folder, 0, begun + later, end_offset=1, segment_id=id_, indexes={})
    document = take(ReportOptions((str(tmp_path),), depth=HEADERS))
    (one,) = [one for one in document["trouble"] if one["kind"] == "openTransaction"]
    assert one["severity"] == "note"
    assert "the broker's folder has the newest segments" in one["advice"]


def test_a_torn_segment_is_named_although_nothing_is_lost(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    places.log(10).write_bytes(batches(10)[: 2 * BATCH + 5])
    assert places.read() == EVERY
    assert (
        f"{places.log(10)}: not read from position {2 * BATCH} on, behind its last sound batch: "
        "tiered storage has offset 14" in caplog.text
    )


def test_sound_copies_are_nothing_to_speak_of(
    places: Places, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    assert places.read() == EVERY
    assert places.restored() == (0, EVERY)
    assert places.exported() == (0, EVERY)
    assert caplog.text == capsys.readouterr().err == ""


def test_offsets_that_neither_place_has_are_missing(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    (places.bucket / f"orders-{TOPIC_ID}" / "0").rename(places.out.with_name("tier of another"))
    places.tier(0, 20)
    places.log(0).unlink()
    places.log(10).write_bytes(batches(10)[:BATCH])
    expected = [n for n in EVERY if not 12 <= n < 20]
    assert places.restored() == (1, expected)
    assert "offsets 12 to 19 are in no source" in capsys.readouterr().out
    assert places.exported() == (1, expected)
    assert "offsets 12 to 19 are missing" in capsys.readouterr().err


@pytest.mark.parametrize("base", BASES[:3])
def test_other_batches_at_the_same_offsets_are_named(
    places: Places,
    base: int,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    places.log(base).write_bytes(batches(base, b"1%03d"))
    expected = [n + 1000 * (base <= n < base + 10) for n in EVERY]
    assert places.read() == expected
    text = (
        f"has other batches at offsets {base} to {base + 9}, and is not read: name only one of "
        "the two places"
    )
    assert caplog.text.count(text) == 1
    assert places.restored() == (1, expected)
    assert text in capsys.readouterr().err
    assert places.exported() == (1, expected)
    assert text in capsys.readouterr().err
    assert main(["grep", "-c", "1", str(places.bucket), str(places.log_dirs)]) == 2
    assert text in capsys.readouterr().err


def test_a_segment_that_goes_another_way_at_its_end_is_named(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    other = batches(10)[: 4 * BATCH] + batches(10, b"1%03d")[4 * BATCH :]
    places.log(10).write_bytes(other)
    assert places.restored()[0] == 1
    assert "has other batches at offsets 10 to 19" in capsys.readouterr().err


def test_copies_beyond_the_range_that_is_restored_do_not_matter(places: Places) -> None:
    places.log(20).write_bytes(batches(20, b"1%03d"))
    assert places.restored("--ending-offset 20") == (0, EVERY[:20])


@pytest.mark.parametrize(
    "command",
    [Places.exported, Places.restored, partial(Places.restored, words="--ending-offset=13")],
)
def test_the_copy_of_a_damaged_batch_is_advised(
    places: Places, command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(batches(10))
    content[2 * BATCH - 1] ^= 1
    places.log(10).write_bytes(content)
    assert command(places)[0] == 1
    error = capsys.readouterr().err
    copy = next(places.bucket.rglob(f"{10:020}*.log"))
    assert f"base offset 12 in {places.log(10)}: {copy} has the offset, too, and is read" in error
    places.log(10).unlink()
    assert command(places) in ((0, EVERY), (0, EVERY[:13]))
