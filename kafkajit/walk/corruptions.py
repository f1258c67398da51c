"""The damaged parts of a segment, with the offsets that they may have had."""

from __future__ import annotations

from collections.abc import Iterator

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.storage.source import Source
from kafkajit.walk.damage import Corruption, Gap, corruption
from kafkajit.walk.walk import Walk


def corruptions(
    walk: Walk,
    source: Source,
    offsets: Range | None,
    check_crcs: bool,
    max_decompressed_bytes: int,
) -> Iterator[Corruption]:
    """Yield the damaged parts of a segment. This decodes every batch.

    `offsets` are those that the segment may have, by default from the base offset in its name.
    """
    if offsets is None:
        base_offset = parse_log_path(source.path).base_offset if source.path else None
        offsets = Range() if base_offset is None else Range(base_offset)
    gaps: list[Gap] = []
    before = offsets.first - 1
    memory = ColumnMemory(Wanted(fields=True))
    for part in walk.chunks(
        memory, check_crcs=check_crcs, max_decompressed_bytes=max_decompressed_bytes
    ):
        if isinstance(part, Gap):
            gaps.append(part)
            continue
        if gaps:
            behind = int(part.batches.field("baseOffset")[0])
            # No checksum covers the base offset, so one that goes back cannot be trusted.
            last = behind - 1 if behind > before else MAX_INT64
            yield corruption(gaps, Range(before + 1, last))
            gaps = []
        before = int(part.batches.last_offset[-1])
        if len(part):  # a set's own offset may be 0, whatever its records'
            before = max(before, int(part.fields["offset"][-1]))
        source.forget(walk.position)
    if gaps:
        yield corruption(gaps, Range(before + 1, offsets.last))
