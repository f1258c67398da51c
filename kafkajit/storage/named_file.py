"""Files that a user names to a command: a schema, a key, statements, an earlier report."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from kafkajit.storage.source import read_small
from kafkajit.system.acting import owner_of, reading_for
from kafkajit.system.ownership import others_of

# Open files of this process, as a shell names them for <(...).
_OPEN_FILE = re.compile(r"/dev/(?:stdin|fd/\d+)|/proc/self/fd/\d+")


def read_named(path: str | os.PathLike[str]) -> bytes:
    """Read a file, or a pipe of this user's.

    Whoever owns the folder of the file may exchange it. So another user's FIFO or device is an
    error, and root reads in another user's folder only what that user may read.
    """
    if _is_own_pipe(path):
        return Path(path).read_bytes()
    with reading_for(path):
        return read_small(Path(path))


def _is_own_pipe(path: str | os.PathLike[str]) -> bool:
    if _OPEN_FILE.fullmatch(os.fspath(path)):
        return True
    found = Path(path).stat()
    return stat.S_ISFIFO(found.st_mode) and others_of(found) is None and owner_of(path) is None
