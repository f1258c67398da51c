"""The lenient modes over splits: damage costs its own batch, however a segment is read.

Rows, and the beginning and end of each gap, are the same however a segment is split, mapped or read
in ranges, with an index or without. The reason of a gap is the same if the damaged length stays
inside the split: a batch that reaches over a split's end cannot be recognised there. A damaged
length that leads to the exact beginning of a later batch hides the batches between, unless a split
begins among them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from corpus import NO_JIT
from scanning import far_away, offsets_of, read_in_small_pieces, read_rows, write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.scan.predicates import Predicate

RECORDS = 3
GOOD = [
    kt.batch(
        [
            kt.Record(b"k%d" % place, b"value of %d" % place, timestamp=1000 * place + i)
            for i in range(3)
        ],
        base_offset=RECORDS * place,
        base_timestamp=1000 * place,
        codec=kt.CODECS[place % 5],
    )
    for place in range(12)
]
OFFSETS = list(range(RECORDS * len(GOOD)))
POSITIONS = [len(b"".join(GOOD[:place])) for place in range(len(GOOD) + 1)]
LENIENT = ["DROPMALFORMED", "PERMISSIVE"]


def with_length(length: int) -> Callable[[bytes], bytes]:
    return lambda batch: batch[:8] + struct.pack(">i", length) + batch[12:]


def flipped(at: int, bit: int) -> Callable[[bytes], bytes]:
    return lambda batch: batch[:at] + bytes([batch[at] ^ 1 << bit]) + batch[at + 1 :]


def noise(seed: int) -> Callable[[bytes], bytes]:
    return lambda batch: np.random.default_rng(seed).bytes(len(batch))


# Damage that does not change a batch's size.
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda batch: bytes(len(batch)),
    "ones": lambda batch: b"\xff" * len(batch),
    "text": lambda batch: (b"This is no batch of Kafka's, of whatever version. " * 9)[: len(batch)],
    **{f"noise {seed}": noise(seed) for seed in range(3)},
    "a header of zeros": lambda batch: bytes(61) + batch[61:],
    "records of zeros": lambda batch: batch[:61] + bytes(len(batch) - 61),
    **{
        f"length {length}": with_length(length)
        for length in (-(2**31), -1, 0, 13, 14, 48, 49, 60, 100, 300, 500, 1000, 2**31 - 1)
    },
    **{
        f"bit {bit} of byte {at}": flipped(at, bit)
        for at in [*range(8, 12), *range(16, 61, 8)]  # the rest of a header no checksum covers
        for bit in ((0, 1, 3, 4, 7) if at < 12 else (at // 8,))
    },
}
by_damage = pytest.mark.parametrize("kind", list(DAMAGE)[:: 5 if NO_JIT else 1])
PATH_COLUMNS = [0, 5, len(GOOD) - 2]


def damaged(kind: str, at: int) -> bytes:
    return b"".join([*GOOD[:at], DAMAGE[kind](GOOD[at]), *GOOD[at + 1 :]])


def true_index(moved_from: int = len(GOOD), by: int = 0) -> bytes:
    """An index that has every batch but the first, some of them further on than in GOOD."""
    return b"".join(
        struct.pack(">ii", RECORDS * place + 2, POSITIONS[place] + by * (place >= moved_from))
        for place in range(1, len(GOOD))
    )


def gaps_in(rows: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    found = [row.get("corruption", row) for row in rows]
    return [(gap["position"], gap["length"], gap["reason"]) for gap in found if gap]


def where(gaps: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    return [gap[:2] for gap in gaps]


class Reading(NamedTuple):
    """A way to read a segment."""

    is_far: bool
    has_index: bool
    least: int  # maxPartitionBytes

    def arrange(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, index: bytes
    ) -> tuple[str, dict[str, Any]]:
        """The folder's location for this way of reading, and the options."""
        (folder / f"{0:020}.index").write_bytes(index if self.has_index else b"")
        location = far_away(monkeypatch, folder) if self.is_far else str(folder)
        return location, {"maxPartitionBytes": self.least}


