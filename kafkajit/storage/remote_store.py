"""A remote file system: counts requests, waits while it is throttled, and explains refusals.

pyarrow's S3 client tries a request again for 6 seconds, every 200 ms, whatever the number of tasks;
it does not wait longer and longer, and it gives up at once if a listing is answered with 429. Other
file systems have rules of their own, or none. So a request that fails because of the load is sent
again after 1, 2 and 4 seconds. One that fails for another reason is not.
"""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem

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

    def ask(self, request: Callable[[], _T], path: str) -> _T:
        """Send a request, again if the file system has too much to do."""
        for pause in (*_PAUSES, None):
            try:
                return request()
            except (OSError, pa.ArrowException) as failed:
                error = self._without_secrets(failed)
                if pause is None or not _may_pass(error):
                    raise _explained(error, self.prefix + path) from error
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


class RemoteFile:
    """An open file of a RemoteStore."""

    def __init__(self, store: RemoteStore, file: Any, key: str) -> None:
        self._store = store
        self._file = file
        self._key = key

    def size(self) -> int:
        size: int = self._store.ask(self._file.size, self._key)
        return size

    def read_at(self, count: int, position: int) -> bytes:
        content: bytes = self._store.ask(lambda: self._file.read_at(count, position), self._key)
        self._store.requests.add(1, len(content))
        return content

    def read(self) -> bytes:
        return self.read_at(self.size(), 0)

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _may_pass(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return not isinstance(error, ConnectionRefusedError)
    text = str(error)
    return bool(_THROTTLED.search(text) or _BROKEN.search(text))


def _explained(error: Exception, path: str) -> Exception:
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
            f"access to {path} is refused: check the credentials, their rights to list and "
            f"to read, and the region; a public bucket takes anonymous=true in the URI ({reason})"
        )
    if _may_pass(error):
        return OSError(
            f"{path} cannot be read, after {len(_PAUSES) + 1} tries: try again later, or with "
            f"fewer tasks at once ({reason})"
        )
    if _UNREACHABLE.search(text) or isinstance(error, ConnectionError):
        return OSError(f"{path} cannot be reached: check the endpoint and the network ({reason})")
    return error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
