"""Links among the logs of a partition: each file counts once, whatever names it has.

A broker would load a log for each name. A repair never writes through a link: a new file takes the
link's name, and the link's target stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kafkajit.places.location import SEGMENT_NAME
from kafkajit.records.batches import frame
from kafkajit.storage.source import Source
from kafkajit.upkeep.repair.temp_files import LiveFiles


def drop_aliases(found: LiveFiles) -> None:
    """Drop the other names of each log, and note why they go."""
    names: dict[tuple[int, int], list[str]] = {}
    for name, path in found.matching(SEGMENT_NAME):
        status = path.stat()
        names.setdefault((status.st_dev, status.st_ino), []).append(name)
    for same in names.values():
        if len(same) > 1:
            own = _own_name(same, found.files)
            for name in same:
                if name != own:
                    path = found.files.pop(name)
                    kind = "a link to" if path.is_symlink() else "a hard link of the file"
                    why = f"it is {kind} {own}, whose records count once"
                    found.removed[path.name] = why


def links_in(found: LiveFiles) -> Iterator[str]:
    """Name the logs that are links to other places."""
    for name, path in sorted(found.matching(SEGMENT_NAME)):
        if path.is_symlink():
            target = os.readlink(path)  # noqa: PTH115  a path would drop its trailing parts
            yield f"{name} is a link to {target}; a repair puts a file in its place"


def _own_name(names: list[str], files: dict[str, Path]) -> str:
    """The name that a file keeps: its own rather than a link's, and the best for its offsets."""
    real = [name for name in names if not files[name].is_symlink()] or names
    source = Source(str(files[real[0]]), leaps=True)
    first = frame(source.content, max_records=1).batches[:1]
    begin = int(first.header["baseOffset"][0]) if len(first) else 0
    fitting = [name for name in real if int(name[:20]) <= begin]
    return max(fitting) if fitting else min(real)
