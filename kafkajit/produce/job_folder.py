"""The folder of a job inside the folder that it writes to: everything, until it is committed.

It is named as a broker names logs pending deletion: if the job dies, a broker that starts there
deletes it.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path

from kafkajit.system import disk


class JobFolder:
    """Creates the folder, and the folders around it that are missing."""

    def __init__(self, target: Path) -> None:
        self._made = disk.make_folders(target)
        self.path = target / f".kafkajit-0.{uuid.uuid4().hex}-delete"
        try:
            disk.make_folder(self.path)
        except OSError:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove the folder, and those that were created for it if they are empty."""
        self.remove()
        for folder in self._made:
            with suppress(OSError):  # not empty: another job has written there
                disk.remove_folder(folder)

    def remove(self) -> None:
        """Remove the folder."""
        # Tasks may still be writing. After the rename they no longer find the folder.
        gone = self.path.with_name(self.path.name.replace("-0.", "-1."))
        with suppress(FileNotFoundError):
            disk.rename(self.path, gone)
        disk.remove_tree(gone, ignore_errors=True)
