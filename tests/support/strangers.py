"""Folders and files of other users."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
IS_ROOT = os.getuid() == 0


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
