"""The inputs that the tests keep for the targets of coverage_fuzz.py, in one small archive."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parent.parent / "data" / "fuzz" / "inputs.tar.xz"


@cache
def _all() -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    if not ARCHIVE.exists():
        return found
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            found.setdefault(member.name.partition("/")[0], []).append(content.read())
    return found


def kept(target: str) -> list[bytes]:
    """The inputs of a target."""
    return list(_all().get(target, []))


def write(inputs: Mapping[str, Sequence[bytes]]) -> None:
    """Replace the archive: the same inputs give the same bytes."""
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tarfile.open(ARCHIVE, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for target, contents in sorted(inputs.items()):
            for content in contents:
                digest = hashlib.sha256(content).hexdigest()[:12]
                member = tarfile.TarInfo(f"{target}/{digest}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    _all.cache_clear()
