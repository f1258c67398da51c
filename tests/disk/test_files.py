from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafkajit.disk.files import identity, own, sync


def test_what_root_makes_belongs_to_whom_the_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(os, "chown", lambda path, *owner: given.append((path, owner)))
    brokers = SimpleNamespace(stat=lambda: SimpleNamespace(st_uid=7, st_gid=8))
    own(tmp_path, like=brokers)  # type: ignore[arg-type]
    own(tmp_path, like=tmp_path)
    assert given == [(tmp_path, (7, 8))]


def test_a_file_is_told_from_another_that_took_its_name(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert identity(path) is None
    path.write_bytes(b"one")
    first = identity(path)
    path.rename(tmp_path / "y")
    assert identity(tmp_path / "y") == first
    os.utime(tmp_path / "y", ns=(1, 1))
    assert identity(tmp_path / "y") != first


def test_a_disk_that_fails_is_told_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    opened = os.open(tmp_path, os.O_RDONLY)
    os.close(opened)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=rf"^\[Errno 5\] Input/output error: '{tmp_path}'$"):
        sync(tmp_path)
    again = os.open(tmp_path, os.O_RDONLY)
    os.close(again)
    assert again == opened, "a file was left open"
