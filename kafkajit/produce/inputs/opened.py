"""Open files to import: regular ones, which a FIFO may replace meanwhile without harm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from kafkajit.storage.remote_store import RemoteStore, Storage
from kafkajit.storage.source import open_descriptor

# Open files by their numbers. Arrow opens one again there, without a look at the path.
_OPEN_FILES = Path("/proc/self/fd")


def opened_file(filesystem: Storage, path: str) -> pa.NativeFile:
    """Open a file whose parts are read in any order."""
    if isinstance(filesystem, RemoteStore):
        return filesystem.open_input_file(path).as_native()
    with _place_of(path) as place:
        return filesystem.open_input_file(place)


def opened_stream(
    filesystem: Storage, path: str, compression: str | None = "detect"
) -> pa.NativeFile:
    """Open a file that is read from its beginning to its end."""
    if compression == "detect":
        compression = _compression(path)
    if isinstance(filesystem, RemoteStore):
        opened = filesystem.open_input_file(path).as_native()
        return opened if compression is None else pa.CompressedInputStream(opened, compression)
    with _place_of(path) as place:
        return filesystem.open_input_stream(place, compression)


def _compression(path: str) -> str | None:
    """The compression that a file's name tells, as Arrow takes it."""
    try:
        name: str = pa.Codec.detect(path).name
    except (TypeError, ValueError):  # what it raises for a name that tells none
        return None
    return name


@contextmanager
def _place_of(path: str) -> Iterator[str]:
    """A path to the file that was found to be a regular one."""
    opened = open_descriptor(path)
    try:
        yield str(_OPEN_FILES / str(opened)) if _OPEN_FILES.is_dir() else path
    finally:
        os.close(opened)