READINGS = [
    Reading(is_far=False, has_index=False, least=10**6),
    Reading(is_far=False, has_index=False, least=1),
    Reading(is_far=False, has_index=True, least=300),
    Reading(is_far=True, has_index=True, least=300),
    Reading(is_far=True, has_index=False, least=1),
]


def locations(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    return [str(folder), far_away(monkeypatch, folder)]


@pytest.mark.thorough
@by_damage
def test_damage_costs_its_own_batch_however_a_segment_is_split(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in PATH_COLUMNS:
        folder = write_partition(tmp_path, {0: damaged(kind, at)})
        kept = [offset for offset in OFFSETS if offset // RECORDS != at]
        gap = (POSITIONS[at], len(GOOD[at]))
        reasons = set()
        (damage,) = read_rows(folder, kind="corruption")
        for how in READINGS:
            location, options = how.arrange(folder, monkeypatch, true_index())
            rows = read_rows(location, mode="PERMISSIVE", **options)
            offsets = [row["offset"] for row in rows if not row["corruption"]]
            assert offsets == kept, (kind, at, how)
            assert where(gaps_in(rows)) == [gap], (kind, at, how)
            reasons.add(gaps_in(rows)[0][2])
            if how.least == 300:
                assert offsets_of(location, mode="DROPMALFORMED", **options) == kept
            path = f"{location}/{0:020}.log"
            found = read_rows(location, kind="corruption", **options)
            assert found == [damage | {"path": path}], (kind, at, how)
        assert gaps_in([damage]) == gaps_in(read_rows(folder, mode="PERMISSIVE"))
        missing = damage["firstMissingOffset"], damage["lastMissingOffset"]
        assert missing == (RECORDS * at, RECORDS * at + 2)
        (length,) = struct.unpack_from(">i", DAMAGE[kind](GOOD[at]), 8)
        assert len(reasons) == 1 or 12 + length > len(GOOD[at]), (kind, at, reasons)


@by_damage
def test_damage_to_an_unselected_batch_costs_no_other(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_partition(tmp_path, {0: damaged(kind, 5)})
    for how, low in zip(READINGS, (18, 22, 18, 22, 18), strict=True):
        location, options = how.arrange(folder, monkeypatch, true_index())
        asked = [Predicate("offset", ">=", low), Predicate("offset", "<", 30)]
        read = offsets_of(location, predicates=asked, mode="DROPMALFORMED", **options)
        assert read == list(range(low, 30)), (kind, how)


@by_damage
def test_damage_hides_no_header_of_another_batch(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_partition(tmp_path, {0: damaged(kind, 5)})
    for how in READINGS[1:4]:
        location, options = how.arrange(folder, monkeypatch, true_index())
        for mode in LENIENT:
            rows = read_rows(location, kind="batches", mode=mode, **options)
            # The checksum knows nothing of the version, which stands before it.
            valid = [row for row in rows if row["isValid"] and row["magic"] == 2]
            places = [row["baseOffset"] // RECORDS for row in valid]
            assert places == [place for place in range(len(GOOD)) if place != 5], (kind, how)


def test_a_header_is_shown_where_its_length_leads_on(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: damaged("records of zeros", 5)})
    for mode in LENIENT:
        rows = read_rows(folder, kind="batches", mode=mode)
        assert [row["isValid"] for row in rows] == [place != 5 for place in range(len(GOOD))]
        assert rows[5]["baseOffset"] == RECORDS * 5


def test_a_header_that_leads_nowhere_is_a_gap(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: damaged("length 300", 5)})
    rows = read_rows(folder, kind="batches", mode="PERMISSIVE")
    assert where(gaps_in(rows)) == [(POSITIONS[5], len(GOOD[5]))]
    assert [row["baseOffset"] for row in rows if row["corruption"]] == [None]
    assert {row["path"] for row in rows} == {f"{folder}/{0:020}.log"}
    assert len(rows) == len(GOOD)
    dropped = read_rows(folder, kind="batches", mode="DROPMALFORMED")
    assert len(dropped) == len(GOOD) - 1


@pytest.mark.parametrize("name", kt.BREAKS)
def test_a_broken_batch_between_others_is_a_gap_however_a_segment_is_split(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for codec in ("none", "zstd"):
        bad = kt.broken(name, base_offset=15, codec=codec)
        folder = write_partition(tmp_path, {0: b"".join([*GOOD[:5], bad, *GOOD[6:]])})
        for location in locations(monkeypatch, folder):
            whole = read_rows(location, mode="PERMISSIVE")
            assert where(gaps_in(whole)) == [(POSITIONS[5], len(bad))]
            breaking = kt.BREAKS[name]
            message = (
                breaking.message
                if codec == "none"
                else breaking.when_compressed or breaking.message
            )
            assert gaps_in(whole)[0][2].startswith(f"{breaking.error.__name__}: {message}")
            for least in (1, 300):
                options: dict[str, Any] = {"maxPartitionBytes": least}
                assert read_rows(location, mode="PERMISSIVE", **options) == whole
                assert gaps_in(read_rows(location, kind="corruption", **options)) == gaps_in(whole)


def test_a_length_that_leads_out_of_a_split_is_the_reason(tmp_path: Path) -> None:
    leading = with_length(700)(GOOD[5])
    folder = write_partition(tmp_path, {0: b"".join([*GOOD[:5], leading, *GOOD[6:]])})
    (folder / f"{0:020}.index").write_bytes(true_index())
    rows = read_rows(folder, mode="PERMISSIVE", maxPartitionBytes=1)
    reason = f"record size 700 is too large: the next batch begins at {POSITIONS[6]}"
    gap = (POSITIONS[5], len(GOOD[5]), f"CorruptRecordError: {reason}")
    assert gaps_in(rows) == [gap]


BETWEEN = {
    "a byte": b"\x01",
    "a short length": b"\0" * 30,
    "a page of zeros": bytes(4096),
    "text": b"not a batch, but between two of them",
    "the beginning of a batch": GOOD[5][:40],
    "the end of a batch": GOOD[5][20:],
    **{f"noise {seed}": np.random.default_rng(seed).bytes(400) for seed in range(3)},
}


@pytest.mark.parametrize("kind", BETWEEN)
def test_what_lies_between_batches_is_a_gap_however_a_segment_is_split(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = BETWEEN[kind]
    for at in PATH_COLUMNS[: 1 if NO_JIT else 3]:
        folder = write_partition(tmp_path, {0: b"".join([*GOOD[:at], between, *GOOD[at:]])})
        index = true_index(moved_from=at, by=len(between))
        for how in READINGS:
            location, options = how.arrange(folder, monkeypatch, index)
            rows = read_rows(location, mode="PERMISSIVE", **options)
            assert where(gaps_in(rows)) == [(POSITIONS[at], len(between))], (kind, at, how)
            offsets = [row["offset"] for row in rows if not row["corruption"]]
            assert offsets == OFFSETS, (kind, at, how)
            some = [Predicate("offset", ">=", 20)]
            read = offsets_of(location, predicates=some, mode="DROPMALFORMED", **options)
            assert read == OFFSETS[20:], (kind, at, how)


TAILS = {"nothing": b"", "torn": GOOD[0][:30], "zeros": bytes(5000), "a byte": b"\x01"}


@pytest.mark.parametrize("tail", TAILS)
def test_a_torn_end_of_a_log_is_not_a_gap_however_it_is_split(
    tail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_partition(tmp_path, {0: b"".join(GOOD) + TAILS[tail]})
    (folder / f"{0:020}.index").write_bytes(true_index())
    for location in locations(monkeypatch, folder):
        for least in (1, 300, 10**6):
            for mode in ("FAILFAST", *LENIENT):
                rows = read_rows(location, mode=mode, maxPartitionBytes=least)
                assert [row["offset"] for row in rows] == OFFSETS
            assert read_rows(location, kind="corruption", maxPartitionBytes=least) == []


def test_a_length_that_leads_to_a_later_batch_hides_what_no_split_shows(tmp_path: Path) -> None:
    leading = with_length(POSITIONS[8] - POSITIONS[5] - 12)(GOOD[5])
    folder = write_partition(tmp_path, {0: b"".join([*GOOD[:5], leading, *GOOD[6:]])})
    rows = read_rows(folder, mode="PERMISSIVE")
    assert where(gaps_in(rows)) == [(POSITIONS[5], POSITIONS[8] - POSITIONS[5])]
    (folder / f"{0:020}.index").write_bytes(true_index()[5 * 8 : 6 * 8])
    rows = read_rows(folder, mode="PERMISSIVE", maxPartitionBytes=POSITIONS[-1] // 2)
    assert where(gaps_in(rows)) == [(POSITIONS[5], len(GOOD[5]))]


@pytest.mark.parametrize("least", [1, 300, 10**6])
def test_damage_is_found_in_small_pieces_too(
    least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_small_pieces(monkeypatch)
    for kind in ("zeros", "noise 1", "length 300", "length 2147483647", "records of zeros"):
        folder = write_partition(tmp_path, {0: damaged(kind, 5)})
        for location in locations(monkeypatch, folder):
            rows = read_rows(location, mode="PERMISSIVE", maxPartitionBytes=least)
            assert where(gaps_in(rows)) == [(POSITIONS[5], len(GOOD[5]))]
            some = [Predicate("offset", ">=", 20)]
            read = offsets_of(
                location, predicates=some, mode="DROPMALFORMED", maxPartitionBytes=least
            )
            assert read == OFFSETS[20:]


@pytest.mark.parametrize("least", [1, 300, 10**6])
@pytest.mark.parametrize("kind", ["records of zeros", "length -1", "length 0", "length 13"])
def test_failfast_fails_however_a_segment_is_split(
    kind: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_partition(tmp_path, {0: damaged(kind, 5)})
    for location in locations(monkeypatch, folder):
        with pytest.raises(kafkajit.KafkaJitError) as caught:
            read_rows(location, maxPartitionBytes=least)
        assert caught.value.position == POSITIONS[5]
        assert caught.value.path == f"{location}/{0:020}.log"
        # A query for other records does not read these; but there has to be a next batch.
        for test, number, expected in (("<", 15, OFFSETS[:15]), (">=", 18, OFFSETS[18:])):
            others = [Predicate("offset", test, number)]
            if kind == "records of zeros":
                read = offsets_of(location, predicates=others, maxPartitionBytes=least)
                assert read == expected
                continue
            with pytest.raises(kafkajit.KafkaJitError) as caught:
                offsets_of(location, predicates=others, maxPartitionBytes=least)
            assert caught.value.position == POSITIONS[5]


@pytest.mark.parametrize("least", [1, 300, 10**6])
def test_zeros_end_a_log_only_if_nothing_else_follows(
    least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_small_pieces(monkeypatch)
    folder = write_partition(tmp_path, {0: b"".join([*GOOD[:5], bytes(400), *GOOD[5:]])})
    for location in locations(monkeypatch, folder):
        with pytest.raises(kafkajit.CorruptRecordError, match="Found record size 0") as caught:
            read_rows(location, maxPartitionBytes=least)
        assert caught.value.position == POSITIONS[5]


def test_the_table_of_corruption_is_the_same_in_any_mode_and_selection(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: damaged("zeros", 5)})
    expected = read_rows(folder, kind="corruption")
    assert len(expected) == 1
    reason = expected[0].pop("reason")
    assert "Found record size 0 smaller than minimum record overhead (14)" in reason
    assert expected == [
        {
            "topic": "orders",
            "partition": 0,
            "path": f"{folder}/{0:020}.log",
            "position": POSITIONS[5],
            "length": len(GOOD[5]),
            "firstMissingOffset": 15,
            "lastMissingOffset": 17,
        }
    ]
    for options in (
        {"mode": "PERMISSIVE"},
        {"mode": "DROPMALFORMED"},
        {"isolationLevel": "read_committed"},
        {"startingTimestamp": "1000ms"},
        {"endingTimestamp": "99000ms"},
        {"startingOffsets": '{"orders": {"0": 10}}', "maxPartitionBytes": "1"},
        {"startingOffsets": '{"orders": {"0": 15}}'},
        {"endingOffsets": '{"orders": {"0": 15}}'},
    ):
        (row,) = read_rows(folder, kind="corruption", **options)
        assert row == expected[0] | {"reason": reason}, options
    assert read_rows(folder, kind="corruption", predicates=[Predicate("topic", "=", "x")]) == []


def test_offsets_missing_at_a_segments_ends_follow_from_its_name_and_the_next(
    tmp_path: Path,
) -> None:
    def at(base: int, batches: list[bytes]) -> bytes:
        return b"".join(
            struct.pack(">q", base + RECORDS * place) + batch[8:]
            for place, batch in enumerate(batches)
        )

    segments = {
        0: damaged("zeros", 0),
        100: at(100, GOOD[:-1]) + damaged("records of zeros", len(GOOD) - 1)[POSITIONS[-2] :],
        200: at(200, GOOD[:1]),
    }
    folder = write_partition(tmp_path, segments)
    rows = read_rows(folder, kind="corruption")
    missing = [(row["firstMissingOffset"], row["lastMissingOffset"]) for row in rows]
    assert missing == [(0, RECORDS - 1), (100 + OFFSETS[-RECORDS], 199)]


def test_open_transactions_are_found_past_damage(tmp_path: Path) -> None:
    def sent(offset: int) -> bytes:
        return kt.batch([kt.Record()], base_offset=offset, is_transactional=True, producer_id=7)

    marker = kt.control_batch(0, producer_id=7, base_offset=1)
    swallowing = with_length(200)(kt.batch([kt.Record(value=b"x" * 20)], base_offset=1))
    log = sent(0) + swallowing + marker + sent(3) + kt.batch([kt.Record()], base_offset=4)
    folder = write_partition(tmp_path, {0: log})
    for mode in LENIENT:
        # The aborted one is dropped, and nothing is stable from the open one on.
        rows = read_rows(folder, mode=mode, isolationLevel="read_committed")
        assert [row["offset"] for row in rows if row["offset"] is not None] == []
    log = log[: -len(kt.batch([kt.Record()], base_offset=4)) - len(sent(3))]
    folder = write_partition(tmp_path, {0: log + kt.batch([kt.Record()], base_offset=4)})
    assert offsets_of(folder, mode="DROPMALFORMED", isolationLevel="read_committed") == [4]


@pytest.mark.parametrize("size", [1, 3000])
@pytest.mark.parametrize("bit", [0, 1, 3, 9])
@pytest.mark.parametrize("wrong", range(6))
def test_a_base_offset_that_does_not_fit_is_damage(
    wrong: int, bit: int, size: int, tmp_path: Path
) -> None:
    """No checksum covers it. Behind the last batch nothing tells whether a hole is one."""
    firsts = [2 * n ^ (1 << bit if n == wrong else 0) for n in range(6)]
    values = [b"%d" % (2 * n) + bytes(size) for n in range(6)]
    log = [
        kt.batch([kt.Record(value=v)] * 2, base_offset=n)
        for n, v in zip(firsts, values, strict=True)
    ]
    folder = write_partition(tmp_path, {0: b"".join(log)})
    position = sum(map(len, log[:wrong]))
    if wrong == 5 and firsts[wrong] > 10:
        assert offsets_of(folder)[-2:] == [firsts[5], firsts[5] + 1]
        return
    with pytest.raises(kafkajit.CorruptRecordError, match="The base offset does not fit") as caught:
        read_rows(folder)
    assert caught.value.position == position
    rows = read_rows(folder, mode="PERMISSIVE")
    assert where(gaps_in(rows)) == [(position, len(log[wrong]))]
    left = [n for n in range(12) if n // 2 != wrong]
    assert [row["offset"] for row in rows if not row["corruption"]] == left
    assert offsets_of(folder, mode="DROPMALFORMED") == left
    (row,) = read_rows(folder, kind="corruption")
    assert (row["position"], row["length"]) == (position, len(log[wrong]))
