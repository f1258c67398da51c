"""The objects of tiered storage as the files of a log: .log, .index and the others of a segment.

    objects ─▶ finished segments ─▶ their manifests ─▶ files, as a broker's folder has them

A file has the path of its object, with a slash behind a prefix that has none. An index in an
.indexes object has the path that a file of its own would have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from kafkajit.errors import Failed, KafkaJitError, RemoteStorageError
from kafkajit.format.tiered_names import INDEXES, LOG, MANIFEST, SNAPSHOT, object_name
from kafkajit.places.chunks import ChunkReader, ReadObject, decrypted_index
from kafkajit.places.manifest import Manifest, check_manifest_size, parse_manifest
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.storage.remote_store import Requests, Storage
from kafkajit.storage.source import Source, into_memory
from kafkajit.storage.stored_file import StoredFile

logger = logging.getLogger("kafkajit")

# The indexes in an .indexes object, and the suffixes that they have as files.
_SUFFIXES = {
    "offset": ".index",
    "timestamp": ".timeindex",
    "producerSnapshot": ".snapshot",
    "leaderEpoch": ".leader_epoch_checkpoint",
    "transaction": ".txnindex",
}
READERS = 32  # manifests that are read at once

# The objects of a segment by their suffixes.
SegmentObjects = dict[str, StoredFile]
# Is called with the path, without a suffix, of a segment that lacks objects.
Unfinished = Callable[[str], None] | None


@dataclass(frozen=True)
class TieredFile(StoredFile):
    """A file of a tiered segment."""

    keys: PrivateKeys = NO_KEYS
    manifest: Manifest | None = None
    object_path: str = ""
    epochs: StoredFile | None = None  # the leader epochs of the log up to the segment's end

    def open(self, start: int = 0, end: int | None = None, *, leaps: bool = False) -> Source:
        source = super().open(start, end, leaps=leaps)
        source.path = self.path
        return source

    @property
    def stem(self) -> str:
        """The path of its segment's objects without a suffix."""
        folder, _, name = self.object_path.rpartition("/")
        return f"{folder}/{name.partition('.')[0]}"

    def beside(self) -> list[StoredFile]:
        return as_log_files(self._object.beside(), self.keys)

    def above(self, name: str) -> StoredFile | None:
        return self._object.above(name)

    @property
    def _object(self) -> StoredFile:
        """The object, on the file system that has it."""
        filesystem = self.filesystem
        if isinstance(filesystem, SegmentObject):
            filesystem = filesystem.filesystem
        return StoredFile(self.object_path, self.size, self.modified_ns, self.key, filesystem)


@dataclass(frozen=True)
class SegmentObject:
    """A file system with one file, whose bytes a plugin has put into an object of another."""

    object: StoredFile
    manifest: Manifest
    keys: PrivateKeys
    part: tuple[int, int] | None = None  # of the object; None: it is a segment in chunks

    @property
    def filesystem(self) -> Storage | None:
        """The file system of the object."""
        return self.object.filesystem

    @property
    def requests(self) -> Requests | None:
        """The requests to that file system; None if it is local."""
        return self.object.requests

    def open_input_file(self, key: str) -> OpenObject:
        """Open the only file; its key is not looked at."""
        del key
        if self.part is not None:
            start, end = self.part
            packed = memoryview(self.object.read(start, end - start))
            content = decrypted_index(self.manifest, self.keys, packed, self.object.path)
            read = into_memory(lambda count, position: content[position : position + count])
            return OpenObject(read, len(content))
        if self.filesystem is None:
            whole = Source(self.object.key, size=self.object.size).content.data
            read_object: ReadObject = lambda count, at: whole[at : at + count]  # noqa: E731
        else:
            read_object = self.filesystem.open_input_file(self.object.key).read_at
        reader = ChunkReader(self.manifest, self.keys, read_object, self.object.path)
        return OpenObject(reader.read_into, self.manifest.chunks.size)


class OpenObject:
    """The file of a SegmentObject, with the methods of pyarrow's files that readers use."""

    def __init__(self, read_into: Callable[[memoryview, int], int], size: int) -> None:
        self.read_into = read_into
        self._size = size

    def size(self) -> int:
        return self._size

    def read_at(self, count: int, position: int) -> bytes:
        memory = memoryview(bytearray(max(0, min(count, self._size - position))))
        done = 0
        while done < len(memory):
            done += self.read_into(memory[done:], position + done)
        return bytes(memory)

    def read(self) -> bytes:
        return self.read_at(self._size, 0)

    def __enter__(self) -> OpenObject:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def as_log_files(
    files: Iterable[StoredFile],
    keys: PrivateKeys = NO_KEYS,
    failed: Failed = None,
    unfinished: Unfinished = None,
) -> list[StoredFile]:
    """Files as they are listed, with those of tiered segments as a broker's folder has them.

    Segments whose copy is not finished are left out: a broker would not read them, either. `failed`
    is called with the error of a segment whose manifest cannot be read, and `unfinished` with the
    path, without a suffix, of one that lacks objects. Without it, a warning names that.
    """
    segments, others = segments_among(files)
    if not segments:
        return others
    alone = look_beside(segments)
    found = list(_finished(segments, unfinished))
    with ThreadPoolExecutor(READERS) as pool:
        parsed = pool.map(partial(_tried, keys=keys, failed=failed), found)
        tiered = (file for files_ in parsed for file in files_)
    return [
        *others,
        *(file for file in tiered if file.name.endswith(LOG) or file.stem not in alone),
    ]


