"""Vega, which draws the page's charts, as one script that needs nothing else."""

from __future__ import annotations

import contextlib
import hashlib
from importlib.metadata import version

from kafkajit.storage.cache_folder import cache_folder
from kafkajit.system.new_file import NewFile

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
    # A full disk: the next page bundles it again.
    with contextlib.suppress(OSError), NewFile(kept, replaces=True) as file:
        file.write(library.encode())
    return library
