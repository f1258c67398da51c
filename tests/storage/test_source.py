from __future__ import annotations

import array
import mmap
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafkajit
import kafkajit.reader
import kafkajit.storage.source
from kafkajit import testing as kt
from kafkajit.storage.source import RangeReader, Source, as_bytes, into_memory, open_file, whole

LOG = kt.batch([kt.Record(b"k", b"v")] * 3, base_offset=5)

KINDS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "writable memoryview": lambda log: memoryview(bytearray(log)),
    "part of a memoryview": lambda log: memoryview(b"before" + log)[6:],
    "array": lambda log: array.array("B", log),
    "numpy": lambda log: np.frombuffer(log, dtype=np.uint8),
    "writable numpy": lambda log: np.frombuffer(log, dtype=np.uint8).copy(),
    "numpy int8": lambda log: np.frombuffer(log, dtype=np.int8),
    "numpy in two dimensions": lambda log: np.frombuffer(log, dtype=np.uint8).reshape(2, -1),
    "pyarrow": pa.py_buffer,
    "part of a pyarrow buffer": lambda log: pa.py_buffer(b"before" + log).slice(6),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_holds_bytes_is_a_log(kind: str) -> None:
    even = LOG + bytes(len(LOG) % 2)
    source = KINDS[kind](even)
    content = as_bytes(source)
    assert content.tobytes() == even
    assert content.dtype == np.uint8
    assert content.flags.c_contiguous
    assert not content.flags.writeable
    assert kafkajit.read_records(source)["offset"].to_pylist() == [5, 6, 7]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_copied_at_the_door(kind: str) -> None:
    source = KINDS[kind](LOG + bytes(len(LOG) % 2))
    behind = np.frombuffer(source, dtype=np.uint8)
    assert np.shares_memory(as_bytes(source), behind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_bytes_are_an_empty_log(kind: str) -> None:
    if kind == "numpy in two dimensions":
        source: Any = np.empty((0, 3), dtype=np.uint8)
    else:
        source = KINDS[kind](b"")
    assert as_bytes(source).size == 0
    assert kafkajit.read_records(source).num_rows == 0


def test_the_callers_array_stays_writable() -> None:
    log = np.frombuffer(LOG, dtype=np.uint8).copy()
    content = as_bytes(log)
    kafkajit.read_records(log)
    assert log.flags.writeable
    log[0] = 1
    assert content[0] == 1


def test_an_array_with_gaps_is_refused_with_the_way_out() -> None:
    every_other = np.zeros(100, dtype=np.uint8)[::2]
    with pytest.raises(TypeError, match=r"must be contiguous; pass numpy.ascontiguousarray"):
        kafkajit.read_records(every_other)


@pytest.mark.parametrize("source", [None, 5, 1.5, [1, 2], (), {}, object()])
def test_what_holds_no_bytes_is_refused_by_its_type(source: Any) -> None:
    with pytest.raises(TypeError, match=f"or a path, not {type(source).__name__}$"):
        kafkajit.read_records(source)


def test_a_memoryview_with_gaps_is_refused() -> None:
    with pytest.raises(TypeError):
        kafkajit.read_records(memoryview(LOG)[::2])


class PathLike:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


@pytest.mark.parametrize("kind", [str, Path, PathLike])
def test_a_path_is_mapped(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000005.log"
    path.write_bytes(LOG)
    source = Source(kind(path))
    assert source.path == str(path)
    assert source.content.tobytes() == LOG
    with path.open("r+b") as file:  # what is written now is seen: nothing was read before
        file.write(b"\xff")
    assert source.content[0] == 0xFF


def test_bytes_have_no_path() -> None:
    assert Source(LOG).path is None


def test_an_empty_file_is_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "empty.log"
    path.touch()
    assert Source(path).content.size == 0
    assert kafkajit.read_records(path).num_rows == 0
    assert kafkajit.read_record_batches(path).num_rows == 0
    assert kafkajit.valid_bytes(path) == 0


def test_a_missing_file_and_a_folder_are_pythons_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Source(tmp_path / "none.log")
    with pytest.raises(IsADirectoryError):
        Source(tmp_path)


def test_pages_given_back_can_still_be_read(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    numbers = np.arange(80 << 20 >> 3, dtype=np.int64)  # ten steps of 8 MiB
    numbers.tofile(path)
    source = Source(path)
    content = source.content.view(np.int64)
    assert content.sum() == numbers.sum()
    for position in (0, 1, 40 << 20, 40 << 20, 5, source.content.size - 1):
        source.forget(position)
    assert source._forgotten == 72 << 20
    assert (content == numbers).all()


def test_bytes_are_not_forgotten() -> None:
    source = Source(bytes(100 << 20))
    source.forget(100 << 20)
    assert source._forgotten == 0


def test_a_table_outlives_the_file_it_was_read_from(tmp_path: Path) -> None:
    path = tmp_path / "gone.log"
    path.write_bytes(LOG)
    table = kafkajit.read_records(path, columns=["key", "value"], binary_view=True)
    path.unlink()
    assert table.to_pylist() == [{"key": b"k", "value": b"v"}] * 3


def test_a_path_is_as_large_as_somebody_says(tmp_path: Path) -> None:
    path = tmp_path / "growing.log"
    path.write_bytes(LOG + LOG)
    assert Source(path, size=len(LOG)).content.tobytes() == LOG
    assert Source(path, size=0).content.size == 0
    with pytest.raises(EOFError, match=rf"growing.log ended at \d+, before its {3 * len(LOG)} by"):
        Source(path, size=3 * len(LOG))


# Ranges, which is how a file in an object store is read.


class Ranges:
    """A file in ranges of its own choice, that remembers what was asked of it."""

    def __init__(self, content: bytes, most: int = 2**62) -> None:
        self.content = content
        self.most = most
        self.asked: list[tuple[int, int]] = []

    def __call__(self, count: int, position: int) -> bytes:
        self.asked.append((position, count))
        return self.content[position : position + min(count, self.most)]

    def source(self, start: int = 0, end: int | None = None, path: str | None = None) -> Source:
        size = len(self.content)
        return Source(
            RangeReader(into_memory(self), size, start, size if end is None else end), path=path
        )


CONTENT = bytes(range(256)) * 4


@pytest.mark.parametrize("window", [1, 7, 100, 2000])
@pytest.mark.parametrize("most", [1, 64, 2000])
def test_ranges_are_loaded_up_to_where_they_are_asked_for(
    window: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafkajit.storage.source, "_WINDOW", window)
    ranges = Ranges(CONTENT, most)
    source = ranges.source(path="s3://b/x.log")
    assert source.path == "s3://b/x.log"
    assert source.content.size == len(CONTENT)
    loaded = 0
    for end in (0, 1, 1, 200, 150, 700, len(CONTENT), len(CONTENT) + 50):
        loaded = max(loaded, source.load(end))
        assert loaded >= min(end, len(CONTENT))
        assert source.load(0) == loaded
        assert source.content[:loaded].tobytes() == CONTENT[:loaded]
    assert loaded == len(CONTENT)
    positions = [position for position, _ in ranges.asked]
    assert positions == sorted(set(positions))  # nothing is read twice


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells what is used")
def test_zeros_of_a_remote_file_take_no_memory() -> None:
    size = 64 << 20

    def read_into(memory: memoryview, position: int) -> int:
        memory[:] = bytes(len(memory))
        if position == 0:
            memory[5] = 7
        return len(memory)

    def used() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = used()
    source = Source(RangeReader(read_into, size, 0, size))
    assert source.load(size) == size
    assert used() - before < size // 2
    assert np.flatnonzero(source.content).tolist() == [5]


def test_only_a_part_of_a_file_is_read_where_only_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafkajit.storage.source, "_WINDOW", 10)
    ranges = Ranges(CONTENT)
    source = ranges.source(300, 345)
    assert source.load(310) >= 310
    assert source.load(2000) == 345
    assert source.content[300:345].tobytes() == CONTENT[300:345]
    assert ranges.asked == [(300, 10), (310, 10), (320, 10), (330, 10), (340, 5)]


def test_one_range_is_read_ahead_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafkajit.storage.source, "_WINDOW", 10)
    asked: list[int] = []
    read = threading.Semaphore(0)

    def read_at(count: int, position: int) -> bytes:
        asked.append(position)
        read.release()
        return CONTENT[position : position + count]

    source = Source(RangeReader(into_memory(read_at), len(CONTENT), 0, len(CONTENT)))
    assert asked == []
    source.load(15)
    for _ in range(3):
        assert read.acquire(timeout=10)
    assert asked == [0, 10, 20]
    source.load(20)
    assert asked == [0, 10, 20]


def test_ranges_are_no_file_without_bytes() -> None:
    source = Ranges(b"").source()
    assert source.content.size == 0
    assert source.load(100) == 0
    assert kafkajit.reader.SegmentReader(source).position == 0


def test_a_file_that_ends_before_its_size_is_an_error_with_its_name() -> None:
    source = Source(
        RangeReader(into_memory(Ranges(CONTENT[:500])), 1024, 0, 1024), path="s3://b/x.log"
    )
    with pytest.raises(EOFError, match=r"^s3://b/x.log ended at 500, before its 1024 bytes$"):
        source.load(1024)


def test_an_error_of_the_store_is_the_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafkajit.storage.source, "_WINDOW", 10)

    def read_at(count: int, position: int) -> bytes:
        if position >= 20:
            raise OSError("access denied")
        return CONTENT[position : position + count]

    source = Source(RangeReader(into_memory(read_at), len(CONTENT), 0, len(CONTENT)))
    assert source.load(20) == 20
    with pytest.raises(OSError, match=r"^access denied$"):
        source.load(30)


