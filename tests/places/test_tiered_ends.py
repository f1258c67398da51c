"""Segments of a bucket whose ends are not where their manifests or last batches say."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, write_segment
from kafkajit.cli import main

EVERY = list(range(30))


def batches(base: int, text: bytes = b"%d", last: int | None = None) -> bytes:
    """A segment of ten batches; the header of the last one may have another offset."""
    found = [kt.batch([kt.Record(value=text % n)], base_offset=n) for n in range(base, base + 10)]
    if last is not None:
        found[-1] = last.to_bytes(8, "big") + found[-1][8:]  # which no checksum covers
    return b"".join(found)


class Bucket:
    def __init__(self, root: Path) -> None:
        self.root, self.out = root, root / "out"
        for base in (0, 10, 20):
            self.put(base, batches(base), base + 9)

    @property
    def folder(self) -> Path:
        return self.root / "tier" / f"orders-{TOPIC_ID}" / "0"

    def put(self, base: int, log: bytes, end: int, id_: int = 0) -> None:
        name = f"{base:04}{id_}KeZwStOEOwRzT3L5o"
        write_segment(self.folder, base, log, end_offset=end, segment_id=name, indexes={})

    def restored(self) -> tuple[int, list[int]]:
        status = main(["restore", "--apply", str(self.root / "tier"), str(self.out)])
        logs = sorted(self.out.glob("orders-0/*.log"))
        values = [kafkajit.read_records(log)["value"].to_pylist() for log in logs]
        return status, [int(value) for one in values for value in one]

    def exported(self) -> tuple[int, list[tuple[int, int]]]:
        found = self.root / "rows.parquet"
        words = ["-o", str(found), "--mode", "DROPMALFORMED"]
        status = main(["export", str(self.root / "tier"), *words])
        rows = pq.read_table(found, columns=["offset", "value"]).to_pylist()
        return status, [(row["offset"], int(row["value"])) for row in rows]


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(tmp_path)


@pytest.mark.parametrize("end", [14, 19, 29, 2**62])
def test_an_end_in_a_manifest_hides_no_segment(bucket: Bucket, end: int) -> None:
    bucket.put(0, batches(0), end)
    assert bucket.exported() == (0, list(zip(EVERY, EVERY, strict=True)))
    assert bucket.restored() == (0, EVERY)


@pytest.mark.parametrize("last", [11, 15, 25, 29, 1033, 9 + 2**40])
def test_a_last_batch_under_another_offset_hides_no_segment_and_is_named(
    bucket: Bucket, last: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put(0, batches(0, last=last), last)
    status, rows = bucket.exported()
    assert (status, rows) == (2, [(n, n) for n in EVERY if n != 9])
    text = "The base offset does not fit between the batches around it, which end at 8 and begin at"
    assert text in capsys.readouterr().err
    assert bucket.restored() == (1, [])
    assert f"{text} 10 at position" in capsys.readouterr().err


@pytest.mark.parametrize(("base", "offsets"), [(10, "10 to 19"), (5, "10 to 14")])
def test_segments_of_a_bucket_with_other_batches_at_the_same_offsets_are_named(
    bucket: Bucket, base: int, offsets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put(base, batches(base, b"1%03d"), base + 9, id_=1)
    text = (
        f"has other batches at offsets {offsets}, and is not read: name only one of the two files"
    )
    status, rows = bucket.exported()
    assert (status, [offset for offset, _ in rows]) == (1, EVERY)
    assert text in capsys.readouterr().err
    assert bucket.restored()[0] == 1
    assert text in capsys.readouterr().err


def test_copies_of_another_leader_are_not_named(
    bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put(5, batches(5), 14, id_=1)
    assert bucket.exported() == (0, list(zip(EVERY, EVERY, strict=True)))
    assert bucket.restored() == (0, EVERY)
    assert capsys.readouterr().err == ""
