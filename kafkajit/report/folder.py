"""The paths of a report: partitions, the files beside them, brokers, leftovers."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyarrow.fs import FileType

from kafkajit.errors import Failed, KafkaJitError
from kafkajit.format.log_path import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX, parse_log_path
from kafkajit.log.segment import Segment
from kafkajit.log.tiered_segments import partitions_of
from kafkajit.places.location import SEGMENT_NAME, Location
from kafkajit.places.locations import find_segments
from kafkajit.places.named import Named
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.places.tiered_files import TieredFile
from kafkajit.places.wanted import any_partition
from kafkajit.state.checkpoints import START_OFFSETS, Offsets, offsets_in
from kafkajit.state.meta_properties import META_PROPERTIES, parse_meta_properties
from kafkajit.state.partition_metadata import PARTITION_METADATA, parse_partition_metadata
from kafkajit.storage.source import as_bytes
from kafkajit.storage.stored_file import StoredFile

logger = logging.getLogger("kafkajit")

# orders-0.<32 hex digits>-delete: a copy that a broker removes, moves here, or has no use for.
_ON_ITS_WAY = re.compile(r".+-\d+\.[0-9a-f]{32}-(delete|future|stray)")
_SUFFIXES = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)
_WHY = {
    DELETED_SUFFIX: "a deleted segment whose file is still there",
    CLEANED_SUFFIX: "a compaction that was not finished",
    SWAP_SUFFIX: "a compaction whose result was not put in place",
    "delete": "a deleted partition whose folder is still there",
    "future": "a move between log folders that has not finished",
    "stray": "a partition that its broker no longer has",
}
_ADVICE = {
    SWAP_SUFFIX: "start the broker, or use kafkajit repair: either completes it",
    CLEANED_SUFFIX: "start the broker, or use kafkajit repair: either removes it",
    "stray": "remove the folder if no broker needs it",
}


@dataclass(frozen=True)
class Leftover:
    """Files that take space and belong to no log."""

    path: str
    topic: str | None
    partition: int | None
    bytes: int  # that they take on the disk
    problem: str
    advice: str | None


class WaitingPartition(NamedTuple):
    """A partition's folder that a broker deletes, moves to this disk, or no longer has."""

    path: str
    topic: str | None
    partition: int | None
    bytes: int  # that it takes on the disk
    kind: str  # delete, future or stray

    @property
    def meaning(self) -> str:
        """The meaning of the end of its name."""
        return _WHY[self.kind]

    def document(self) -> dict[str, Any]:
        """The entry in a document."""
        return {**self._asdict(), "meaning": self.meaning}


@dataclass
class Root:
    """A folder that has partitions' folders: a broker's log.dirs, or the root of a bucket."""

    path: str
    broker_id: int | None = None
    cluster_id: str | None = None
    topics: set[str | None] = field(default_factory=set)
    partitions: int = 0
    bytes: int = 0


@dataclass
class Folder:
    """All that a report looks at."""

    partitions: list[list[Segment]]
    files: dict[str, StoredFile]
    roots: list[Root]
    leftovers: list[Leftover]
    waiting: list[WaitingPartition]
    # Of files beside logs, by topic: their sizes, and the space that they take.
    other_bytes: Counter[str | None]
    other_bytes_on_disk: Counter[str | None]
    topic_ids: dict[str | None, str]
    # By the folder around a partition's, the first offsets that consumers may read.
    start_offsets: dict[str, Offsets]

    def start_offset(self, partition: list[Segment]) -> int:
        """The partition's offset in log-start-offset-checkpoint; 0 without one."""
        path = partition[0].path
        roots = {_root_of(one.log.folder, one) for one in partition if _is_of_broker(one)}
        starts = (self.start_offsets.get(root, {}) for root in roots)
        return max([0, *(known.get((path.topic, path.partition), 0) for known in starts)])

    @property
    def topics_by_id(self) -> dict[str, str]:
        """The names of topics, as far as their folders have an id."""
        return {topic_id: topic for topic, topic_id in self.topic_ids.items() if topic}

    @property
    def is_of_one_cluster(self) -> bool:
        """Whether several folders all say that they belong to the same cluster."""
        clusters = {root.cluster_id for root in self.roots}
        return len(self.roots) == 1 or (len(clusters) == 1 and None not in clusters)

    def problems(self) -> Iterator[Leftover]:
        """The leftovers, largest first."""
        yield from sorted(self.leftovers, key=lambda one: (-one.bytes, one.path))


def look_at(
    locations: Iterable[str],
    *,
    topics: Iterable[str] | str = (),
    keys: PrivateKeys = NO_KEYS,
    failed: Failed = None,
) -> Folder:
    """List what lies at the locations; with topics, only those.

    `failed` is called with the error of a folder or file that cannot be read.
    """
    locations = list(locations)
    named = Named.of(topics)
    wanted = set(named.topics)
    # The names of all topics are needed for an error about one that does not exist.
    listed = any_partition if named else None
    logs, files = find_segments(locations, keys=keys, wanted=listed, failed=failed)
    logs, files = _once(logs, files)
    partitions = partitions_of(logs, files)
    named.check((partition[0].path[:2] for partition in partitions), locations)
    partitions = [each for each in partitions if named.has(*each[0].path[:2])]
    roots: dict[str, Root] = {}
    for partition in partitions:
        for folder in {segment.log.folder for segment in partition}:
            root = _root_of(folder, partition[0])
            entry = roots.setdefault(root, Root(root))
            entry.topics.add(partition[0].path.topic)
            entry.partitions += 1
            entry.bytes += sum(one.log.size for one in partition if one.log.folder == folder)
    found = Folder(
        partitions,
        files,
        [roots[path] for path in sorted(roots)],
        [],
        list(_waiting(locations, wanted, failed)),
        Counter(),
        Counter(),
        {},
        {},
    )
    found.leftovers += [
        Leftover(*one[:4], one.meaning, _ADVICE.get(one.kind)) for one in found.waiting
    ]
    _look_beside(found, wanted)
    for partition in partitions:
        for one in {one.log.folder: one for one in partition if _is_of_broker(one)}.values():
            _read_start_offsets(found, one)
    return found


