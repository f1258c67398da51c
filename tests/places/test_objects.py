"""Objects of tiered storage: any range of a segment comes out, or a named error."""

from __future__ import annotations

import base64
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import (
    TOPIC_ID,
    KeyPair,
    Options,
    key_pair,
    packed_sizes,
    wrapped,
    write_segment,
)
from kafkajit import RemoteStorageError
from kafkajit.format.tiered_names import object_name
from kafkajit.places.chunks import ChunkReader
from kafkajit.places.locations import stored_file
from kafkajit.places.manifest import chunk_sizes, parse_manifest
from kafkajit.places.private_keys import PrivateKeys

LOG = b"".join(kt.batch([kt.Record(value=bytes([at]) * 40)], base_offset=at) for at in range(30))
FOLDER = f"orders-{TOPIC_ID}/3"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return key_pair(tmp_path_factory.mktemp("keys"), "key1")


def written(folder: Path, options: Options = Options(compresses=True)) -> Path:  # noqa: B008
    return write_segment(folder / FOLDER, 0, LOG, options, end_offset=29)


# Names.


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (f"t-0-{TOPIC_ID}/{7:020}-{TOPIC_ID}.log", ("t", TOPIC_ID, 0, 7, TOPIC_ID, ".log")),
        (f"a-1-2-{TOPIC_ID}/{7:020}-{TOPIC_ID}.index", ("a-1", TOPIC_ID, 2, 7, TOPIC_ID, ".index")),
        (f"x/a-1-{TOPIC_ID}/2/{7:020}-{'-_' * 11}.rsm-manifest",
         ("a-1", TOPIC_ID, 2, 7, "-_" * 11, ".rsm-manifest")),
        (f"a-{'-' * 22}/2/{7:020}-{TOPIC_ID}.log", ("a", "-" * 22, 2, 7, TOPIC_ID, ".log")),
        (f"orders-0/{7:020}.log", None),
        (f"orders-0/{7:020}-{TOPIC_ID}.log", None),
        (f"orders-{TOPIC_ID}/x/{7:020}-{TOPIC_ID}.log", None),
        (f"orders-{TOPIC_ID}/2147483648/{7:020}-{TOPIC_ID}.log", None),
        (f"t-0-{TOPIC_ID}/7-{TOPIC_ID}.log", None),
        (f"t-0-{TOPIC_ID}/{7:020}-{TOPIC_ID[1:]}.log", None),
    ],
)  # fmt: skip
def test_a_path_names_topic_partition_and_offset(path: str, parts: Any) -> None:
    assert object_name(f"/tier/{path}") == parts
    if parts is not None:
        topic, _, partition, base_offset, _, suffix = parts
        assert kafkajit.parse_log_path(path) == (topic, partition, base_offset, suffix)


# Chunks.


@given(st.lists(st.integers(0, 2**31 - 1), max_size=20))
def test_sizes_of_chunks_are_unpacked(sizes: list[int]) -> None:
    assert chunk_sizes(packed_sizes(sizes)).tolist() == sizes


@given(st.data())
@pytest.mark.parametrize("form", ["compressed", "encrypted", "both", "fixed"])
def test_any_range_of_a_segment_is_read(form: str, pair: KeyPair, data: st.DataObject) -> None:
    folder = pair.file.parent / form
    options = Options(
        chunk_size=333,
        compresses=form in ("compressed", "both"),
        pair=None if form == "compressed" else pair,
        is_variable=form != "fixed",
    )
    path = folder / FOLDER / f"{0:020}-tqimKeZwStOEOwRzT3L5oQ.log"
    if not path.exists():
        written(folder, options)
    file = stored_file(str(path), PrivateKeys.of({pair.id: str(pair.file)}))
    assert file.size == len(LOG)
    assert file.filesystem is not None
    opened = file.filesystem.open_input_file(file.key)
    for _ in range(4):
        position = data.draw(st.integers(0, len(LOG) + 5))
        count = data.draw(st.integers(0, 900))
        assert opened.read_at(count, position) == LOG[position : position + count]


