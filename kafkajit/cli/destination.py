"""The files that commands write: complete or not at all, and never over a file of somebody else."""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kafkajit.places.uri import uri_of
from kafkajit.system import disk
from kafkajit.system.acting import owner_of, reading_for
from kafkajit.system.new_file import NewFile
from kafkajit.system.ownership import link_of_another

# Open files of this process: a rename would replace the system's link to one.
_STREAM = re.compile(r"/dev/(?:stdout|stderr|fd/\d+)|/proc/self/fd/\d+")


def add_force_option(parser: argparse.ArgumentParser) -> None:
    """Add --force, of commands that write one file."""
    parser.add_argument(
        "--force", action="store_true", help="replace the file to write if it exists"
    )


@contextmanager
def destination(path: str | None, *, force: bool) -> Iterator[IO[bytes]]:
    """The output for results: standard output, or a file that appears once it is complete.

    A pipe or a device is written to as it is. Errors are raised before the block begins.
    """
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    if uri_of(path) is not None:
        raise ValueError(f"{path} is a URI, and this file must be local: name a path")
    target = Path(path)
    try:
        kind = target.stat().st_mode  # a link to a device is one, such as /dev/stdout
    except FileNotFoundError:
        kind = None
    if kind is not None and stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, "name a file in this folder", path)
    if kind is not None and (not stat.S_ISREG(kind) or _STREAM.fullmatch(path)):
        _check_stream(target, kind)
        with disk.open_stream(target) as out:
            yield out
        return
    if os.path.lexists(path) and not force:
        raise FileExistsError(f"{path} exists: pass --force to replace it, or name another file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: make it, or name another")
    with reading_for(target.parent), NewFile(target, replaces=force) as out:
        yield out


def _check_stream(target: Path, kind: int) -> None:
    """Raise if another user decides that the file to write is a pipe or a device."""
    if stat.S_ISFIFO(kind) and owner_of(target) is not None:
        raise FileExistsError(
            f"{target} is another user's FIFO, or in another user's folder: name another file"
        )
    link = link_of_another(target)
    if link is not None:
        raise FileExistsError(f"{target} leads through {link}, another user's link: name a file")


@contextmanager
def packed(out: IO[bytes], codec: str | None) -> Iterator[IO[bytes]]:
    """An output that compresses for another one, if there is a codec."""
    if codec is None:
        yield out
        return
    raw = _Packed(out, codec)
    with io.BufferedWriter(raw) as packing:
        yield packing
        packing.flush()
        raw.finish()


class _Packed(io.RawIOBase):
    def __init__(self, out: IO[bytes], codec: str) -> None:
        from kafkajit.format.compressor import text_compressor

        self._out = out
        self._compressor = text_compressor(codec)

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        self._out.write(self._compressor.compress(content))
        return len(content)

    def finish(self) -> None:
        """Write the end of the compressed bytes."""
        self._out.write(self._compressor.flush())
