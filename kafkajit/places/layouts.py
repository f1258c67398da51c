"""The layouts that files at a location may have, by their names, and the choice of one of them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from kafkajit.format.kafscale import INDEX_NAME, kafscale_name
from kafkajit.format.tiered_names import PINTEREST_MARKS, object_name
from kafkajit.places.location import READABLE_NAME
from kafkajit.storage.stored_file import StoredFile

logger = logging.getLogger("kafkajit")

AUTO = "auto"
LOCAL = "local"
LOCAL_TIERED_STORAGE = "localTieredStorage"
AIVEN = "aiven"
PINTEREST = "pinterest"
KAFSCALE = "kafscale"
LAYOUTS = (AUTO, LOCAL, LOCAL_TIERED_STORAGE, AIVEN, PINTEREST, KAFSCALE)
# Layouts with folders above those of segments, whose names tell nothing.
EXPLORED = (PINTEREST, KAFSCALE)


def of_layout(
    files: Mapping[str, StoredFile], layout: str, place: str, *, is_whole: bool
) -> dict[str, StoredFile]:
    """The files of one layout; segments of others are left out with a warning.

    If there are only others it is an error, unless some files have not been listed.
    """
    if layout == AUTO:
        return dict(files)
    marked = {file.folder for file in files.values() if file.name in PINTEREST_MARKS}
    kept: dict[str, StoredFile] = {}
    others: Counter[str] = Counter()
    found = False
    for path, file in files.items():
        own = _layout_of(file, is_marked=file.folder in marked)
        is_segment = READABLE_NAME.fullmatch(file.name) is not None
        if own == layout:
            kept[path] = file
            found |= is_segment
        elif is_segment:
            others[own] += 1
    if others:
        left_out = ", ".join(f"{count} of {own}" for own, count in sorted(others.items()))
        if is_whole and not found:
            raise FileNotFoundError(
                f"no segments of the layout {layout} at {place}, but {left_out}: choose another "
                "with the option layout, or leave it out"
            )
        logger.warning("%s: segments of other layouts are left out: %s", place, left_out)
    return kept


def _layout_of(file: StoredFile, *, is_marked: bool) -> str:
    name = object_name(file.path)
    if name is not None:
        # Aiven's plugin has a folder for each partition in that of its topic.
        folder = file.folder.rpartition("/")[2]
        return AIVEN if folder.isdecimal() else LOCAL_TIERED_STORAGE
    if kafscale_name(file.path) is not None or INDEX_NAME.fullmatch(file.name):
        return KAFSCALE
    return PINTEREST if is_marked else LOCAL
