"""Open files to import."""

from __future__ import annotations

import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem

from kafkajit.system.acting import opening


def opened_file(filesystem: FileSystem, path: str) -> pa.NativeFile:
    """Open a file whose parts are read in any order."""
    if isinstance(filesystem, LocalFileSystem):
        return opening(path, filesystem.open_input_file, path)
    return filesystem.open_input_file(path)


def opened_stream(
    filesystem: FileSystem, path: str, compression: str | None = "detect"
) -> pa.NativeFile:
    """Open a file that is read from its beginning to its end."""
    if isinstance(filesystem, LocalFileSystem):
        return opening(path, filesystem.open_input_stream, path, compression)
    return filesystem.open_input_stream(path, compression)