def segments_among(
    files: Iterable[StoredFile],
) -> tuple[dict[str, SegmentObjects], list[StoredFile]]:
    """The objects of tiered segments, by their paths without suffixes, and the other files."""
    segments: dict[str, SegmentObjects] = {}
    others = []
    for file in files:
        name = object_name(file.path)
        if name is None:
            others.append(file)
        else:
            stem = file.path.removesuffix(name.suffix)
            segments.setdefault(stem, {})[name.suffix] = file
    return segments, others


def look_beside(segments: dict[str, SegmentObjects]) -> set[str]:
    """Add the other objects of segments of which not all are listed; return which these are."""
    listed: dict[str, list[StoredFile]] = {}
    alone = set()
    for stem, objects in segments.items():
        if is_finished(objects):
            continue
        alone.add(stem)
        one = next(iter(objects.values()))
        if one.folder not in listed:
            listed[one.folder] = one.beside()
        for file in listed[one.folder]:
            if file.path.startswith(stem + "."):
                objects[file.path.removeprefix(stem)] = file
    return alone


def is_finished(objects: SegmentObjects) -> bool:
    """Whether a segment has the object that its layout copies last."""
    return LOG in objects and (MANIFEST in objects or SNAPSHOT in objects)


def _finished(
    segments: dict[str, SegmentObjects], unfinished: Unfinished
) -> Iterator[SegmentObjects]:
    for stem, objects in segments.items():
        if is_finished(objects):
            yield objects
        elif unfinished is not None:
            unfinished(stem)
        else:
            logger.warning("%s: not read, its copy to tiered storage is not finished", stem)


def _tried(objects: SegmentObjects, keys: PrivateKeys, failed: Failed) -> list[TieredFile]:
    try:
        return _files_of(objects, keys)
    except (KafkaJitError, OSError) as error:
        if failed is None:
            raise
        failed(error)
        return []


def _files_of(objects: SegmentObjects, keys: PrivateKeys) -> list[TieredFile]:
    """The files of one segment."""
    described = objects.get(MANIFEST)
    if described is None:
        if not objects[LOG].size:
            raise RemoteStorageError(
                "the object is empty, and brokers copy no empty segment", path=objects[LOG].path
            )
        epochs = objects.get(_SUFFIXES["leaderEpoch"])
        return [replace(_tiered(file, keys, None), epochs=epochs) for file in objects.values()]
    log = objects[LOG]
    manifest = manifest_of(log, described)
    found = [_tiered(log, keys, manifest)]
    if not manifest.is_plain:
        inside = SegmentObject(log, manifest, keys)
        found = [replace(found[0], size=manifest.chunks.size, filesystem=inside)]
    indexes = objects.get(INDEXES)
    if indexes is None:
        return found
    for name, position, size in manifest.indexes:
        part = (position, position + size)
        if part[1] > indexes.size:
            raise RemoteStorageError(
                f"the object ends at {indexes.size:,}, before the {name} index in it",
                path=indexes.path,
            )
        found.append(
            replace(
                found[0],
                path=found[0].path.removesuffix(LOG) + _SUFFIXES[name],
                object_path=log.path.removesuffix(LOG) + _SUFFIXES[name],
                key=log.key.removesuffix(LOG) + _SUFFIXES[name],
                size=manifest.index_size(size),
                filesystem=SegmentObject(indexes, manifest, keys, part),
            )
        )
    leader_epochs = next((it for it in found if it.name.endswith(_SUFFIXES["leaderEpoch"])), None)
    return [replace(found[0], epochs=leader_epochs), *found[1:]]


def manifest_of(log: StoredFile, described: StoredFile) -> Manifest:
    """The manifest of a segment's object, which it fits."""
    check_manifest_size(described.size, described.path)
    manifest = parse_manifest(described.read(), described.path)
    _check_names(manifest, log.path)
    end = manifest.chunks.size if manifest.is_plain else manifest.chunks.places().end
    if log.size != end:
        raise RemoteStorageError(
            f"the object has {log.size:,} bytes, but its manifest lists {end:,}", path=log.path
        )
    return manifest


def _check_names(manifest: Manifest, path: str) -> None:
    """Raise an error if a manifest is that of another segment than its name has."""
    name = object_name(path)
    assert name is not None
    pairs = (
        (manifest.topic_id, name.topic_id),
        (manifest.partition, name.partition),
        (manifest.start_offset, name.base_offset),
        (manifest.topic, name.topic[-len(manifest.topic or "") :]),  # behind a prefix
    )
    for there, here in pairs:
        if there is not None and there != here:
            raise RemoteStorageError(
                f"the manifest belongs to another segment: it has {there!r}, but its name "
                f"has {here!r}",
                path=path,
            )


def _tiered(file: StoredFile, keys: PrivateKeys, manifest: Manifest | None) -> TieredFile:
    return TieredFile(
        _path(file.path, manifest),
        file.size,
        file.modified_ns,
        file.key,
        file.filesystem,
        keys,
        manifest,
        file.path,
    )


def _path(path: str, manifest: Manifest | None) -> str:
    """The path of an object. A prefix that ends in the middle of a folder's name gets a slash."""
    name = object_name(path)
    if name is None or manifest is None or manifest.topic in (None, name.topic):
        return path
    prefix = name.topic.removesuffix(manifest.topic)
    head, _, tail = path.rpartition(f"/{name.topic}-{name.topic_id}/")
    if prefix == name.topic:
        return path
    return f"{head}/{prefix}/{manifest.topic}-{name.topic_id}/{tail}"
