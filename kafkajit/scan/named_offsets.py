"""The partitions that startingOffsets and endingOffsets name must exist."""

from __future__ import annotations

from collections.abc import Collection

from kafkajit.format.log_path import parse_log_path
from kafkajit.places.locations import find_segments
from kafkajit.places.named import nothing_of
from kafkajit.places.wanted import Wanted, any_partition
from kafkajit.scan.options import ScanOptions

_Place = tuple[str | None, int | None]
_BY = ", which startingOffsets or endingOffsets names,"


def check_offsets(
    options: ScanOptions, found: Collection[_Place], wanted: Wanted | None = None
) -> None:
    """Raise an error for a partition that the options name, if it has no segments.

    `found` are the partitions at the paths, or the wanted ones of them: a condition of the query
    does not make a name wrong.
    """
    missing = _missing(options, found)
    if missing and wanted is not None:
        logs, _ = find_segments(
            options.paths,
            options.path_glob_filter,
            options.private_keys,
            any_partition,
            options.layout,
            options.failed,
        )
        found = {parse_log_path(log.path)[:2] for log in logs}
        missing = _missing(options, found)
    if missing:
        names = [topic if number is None else f"{topic}-{number}" for topic, number in missing]
        raise nothing_of(sorted(names), found, options.paths, _BY)


def _missing(options: ScanOptions, found: Collection[_Place]) -> set[tuple[str, int | None]]:
    there = {*found, *((topic, None) for topic, _ in found)}
    return {place for place in options.named if place not in there}
