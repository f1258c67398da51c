"""A few rounds of tests/support/fuzz_report.py: whatever a folder holds, its damage is listed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzz_report import ODDITIES, Fuzzer, covers, is_readable
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.report.take import ReportOptions, take


@pytest.mark.parametrize("seed", range(1, 40))
def test_a_report_of_a_spoilt_folder_lists_its_damage(seed: int) -> None:
    fuzzer = Fuzzer(seed * 1_000)
    fuzzer.run(8)
    assert fuzzer.counts["segments"] >= 8


@pytest.mark.parametrize("oddity", ODDITIES, ids=lambda oddity: oddity.__name__.strip("_"))
@pytest.mark.parametrize("name", [f"{0:020}.index", f"{9:020}.log", "partition.metadata"])
def test_odd_files_do_not_keep_a_report_from_the_others(
    oddity: object, name: str, tmp_path: Path
) -> None:
    sound = kt.batch([kt.Record(b"k", b"v")], base_offset=5)  # no odd name is its segment's
    folder = write_partition(tmp_path, {5: sound})
    for seed in range(4):
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(b"")
        oddity(folder / name, random.Random(seed))  # type: ignore[operator]
        try:
            document = take(ReportOptions((str(folder),), depth="headers"))
        except OSError as error:  # as all readers refuse it
            if not (name.endswith(".log") and str(error).endswith(", not a file")):
                raise
        else:
            assert document["totals"]["records"] >= 1
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.name != f"{5:020}.log" or path.parent != folder:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_the_oracle_sees_gaps_and_batches() -> None:
    assert covers([(0, 10), (10, 20)], 5, 20)
    assert not covers([(0, 10), (11, 20)], 5, 20)
    whole = kt.batch([kt.Record(b"k", b"v")])
    assert is_readable(whole)
    assert not is_readable(whole[:-1])
    assert not is_readable(whole[:-1] + b"?")
