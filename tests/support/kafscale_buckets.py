"""Segments of KafScale in a folder, as its broker writes them into a bucket."""

from __future__ import annotations

from pathlib import Path

import kafkajit.testing as kt

RECORDS = 5  # of a batch


def segment(base_offset: int, batches: int = 4) -> bytes:
    """A segment: batches of five records, whose values are their offsets."""
    bases = range(base_offset, base_offset + batches * RECORDS, RECORDS)
    log = b"".join(
        kt.batch(
            [kt.Record(value=b"%d" % offset) for offset in range(base, base + RECORDS)],
            base_offset=base,
            codec="zstd" if at % 2 else "none",
            partition_leader_epoch=-1,  # as producers send it
        )
        for at, base in enumerate(bases)
    )
    count = batches * RECORDS
    return kt.kafscale_segment(log, base_offset, base_offset + count - 1, count)


def write_partition(folder: Path, bases: tuple[int, ...] = (0, 20)) -> Path:
    """Segments of 20 records each, with KafScale's own indexes beside them."""
    folder.mkdir(parents=True)
    for base in bases:
        (folder / f"segment-{base:020}.kfs").write_bytes(segment(base))
        (folder / f"segment-{base:020}.index").write_bytes(b"IDX\0\0\1" + bytes(10))
    return folder
