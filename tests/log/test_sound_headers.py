"""Headers of sound batches: a length in a damaged header counts only if it leads to one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import data

from kafkajit.log import positions
from kafkajit.log.positions import headers
from kafkajit.storage.live_file import LiveFile


def bases(path: Path, content: bytes) -> list[int]:
    path.write_bytes(content)
    found = headers(LiveFile.at(str(path)), 0)
    return [base for batches in found for base in batches.field("baseOffset").tolist()]


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


@pytest.mark.parametrize("window", [100, 128 << 10])
def test_one_damaged_batch_is_passed_by_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(positions, "_WINDOW", window)
    content = data(0) + damaged(data(2)) + data(4) + damaged(data(6)) + data(8)
    assert bases(tmp_path / "log", content) == [0, 4, 8]


@pytest.mark.parametrize("window", [100, 128 << 10])
def test_they_end_where_the_length_of_a_damaged_batch_leads_to_no_sound_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(positions, "_WINDOW", window)
    content = data(0) + damaged(data(2)) + damaged(data(4)) + data(6)
    assert bases(tmp_path / "log", content) == [0]
    assert bases(tmp_path / "log", damaged(data(2)) + damaged(data(4)) + data(6)) == []
