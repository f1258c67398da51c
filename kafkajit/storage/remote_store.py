"""A remote file system: counts requests, waits while it is throttled, and explains refusals.

pyarrow's S3 client tries a request again for 6 seconds, every 200 ms, whatever the number of tasks;
it does not wait longer and longer, and it gives up at once if a listing is answered with 429. Other
file systems have rules of their own, or none. So a request that fails because of the load is sent
again after 1, 2 and 4 seconds. One that fails for another reason is not.
"""

from __future__ import annotations

import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

logger = logging.getLogger("kafkajit")

# Seconds before the next tries, each by chance half as long or half as long again.
_PAUSES = (1.0, 2.0, 4.0)
# The names that a listing request returns at most, in S3, GCS and most others.
PAGE = 1000

# Parts of the messages of pyarrow's file systems, and of the services behind them.
_THROTTLED = re.compile(
    r"SLOW_?DOWN|SERVICE_UNAVAILABLE|THROTTL|INTERNAL_FAILURE|TooManyRequests|ServerBusy"
    r"|RESOURCE_EXHAUSTED|\bUNAVAILABLE\b|HTTP status (?:429|50[0234])",
    re.IGNORECASE,
)
# The connection broke off (18, 52, 55, 56) or timed out (28). That it cannot be made is another
# problem, which does not pass.
_BROKEN = re.compile(r"NETWORK_CONNECTION.*curlCode: (?:18|28|52|55|56)\b", re.DOTALL)
_UNREACHABLE = re.compile(r"NETWORK_CONNECTION")
_ELSEWHERE = re.compile(
    r"HTTP status 301|PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint"
)
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID"
    r"|UNRECOGNIZED_CLIENT|ExpiredToken|InvalidToken|HTTP status (?:400|401|403)"
    r"|PERMISSION_DENIED|UNAUTHENTICATED|Authentication(?:Failed|Exception)|Authorization(?:Failure|Permission)"
)

_T = TypeVar("_T")


@dataclass
class Requests:
    """The requests to a file system from this process, and the bytes that came back."""

    count: int = 0
    bytes: int = 0
    repeated: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, count: int, size: int = 0) -> None:
        with self._lock:
            self.count += count
            self.bytes += size

    def __str__(self) -> str:
        text = f"{self.count:,} requests, {self.bytes:,} bytes"
        return f"{text}, {self.repeated:,} requests repeated" if self.repeated else text


