"""An object store in memory, for millions of objects: names without contents."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType

# The keys of one answer to a listing request, as in S3.
PAGE = 1000
MTIME = 1_700_000_000.0
SUFFIXES = (".index", ".log", ".timeindex")


class MemoryStore(FileSystemHandler):  # type: ignore[misc]
    """Segments of topics, each with its indexes, below a root; every request takes a while.

    A request lists up to 1,000 names of one folder. It counts in `requests`.
    """

    def __init__(
        self,
        folders: int,
        segments: int,
        *,
        topics: int = 1,
        segment_bytes: int = 1000,
        latency: float = 0,
        root: str = "bucket/kafka",
    ) -> None:
        self.root = root
        self.latency = latency
        self.segment_bytes = segment_bytes
        self.requests = 0
        self.at_once = 0
        self._running = 0
        self._lock = threading.Lock()
        self._folders = [f"topic-{at % topics:02d}-{at // topics}" for at in range(folders)]
        self._known = set(self._folders)
        self._each = -(-segments // folders)

    def get_type_name(self) -> str:
        return "memory"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        for _ in paths:
            self._ask(1)
        return [FileInfo(path, self._type(path)) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        folder = selector.base_dir.rstrip("/")
        if folder == self.root:
            found = [FileInfo(f"{folder}/{name}", FileType.Directory) for name in self._folders]
        else:
            found = [
                FileInfo(
                    f"{folder}/{at * 1000:020d}{suffix}",
                    FileType.File,
                    mtime=MTIME,
                    size=self.segment_bytes if suffix == ".log" else 10,
                )
                for at in range(self._each)
                for suffix in SUFFIXES
            ]
        self._ask(-(-len(found) // PAGE))
        return found

    def _type(self, path: str) -> FileType:
        known = path == self.root or path.removeprefix(f"{self.root}/") in self._known
        return FileType.Directory if known else FileType.NotFound

    def _ask(self, requests: int) -> None:
        with self._lock:
            self.requests += requests
            self._running += 1
            self.at_once = max(self.at_once, self._running)
        time.sleep(self.latency * requests)
        with self._lock:
            self._running -= 1

    def __eq__(self, other: Any) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return MemoryStore, (1, 1)  # without its names, as a real store is pickled

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise OSError("this store has names only")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refused
    delete_file = move = copy_file = open_input_stream = open_input_file = _refused
    open_output_stream = open_append_stream = _refused
