"""Turns anything that holds a log's bytes into one type: a read-only array of uint8.

Kernels are compiled for exactly that type (C-contiguous, read-only). A single door for bytes keeps
them from being compiled a second time.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.system.acting import opening
from kafkajit.system.holes import data_end, is_sparse
from kafkajit.system.memory_map import PAGE, Map, give_back, map_file, reserve
from kafkajit.system.open_path import open_path

logger = logging.getLogger("kafkajit")

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Pages that were read are given back to the system in steps of this many bytes.
_FORGET_STEP = 8 << 20


# No batch begins with such bytes, and zeros would be a preallocated end.
_LOST = b"\xff"
# The bytes of a remote file that are read at once.
_WINDOW = 8 << 20

# A path that begins with this leads to the sample logs in the installed package.
SAMPLE = "sample:"
SAMPLE_FOLDER = Path(__file__).absolute().parents[1] / "sample"
SAMPLE_LOGS = SAMPLE_FOLDER / "logs"
# The folders beside the sample logs, such as that of sample:typed.
_OTHER_SAMPLES = frozenset({"damaged", "internal", "typed"})


class RangeReader(NamedTuple):
    """A file that is read in ranges: `read_into(memory, position)` returns the count of bytes."""

    read_into: Callable[[memoryview, int], int]
    size: int
    start: int  # no byte before it is read
    end: int  # no byte from here on is read
    data_end: int | None = None  # behind it are only zeros, which are not read


def into_memory(read_at: Callable[[int, int], bytes]) -> Callable[[memoryview, int], int]:
    """The function for a RangeReader, of one that returns a count of bytes from a position on."""

    def read_into(memory: memoryview, position: int) -> int:
        content = read_at(len(memory), position)
        memory[: len(content)] = content
        return len(content)

    return read_into


class Surroundings(NamedTuple):
    """Functions that look at a file's folder; called only if something is wrong with the file."""

    names: Callable[[], Iterable[str]]  # of the files in its folder, its own among them
    size: Callable[[], int]  # of the file as it is now


