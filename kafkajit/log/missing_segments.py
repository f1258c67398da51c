"""Segments that are missing in a folder of logs, with the evidence of the files beside the logs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from kafkajit.errors import Failed, KafkaJitError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.log_path import LOG_SUFFIX
from kafkajit.log.evidence import REMOTE_INDEXES, add_configs, take_evidence
from kafkajit.log.live_segments import as_now, listed_again
from kafkajit.log.missing_offsets import (
    Evidence,
    Extent,
    Missing,
    find_missing,
    missing_before,
    missing_behind,
)
from kafkajit.log.segment import Segment
from kafkajit.log.segment_end import begins_with_hole, end_of
from kafkajit.places.tiered_files import TieredFile
from kafkajit.state.checkpoints import NAMES, Offsets, offsets_in
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.storage.stored_file import StoredFile

logger = logging.getLogger("kafkajit")

# The bytes of a remote segment that are looked at for holes: all would take as long as reading it.
_LOOKED_AT = 1 << 20


def missing_around(segments: Sequence[Segment], failed: Failed = None) -> list[Missing]:
    """The offsets that files beside a partition know of, before its first segment or at its end.

    `failed` is called with the error of such a file that is damaged: it may have known of more.
    Nothing is known of partitions in a bucket alone: each of them would take several requests.
    """
    every = [*segments, *(copy for segment in segments for copy in segment.copies)]
    brokers = [one for one in every if not isinstance(one.log, TieredFile)]
    names = {segment.path.suffix for segment in segments}
    is_local = brokers and all(segment.log.is_local for segment in brokers)
    if names != {LOG_SUFFIX} or not is_local or len({one.log.folder for one in brokers}) > 1:
        return []
    try:
        missing = MissingSegments(brokers[0].log.beside(), failed)
        if has_tiered(segments):
            return missing.around_both(segments, brokers[0])
        return missing.around(segments)
    except (OSError, EOFError, KafkaJitError) as error:
        logger.info("%s: %s", segments[0].log.path, error)
        return []  # a broker has changed the folder meanwhile


def may_have_hole(segments: Sequence[Segment]) -> bool:
    """Whether a log may have a hole behind these segments: it was compacted, or has others."""
    if any(segment.path.suffix != LOG_SUFFIX for segment in segments):
        return True
    missing = MissingSegments(segments[0].log.beside())
    return missing.tell_of_cleaning(segments[0]) or _has_holes(segments, is_followed=True)


def extent_of(segment: Segment) -> Extent:
    """The offsets that a segment has, as far as its batches tell."""
    end = end_of(segment)
    behind = segment.base_offset if end.offset is None else end.offset + 1
    return Extent(segment.base_offset, segment.first_offset, behind, end.problem is not None)


def _end_now(segment: Segment) -> int | None:
    """The offset behind the log of a segment now; None if it is gone."""
    try:
        segments = listed_again(segment, 0)
        return extent_of(as_now(segments[-1])).behind if segments else None
    except FileNotFoundError:
        return None


def _come_since(segments: Sequence[Segment], missing: Iterable[Missing]) -> dict[int, Extent]:
    """The segments with missing offsets that a folder has now, by their base offsets.

    With them those in front, which a broker may have appended to before it began the next. The list
    of a folder that never rests may have a later one and lack an earlier one.
    """
    listed = {one.base_offset for one in segments}
    if not segments[0].log.is_local or has_tiered(segments):
        return {}
    try:
        return {
            one.base_offset: extent_of(as_now(one))
            for before, new in pairwise([None, *listed_again(segments[0], 0)])
            if new is not None and new.base_offset not in listed
            if any(gap.first <= new.base_offset <= gap.last for gap in missing)
            for one in (before, new)
            if one is not None
        }
    except (FileNotFoundError, KafkaJitError):
        return {}


def has_tiered(segments: Sequence[Segment]) -> bool:
    """Whether some of these segments are in tiered storage."""
    return any(isinstance(segment.log, TieredFile) for segment in segments)


class MissingSegments:
    """Looks for the missing segments of partitions.

    Args:
        files: in the folders of the partitions.
        failed: called with the error of a damaged one, which may know of missing offsets.
    """

    def __init__(self, files: Iterable[StoredFile], failed: Failed = None) -> None:
        self._failed = failed
        self._files: dict[str, dict[str, StoredFile]] = {}  # by folder and name
        for file in files:
            self._files.setdefault(file.folder, {})[file.name] = file
        self._checkpoints: dict[tuple[str, str], Offsets] = {}

    def of(
        self,
        segments: Sequence[Segment],
        extents: Sequence[Extent],
        *,
        has_holes: bool | None,
        are_all: bool = True,
    ) -> list[Missing]:
        """The offsets that a partition lacks.

        Args:
            segments: of the partition.
            extents: their offsets.
            has_holes: whether offsets are missing inside of segments; if None, their headers are
                read as soon as the answer depends on it.
            are_all: whether segments that have come since count, too.
        """
        if any(segment.path.suffix != LOG_SUFFIX for segment in segments):
            return []
        extents = sorted(extents)
        evidence = self._evidence(segments[0])
        if has_tiered(segments):
            evidence.starts, evidence.indexed, evidence.log_start_offset = [], [], 0
        found = find_missing(extents, evidence, has_holes=bool(has_holes))
        if has_holes is None and _is_trouble(found):
            has_holes = any(begins_with_hole(segment) for segment in segments) or None
            found = find_missing(extents, evidence, has_holes=bool(has_holes))
        if _is_trouble(found):
            self._look_at_configs(evidence, segments[0])
            found = find_missing(extents, evidence, has_holes=bool(has_holes))
        if has_holes is None and _is_trouble(found):
            has_holes = _has_holes(segments)
            found = find_missing(extents, evidence, has_holes=has_holes)
        come = _come_since(segments, found) if are_all and _is_trouble(found) else {}
        if come:
            extents = [
                one._replace(behind=max(one.behind, come.pop(one.base_offset, one).behind))
                for one in extents
            ]
            extents = sorted([*extents, *come.values()])
            found = find_missing(extents, evidence, has_holes=bool(has_holes))
        # A broker may have appended records before it wrote the evidence.
        end = max(extent.behind for extent in extents)
        if segments[0].log.is_local and any(one.first >= end for one in found):
            found = [one for one in found if one.first < end]
            now = _end_now(segments[0])
            found += missing_behind(now, evidence) if now is not None else []
        return found

    def around(self, segments: Sequence[Segment]) -> list[Missing]:
        """The offsets before the first and behind the last segment that other files know of."""
        evidence = self._evidence(segments[0])
        # The log's end is looked at after the evidence: a broker appends records meanwhile.
        now = listed_again(segments[0], 0)
        if not now:
            return []
        extents = [
            Extent(one.base_offset, one.base_offset, following.base_offset)
            for one, following in pairwise(now)
        ]
        extents.append(extent_of(as_now(now[-1]))._replace(ends_in_damage=False))
        found = find_missing(extents, evidence, has_holes=False)
        if _is_trouble(found):
            self._look_at_configs(evidence, segments[0])
            found = find_missing(extents, evidence, has_holes=False)
        first, behind = now[0].base_offset, extents[-1].behind
        has_first = now[0].log.path == segments[0].log.path
        has_last = now[-1].log.path == segments[-1].log.path
        return [
            one
            for one in found
            if one.is_trouble
            and ((has_first and one.last < first) or (has_last and one.first >= behind))
        ]

    def around_both(self, segments: Sequence[Segment], brokers: Segment) -> list[Missing]:
        """The same of a log whose first segments are in tiered storage, and others in a folder.

        A broker keeps the leader epochs of all of them.
        """
        evidence = self._evidence(brokers)
        # Its own files begin where those of its folder do.
        evidence.starts = [one for one in evidence.starts if one[1] == LEADER_EPOCHS]
        evidence.indexed, evidence.tiered, evidence.is_being_deleted = [], None, False
        first = segments[0].base_offset
        found = [*missing_before([Extent(first, first, first)], evidence)]
        now = _end_now(brokers)
        if now is not None:
            tiered = (one.offsets.last for one in segments if isinstance(one.log, TieredFile))
            found += missing_behind(max(now, *(last + 1 for last in tiered)), evidence)
        return found

    def tell_of_cleaning(self, first: Segment) -> bool:
        """Whether the files beside a partition's first segment tell that its log is compacted."""
        evidence = self._evidence(first)
        if evidence.why_cleaned is None:
            self._look_at_configs(evidence, first)
        return evidence.why_cleaned is not None

    def _look_at_configs(self, evidence: Evidence, first: Segment) -> None:
        """Add what __cluster_metadata tells about the topic."""
        log_dirs = Path(first.log.key).parents[1]
        if first.log.filesystem is not None or not (log_dirs / "__cluster_metadata-0").is_dir():
            return
        from kafkajit.log.topic_configs import topic_configs  # it loads kernels

        configs = topic_configs(log_dirs).get(first.path.topic or "", {})
        add_configs(evidence, configs)

    def _evidence(self, first: Segment) -> Evidence:
        log = first.log
        root = log.folder.rpartition("/")[0] or "/"
        files = self._files.get(log.folder, {})

        def read(name: str) -> bytes:
            try:
                return files[name].read_now()
            except FileNotFoundError:  # a broker has deleted it since it was listed
                return b""

        where = first.path.topic, first.path.partition
        is_local = log.filesystem is None
        may_be_tiered = is_local and (Path(log.key).parents[1] / REMOTE_INDEXES).is_dir()
        try:
            return take_evidence(
                {name: file.size for name, file in files.items()},
                read,
                {name: self._offsets(root, name, log).get(where) for name in NAMES},
                topic=first.path.topic,
                may_be_tiered=may_be_tiered,
            )
        except (OSError, KafkaJitError) as error:
            self._tell(error)
            return Evidence()

    def _offsets(self, root: str, name: str, log: StoredFile) -> Offsets:
        """The offsets in a checkpoint beside a partition's folder, which is read once."""
        found = self._checkpoints.get((root, name))
        if found is None:
            found = {}
            try:
                file = self._files.get(root, {}).get(name)
                if file is None and not isinstance(log, TieredFile):
                    file = log.above(name)
                if file is not None:
                    found = offsets_in(file)
            except (OSError, KafkaJitError) as error:
                self._tell(error)
            self._checkpoints[root, name] = found
        return found

    def _tell(self, error: OSError | KafkaJitError) -> None:
        if self._failed is None or not isinstance(error, KafkaJitError):
            logger.warning("%s", error)
        else:
            self._failed(error)


