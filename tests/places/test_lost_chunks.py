"""A chunk that cannot be read takes the batches in it away, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scanning import offsets_of, read_rows, read_table

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import (
    PLAIN,
    TOPIC_ID,
    KeyPair,
    Options,
    key_pair,
    write_segment,
)
from kafkajit import RemoteStorageError

CHUNK = 500
BATCHES = [
    kt.batch([kt.Record(value=bytes([65 + number]) * 40)] * 3, base_offset=3 * number)
    for number in range(20)
]
LOG = b"".join(BATCHES)
SIZE = len(BATCHES[0])
CHUNKS = -(-len(LOG) // CHUNK)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return key_pair(tmp_path_factory.mktemp("keys"), "key1")


class Object:
    """The object of a segment, and its options."""

    def __init__(self, root: Path, options: Options) -> None:
        folder = root / f"orders-{TOPIC_ID}" / "0"
        self.path = write_segment(folder, 0, LOG, options, end_offset=59)
        self._sizes = _stored_sizes(root, options)
        keys = {} if options.pair is None else {"key1": str(options.pair.file)}
        self.keys: dict[str, Any] = {"private_keys": keys}
        self.options = {f"encryption.key.pairs.{k}.private.key.file": v for k, v in keys.items()}

    def spoil(self, chunk: int) -> None:
        """Change a byte of a chunk."""
        stored = bytearray(self.path.read_bytes())
        stored[sum(self._sizes[:chunk]) + self._sizes[chunk] // 2] ^= 1
        self.path.write_bytes(stored)


def _stored_sizes(root: Path, options: Options) -> list[int]:
    """The sizes of chunks in the object: those of objects of one chunk each."""
    sizes = []
    for number in range(CHUNKS):
        piece = LOG[number * CHUNK : (number + 1) * CHUNK]
        folder = root / "sizes" / f"orders-{TOPIC_ID}" / "0"
        sizes.append(write_segment(folder, number, piece, options).stat().st_size)
    return sizes


@pytest.fixture(params=["encrypted", "both"])
def stored(request: pytest.FixtureRequest, tmp_path: Path, pair: KeyPair) -> Object:
    return Object(tmp_path, Options(CHUNK, request.param == "both", pair))


def offsets_without(*chunks: int) -> list[int]:
    """The offsets of batches that these chunks leave whole."""
    lost = [(chunk * CHUNK, (chunk + 1) * CHUNK) for chunk in chunks]
    return [
        3 * number + record
        for number in range(len(BATCHES))
        if all((number + 1) * SIZE <= first or number * SIZE >= behind for first, behind in lost)
        for record in range(3)
    ]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_lenient_modes_leave_out_the_batches_in_it(stored: Object, chunk: int) -> None:
    stored.spoil(chunk)
    expected = offsets_without(chunk)
    for mode in ("DROPMALFORMED", "PERMISSIVE"):
        read = kafkajit.read_records(stored.path, mode=mode, **stored.keys)
        assert read["offset"].drop_null().to_pylist() == expected
        scanned = read_table(stored.path.parent, mode=mode, **stored.options)
        assert scanned["offset"].drop_null().to_pylist() == expected
    gaps = [
        row["corruption"]
        for row in read_rows(stored.path.parent, mode="PERMISSIVE", **stored.options)
        if row["corruption"] is not None
    ]
    first = chunk * CHUNK // SIZE * SIZE
    behind = min(-(-(chunk + 1) * CHUNK // SIZE) * SIZE, len(LOG))
    assert [(gap["position"], gap["length"]) for gap in gaps] == [(first, behind - first)]


@pytest.mark.parametrize("chunk", range(14))
def test_lost_bytes_are_never_read_even_without_checksums(
    chunk: int, tmp_path: Path, pair: KeyPair
) -> None:
    # Chunks are smaller than batches, so the next header follows the lost bytes.
    logs = [kt.batch([kt.Record(value=b"A" * 150)], base_offset=at) for at in range(3)]
    folder = tmp_path / f"orders-{TOPIC_ID}" / "0"
    path = write_segment(folder, 0, b"".join(logs), Options(50, pair=pair), end_offset=2)
    stored = bytearray(path.read_bytes())
    stored[chunk * 78 + 12] ^= 1
    path.write_bytes(stored)
    lost, size = range(chunk * 50, (chunk + 1) * 50), len(logs[0])
    whole = [at for at in range(3) if not set(lost) & set(range(at * size, at * size + size))]
    options = {
        "mode": "DROPMALFORMED",
        "encryption.key.pairs.key1.private.key.file": str(pair.file),
    }
    assert offsets_of(folder, checkCrcs="false", **options) == whole
    keys = {"key1": str(pair.file)}
    read = kafkajit.read_records(path, mode="DROPMALFORMED", check_crcs=False, private_keys=keys)
    assert read["offset"].to_pylist() == whole
    heads = read_rows(folder, kind="batches", **options)
    assert {row["maxTimestamp"] for row in heads} <= {row["baseTimestamp"] for row in heads}
    assert {row["producerEpoch"] for row in heads} == {-1}
    assert all(row["recordsCount"] == 1 for row in heads)
    assert {row["baseOffset"] for row in heads} >= set(whole)


@pytest.mark.parametrize("chunk", [0, 3, CHUNKS - 1])
def test_failfast_names_it(stored: Object, chunk: int) -> None:
    stored.spoil(chunk)
    words = f"chunk {chunk} of {CHUNKS} cannot be read"
    with pytest.raises(RemoteStorageError, match=words):
        kafkajit.read_records(stored.path, **stored.keys)
    with pytest.raises(RemoteStorageError, match=words):
        read_table(stored.path.parent, **stored.options)


def test_a_warning_names_it(stored: Object, caplog: pytest.LogCaptureFixture) -> None:
    stored.spoil(2)
    kafkajit.read_records(stored.path, mode="DROPMALFORMED", **stored.keys)
    assert f"chunk 2 of {CHUNKS} cannot be read" in caplog.text
    assert str(stored.path) in caplog.text


def test_views_leave_out_the_same_batches(stored: Object) -> None:
    stored.spoil(3)
    read = kafkajit.read_records(stored.path, mode="DROPMALFORMED", binary_view=True, **stored.keys)
    expected = offsets_without(3)
    assert read["offset"].to_pylist() == expected
    assert read["value"].to_pylist() == [bytes([65 + offset // 3]) * 40 for offset in expected]


def test_several_may_be_lost(stored: Object) -> None:
    for chunk in (1, 2, 5):
        stored.spoil(chunk)
    read = kafkajit.read_records(stored.path, mode="DROPMALFORMED", **stored.keys)
    assert read["offset"].to_pylist() == offsets_without(1, 2, 5)


def test_the_lost_end_of_a_segment_is_not_taken_for_zeros(tmp_path: Path, pair: KeyPair) -> None:
    folder = tmp_path / f"orders-{TOPIC_ID}" / "0"
    path = write_segment(folder, 0, LOG, Options(SIZE, pair=pair), end_offset=59)
    stored = bytearray(path.read_bytes())
    stored[-1] ^= 1
    path.write_bytes(stored)
    keys = {"private_keys": {"key1": str(pair.file)}}
    read = kafkajit.read_records(path, mode="PERMISSIVE", **keys)
    assert read["offset"].to_pylist() == [*range(57), None]
    assert read["corruption"].to_pylist()[-1]["length"] == SIZE


def test_other_segments_are_read(tmp_path: Path, pair: KeyPair) -> None:
    stored = Object(tmp_path, Options(CHUNK, pair=pair))
    for base in (60, 63):
        log = kt.batch([kt.Record()] * 3, base_offset=base)
        write_segment(stored.path.parent, base, log, PLAIN, end_offset=base + 2)
    stored.spoil(0)
    read = read_table(stored.path.parent, mode="DROPMALFORMED", **stored.options)
    assert read["offset"].to_pylist() == [*offsets_without(0), *range(60, 66)]


def test_a_wrong_key_loses_nothing(stored: Object, tmp_path: Path) -> None:
    other = {"key1": str(key_pair(tmp_path, "other").file)}
    with pytest.raises(RemoteStorageError, match="does not decrypt"):
        kafkajit.read_records(stored.path, mode="DROPMALFORMED", private_keys=other)
