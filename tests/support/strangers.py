"""Folders and files of other users."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

NOBODY = 65534
IS_ROOT = os.getuid() == 0
ROOTS = b"root's"  # what a file of root's has, which others cannot read


class Places(NamedTuple):
    """A folder that another user owns, and one of root's, which others cannot enter."""

    home: Path
    root: Path

    def link(self, name: str, target: Path) -> Path:
        """A link that the other user puts into the home folder."""
        path = self.home / name
        self.make(path.parent)
        path.symlink_to(target)
        os.lchown(path, NOBODY, NOBODY)
        return path

    def make(self, folder: Path) -> None:
        """A folder that the other user makes."""
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir()
            os.chown(one, NOBODY, NOBODY)

    def put(self, name: str, source: Path) -> Path:
        """A copy of a log that the other user has."""
        path = self.home / name
        self.make(path.parent)
        shutil.copytree(source, path)
        for inside in (path, *path.iterdir()):
            os.chown(inside, NOBODY, NOBODY)
        return path


@contextmanager
def folder_that_others_enter() -> Iterator[Path]:
    """A new folder. Others cannot enter those that pytest makes, so there no mode matters."""
    folder = Path(tempfile.mkdtemp(prefix="kafkajit-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let a file or folder be another user's; return that user."""
    if IS_ROOT:
        os.lchown(path, NOBODY, NOBODY)
        return NOBODY
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    return path.lstat().st_uid