@dataclass(frozen=True)
class RemoteStore:
    """A file system of pyarrow's, with the methods that kafkajit uses."""

    filesystem: FileSystem
    prefix: str  # of the paths on it, as users write them
    # Opens it again in a task; None if its pickle has all credentials.
    uri: str | None = field(default=None, compare=False, repr=False)
    secrets: tuple[str, ...] = field(default=(), compare=False, repr=False)  # not for errors
    requests: Requests = field(default_factory=Requests, compare=False, repr=False)

    def __reduce__(self) -> Any:
        # Each task counts its own requests.
        if self.uri is not None:
            return _reopened, (self.uri, self.prefix, self.secrets)
        return RemoteStore, (self.filesystem, self.prefix, None, self.secrets)

    def get_file_info(self, asked: FileSelector | Sequence[str]) -> list[FileInfo]:
        """List a folder, or look at paths."""
        place = asked.base_dir if isinstance(asked, FileSelector) else ", ".join(asked)
        found: list[FileInfo] = self.ask(lambda: self.filesystem.get_file_info(asked), place)
        is_listing = isinstance(asked, FileSelector)
        self.requests.add(max(1, -(-len(found) // PAGE)) if is_listing else len(found))
        return found

    def open_input_file(self, key: str) -> RemoteFile:
        """Open a file for reading in ranges."""
        file = self.ask(lambda: self.filesystem.open_input_file(key), key)
        self.requests.add(1)
        return RemoteFile(self, file, key)

    def open_output_stream(self, key: str) -> pa.NativeFile:
        """Open a new file, which appears when it is closed."""
        file = self.ask(lambda: self.filesystem.open_output_stream(key, compression=None), key)
        return pa.PythonFile(RemoteSink(self, file, key), "w")

    def create_dir(self, key: str) -> None:
        """Make a folder and those around it, on stores that have folders."""
        self.ask(lambda: self.filesystem.create_dir(key, recursive=True), key)

    def delete_file(self, key: str) -> None:
        self.ask(lambda: self.filesystem.delete_file(key), key)

    def ask(self, request: Callable[[], _T], path: str, pauses: Sequence[float] = _PAUSES) -> _T:
        """Send a request, again if the file system has too much to do."""
        for pause in (*pauses, None):
            try:
                return request()
            except (OSError, pa.ArrowException) as failed:
                error = self._without_secrets(failed)
                if pause is None or not _may_pass(error):
                    raise _explained(error, self.prefix + path, len(pauses) + 1) from error
                wait = pause * random.uniform(0.5, 1.5)  # noqa: S311  not a secret
                if not self.requests.repeated:
                    logger.warning(
                        "%s: requests are sent again, after %.1f s: %s",
                        self.prefix + path,
                        wait,
                        _first_line(error),
                    )
                self.requests.repeated += 1
            time.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _without_secrets(self, error: Exception) -> Exception:
        """The error, or one without the secrets that a store's answer may repeat."""
        text = str(error)
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return error if text == str(error) else type(error)(text)


def _reopened(uri: str, prefix: str, secrets: tuple[str, ...]) -> RemoteStore:
    return RemoteStore(FileSystem.from_uri(uri)[0], prefix, uri, secrets)


# A file system on this machine, or a remote one.
Storage: TypeAlias = FileSystem | RemoteStore


class RemoteFile:
    """An open file of a RemoteStore."""

    def __init__(self, store: RemoteStore, file: pa.NativeFile, key: str) -> None:
        self._store = store
        self._file = file
        self._key = key
        self._position = 0

    def size(self) -> int:
        size: int = self._store.ask(self._file.size, self._key)
        return size

    def read_at(self, count: int, position: int) -> bytes:
        content: bytes = self._store.ask(lambda: self._file.read_at(count, position), self._key)
        self._store.requests.add(1, len(content))
        return content

    def read(self, count: int | None = None) -> bytes:
        """The next bytes; without a count, the rest."""
        if count is None:
            count = self.size() - self._position
        content = self.read_at(count, self._position)
        self._position += len(content)
        return content

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        self._position = position + (self.size() if start is None else start)
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def as_native(self) -> pa.NativeFile:
        """The file as Arrow's readers take it, which close it."""
        return pa.PythonFile(self, "r")

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class RemoteSink:
    """A new file of a RemoteStore. What has failed once is not written again."""

    def __init__(self, store: RemoteStore, file: pa.NativeFile, key: str) -> None:
        self._store = store
        self._file = file
        self._key = key

    def write(self, content: bytes) -> int:
        return self._once(lambda: int(self._file.write(content)))

    def flush(self) -> None:
        """Do nothing: nobody sees the file before it is closed."""

    def close(self) -> None:
        self._once(self._file.close)

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def _once(self, request: Callable[[], _T]) -> _T:
        return self._store.ask(request, self._key, pauses=())


def _may_pass(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return not isinstance(error, ConnectionRefusedError)
    text = str(error)
    return bool(_THROTTLED.search(text) or _BROKEN.search(text))


def _explained(error: Exception, path: str, tries: int) -> Exception:
    """The error, in words that name the place and the remedy."""
    text, reason = str(error), _first_line(error)
    if isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError)):
        return error
    if _ELSEWHERE.search(text):
        return OSError(
            f"{path} lies in another region: add it to the URI, such as ?region=eu-west-1, or set "
            f"AWS_REGION ({reason})"
        )
    if isinstance(error, PermissionError) or _REFUSED.search(text):
        return PermissionError(
            f"access to {path} is refused: check the credentials, their rights to list, to read "
            "and, for results, to write, and the region; a public bucket takes anonymous=true in "
            f"the URI ({reason})"
        )
    if _may_pass(error):
        failed = f"cannot be read, after {tries} tries" if tries > 1 else "cannot be written"
        return OSError(f"{path} {failed}: try again later, or with fewer tasks at once ({reason})")
    if _UNREACHABLE.search(text) or isinstance(error, ConnectionError):
        return OSError(f"{path} cannot be reached: check the endpoint and the network ({reason})")
    return error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def info_at(filesystem: Storage, path: str) -> FileInfo:
    """The file or the folder at a path: the folder, if a tool has left an empty object for it."""
    info: FileInfo
    (info,) = filesystem.get_file_info([path])
    may_be_folder = isinstance(filesystem, RemoteStore) and info.type == FileType.File
    inside = FileSelector(path, allow_not_found=True)
    if may_be_folder and not info.size and filesystem.get_file_info(inside):
        return FileInfo(path, FileType.Directory)
    return info
