"""Damage that an export has reported, and does not report again.

A broker may truncate a damaged end and write other batches there. So a position alone does not
identify damage: its length and its first bytes do, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.log.segment import Segment

# The bytes at the beginning of damage that are compared: all may be as many as a segment has.
_COMPARED = 64 << 10


class KnownDamage(NamedTuple):
    """Damage as a journal keeps it; those of earlier versions have only its place."""

    path: str
    position: int | None
    length: int | None = None
    digest: str | None = None  # of its first bytes


def known_damage(gap: Mapping[str, Any], segments: Iterable[Segment]) -> KnownDamage:
    """Identify the damage in a row's column `corruption`."""
    path, position, length = gap["path"], gap["position"], gap["length"]
    log = next((one.log for one in segments if one.log.path == path), None)
    content = b""
    if log is not None:
        try:
            content = log.read(position, min(length, _COMPARED))
        except (OSError, EOFError, KafkaJitError):  # the reason is that it cannot be read
            content = gap["reason"].encode()
    return KnownDamage(path, position, length, hashlib.sha256(content).hexdigest()[:32])
