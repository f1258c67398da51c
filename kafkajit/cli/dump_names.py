"""Names on the command line → files to dump: paths, folders, globs, URIs and standard input."""

from __future__ import annotations

import glob
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from kafkajit.format.kafscale import INDEX_NAME as KAFSCALE_INDEX
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.tiered_names import object_name
from kafkajit.storage.source import Source, resolve_sample
from kafkajit.system.full_path import full_path
from kafkajit.system.memory_map import map_file

if TYPE_CHECKING:
    from kafkajit.storage.stored_file import StoredFile

# The suffixes of files that can be dumped.
SUFFIXES = (
    ".log",
    ".checkpoint",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    KAFSCALE_SUFFIX,
)
STANDARD_INPUT = "-"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a scheme of one letter would be a drive
_GLOB = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"(?<!\\)\{((?:\\.|[^{}\\])*)\}")
_ESCAPED = re.compile(r"\\(.)|\[\^")
_COMMA = re.compile(r"(?<!\\),(?![^{}]*\})")  # not within {a,b}
_COPIED_AT_ONCE = 1 << 20


class DumpedFile:
    """A file to dump: the name to print, its bytes, and the files beside it."""

    def __init__(self, name: str, path: str | None = None) -> None:
        self.name = name
        self._path = name if path is None else path

    @property
    def file_name(self) -> str:
        """The last part of the name, from which the file's kind follows."""
        return PurePosixPath(self._path).name

    @property
    def path(self) -> str:
        """The file's path, even if it does not exist: the folder's name contains the topic."""
        return self._path

    @property
    def absolute(self) -> str:
        """The name as Kafka prints it in findings."""
        return self.name if self.name.startswith("/") else f"{Path.cwd()}/{self.name}"

    @property
    def is_folder(self) -> bool:
        """Whether the name is a folder's."""
        return bool(self.name) and Path(self.name).is_dir()

    @property
    def exists(self) -> bool:
        """Whether the file exists."""
        return bool(self.name) and os.path.lexists(self.name)

    def source(self) -> Source:
        """The file's bytes."""
        return Source(Path(self._path))

    def beside(self, suffix: str) -> Source:
        """The bytes of the same segment's file with that suffix; an error if it does not exist."""
        path = Path(self._path)
        other = path.with_name(_sibling(path.name, suffix))
        if not other.exists():
            raise _nothing_beside(other.name)
        return Source(other)


class RemoteFile(DumpedFile):
    """A file of a file system that pyarrow opens; `stored` has its path and size."""

    def __init__(self, name: str, stored: StoredFile) -> None:
        super().__init__(name, stored.path)
        self._stored = stored

    @property
    def absolute(self) -> str:
        return self._path

    @property
    def is_folder(self) -> bool:
        return False

    @property
    def exists(self) -> bool:
        return True

    def source(self) -> Source:
        return self._stored.open()

    def beside(self, suffix: str) -> Source:
        name = _sibling(self.file_name, suffix)
        for file in self._stored.beside():
            if file.name == name:
                source = file.open()
                source.load(source.content.size)
                return source
        raise _nothing_beside(name)


class StandardInput(DumpedFile):
    """Standard input; `called` stands for the file name."""

    def __init__(self, called: str) -> None:
        super().__init__(STANDARD_INPUT, called)

    @property
    def absolute(self) -> str:
        return STANDARD_INPUT

    @property
    def is_folder(self) -> bool:
        return False

    @property
    def exists(self) -> bool:
        return True

    def source(self) -> Source:
        return Source(self._content, path=self._path)

    @cached_property
    def _content(self) -> object:
        """The whole input, in an unnamed file: a log may be larger than memory."""
        if sys.stdin.isatty():
            raise ValueError("nothing is piped in: - is standard input")
        with tempfile.TemporaryFile() as copy:
            while piece := sys.stdin.buffer.read(_COPIED_AT_ONCE):
                copy.write(piece)
            copy.flush()
            size = copy.tell()
            return map_file(copy.fileno(), size) if size else b""

    def beside(self, suffix: str) -> Source:
        raise ValueError(
            f"an index is compared with the {suffix} file beside it, and - has no folder: "
            "pass the index's path"
        )


