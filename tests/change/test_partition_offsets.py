from __future__ import annotations

from pathlib import Path

import pytest

import kafkajit
from kafkajit.change.partition_offsets import PartitionOffsets, offset_in

NAME = "recovery-point-offset-checkpoint"


def offsets(tmp_path: Path, partition: str, text: str) -> PartitionOffsets:
    (tmp_path / NAME).write_text(text)
    return PartitionOffsets(tmp_path / partition, NAME)


def test_a_partition_is_found_by_its_name(tmp_path: Path) -> None:
    text = "0\n3\norders 1 5\norders 11 6\nmy-orders 1 7\n"
    assert offsets(tmp_path, "orders-11", text).offset == 6
    assert offsets(tmp_path, "my-orders-1", text).offset == 7
    assert offsets(tmp_path, "orders-2", text).offset is None
    assert PartitionOffsets(tmp_path / "orders-1", "no-such-checkpoint").offset is None


def test_the_folder_of_a_copy_that_is_on_its_way_in_has_none(tmp_path: Path) -> None:
    future = f"orders-1.{'0' * 32}-future"
    assert offsets(tmp_path, future, "0\n1\norders 1 5\n").offset is None


def test_an_offset_is_changed_and_the_others_stay_in_their_order(tmp_path: Path) -> None:
    found = offsets(tmp_path, "orders-1", "0\n3\na 0 1\norders 1 5\nb 0 2\n")
    assert found.with_offset(4) == b"0\n3\na 0 1\norders 1 4\nb 0 2\n"
    assert found.with_offset(None) == b"0\n2\na 0 1\nb 0 2\n"


def test_one_that_cannot_be_read_says_nothing_but_why(tmp_path: Path) -> None:
    found = offsets(tmp_path, "orders-1", "0\n3\norders 1 5\n")
    assert found.offset is None
    assert found.problem is not None
    assert "found only [1]" in found.problem


def test_one_that_was_not_named_comes_behind_the_others(tmp_path: Path) -> None:
    found = offsets(tmp_path, "orders-1", "0\n1\na 0 1\n")
    assert found.with_offset(4) == b"0\n2\na 0 1\norders 1 4\n"
    assert PartitionOffsets(tmp_path / "orders-1", "new").with_offset(4) == b"0\n1\norders 1 4\n"


def test_what_others_have_written_since_stays(tmp_path: Path) -> None:
    found = offsets(tmp_path, "orders-1", "0\n2\na 0 1\norders 1 5\n")
    (tmp_path / NAME).write_text("0\n2\na 0 2\norders 1 5\n")
    assert found.with_offset(4) == b"0\n2\na 0 2\norders 1 4\n"


def test_what_others_have_written_first_stays(tmp_path: Path) -> None:
    found = offsets(tmp_path, "orders-1", "0\n0\n")
    (tmp_path / NAME).write_text("0\n1\na 0 2\n")
    assert found.with_offset(4) == b"0\n2\na 0 2\norders 1 4\n"


def test_a_file_that_another_has_replaced_is_read_again(tmp_path: Path) -> None:
    assert offsets(tmp_path, "orders-1", "0\n1\norders 1 5\n").offset == 5
    assert offsets(tmp_path, "orders-1", "0\n1\norders 1 55\n").offset == 55


def test_where_it_has_to_be_known_one_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    offsets(tmp_path, "orders-1", "0\n1\norders 1 5\n")
    assert offset_in(tmp_path / "orders-1", NAME) == 5
    assert offset_in(tmp_path / "orders-2", NAME) is None
    offsets(tmp_path, "orders-1", "0\n3\norders 1 5\n")
    with pytest.raises(kafkajit.CorruptCheckpointError, match=r"^Expected .* \[1\]") as raised:
        offset_in(tmp_path / "orders-1", NAME)
    assert raised.value.path == str(tmp_path / NAME)
    assert str(raised.value).endswith(": `kafkajit repair` describes what to do about it")
