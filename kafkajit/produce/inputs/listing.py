"""The files in a folder and all folders inside, each of them once.

On a local disk links are followed, but not to a folder or a file that is listed already: a link to
the folder around it would repeat its files for ever. If such a link has another place in its path,
such as topic=y for topic=x, it is listed as something that cannot be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyarrow.fs import FileSelector, FileType, LocalFileSystem

from kafkajit.storage.remote_store import Storage

_FOLDER = re.compile(r"([^=]+)=(.*)")


class Listed(NamedTuple):
    """Something in a folder; `size` is None unless it is a file that can be read."""

    path: str
    size: int | None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


def listed_in(filesystem: Storage, folder: str) -> list[Listed]:
    """All that is in a folder, except folders, by path."""
    if isinstance(filesystem, LocalFileSystem):
        found = list(_local(folder))
        links = {place for place in found if Path(place.path).is_symlink()}
        own = {os.path.realpath(place.path): place.path for place in found if place not in links}
        for link in sorted(links):
            target = os.path.realpath(link.path)
            if link.size is not None and target in own:
                found.remove(link)
                if _place_of(link.path) - _place_of(own[target]):
                    found.append(link._replace(size=None))
            own.setdefault(target, link.path)
        return sorted(found)
    inside = filesystem.get_file_info(FileSelector(folder, recursive=True))
    return sorted(
        Listed(info.path, info.size if info.type == FileType.File else None)
        for info in inside
        if info.type != FileType.Directory
    )


def _local(folder: str) -> Iterator[Listed]:
    seen = {os.path.realpath(folder): folder}
    for place, folders, files in os.walk(folder, followlinks=True, onerror=_fail):
        # Real folders first: a link to one must not stand for it.
        folders.sort(key=lambda name: (os.path.islink(os.path.join(place, name)), name))  # noqa: PTH114, PTH118
        kept = []
        for name in folders:
            path = os.path.join(place, name)  # noqa: PTH118
            real = os.path.realpath(path)
            if real not in seen:
                seen[real] = path
                kept.append(name)
            elif not _leads_back(real, place) and _place_of(f"{path}/") - _place_of(
                f"{seen[real]}/"
            ):
                yield Listed(_printable(path), None)
        folders[:] = kept
        for name in files:
            path = os.path.join(place, name)  # noqa: PTH118
            size = os.path.getsize(path) if os.path.isfile(path) else None  # noqa: PTH113, PTH202
            shown = _printable(path)
            # pyarrow opens no file whose name is not UTF-8.
            yield Listed(shown, size if shown == path else None)


def columns_in(path: str) -> Iterator[tuple[str, str]]:
    """The columns that the folders of a path name, and their values, as topic=orders does.

    >>> list(columns_in("/in/topic=orders/date=2026-01-01/a=b.csv"))
    [('topic', 'orders'), ('date', '2026-01-01')]
    """
    matches = map(_FOLDER.fullmatch, path.split("/")[:-1])
    return ((match[1], match[2]) for match in matches if match is not None)


def _place_of(path: str) -> set[tuple[str, str]]:
    """The topic and the partition that the folders of a path name."""
    named = dict(columns_in(path))
    return {(name, named[name]) for name in ("topic", "partition") if name in named}


def _leads_back(real: str, place: str) -> bool:
    """Whether a folder is around another one, whose files a link to it would repeat for ever."""
    return f"{os.path.realpath(place)}/".startswith(f"{real}/")


def _printable(path: str) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")


def _fail(error: OSError) -> None:
    raise error
