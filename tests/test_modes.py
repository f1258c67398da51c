"""DROPMALFORMED and PERMISSIVE: the remaining rows of a damaged log, and the reported gaps."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from corpus import NO_JIT

import kafkajit
import kafkajit.walk.resync
from kafkajit import testing as kt
from kafkajit.errors import CorruptRecordError
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Source
from kafkajit.walk.damage import Gap
from kafkajit.walk.walk import Walk

RECORDS = 3
GOOD = [
    kt.batch([kt.Record(value=b"v%d" % i)] * RECORDS, base_offset=RECORDS * i, codec=codec)
    for i, codec in enumerate(kt.CODECS)
]
OFFSETS = list(range(RECORDS * len(GOOD)))


def offsets(log: bytes) -> list[int]:
    table = kafkajit.read_records(log, columns=["offset"], mode="DROPMALFORMED")
    return table["offset"].to_pylist()


def gaps(log: bytes) -> list[tuple[int, int, str]]:
    rows = kafkajit.read_records(log, columns=["offset"], mode="PERMISSIVE").to_pylist()
    return [tuple(row["corruption"].values())[1:] for row in rows if row["corruption"]]


def with_damage(damage: bytes, at: int) -> bytes:
    return b"".join([*GOOD[:at], damage, *GOOD[at:]])


@pytest.mark.parametrize("codec", kt.CODECS)
@pytest.mark.parametrize("name", kt.BREAKS)
def test_dropmalformed_keeps_all_sound_batches_and_nothing_else(name: str, codec: str) -> None:
    for at in (0, 2, len(GOOD)):
        assert offsets(with_damage(kt.broken(name, codec=codec), at)) == OFFSETS


EMBEDDED = kt.batch([kt.Record(value=b"inner")], base_offset=777)


@pytest.mark.parametrize("behind", [bytes(4096), GOOD[0][:-5], GOOD[0][:10], GOOD[0], b""])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_batch_in_a_value_is_never_taken_for_the_logs_if_the_length_around_it_is_right(
    magic: int, behind: bytes
) -> None:
    record = kt.Record(value=EMBEDDED)
    bad = kt.batch([record], crc=1) if magic == 2 else kt.message(record, magic=magic, crc=1)
    assert 777 not in offsets(GOOD[1] + bad + behind)
    junk = kt.batch([record, b"junk"])  # its checksum holds: nothing within is searched
    assert 777 not in offsets(GOOD[1] + junk + b"noise" * 20 + behind)


@pytest.mark.parametrize("behind", [100, 1000, 4999])
def test_a_length_that_leads_into_a_preallocated_files_zeros_hides_nothing(behind: int) -> None:
    rest = b"".join(GOOD[1:])
    bad = kt.broken("wrong crc")
    leading = bad[:8] + (len(bad) - 12 + len(rest) + behind).to_bytes(4) + bad[12:]
    assert offsets(GOOD[0] + leading + rest + bytes(5000)) == OFFSETS


@pytest.mark.skipif(NO_JIT, reason="megabytes")
@pytest.mark.parametrize(
    ("magic", "before"),
    [
        (0, b""),
        (2, b""),
        (2, kt.batch([], batch_length=5)),
    ],  # the last length is too small for any batch
)
def test_headers_that_claim_all_that_follows_cost_their_own_bytes_only(
    magic: int, before: bytes
) -> None:
    header = kt.batch([], crc=1) if magic == 2 else kt.message(kt.Record(), magic=0, crc=1)
    count, size = 300, 1_000_000
    log = bytearray()
    for _ in range(count):
        log += before
        claimed = (size - len(log) - 100).to_bytes(4)
        log += header[:8] + claimed + header[12:] + GOOD[0]
    log += kt.batch([kt.Record(value=b"z" * (size - len(log)))], base_offset=99)
    walk = Walk(Source(bytes(log)), mode="DROPMALFORMED")
    parts = walk.chunks(ColumnMemory(Wanted()))
    assert sum(len(part) for part in parts if isinstance(part, Chunk)) == count * RECORDS + 1
    assert walk._prover is not None
    assert walk._prover.is_needed  # without it every header would have cost a megabyte


@pytest.mark.parametrize("name", kt.BREAKS)
def test_permissive_reports_damage_in_a_row_between_the_records(name: str) -> None:
    damage = kt.broken(name)
    rows = kafkajit.read_records(
        with_damage(damage, 2), columns=["offset"], mode="PERMISSIVE"
    ).to_pylist()
    (gap,) = [row for row in rows if row["corruption"]]
    assert rows.index(gap) == 2 * RECORDS
    assert gap["offset"] is None
    assert gap["corruption"]["position"] == len(GOOD[0] + GOOD[1])
    assert gap["corruption"]["length"] == len(damage)
    assert kt.BREAKS[name].message in gap["corruption"]["reason"]


def test_a_length_that_swallows_all_that_follows_hides_only_its_own_batch() -> None:
    damaged = bytearray(GOOD[2])
    struct.pack_into(">i", damaged, 8, 2**31 - 1)
    log = b"".join([*GOOD[:2], damaged, *GOOD[3:]])
    assert offsets(log) == [o for o in OFFSETS if o // RECORDS != 2]
    assert [gap[:2] for gap in gaps(log)] == [(len(GOOD[0] + GOOD[1]), len(damaged))]


def test_a_batch_inside_a_damaged_batch_is_not_taken_for_the_logs() -> None:
    inner = kt.batch([kt.Record(value=b"inner")], base_offset=777)
    assert offsets(with_damage(kt.batch([kt.Record(value=inner)], crc=1), 2)) == OFFSETS


ODD = [{"attributes": 0x80}, {"attributes": 0x100}, {"base_offset": -5}, {"last_offset_delta": -1}]


@pytest.mark.parametrize("fields", ODD, ids=str)
@pytest.mark.parametrize("damage", [kt.broken("wrong crc"), b"noise"], ids=["batch", "noise"])
def test_a_batch_that_failfast_reads_is_read_behind_damage_too(
    damage: bytes, fields: dict[str, int]
) -> None:
    odd = kt.batch([kt.Record(value=b"odd")], **fields)
    assert len(offsets(odd)) == kafkajit.read_records(odd).num_rows == 1
    assert len(offsets(damage + odd)) == 1


def test_each_bad_batch_has_its_own_gap_and_reason() -> None:
    second = kt.batch([kt.Record(b"a")], records_count=-1)
    reasons = [gap[2] for gap in gaps(kt.broken("wrong crc") + second + GOOD[0])]
    assert ["Record is corrupt" in reason for reason in reasons] == [True, False]
    assert "Found invalid record count -1" in reasons[1]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("name", ["wrong crc", "too few records"])
def test_a_bad_batch_is_not_decoded_again_and_again_with_its_chunk(
    name: str, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0
    parts = Decoder.parts

    def counting(self: Decoder, batches: Batches, in_slices: bool = True) -> Iterator[Chunk]:
        nonlocal looked_at
        looked_at += len(batches)
        return parts(self, batches, in_slices)

    monkeypatch.setattr(Decoder, "parts", counting)
    bad = kt.broken(name, codec=codec) * 300
    assert offsets(bad + b"".join(GOOD) + bad) == OFFSETS
    assert looked_at < 2000


@pytest.mark.parametrize("at", [0, 2, len(GOOD)])
def test_batches_are_checked_without_a_look_at_their_records(at: int) -> None:
    bad, bad_records = kt.broken("wrong crc"), kt.broken("cut inside a record")
    log = with_damage(bad + bad_records, at)
    rest = [bad_records, *GOOD[at:]]
    start = len(b"".join(GOOD[:at]))
    before = [len(b"".join(GOOD[:place])) for place in range(at)]
    behind = [start + len(bad) + len(b"".join(rest[:place])) for place in range(len(rest))]

    def found(walk: Walk) -> list[object]:
        parts: list[object] = []
        for part in walk.checked():
            parts += [part[1:3]] if isinstance(part, Gap) else part.position.tolist()
        return parts

    walk = Walk(Source(log), mode="DROPMALFORMED")
    assert found(walk) == [*before, (start, len(bad)), *behind]
    assert walk.position == len(log)
    walk = Walk(Source(log))
    with pytest.raises(CorruptRecordError) as error:
        found(walk)
    assert error.value.position == walk.position == start
