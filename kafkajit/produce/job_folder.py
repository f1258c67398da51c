"""The folder of a job inside the folder that it writes to: everything, until it is committed.

It is named as a broker names logs pending deletion: if the job dies, a broker that starts there
deletes it.
"""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path


class JobFolder:
    """Creates the folder, and the folders around it that are missing."""

    def __init__(self, target: Path) -> None:
        self._made = _make_folder(target)
        self.path = target / f".kafkajit-0.{uuid.uuid4().hex}-delete"
        try:
            self.path.mkdir()
        except OSError:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove the folder, and those that were created for it if they are empty."""
        self.remove()
        for folder in self._made:
            with suppress(OSError):  # not empty: another job has written there
                folder.rmdir()

    def remove(self) -> None:
        """Remove the folder."""
        # Tasks may still be writing. After the rename they no longer find the folder.
        gone = self.path.with_name(self.path.name.replace("-0.", "-1."))
        with suppress(FileNotFoundError):
            self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _make_folder(path: Path) -> list[Path]:
    """Create a folder and its missing parents; return the created ones, the innermost first."""
    missing = [path]
    while not missing[-1].exists():
        missing.append(missing[-1].parent)
    made = missing[:-1]
    os.makedirs(path, exist_ok=True)  # noqa: PTH103
    return made