def _is_trouble(found: Sequence[Missing]) -> bool:
    return any(one.is_trouble for one in found)


def _has_holes(segments: Sequence[Segment], *, is_followed: bool = False) -> bool:
    """Whether offsets are missing between or in the batches of any segment.

    Those before the last batch do not count unless another one follows: its base offset may be
    wrong. Damaged batches do not count, nor do the offsets that they had.
    """
    from kafkajit.log.resumption import offsets_in_set  # they load kernels
    from kafkajit.records.batches import lacking_records
    from kafkajit.walk.damage import DROPMALFORMED
    from kafkajit.walk.walk import Walk

    end = next((one for one in reversed(segments) if one.log.size and not is_followed), None)
    for segment in segments:
        behind, end_position = MAX_INT64, 0
        is_behind_hole = is_sound = False  # the last batch so far
        try:
            source = segment.log.open()
            for batches in Walk(source, mode=DROPMALFORMED).framed():
                firsts, behinds = batches.field("baseOffset").copy(), batches.last_offset + 1
                are_cleaned = lacking_records(batches) | batches.has_delete_horizon
                for row in np.flatnonzero(batches.is_message_set).tolist():
                    # Its header has only its last offset.
                    offsets = offsets_in_set(source, batches[row : row + 1])
                    firsts[row] = MIN_INT64 if offsets is None else offsets.min()
                    is_short = offsets is not None and offsets.size < behinds[row] - firsts[row]
                    are_cleaned[row] |= is_short
                are_behind = firsts > np.append(behind, behinds[:-1])
                are_behind &= batches.position == np.append(end_position, batches.end[:-1])
                judged = are_behind | are_cleaned
                judged[:-1] |= are_behind[1:]
                judged[-1] = True
                sound = judged.copy()
                sound[judged] = batches[judged].is_valid(source.content)
                are_behind &= sound & np.append(is_sound, sound[:-1])
                if is_behind_hole or are_behind[:-1].any() or (are_cleaned & sound).any():
                    return True
                is_behind_hole, is_sound = bool(are_behind[-1]), bool(sound[-1])
                behind, end_position = int(behinds[-1]), int(batches.end[-1])
                if not segment.log.is_local and batches.end[-1] >= _LOOKED_AT:
                    break
        except (OSError, EOFError, KafkaJitError):
            pass
        if is_behind_hole and segment is not end:
            return True
    return False
