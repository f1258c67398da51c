"""The folder in which one user's processes keep code that they have made for each other."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from kafkajit.system.ownership import others_of_folder

_log = logging.getLogger(__name__)


def cache_folder() -> Path | None:
    """This user's folder for code that is kept; None without one or with KAFKAJIT_CACHE=0."""
    if os.environ.get("KAFKAJIT_CACHE", "1") == "0":
        return None
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        # Relative folders do not count (XDG Base Directory Specification).
        cache = (given if given.is_absolute() else Path.home() / ".cache") / "kafkajit"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
        _log.debug("nothing is kept for later processes: %s", error)
        return None
    others = others_of_folder(cache)
    if others is not None:
        _log.debug("nothing is kept in %s for later processes: %s", cache, others)
        return None
    return cache
