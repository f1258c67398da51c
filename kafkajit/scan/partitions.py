"""Finds the partitions of a query, and names the records that are left out of overlaps.

The query's conditions do not matter here: `plan` drops segments by them.
"""

from __future__ import annotations

import logging
from itertools import chain

from kafkajit.errors import CorruptRecordError, LeftOutError
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.log.overlap_losses import lost_offsets
from kafkajit.log.overlaps import report_once, served
from kafkajit.log.remote_log_metadata import with_states, without_unreadable
from kafkajit.log.segment import Segment
from kafkajit.log.tiered_copies import differing
from kafkajit.log.tiered_segments import partitions_of
from kafkajit.places.location import shown
from kafkajit.places.locations import find_segments
from kafkajit.places.wanted import Wanted
from kafkajit.scan.named_offsets import check_offsets
from kafkajit.scan.options import SERVED, ScanOptions
from kafkajit.walk.damage import FAILFAST

logger = logging.getLogger("kafkajit")


def find_partitions(options: ScanOptions, wanted: Wanted | None = None) -> list[list[Segment]]:
    """The segments at the given locations, by partition and in order of offsets."""
    logs, files = find_segments(
        options.paths,
        options.path_glob_filter,
        options.private_keys,
        with_states(wanted),
        options.layout,
        options.failed,
    )
    for log in logs:
        if not log.size and log.name.endswith(KAFSCALE_SUFFIX):  # an empty .log is sound
            error = CorruptRecordError("The KafScale segment is empty", path=log.path)
            if options.mode == FAILFAST:
                raise error
            logger.warning("%s", error)
    found = partitions_of(without_unreadable(logs, options.mode), files, options.topic_id)
    if logs and not found and options.topic_id is not None:
        raise FileNotFoundError(
            f"no segments of a topic with the id {options.topic_id} at "
            f"{', '.join(map(shown, options.paths))}: the kinds remoteSegments and "
            "partitionMetadata have the ids of topics"
        )
    check_offsets(options, {partition[0].path[:2] for partition in found}, wanted)
    for one in differing(chain.from_iterable(found)):
        _report(one.read.log.path, one.text, options)
    return _served(found, options) if options.overlaps == SERVED else found


def _served(partitions: list[list[Segment]], options: ScanOptions) -> list[list[Segment]]:
    """The segments as a broker serves them; what no consumer gets of any of them is left out."""
    found = served(partitions)
    for given, read in zip(partitions, found, strict=True):
        for lost in lost_offsets(given, read):
            _report(lost.path, lost.text, options)
    return found


def _report(path: str, what: str, options: ScanOptions) -> None:
    """Name what is left out of a segment."""
    if options.failed is None:
        report_once(path, what)
    else:
        options.failed(LeftOutError(f"{path}: {what}"))
