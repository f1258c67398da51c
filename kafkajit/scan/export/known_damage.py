"""Damage that an export has reported, and does not report again.

A broker may truncate a damaged end and write other batches there. So a position alone does not
identify damage: its length and its first bytes do, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.format.ranges import Range
from kafkajit.log.segment import Segment

# The bytes at the beginning of damage that are compared: all may be as many as a segment has.
_COMPARED = 64 << 10


class KnownDamage(NamedTuple):
    """Damage as a journal keeps it; those of earlier versions have only its place."""

    path: str
    position: int | None
    length: int | None = None
    digest: str | None = None  # of its first bytes

    def is_same(self, other: KnownDamage) -> bool:
        """Whether two are one, wherever the partition's folder lies."""
        names = {one.path.rpartition("/")[2] for one in (self, other)}
        return len(names) == 1 and self[1:] == other[1:]


class LeftOut(NamedTuple):
    """The offsets between two exported records that were left out because of damage."""

    offsets: Range
    damage: tuple[KnownDamage, ...]
    sizes: tuple[int | None, ...] = ()  # of the files with the damage: a copy may have been cut

    @classmethod
    def of(
        cls, offsets: Range, damage: Iterable[KnownDamage], segments: Sequence[Segment]
    ) -> LeftOut:
        """The offsets that damage in these segments has taken."""
        damage = tuple(damage)
        return cls(offsets, damage, _sizes(damage, segments))

    def is_there(self, segments: Sequence[Segment]) -> bool:
        """Whether the same bytes are still there, as far as all of them are compared."""
        return self.sizes == _sizes(self.damage, segments) and all(
            0 <= (one.length or 0) <= _COMPARED
            and _identified(one.path, one.position or 0, one.length or 0, "", segments) == one
            for one in self.damage
        )


def _sizes(damage: Iterable[KnownDamage], segments: Iterable[Segment]) -> tuple[int | None, ...]:
    sizes = {one.log.path: one.log.size for one in segments}
    return tuple(sizes.get(one.path) for one in damage)


def known_damage(gap: Mapping[str, Any], segments: Iterable[Segment]) -> KnownDamage:
    """Identify the damage in a row's column `corruption`."""
    return _identified(gap["path"], gap["position"], gap["length"], gap["reason"], segments)


def _identified(
    path: str, position: int, length: int, reason: str, segments: Iterable[Segment]
) -> KnownDamage:
    log = next((one.log for one in segments if one.log.path == path), None)
    content = b""
    if log is not None:
        try:
            content = log.read(position, min(length, _COMPARED))
        except (OSError, EOFError, KafkaJitError):  # the reason is that it cannot be read
            content = reason.encode()
    return KnownDamage(path, position, length, hashlib.sha256(content).hexdigest()[:32])