def test_an_empty_segment_has_one_empty_chunk(tmp_path: Path) -> None:
    path = write_segment(tmp_path / FOLDER, 0, b"", Options(compresses=True))
    assert kafkajit.read_records(path).num_rows == 0


# Keys.


def test_a_key_that_is_missing_is_named(pair: KeyPair, tmp_path: Path) -> None:
    path = written(tmp_path, Options(pair=pair))
    with pytest.raises(
        RemoteStorageError,
        match=r"encrypted with the key 'key1', which was not passed .*: "
        r"pass the option encryption\.key\.pairs\.key1\.private\.key\.file",
    ):
        kafkajit.read_records(path)


def test_keys_may_be_rotated(pair: KeyPair, tmp_path: Path) -> None:
    other = key_pair(tmp_path, "key2", 3072)
    written(tmp_path, Options(pair=pair))
    log = kt.batch([kt.Record(value=b"later")], base_offset=30)
    id_ = "otherMKeZwStOEOwRzT3L5"
    write_segment(
        tmp_path / FOLDER,
        30,
        log,
        Options(pair=other, compresses=True),
        end_offset=30,
        segment_id=id_,
    )
    keys = {"KEY1": str(pair.file), "key2": str(other.file)}  # Spark has no case
    values = kafkajit.Log(str(tmp_path), private_keys=keys).read(29, columns=["value"])
    assert values["value"].to_pylist() == [b"\x1d" * 40, b"later"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"short", "padding is wrong"),
        (bytes(31), "padding is wrong"),
        (bytes(40), "padding is wrong"),
    ],
)
def test_a_data_key_of_another_size_is_refused(
    content: bytes, words: str, pair: KeyPair, tmp_path: Path
) -> None:
    path = written(tmp_path, Options(pair=pair))
    text = base64.b64encode(wrapped(pair, content)).decode()
    change(path, lambda given: given["encryption"].update(dataKey=f"key1:{text}"))
    refuse(path, words, pair)


def test_a_key_that_is_not_rsas_is_refused(pair: KeyPair, tmp_path: Path) -> None:
    path = written(tmp_path, Options(pair=pair))
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    secret = serialization.BestAvailableEncryption(b"secret")
    ours = serialization.load_pem_private_key(pair.file.read_bytes(), None)
    keys = [
        ec.generate_private_key(ec.SECP256R1()).private_bytes(pem, form, none),
        ed25519.Ed25519PrivateKey.generate().private_bytes(pem, form, none),
        ours.private_bytes(pem, form, secret),
        b"-----BEGIN PRIVATE KEY-----",
    ]
    for number, content in enumerate(keys):
        other = pair._replace(file=tmp_path / f"{number}.pem")
        other.file.write_bytes(content)
        refuse(path, f"the private key {other.file} does not decrypt", other)


def test_another_private_key_is_refused(pair: KeyPair, tmp_path: Path) -> None:
    path = written(tmp_path, Options(pair=pair))
    for bits in (2048, 3072):
        other = key_pair(tmp_path, "key1", bits)
        refuse(path, f"the private key {other.file} does not decrypt", other)


# Hostile objects.


def refuse(path: Path, words: str, pair: KeyPair | None = None) -> None:
    keys = None if pair is None else {pair.id: str(pair.file)}
    with pytest.raises(RemoteStorageError, match=words):
        kafkajit.read_records(path, private_keys=keys)


def change(path: Path, by: Callable[[dict[str, Any]], object]) -> None:
    file = path.with_suffix(".rsm-manifest")
    given = json.loads(file.read_text())
    by(given)
    file.write_text(json.dumps(given))


def place_in(manifest: dict[str, Any]) -> dict[str, Any]:
    place: dict[str, Any] = manifest["remoteLogSegmentMetadata"]["remoteLogSegmentId"]
    return place["topicIdPartition"]  # type: ignore[no-any-return]


def zipped(content: bytes) -> str:
    return base64.b64encode(zstandard.compress(content)).decode()


