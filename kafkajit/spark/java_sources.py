"""The Java sources of the bridge, and the digest by which classes and Python know each other.

Planning a query asks for the digest, in a process that has just been forked, so this module imports
nothing of what compiles the sources.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


def java_sources() -> dict[str, str]:
    """The Java sources by their names."""
    folder = Path(__file__).parent / "java"
    return {file.name: file.read_text("utf-8") for file in sorted(folder.iterdir())}


@cache
def sources_digest() -> str:
    """The digest of the sources that this package would compile."""
    return hashlib.sha256(repr(java_sources()).encode()).hexdigest()[:16]
