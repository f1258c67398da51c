"""Checks of a spoilt log: a reader gives what the reference gives, or a named error."""

from __future__ import annotations

from unittest.mock import patch

import reference
from corpus import expected_rows, rows_of, without_gaps
from fuzz import ROOM, our_decompress, same_rows

import kafkajit


def check(log: bytes, room: int = ROOM) -> bool:
    """Compare one log with the reference; return whether it is read to the end.

    `room` is the largest decompressed batch that both accept.
    """

    def decompress(codec: int, payload: bytes) -> bytes:
        return our_decompress(codec, payload, room)

    with patch.object(reference, "decompress", decompress):
        expected, invalid = expected_rows(log)
    error: kafkajit.KafkaJitError | None = None
    rows = []
    try:
        for batch in kafkajit.iter_records(log, max_decompressed_bytes=room):
            batch.validate(full=True)
            rows += rows_of(batch)
    except kafkajit.KafkaJitError as caught:
        error = caught
    assert (error is None) == (invalid is None), f"{error!r} where the reference says {invalid!r}"
    assert same_rows(rows, expected, log)
    return error is None


def check_gaps(log: bytes, room: int = ROOM) -> None:
    """Check that a reader which leaves damage out loses nothing else."""

    def decompress(codec: int, payload: bytes) -> bytes:
        return our_decompress(codec, payload, room)

    table = kafkajit.read_records(log, mode="PERMISSIVE", max_decompressed_bytes=room)
    table.validate(full=True)
    rows = rows_of(table)
    gaps = [row["corruption"] for row in rows if row["corruption"] is not None]
    rest = without_gaps(log, gaps)
    with patch.object(reference, "decompress", decompress):
        expected, invalid = expected_rows(rest, is_beginning=not gaps)
        before_damage, _ = expected_rows(log)
    assert invalid is None
    found = [row for row in rows if row.pop("corruption") is None]
    assert same_rows(found[: len(before_damage)], before_damage, log)
    for row in [*found, *expected]:
        del row["position"]  # the log without its gaps is shorter
    assert same_rows(found, expected, log)