BOMB = zstandard.ZstdCompressor(level=19).compress(bytes(64 << 20))
MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another version": (lambda m: m.update(version="2"), "has the unknown version '2'"),
    "no version": (lambda m: m.pop("version"), "malformed: KeyError"),
    "no chunks": (lambda m: m.pop("chunkIndex"), "malformed: KeyError"),
    "chunks of another kind": (lambda m: m["chunkIndex"].update(type="x"), "the unknown type 'x'"),
    "chunks of no size": (lambda m: m["chunkIndex"].update(originalChunkSize=0), "from 1 to"),
    "a size that is text": (lambda m: m["chunkIndex"].update(originalFileSize="9"), "not '9'"),
    "a size below zero": (lambda m: m["chunkIndex"].update(originalFileSize=-1), "not -1"),
    "a size that is true": (lambda m: m["chunkIndex"].update(originalFileSize=True), "not True"),
    "another count": (lambda m: m["chunkIndex"].update(originalChunkSize=1), "chunks instead of"),
    "no base64": (lambda m: m["chunkIndex"].update(transformedChunks="%"), "malformed"),
    "no zstd": (lambda m: m["chunkIndex"].update(transformedChunks="AAAA"), "not zstd"),
    "a bomb": (
        lambda m: m["chunkIndex"].update(transformedChunks=base64.b64encode(BOMB).decode()),
        "the chunk index has 67108864 bytes, and",
    ),
    "no chunk index": (
        lambda m: m["chunkIndex"].update(transformedChunks=zipped(b"")), "wrong size",
    ),
    "a count below zero": (
        lambda m: m["chunkIndex"].update(transformedChunks=zipped(b"\xff" * 4)), "wrong size",
    ),
    "wide differences": (
        lambda m: m["chunkIndex"].update(transformedChunks=zipped(b"\0\0\0\2\0\0\0\0\t")),
        "wrong size",
    ),
    "sizes below zero": (
        lambda m: m["chunkIndex"].update(
            originalChunkSize=10**6, transformedChunks=zipped(b"\0\0\0\1\xff\xff\xff\xff")
        ),
        "a chunk has -1 bytes",
    ),
    "other sizes": (
        lambda m: m["chunkIndex"].update(
            type="fixed", transformedChunkSize=50, finalTransformedChunkSize=70
        ),
        r"the object has [\d,]+ bytes, but its manifest lists",
    ),
    "two billion chunks": (
        lambda m: m["chunkIndex"].update(
            type="fixed", originalChunkSize=1, originalFileSize=2**31 - 1,
            transformedChunkSize=2**31 - 1, finalTransformedChunkSize=9,
        ),
        "but its manifest lists",
    ),
    "a bad compression": (lambda m: m.update(compression="yes"), "compression is not a boolean"),
    "no compression": (
        lambda m: m.update(compression=False), "has .* bytes, but its manifest lists 3",
    ),
    "a list": (lambda m: m.update(remoteLogSegmentMetadata=[1]), "malformed"),
    "chunks without a frame": (
        lambda m: m["chunkIndex"].update(
            type="fixed", originalChunkSize=1, originalFileSize=2**31 - 1,
            transformedChunkSize=0, finalTransformedChunkSize=0,
        ),
        "a chunk has 0 bytes",
    ),
    "encrypted chunks without a tag": (
        lambda m: (
            m.update(encryption={"dataKey": "k:AAAA", "aad": ""}),
            m["chunkIndex"].update(
                type="fixed", transformedChunkSize=99, finalTransformedChunkSize=36
            ),
        ),
        "a chunk has 36 bytes",
    ),
    "many members": (lambda m: m.update(x=[[]] * 50_000), "has more than 100,000 members"),
    "an empty chunk": (
        lambda m: m["chunkIndex"].update(
            originalChunkSize=10**6, transformedChunks=zipped(packed_sizes([0]))
        ),
        "a chunk has 0 bytes",
    ),
    "an endless epoch": (
        lambda m: m["remoteLogSegmentMetadata"].update(segmentLeaderEpochs={"0": float("inf")}),
        "malformed",
    ),
    "a topic that is a number": (
        lambda m: place_in(m)["topicPartition"].update(topic=1), "1 is not text",
    ),
    "another topic": (
        lambda m: place_in(m)["topicPartition"].update(topic="payments"),
        "to another segment: it has 'payments', but its name has 'orders'",
    ),
    "another partition": (
        lambda m: place_in(m)["topicPartition"].update(partition=4), "it has 4, but its name has 3",
    ),
    "another id": (lambda m: place_in(m).update(topicId="A" * 22), "belongs to another segment"),
    "another offset": (
        lambda m: m["remoteLogSegmentMetadata"].update(startOffset=1),
        "it has 1, but its name has 0",
    ),
    "an epoch that is text": (
        lambda m: m["remoteLogSegmentMetadata"].update(segmentLeaderEpochs={"x": 1}), "malformed",
    ),
    "an offset that is text": (
        lambda m: m["remoteLogSegmentMetadata"].update(endOffset="1"), "'1' is not an integer",
    ),
    "an offset beyond 64 bits": (
        lambda m: m["remoteLogSegmentMetadata"].update(endOffset=10**30), "does not fit 64 bits",
    ),
    "a time beyond 64 bits": (
        lambda m: m["remoteLogSegmentMetadata"].update(maxTimestampMs=-(10**30)),
        "does not fit 64 bits",
    ),
    "an epoch beyond 32 bits": (
        lambda m: m["remoteLogSegmentMetadata"].update(segmentLeaderEpochs={"2147483648": 0}),
        "the leader epoch 2147483648 does not fit 32 bits",
    ),
    "a key without a name": (
        lambda m: m.update(encryption={"dataKey": "AAAA", "aad": ""}),
        "does not name its private key",
    ),
    "a key in other letters": (
        lambda m: m.update(encryption={"dataKey": "k:%", "aad": ""}), "not base64",
    ),
    "an index behind the end": (
        lambda m: m.update(segmentIndexes={"offset": {"position": 5, "size": 3}}),
        "the object ends at 0, before the offset index in it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_is_wrong_is_refused(name: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    by, words = MANIFESTS[name]
    change(path, by)
    refuse(path, words)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"[" * 100_000, b"\xff\xfe", b'{"version": "1"}']
)
def test_a_manifest_may_be_anything(content: bytes) -> None:
    with pytest.raises(RemoteStorageError, match="malformed"):
        parse_manifest(content, "m")


