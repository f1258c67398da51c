"""Open files to import."""

from __future__ import annotations

from contextlib import nullcontext

import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem

from kafkajit.system.acting import opening


def opened_file(filesystem: FileSystem, path: str) -> pa.NativeFile:
    """Open a file whose parts are read in any order."""
    with opening(path) if isinstance(filesystem, LocalFileSystem) else nullcontext():
        return filesystem.open_input_file(path)


def opened_stream(
    filesystem: FileSystem, path: str, compression: str | None = "detect"
) -> pa.NativeFile:
    """Open a file that is read from its beginning to its end."""
    with opening(path) if isinstance(filesystem, LocalFileSystem) else nullcontext():
        return filesystem.open_input_stream(path, compression=compression)