def files_of(
    lists: Sequence[str], paths: Sequence[str], called: str, keys: Mapping[str, str] | None = None
) -> Iterator[DumpedFile]:
    """The files to dump, in the order of their names; a folder stands for all its files.

    Args:
        lists: names separated by commas, as Kafka's tool takes them.
        paths: one name each; a name with commas is a list, unless it is the name of a file.
        called: the file name of standard input.
        keys: files of private keys by their ids, for tiered segments.
    """
    names = [name for text in lists for name in _COMMA.split(re.sub(",+$", "", text))]
    for path in paths:
        names += [path] if os.path.lexists(path) else _COMMA.split(re.sub(",+$", "", path))
    for name in names:
        if name == STANDARD_INPUT and not os.path.lexists(name):
            yield StandardInput(called)
        elif _URI.match(name) and not os.path.lexists(name):
            yield from _stored(name, keys)
        else:
            for found in _local(name):
                if object_name(full_path(found)):  # a link may be the object
                    yield from _stored(found, keys)
                else:
                    yield DumpedFile(found)


def _is_dumped(name: str) -> bool:
    """Whether a file that was not named by itself is dumped."""
    return name.endswith(SUFFIXES) and not KAFSCALE_INDEX.fullmatch(name)


def _local(given: str) -> Iterator[str]:
    """The names of local files, as Java writes them; an empty folder stands for itself."""
    name = re.sub("/+", "/", resolve_sample(given))
    name = name.rstrip("/") or name
    if _GLOB.search(name) and not os.path.lexists(name):
        patterns = map(_as_python, _alternatives(name))
        found = sorted({path for pattern in patterns for path in glob.glob(pattern)})  # noqa: PTH207  names stay as they are typed
        if not found:
            raise FileNotFoundError(0, "nothing matches", given)
        dumped = [path for path in found if Path(path).is_dir() or _is_dumped(Path(path).name)]
        for path in dumped or found:
            yield from _local(path)
        return
    inside: list[str] = []
    if name and Path(name).is_dir():  # an empty name does not mean the current folder
        inside = sorted(path.name for path in Path(name).iterdir() if _is_dumped(path.name))
    yield from [f"{name.rstrip('/')}/{file}" for file in inside] or [name]


def _alternatives(pattern: str) -> Iterator[str]:
    """The patterns without {a,b}.

    >>> list(_alternatives("{a,b}-0/*.log"))
    ['a-0/*.log', 'b-0/*.log']
    """
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    for choice in braces[1].split(","):
        yield from _alternatives(pattern[: braces.start()] + choice + pattern[braces.end() :])


def _as_python(pattern: str) -> str:
    r"""A pattern as the module glob has it, without escapes.

    >>> _as_python(r"a\*b-[^0]")
    'a[*]b-[!0]'
    """

    def converted(found: re.Match[str]) -> str:
        if found[1] is None:
            return "[!"
        return f"[{found[1]}]" if found[1] in "*?[" else found[1]

    return _ESCAPED.sub(converted, pattern)


def _stored(location: str, keys: Mapping[str, str] | None) -> Iterator[DumpedFile]:
    from kafkajit.places.location import shown  # which imports pyarrow's file systems
    from kafkajit.places.locations import find_files
    from kafkajit.places.private_keys import PrivateKeys

    found = find_files(location, PrivateKeys.of(keys))
    dumped = [file for file in found if _is_dumped(file.name)]
    if not dumped and [file.path for file in found] != [shown(location)]:
        raise FileNotFoundError(0, f"no file that can be dumped ({', '.join(SUFFIXES)})", location)
    for file in dumped or found:
        yield RemoteFile(location if file.path == shown(location) else file.path, file)


def _sibling(name: str, suffix: str) -> str:
    return name.split(".")[0] + suffix


def _nothing_beside(name: str) -> FileNotFoundError:
    return FileNotFoundError(0, f"there is no {name} beside it to compare it with")