def test_ranges_already_read_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafkajit.storage.source, "_FORGET_STEP", 4 * mmap.PAGESIZE)
    content = bytes(range(1, 251)) * 400
    source = Ranges(content).source(start=mmap.PAGESIZE + 5)
    source.load(len(content))
    source.forget(9 * mmap.PAGESIZE + 7)  # two steps from the page where the range begins
    kept = 9 * mmap.PAGESIZE
    assert source.content[kept:].tobytes() == content[kept:]
    assert not source.content[mmap.PAGESIZE : kept].any()
    source.forget(9 * mmap.PAGESIZE + 7)
    assert source.content[kept:].tobytes() == content[kept:]


def test_a_small_file_is_there_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "quorum-state"
    path.write_bytes(LOG)
    far = RangeReader(into_memory(lambda count, at: LOG[at : at + count]), len(LOG), 0, len(LOG))
    for source, name in ((LOG, None), (path, str(path)), (Source(far, path="s3/x"), "s3/x")):
        content, found = whole(source)
        assert (content.tobytes(), found) == (LOG, name)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


NO_FILES = {"a FIFO": make_fifo, "a socket": make_socket, "a device": link_to_a_device}


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize(
    "reader",
    [
        kafkajit.read_records,
        lambda path: list(kafkajit.iter_records(path)),
        kafkajit.read_record_batches,
        kafkajit.find_corruption,
        kafkajit.valid_bytes,
        kafkajit.index.read_offset_index,
        kafkajit.index.read_time_index,
        kafkajit.read_producer_snapshot,
        kafkajit.read_leader_epochs,
        kafkajit.Log,
        lambda path: kafkajit.Log(path.parent),
        lambda path: kafkajit.repair(path.parent),
        lambda path: kafkajit.retain(path.parent),
        lambda path: kafkajit.LogWriter(path.parent),
    ],
)
def test_what_is_no_file_is_refused_by_name_and_not_waited_for(
    kind: str, reader: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    monkeypatch.chdir(folder)  # a socket's path is short
    NO_FILES[kind](Path(f"{0:020}.log"))
    with pytest.raises(OSError, match=f"{0:020}.log is {kind}, not a file"):
        reader(folder / f"{0:020}.log")


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_not_even_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening has effects: it lets the writer of a FIFO go on, and rewinds a tape."""
    monkeypatch.chdir(tmp_path)
    NO_FILES[kind](Path("made"))
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    with pytest.raises(OSError, match=f"made is {kind}, not a file"):
        open_file(Path("made"))


_TRIMMED = """
import os, sys
from kafkajit.storage.source import Source
source = Source(sys.argv[1])
os.truncate(sys.argv[1], 16)
print(source.content.size, int(source.content.sum()))
"""


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".index.deleted"])
def test_an_index_may_be_trimmed_while_it_is_read(tmp_path: Path, suffix: str) -> None:
    index = tmp_path / f"{0:020}{suffix}"
    index.write_bytes(bytes(range(16)))
    os.truncate(index, 1 << 20)
    # SIGBUS would end the process.
    words = [sys.executable, "-c", _TRIMMED, str(index)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"{1 << 20} 120\n"
