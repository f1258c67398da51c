from __future__ import annotations

from pathlib import Path

import pytest
import reference
from corpus import by_sound_log, expected_rows

import kafkajit
from kafkajit import testing as kt
from kafkajit.format.log_path import LogPath
from kafkajit.records.batches import Batches, frame
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import CHUNK_BYTES, Decoder
from kafkajit.storage.source import Source

FIELDS = ColumnMemory(Wanted(fields=True))
GOOD = kt.batch([kt.Record(b"a", b"1"), kt.Record(None, b"2")], base_offset=5)
by_codec = pytest.mark.parametrize("codec", kt.CODECS)


def opened(log: bytes) -> tuple[Decoder, Batches]:
    source = Source(log)
    return Decoder(source, FIELDS), frame(source.content).batches


def fields(chunk: Chunk) -> list[tuple[bytes | None, bytes | None]]:
    return [(chunk.field(row, "key"), chunk.field(row, "value")) for row in range(len(chunk))]


@by_sound_log
def test_a_chunk_holds_the_records_of_its_batches(path: Path) -> None:
    log = path.read_bytes()
    decoder, batches = opened(log)
    found: list[tuple[bytes | None, bytes | None]] = []
    counts: list[int] = []
    while len(batches):
        chunk = decoder.decode(batches)
        assert chunk.error is None
        counts += chunk.counts.tolist()
        found += fields(chunk)
        batches = batches[len(chunk.batches) :]
    expected = reference.read_batches(log)[0]
    assert counts == [len(reference.read_records(batch)) for batch in expected]
    assert found == [(row["key"], row["value"]) for row in expected_rows(log)[0]]


@by_codec
def test_batches_as_they_were_written_are_sound(codec: str) -> None:
    decoder, batches = opened(GOOD + kt.batch([kt.Record()], codec=codec))
    assert decoder.sound(batches, check_crcs=True).tolist() == [True, True]


def test_a_batch_with_a_wrong_checksum_is_not_sound_unless_nobody_asks() -> None:
    decoder, batches = opened(GOOD + kt.broken("wrong crc", base_offset=7) + GOOD)
    assert decoder.sound(batches, check_crcs=True).tolist() == [True, False, True]
    assert decoder.sound(batches, check_crcs=False).all()
    error = str(decoder.unsound(batches, 1))
    assert error.startswith("Record is corrupt (stored crc = 1, computed crc = ")
    assert error.endswith(f" at position {len(GOOD)}, base offset 7")


@pytest.mark.parametrize(
    ("magic", "exception", "message"),
    [
        (3, kafkajit.CorruptRecordError, "Invalid magic found in record: 3"),
        (-1, kafkajit.CorruptRecordError, "Invalid magic found in record: -1"),
    ],
)
@pytest.mark.parametrize("check_crcs", [True, False])
def test_a_batch_of_another_format_is_never_sound(
    magic: int, exception: type[Exception], message: str, check_crcs: bool
) -> None:
    decoder, batches = opened(GOOD + kt.batch([kt.Record()], magic=magic))
    assert decoder.sound(batches, check_crcs=check_crcs).tolist() == [True, False]
    error = decoder.unsound(batches, 1)
    assert type(error) is exception
    assert str(error) == f"{message} at position {len(GOOD)}, base offset 0"


@by_codec
def test_a_chunk_ends_before_a_bad_batch_and_says_what_is_wrong(codec: str) -> None:
    bad = kt.broken("too few records", base_offset=7, codec=codec)
    decoder, batches = opened(GOOD + bad + GOOD)
    chunk = decoder.decode(batches)
    assert fields(chunk) == [(b"a", b"1"), (None, b"2")]
    assert len(chunk.batches) == 1
    assert chunk.counts.tolist() == [2]
    assert str(chunk.error) == (
        "Incorrect declared batch size, premature EOF reached (record 3 of the batch) "
        f"at position {len(GOOD)}, base offset 7"
    )


@by_codec
def test_the_records_before_the_damage_can_be_kept_where_kafka_hands_them_out(codec: str) -> None:
    bad = kt.broken("too few records", base_offset=7, codec=codec)
    decoder, batches = opened(GOOD + bad + GOOD)
    chunk = decoder.decode(batches, keep_bad=True)
    kept = 3 if codec == "none" else 0  # a compressed batch is good or bad as a whole
    assert chunk.counts.tolist() == [2, kept]
    assert len(chunk.batches) == 2
    assert fields(chunk)[2:] == [(b"key", b"value")] * kept
    assert chunk.error is not None


@pytest.mark.parametrize("name", ["unknown codec", "batch shorter than its header"])
def test_a_batch_that_cannot_be_opened_ends_the_chunk(name: str) -> None:
    for before in (GOOD, kt.batch([kt.Record()], codec="zstd")):
        decoder, batches = opened(before + kt.broken(name, base_offset=7))
        chunk = decoder.decode(batches[:2])
        assert len(chunk.batches) == 1
        assert type(chunk.error) is kt.BREAKS[name].error
        assert chunk.error.message.startswith(kt.BREAKS[name].message)


@by_codec
def test_a_chunk_is_of_about_the_size_that_stays_in_the_cache(codec: str) -> None:
    batch = kt.batch([kt.Record(value=bytes(1 << 20))], codec=codec)
    fitting = CHUNK_BYTES >> 20
    decoder, batches = opened(batch * 3 * fitting)
    lengths = []
    while len(batches):
        chunk = decoder.decode(batches)
        lengths.append(len(chunk.batches))
        batches = batches[len(chunk.batches) :]
    # Uncompressed batches come in such runs from framing.
    assert lengths == ([3 * fitting] if codec == "none" else [fitting] * 3)


def test_chunks_that_are_not_recycled_stay() -> None:
    parts = [kt.batch([kt.Record(b"%d" % place * 500)], codec="zstd") for place in range(4)]
    source = Source(b"".join(parts))
    decoder = Decoder(source, FIELDS, recycle=False)
    batches = frame(source.content).batches
    chunks = [decoder.decode(batches[place : place + 1]) for place in range(4)]
    keys = [bytes(chunk.content[:600]) for chunk in chunks]
    for place, key in enumerate(keys):
        assert b"%d" % place * 500 in key


def test_a_chunk_knows_its_path(tmp_path: Path) -> None:
    path = tmp_path / "orders-3" / "00000000000000000005.log"
    path.parent.mkdir()
    path.write_bytes(GOOD)
    source = Source(path)
    chunk = Decoder(source, FIELDS).decode(frame(source.content).batches)
    assert chunk.log_path == LogPath("orders", 3, 5, ".log")
    decoder, batches = opened(GOOD)
    assert decoder.decode(batches).log_path == LogPath(None, None, None, None)


def test_headers_alone_are_a_chunk_without_records() -> None:
    decoder, batches = opened(GOOD + GOOD)
    chunk = decoder.headers(batches)
    assert len(chunk) == 0
    assert chunk.counts.tolist() == [0, 0]
    assert chunk.batches.position.tolist() == [0, len(GOOD)]
