"""The folder in which one user's processes keep code that they have made for each other."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """This user's folder for code that is kept; None without one or with KAFKAJIT_CACHE=0."""
    if os.environ.get("KAFKAJIT_CACHE", "1") == "0":
        return None
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkajit"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = cache.stat()
    except (OSError, RuntimeError):  # RuntimeError: the user has no home directory
        return None
    # It holds code, and other users must not write to it. Windows closes homes to them by itself.
    if hasattr(os, "getuid") and (owner.st_uid != os.getuid() or owner.st_mode & 0o022):
        return None
    return cache