class Source:
    """A log's bytes, with the path that they came from, if any.

    A path is memory-mapped: no byte is read before it is used, and `forget` gives pages back. So a
    reader that moves forward holds a few megabytes of a file of any size. A RangeReader's bytes are
    loaded on demand into an anonymous mapping as large as the file, and given back in the same way,
    so positions are those in the file, whichever part of it is read.

    `size` is the size from an earlier listing: bytes that were appended since are ignored. With
    `leaps` the reader jumps about, so the system does not read ahead.
    """

    def __init__(
        self,
        source: Any,
        *,
        path: str | None = None,
        size: int | None = None,
        leaps: bool = False,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.path = path
        self.surroundings = surroundings
        self._leaps = leaps
        self._map: Map | None = None
        self._forgotten = 0
        self._ranges: _Loader | None = None
        self._data_end: int | None = None
        if isinstance(source, (str, os.PathLike)):
            self.path = resolve_sample(os.fspath(source))
            file = Path(self.path)
            self.surroundings = surroundings or Surroundings(
                partial(os.listdir, file.parent), lambda: _size_of(file)
            )
            source = self._map_file(file, size)
        elif isinstance(source, RangeReader):
            self._forgotten = source.start // PAGE * PAGE
            self._map = reserve(source.size, is_filled=source.end - source.start > _WINDOW)
            self._ranges = _Loader(source, self._map, path or "the file")
            self._data_end = source.data_end
            source = memoryview(self._map)[: source.size]
        self.content = as_bytes(source)

    def _map_file(self, path: Path, size: int | None) -> Any:
        with open_file(path) as file:
            now = os.fstat(file.fileno()).st_size
            size = now if size is None else size
            if size > now:
                raise EOFError(
                    f"{path} ended at {now}, before its {size} bytes: it was cut, or replaced by "
                    "another file, since it was listed; run the query again"
                )
            if size == 0:
                return b""
            self._data_end = data_end(file.fileno(), size)
            if size <= _MOST_PREALLOCATED and _INDEX.search(path.name) and is_sparse(file.fileno()):
                # A broker cuts preallocated zeros off when it rolls: mapped pages would be gone.
                return file.read(size).ljust(size, b"\0")
            self._map = map_file(file.fileno(), size, leaps=self._leaps)
        return self._map

    @property
    def data_end(self) -> int:
        """A position behind which all bytes are zeros: the system knows where a file has holes."""
        size = self.content.size
        return size if self._data_end is None else min(self._data_end, size)

    @property
    def is_there(self) -> bool:
        """Whether all bytes can be used without `load`."""
        return self._ranges is None

    def shared(self) -> Source:
        """The same bytes, for several readers at different positions; `forget` does nothing."""
        return Source(self.content, path=self.path, surroundings=self.surroundings)

    def load(self, end: int) -> int:
        """Load the bytes before `end`, and return the end of the loaded bytes."""
        return self.content.size if self._ranges is None else self._ranges.load(end)

    def skip_lost(self) -> None:
        """Load bytes that look like damage instead of those that a remote file has lost."""
        if self._ranges is not None:
            self._ranges.skips_lost = True

    def has_lost(self, start: Int64s, end: Int64s) -> Mask:
        """Whether stretches of loaded bytes contain some that a remote file has lost."""
        found = np.zeros(len(start), dtype=np.bool_)
        for first, behind in () if self._ranges is None else self._ranges.lost:
            found |= (start < behind) & (end > first)
        return found

    def keep(self) -> None:
        """Keep all loaded bytes as long as an array refers to them: `forget` does nothing."""
        self._map = None

    def forget(self, position: int) -> None:
        """Give back the bytes before `position`, which will not be used again."""
        if self._map is None:
            return
        length = (position - self._forgotten) // _FORGET_STEP * _FORGET_STEP
        if length > 0:
            give_back(self._map, self._forgotten, length, is_file=self.is_there)
            self._forgotten += length


# The bytes of an index or a snapshot at most: Kafka's have some 10 MB, or one of millions of
# producers some hundred.
_MOST_BESIDE = 1 << 30
_INDEX = re.compile(r"\.(?:index|timeindex)(?:\.|$)")
# segment.index.bytes is 10 MiB by default.
_MOST_PREALLOCATED = 128 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_regular(path: Path) -> None:
    """Raise an OSError for anything but a file: opening a FIFO, for one, could wait forever.

    >>> check_regular(Path("/dev/zero"))
    Traceback (most recent call last):
    OSError: /dev/zero is a device, not a file
    """
    _check_mode(path, path.stat().st_mode)


def open_file(path: Path | str) -> BinaryIO:
    """Open a regular file for reading; raise an OSError for anything else, such as a FIFO."""
    return os.fdopen(open_descriptor(os.fspath(path)), "rb")


def open_descriptor(path: str) -> int:
    """As `open_file`; whoever calls this closes the descriptor."""
    _check_mode(path, os.stat(path).st_mode)  # noqa: PTH116 - a stream's trigger opens thousands
    # O_NONBLOCK: do not wait even if a FIFO has taken the file's place since.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    opened = opening(path, open_path, path, flags)
    try:
        _check_mode(path, os.fstat(opened).st_mode)
    except BaseException:
        os.close(opened)
        raise
    return opened


def read_small(path: Path | str) -> bytes:
    """Read a file that lies beside a log; a sparse one may claim to have terabytes."""
    with open_file(path) as file:
        _check_small(os.fstat(file.fileno()).st_size, os.fspath(path))
        content = file.read()
        if content is None:  # as /proc/kmsg, which claims to be a file
            raise OSError(errno.EAGAIN, "it has nothing to read yet", os.fspath(path))
        return content


def _check_small(size: int, path: str) -> None:
    if size > _MOST_BESIDE:
        raise OSError(
            errno.EFBIG,
            f"it has {size:,} bytes, more than is read of such a file",
            path,
        )


def _check_mode(path: Path | str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
    message = f"{path} is {kind}, not a file"
    raise IsADirectoryError(message) if stat.S_ISDIR(mode) else OSError(message)


def _size_of(path: Path) -> int:
    return path.stat().st_size


class _Loader:
    """Loads ranges of a file into memory, and reads one range ahead."""

    def __init__(self, file: RangeReader, memory: Map, name: str) -> None:
        self._file = file
        self._name = name
        self._memory = memory
        self._loaded = file.start
        self._data_end = file.end if file.data_end is None else file.data_end
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._ahead: Future[int] | None = None
        self.skips_lost = False
        self.lost: list[tuple[int, int]] = []

    def load(self, end: int) -> int:
        while self._loaded < min(end, self._file.end):
            count = self._ahead.result() if self._ahead is not None else self._read(self._loaded)
            self._loaded += count
            self._ahead = None
            if self._loaded >= self._data_end:
                self._loaded = self._file.end  # memory that was never written is zeros
            elif self._loaded < self._file.end:
                self._ahead = self._pool.submit(self._read, self._loaded)
        return self._loaded

    def _read(self, position: int) -> int:
        memory = memoryview(self._memory)[position : min(position + _WINDOW, self._file.end)]
        try:
            count = self._file.read_into(memory, position)
        except Exception as error:
            # An error of a tiered segment has the range that is lost, unless all of it is.
            lost: tuple[int, int] | None = getattr(error, "lost", None)
            if not self.skips_lost or lost is None:
                raise
            logger.warning("%s: its bytes are left out", error)
            first, behind = lost
            count = min(behind - position, len(memory))
            first = max(first - position, 0)
            memory[first:count] = _LOST * (count - first)
            self.lost.append((position + first, position + count))
        if not count:
            raise EOFError(f"{self._name} ended at {position}, before its {self._file.end} bytes")
        self._give_back_zeros(memory[:count], position)
        return count

    def _give_back_zeros(self, content: memoryview, position: int) -> None:
        """Give back memory that is all zeros, and is zeros if it is used again."""
        if content[0] or content[-1]:
            return
        start = -(-position // PAGE) * PAGE
        end = (position + len(content)) // PAGE * PAGE
        if start < end and not np.frombuffer(content, dtype=np.uint8).any():
            give_back(self._memory, start, end - start, is_file=False)


def resolve_sample(path: str) -> str:
    """Replace a leading `sample:` by the folder of the sample logs in the installed package.

    >>> resolve_sample("sample:orders-0").endswith("/kafkajit/sample/logs/orders-0")
    True
    >>> resolve_sample("sample:typed").endswith("/kafkajit/sample/typed")
    True
    >>> resolve_sample("/var/kafka")
    '/var/kafka'
    """
    if not path.startswith(SAMPLE):
        return path
    name = path.removeprefix(SAMPLE).strip("/")
    folder = SAMPLE_FOLDER if name.split("/")[0] in _OTHER_SAMPLES else SAMPLE_LOGS
    return f"{folder}/{name}".rstrip("/")


def whole(source: Any) -> tuple[Bytes, str | None]:
    """All bytes of a small file, and the path that they came from, if any."""
    opened = source if isinstance(source, Source) else Source(source)
    if opened.path is not None:
        _check_small(opened.content.size, opened.path)
    opened.load(opened.content.size)
    return opened.content, opened.path


def as_bytes(source: Any) -> Bytes:
    """View bytes, a memoryview, a numpy array or a pyarrow Buffer as read-only uint8."""
    if isinstance(source, np.ndarray):
        if not source.flags.c_contiguous:
            raise TypeError("a log's bytes must be contiguous; pass numpy.ascontiguousarray(array)")
        content = source.reshape(-1).view(np.uint8)
    else:
        try:
            content = np.frombuffer(source, dtype=np.uint8)
        except (BufferError, ValueError) as error:
            raise TypeError(f"a log's bytes must be contiguous ({error})") from error
        except TypeError as error:
            raise TypeError(
                "source must be bytes, a memoryview, a numpy array, a pyarrow Buffer or a path, "
                f"not {type(source).__name__}"
            ) from error
    content = content[:]  # a view of its own: the caller's array stays writable
    content.flags.writeable = False
    return content
