"""Vega, which draws the page's charts, as one script that needs nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

from kafkajit.storage.cache_folder import cache_folder

_EXPORT = "window.vegaEmbed = vegaEmbed;"  # the name that the page's scripts use


def chart_library() -> str:
    """Vega as a script: vl-convert bundles it in seconds, and the user's cache keeps it."""
    try:
        import vl_convert
    except ImportError:
        raise ModuleNotFoundError(
            "the page's charts need vl-convert: pip install vl-convert-python"
        ) from None
    folder = cache_folder()
    if folder is None:
        return vl_convert.javascript_bundle(_EXPORT)
    wanted = hashlib.sha256(_EXPORT.encode()).hexdigest()[:8]
    kept = folder / f"vega-{version('vl-convert-python')}-{wanted}.js"
    with contextlib.suppress(OSError):
        return kept.read_text(encoding="utf-8")
    library = vl_convert.javascript_bundle(_EXPORT)
    with contextlib.suppress(OSError):  # a full disk: the next page bundles it again
        _keep(kept, library)
    return library


def _keep(path: Path, text: str) -> None:
    """Write a file that appears when it is complete."""
    handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".unfinished")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