def peak_of(action: Callable[[], object]) -> int:
    """The most bytes of Python's memory that an action takes."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_manifest_of_a_gigabyte_is_not_even_loaded(tmp_path: Path) -> None:
    path = written(tmp_path)
    os.truncate(path.with_suffix(".rsm-manifest"), 1 << 30)
    words = "the manifest has 1,073,741,824 bytes"
    assert peak_of(lambda: refuse(path, words)) < 64 << 20


def test_a_manifest_with_the_largest_chunk_index_is_read(tmp_path: Path) -> None:
    sizes = np.random.default_rng(1).integers(9, 2**23, 3 * 10**6)
    log = bytes(sizes.size)
    path = write_segment(tmp_path / FOLDER, 0, log, Options(1 << 20), end_offset=29)
    change(path, lambda m: m["chunkIndex"].update(
        originalChunkSize=1, transformedChunks=zipped(packed_sizes(sizes.tolist()))
    ))  # fmt: skip
    manifest = path.with_suffix(".rsm-manifest")
    assert parse_manifest(manifest.read_bytes(), "m").chunks.chunks == sizes.size


def test_an_object_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    refuse(path, "bytes, but its manifest lists")


@pytest.mark.parametrize("form", ["compressed", "encrypted"])
def test_a_byte_that_is_changed_is_noticed(form: str, pair: KeyPair, tmp_path: Path) -> None:
    options = Options(compresses=form == "compressed", pair=pair if form == "encrypted" else None)
    path = written(tmp_path, options)
    sound = path.read_bytes()
    expected = kafkajit.read_records(path, private_keys={pair.id: str(pair.file)})
    for at in np.linspace(0, len(sound) - 1, 60).astype(int).tolist():
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :])
        keys = {pair.id: str(pair.file)}
        try:
            table = kafkajit.read_records(path, private_keys=keys)
        except kafkajit.KafkaJitError:  # or the batches' own checksum
            continue
        assert form == "compressed"
        # A batch's checksum leaves out its base offset and its leader epoch.
        assert table["value"].equals(expected["value"])


def test_a_chunk_that_would_be_larger_is_not_unpacked(tmp_path: Path) -> None:
    path = written(tmp_path, Options(chunk_size=len(LOG), compresses=True))
    path.write_bytes(BOMB)
    sizes = zipped(packed_sizes([len(BOMB)]))
    change(path, lambda given: given["chunkIndex"].update(transformedChunks=sizes))
    refuse(path, f"chunk 0 of 1 cannot be read: it has 67108864 bytes instead of {len(LOG)}")


@pytest.mark.parametrize("form", ["compressed", "both"])
def test_a_chunk_that_becomes_very_large_is_unpacked_in_pieces(
    form: str, pair: KeyPair, tmp_path: Path
) -> None:
    size = 200 << 20
    options = Options(size, compresses=True, pair=pair if form == "both" else None)
    path = write_segment(tmp_path / FOLDER, 0, LOG + bytes(size - len(LOG)), options)
    assert path.stat().st_size < 1 << 20
    keys = {pair.id: str(pair.file)}
    offsets: list[int] = []

    def read() -> None:
        for batch in kafkajit.iter_records(path, columns=["offset"], private_keys=keys):
            offsets.extend(batch["offset"].to_pylist())

    assert peak_of(read) < size // 4
    assert offsets == list(range(30))


def test_lost_chunks_are_left_out_together_and_loaded_once(pair: KeyPair, tmp_path: Path) -> None:
    path = written(tmp_path, Options(100, pair=pair))
    sound = path.read_bytes()
    stored = bytearray(sound)
    for chunk in (2, 3, 4, 7, 9):
        stored[chunk * 128 + 50] ^= 1
    path.write_bytes(stored)
    manifest = parse_manifest(path.with_suffix(".rsm-manifest").read_bytes(), "m")
    asked: list[int] = []

    def read_object(count: int, at: int) -> bytes:
        asked.append(at)
        return path.read_bytes()[at : at + count]

    reader = ChunkReader(manifest, PrivateKeys.of({pair.id: str(pair.file)}), read_object, "o")
    memory = memoryview(bytearray(len(LOG)))
    position, lost, words = 0, [], []
    while position < len(LOG):
        try:
            position += reader.read_into(memory[position:], position)
        except RemoteStorageError as error:
            first, position = error.lost or (-1, -1)
            lost.append((first, position))
            words.append(str(error).partition(" cannot")[0])
    count = manifest.chunks.chunks
    assert words == [f"chunks 2 to 4 of {count}", f"chunk 7 of {count}", f"chunk 9 of {count}"]
    assert lost == [(200, 500), (700, 800), (900, 1000)]
    assert asked == [0]
    rest = [at for at in range(len(LOG)) if not any(a <= at < b for a, b in lost)]
    assert bytes(memory[at] for at in rest) == bytes(LOG[at] for at in rest)


def test_a_chunk_with_another_frame_behind_its_own_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, Options(chunk_size=len(LOG), compresses=True))
    path.write_bytes(path.read_bytes() + zstandard.compress(b"more"))
    sizes = zipped(packed_sizes([path.stat().st_size]))
    change(path, lambda given: given["chunkIndex"].update(transformedChunks=sizes))
    refuse(path, f"chunk 0 of 1 cannot be read: it has more than {len(LOG)} bytes")


def test_a_chunk_that_does_not_declare_its_size_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, Options(chunk_size=len(LOG), compresses=True))
    path.write_bytes(zstandard.ZstdCompressor(write_content_size=False).compress(LOG))
    sizes = zipped(packed_sizes([path.stat().st_size]))
    change(path, lambda given: given["chunkIndex"].update(transformedChunks=sizes))
    refuse(path, f"it has an unknown number of bytes instead of {len(LOG)}")
