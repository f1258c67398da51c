"""Files that another process changes while they are read."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from kafkajit.storage.live_file import LiveFile

CONTENT = bytes(range(256)) * 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(CONTENT)
    return path


def test_a_range_is_loaded_as_it_is_needed(path: Path) -> None:
    source = LiveFile.at(str(path)).open(100, 200)
    assert source.content.size == len(CONTENT)
    assert source.load(200) == 200
    assert source.content[100:200].tobytes() == CONTENT[100:200]
    assert source.surroundings is not None
    assert list(source.surroundings.names()) == [path.name]
    assert source.surroundings.size() == len(CONTENT)


def test_a_file_that_is_cut_off_while_it_is_read_is_an_error(path: Path) -> None:
    source = LiveFile.at(str(path)).open()
    os.truncate(path, 10)
    with pytest.raises(EOFError, match="ended at 10, before its 1024 bytes"):
        source.load(1024)


def test_fewer_bytes_are_read_of_a_shorter_file(path: Path) -> None:
    file = LiveFile.at(str(path))
    assert file.read(1000, 100) == CONTENT[1000:]
    os.truncate(path, 10)
    assert file.read() == CONTENT[:10]


def test_a_held_file_stays_what_it_was(path: Path) -> None:
    file = pickle.loads(pickle.dumps(LiveFile.at(str(path))))
    held = file.held()
    assert held is not None
    path.unlink()
    path.write_bytes(b"another")
    assert held.read() == CONTENT
    assert held.open().load(1024) == 1024
    assert file.held() is None


def test_another_file_of_the_name_is_not_read(path: Path) -> None:
    file = LiveFile.at(str(path))
    path.rename(path.with_name("kept"))
    path.write_bytes(b"another")
    for read in (file.read, file.open):
        with pytest.raises(FileNotFoundError, match="deleted or replaced since it was listed"):
            read()


def test_a_file_about_to_be_deleted_is_found(path: Path) -> None:
    file = LiveFile.at(str(path))
    path.rename(f"{path}.deleted")
    path.write_bytes(CONTENT)
    held = file.held()
    assert held is not None
    assert held == file
    Path(f"{path}.deleted").unlink()
    assert file.held() is None


def test_a_shorter_file_is_not_the_same(path: Path) -> None:
    file = LiveFile.at(str(path))
    os.truncate(path, 10)
    assert file.held() is None
    path.unlink()
    assert file.opened() is None
