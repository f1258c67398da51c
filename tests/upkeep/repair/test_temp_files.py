from __future__ import annotations

from pathlib import Path

import pytest
from partitions import data, log_name

from kafkajit.upkeep.repair.temp_files import live_files


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"")


def test_a_folder_without_temporary_files_is_as_it_is(tmp_path: Path) -> None:
    put(tmp_path, log_name(0), "partition.metadata", "leader-epoch-checkpoint", "notes.swap.txt")
    (tmp_path / f"{log_name(7)}.deleted").mkdir()
    found = live_files(tmp_path)
    assert found.files == {path.name: path for path in tmp_path.iterdir() if path.is_file()}
    assert found.removed == {}
    assert found.moved == {}


def test_what_was_to_be_deleted_or_not_finished_goes(tmp_path: Path) -> None:
    gone = [f"{log_name(3)}.deleted", f"{log_name(5, '.index')}.cleaned", "7.snapshot.deleted"]
    put(tmp_path, log_name(0), *gone, "00000000000000000010-0000000001.checkpoint.deleted")
    found = live_files(tmp_path)
    assert sorted(found.removed) == sorted(gone)
    assert sorted(found.files) == sorted(
        [log_name(0), "00000000000000000010-0000000001.checkpoint.deleted"]
    )


def test_a_swap_takes_the_place_of_the_segments_whose_offsets_it_has(tmp_path: Path) -> None:
    for base_offset in (0, 10, 20, 30):
        put(tmp_path, *(log_name(base_offset, suffix) for suffix in (".log", ".index")))
    put(tmp_path, log_name(20, ".snapshot"))
    swap = tmp_path / f"{log_name(10)}.swap"
    swap.write_bytes(data(10) + data(22, count=5))  # up to offset 26
    put(tmp_path, f"{log_name(10, '.index')}.swap")
    found = live_files(tmp_path)
    assert sorted(found.files) == sorted(
        log_name(base, suffix) for base in (0, 10, 30) for suffix in (".log", ".index")
    )
    assert found.moved == {
        log_name(10): swap,
        log_name(10, ".index"): tmp_path / f"{log_name(10, '.index')}.swap",
    }
    assert sorted(found.removed) == [log_name(20, s) for s in (".index", ".log", ".snapshot")]


def test_a_swap_without_batches_names_the_log_that_it_replaces(tmp_path: Path) -> None:
    put(tmp_path, log_name(10), log_name(20), f"{log_name(10)}.swap")
    found = live_files(tmp_path)
    assert found.moved == {log_name(10): tmp_path / f"{log_name(10)}.swap"}
    assert found.replaced == {log_name(10): f"{log_name(10)}.swap"}


def test_a_swap_that_came_with_what_is_not_finished_goes(tmp_path: Path) -> None:
    swaps = [f"{log_name(base)}.swap" for base in (10, 20)]
    put(tmp_path, log_name(10), log_name(20), *swaps, f"{log_name(20)}.cleaned")
    found = live_files(tmp_path)
    assert sorted(found.removed) == sorted([f"{log_name(20)}.cleaned", swaps[1]])
    assert found.moved == {log_name(10): tmp_path / swaps[0]}


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, log_name(0))
    monkeypatch.setattr("os.access", lambda *_: False)  # the tests may run as root
    with pytest.raises(PermissionError, match="no permission to read this file") as error:
        live_files(tmp_path)
    assert error.value.filename == str(tmp_path / log_name(0))