def _once(
    logs: list[StoredFile], files: dict[str, StoredFile]
) -> tuple[list[StoredFile], dict[str, StoredFile]]:
    """The files without those that a link to a folder shows a second time."""
    real = {file.folder: os.path.realpath(file.folder) for file in files.values() if file.is_local}
    is_link = {folder: os.path.abspath(folder) != path for folder, path in real.items()}  # noqa: PTH100
    first: dict[tuple[str, str, str | None, int | None], StoredFile] = {}
    again: dict[str, str] = {}  # paths, and the folders that have the files, too
    for file in sorted(files.values(), key=lambda file: is_link.get(file.folder, False)):
        if file.folder in real:
            place = parse_log_path(file.path)
            seen = real[file.folder], file.name, place.topic, place.partition
            other = first.setdefault(seen, file)
            if other is not file:
                again[file.path] = other.folder
    for folder, kept in sorted({(path.rpartition("/")[0], kept) for path, kept in again.items()}):
        if folder != kept:
            logger.warning("%s: not counted again: it is the same folder as %s", folder, kept)
    return (
        [log for log in logs if log.path not in again],
        {path: file for path, file in files.items() if path not in again},
    )


def _is_of_broker(segment: Segment) -> bool:
    """Whether a segment lies in a broker's folder, not in tiered storage."""
    return not isinstance(segment.log, TieredFile)


def _root_of(folder: str, segment: Segment) -> str:
    """The folder that holds a partition's, or in tiered storage a topic's."""
    if segment.path.partition is None:
        return folder
    above = folder.rpartition("/")[0]
    if isinstance(segment.log, TieredFile) and folder.rpartition("/")[2].isdecimal():
        above = above.rpartition("/")[0]
    return above or "/"


def _look_beside(found: Folder, wanted: set[str]) -> None:
    for file in found.files.values():
        path = parse_log_path(file.path)
        if wanted and path.topic not in wanted and path.topic is not None:
            continue
        for suffix in _SUFFIXES:
            if file.name.endswith(suffix):
                found.leftovers.append(_leftover(file.path, file.bytes_on_disk, suffix))
                break
        else:
            if not SEGMENT_NAME.fullmatch(file.name):
                found.other_bytes[path.topic] += file.size
                found.other_bytes_on_disk[path.topic] += file.bytes_on_disk
        try:
            if file.name == PARTITION_METADATA:
                table = parse_partition_metadata(as_bytes(file.read_now()), file.path)
                found.topic_ids.setdefault(path.topic, table["topicId"][0].as_py())
            elif file.name == META_PROPERTIES:
                _name_broker(found.roots, file)
        except (OSError, KafkaJitError) as error:
            logger.warning("%s", error)


def _read_start_offsets(found: Folder, segment: Segment) -> None:
    """Read the checkpoint beside a partition's folder, once for all folders there."""
    root = _root_of(segment.log.folder, segment)
    if root in found.start_offsets:
        return
    found.start_offsets[root] = {}
    try:
        file = found.files.get(f"{root}/{START_OFFSETS}") or segment.log.above(START_OFFSETS)
        if file is not None:
            found.start_offsets[root] = offsets_in(file)
    except (OSError, KafkaJitError) as error:
        logger.warning("%s", error)


def _name_broker(roots: list[Root], file: StoredFile) -> None:
    rows = parse_meta_properties(as_bytes(file.read_now()), file.path).to_pylist()
    properties = {row["key"]: row["value"] for row in rows}
    for root in roots:
        if root.path == file.folder:
            number = properties.get("node.id", properties.get("broker.id"))
            if number is not None and re.fullmatch("[0-9]{1,10}", number):
                root.broker_id = int(number)
            elif number is not None:
                logger.warning("%s: the broker's id is not a number: %r", file.path, number)
            root.cluster_id = properties.get("cluster.id")


def _leftover(path: str, size: int, kind: str) -> Leftover:
    place = parse_log_path(path)
    return Leftover(path, place.topic, place.partition, size, _WHY[kind], _ADVICE.get(kind))


def _waiting(
    locations: Iterable[str], wanted: set[str], failed: Failed
) -> Iterator[WaitingPartition]:
    """Partitions' folders that a broker has renamed, in the roots at these locations."""
    seen = set()
    for location in locations:
        where = Location(location, failed)
        tops = where.matches() or [where.info(where.path)]
        folders = [top for top in tops if top.type == FileType.Directory]
        renamed = [
            info
            for inside in where.each_listed(folders)
            for info in inside
            if info.type == FileType.Directory and _ON_ITS_WAY.fullmatch(info.base_name)
        ]
        for info, inside in zip(renamed, where.each_listed(renamed), strict=True):
            path = where.stored(info).path
            place = parse_log_path(f"{path}/{'0' * 20}.log")
            kind = info.base_name.rpartition("-")[2]
            size = sum(where.stored(file).bytes_on_disk for file in where.files(inside))
            real = os.path.realpath(path)
            if real not in seen and (not wanted or place.topic in wanted):
                seen.add(real)
                yield WaitingPartition(path, place.topic, place.partition, size, kind)
