"""The rows of read_committed are those of a real consumer with that isolation level."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scanning import (
    FOLDERS,
    by_folder,
    copied,
    far_away,
    logs_of,
    offsets_of,
    plan_of,
    read_rows,
    table_rows,
    write_partition,
    write_transaction_indexes,
)
from strategies import transactional_logs

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.format.ranges import ALL
from kafkajit.log.isolation import find_isolation
from kafkajit.places.locations import stored_file
from kafkajit.scan.predicates import Predicate

COMMITTED: dict[str, Any] = {"isolationLevel": "read_committed"}
TRANSACTIONAL = [folder for folder in FOLDERS if any(folder.glob("*.txnindex"))]
by_transactional_folder = pytest.mark.parametrize(
    "folder", TRANSACTIONAL, ids=lambda folder: folder.name
)
by_place = pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])
by_mode = pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])


def committed_in(folder: Path) -> list[dict[str, Any]]:
    path = kafkajit.parse_log_path(logs_of(folder)[0])
    assert path.topic is not None
    assert path.partition is not None
    logs = [log.read_bytes() for log in logs_of(folder)]
    return table_rows(reference.committed_rows(logs), path.topic, path.partition)


@by_folder
def test_a_folders_committed_rows_are_those_of_a_consumer(folder: Path) -> None:
    expected = committed_in(folder)
    assert read_rows(folder, **COMMITTED) == expected
    assert read_rows(folder, maxPartitionBytes=1, **COMMITTED) == expected


def test_the_corpus_has_transactions() -> None:
    assert len(TRANSACTIONAL) >= 6
    kinds = {"transactions-0", "transactions-open-0", "transactions-segments-0"}
    assert kinds <= {folder.name for folder in TRANSACTIONAL}


# What tests/broker/Traffic.java wrote.


def test_what_was_aborted_over_several_segments_is_not_seen() -> None:
    folder = next(folder for folder in FOLDERS if folder.name == "transactions-segments-0")
    keys = [row["key"] for row in read_rows(folder, **COMMITTED)]
    assert keys == [b"outside", b"commit"] * 4 + [b"outside"] * 2
    assert keys.count(b"abort") == 0


def test_nothing_is_seen_from_a_hanging_transaction_on() -> None:
    folder = next(folder for folder in FOLDERS if folder.name == "transactions-open-0")
    assert offsets_of(folder, **COMMITTED) == [0, 1]


def test_interleaved_transactions_end_each_on_its_own() -> None:
    folder = next(folder for folder in FOLDERS if folder.name == "transactions-0")
    assert offsets_of(folder, **COMMITTED) == [0, 1, 2, 7, 8, 9, 10, 14, 18]


def without_indexes(folder: Path) -> None:
    for index in folder.glob("*.txnindex"):
        index.unlink()


def with_an_empty_index_where_there_is_none(folder: Path) -> None:
    for log in logs_of(folder):
        log.with_suffix(".txnindex").touch()


@by_place
@by_transactional_folder
@pytest.mark.parametrize("change", [without_indexes, with_an_empty_index_where_there_is_none])
def test_markers_and_indexes_say_the_same(
    folder: Path, change: Any, is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = copied(folder, tmp_path)
    change(changed)
    location = far_away(monkeypatch, changed) if is_far else str(changed)
    for least in (1, 300, 10**6):
        assert read_rows(location, maxPartitionBytes=least, **COMMITTED) == committed_in(folder)


WRONG_INDEXES = {
    "of another log": [(9_999, 0, 1)],
    "that ends at a COMMIT": [(5, 4, 5)],
    "that begins in the transaction before": [(5, 0, 3)],
    "that begins too late": [(5, 3, 3)],
    "of another producer": [(6, 2, 3)],
}


@by_mode
@by_place
@pytest.mark.parametrize("kind", WRONG_INDEXES)
def test_the_markers_are_believed_if_an_index_contradicts_them(
    kind: str,
    mode: str,
    is_far: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    parts = [data_of(5, 0), marker_of(5, 1, 1), data_of(5, 2), marker_of(5, 3)]
    parts += [data_of(5, 4), marker_of(5, 5, 1)]
    folder = write_partition(tmp_path, {0: b"".join(parts)})
    index = folder / "00000000000000000000.txnindex"
    index.write_bytes(
        b"".join(reference.AbortedTransaction(*row, 0, 0).encode() for row in WRONG_INDEXES[kind])
    )
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    assert offsets_of(location, mode=mode, **COMMITTED) == [0, 4]
    (warning,) = caplog.messages
    assert f"{index.name} contradicts the markers in the log" in warning


def test_entries_behind_the_log_and_of_a_cleaned_log_are_no_contradiction(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parts = [data_of(5, 2), marker_of(5, 3), marker_of(6, 5), data_of(7, 6), marker_of(7, 7)]
    folder = write_partition(tmp_path, {2: b"".join(parts)})
    entries = [
        (5, 0, 3),  # its first batch was removed by a cleaner
        (6, 4, 5),  # all of its batches
        (7, 6, 7),
        (8, 8, 9),  # a broker has written it since
    ]
    (folder / "00000000000000000002.txnindex").write_bytes(
        b"".join(reference.AbortedTransaction(*entry, 0, 0).encode() for entry in entries)
    )
    assert offsets_of(folder, **COMMITTED) == []
    assert caplog.messages == []


@given(st.data())
def test_no_index_changes_what_is_read_of_a_sound_log(data: st.DataObject) -> None:
    segments = data.draw(transactional_logs())
    numbers = st.integers(-1, 60)
    with TemporaryDirectory() as root:
        folder = write_partition(Path(root), segments)
        write_transaction_indexes(folder)
        for log in logs_of(folder):
            index = log.with_suffix(".txnindex")
            content = index.read_bytes() if index.exists() else b""
            entries = [content[at : at + 34] for at in range(0, len(content), 34)]
            kept = [entry for entry in entries if data.draw(st.booleans())]
            rows = data.draw(st.lists(st.tuples(st.integers(1, 3), numbers, numbers), max_size=3))
            kept += [reference.AbortedTransaction(*row, 0, 0).encode() for row in rows]
            index.write_bytes(b"".join(data.draw(st.permutations(kept))))
        expected = [row["offset"] for row in committed_in(folder)]
        for mode in ("FAILFAST", "PERMISSIVE"):
            assert offsets_of(folder, mode=mode, **COMMITTED) == expected


@by_place
def test_an_empty_index_says_nothing(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = next(folder for folder in TRANSACTIONAL if folder.name == "transactions-0")
    changed = copied(folder, tmp_path)
    (changed / "00000000000000000000.txnindex").write_bytes(b"")
    location = far_away(monkeypatch, changed) if is_far else str(changed)
    assert offsets_of(location, **COMMITTED) == offsets_of(folder, **COMMITTED)


BAD_INDEXES = {
    "cut": (lambda index: index[:-1], r"of 101 bytes is not made of entries of 34"),
    "with one byte more": (lambda index: index + b"\0", "of 103 bytes is not made of entries"),
    "of an unknown version": (
        lambda index: index[:34] + b"\0\x07" + index[36:],
        r"Unexpected aborted transaction version 7 \(entry 1\) at position 34",
    ),
}


@by_place
@pytest.mark.parametrize("kind", BAD_INDEXES)
def test_a_bad_index_is_a_named_error(
    kind: str, is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = next(folder for folder in TRANSACTIONAL if folder.name == "transactions-0")
    changed = copied(folder, tmp_path)
    index = changed / "00000000000000000000.txnindex"
    change, message = BAD_INDEXES[kind]
    index.write_bytes(change(index.read_bytes()))
    location = far_away(monkeypatch, changed) if is_far else str(changed)
    with pytest.raises(kafkajit.CorruptIndexError, match=message) as caught:
        read_rows(location, **COMMITTED)
    assert caught.value.path == f"{location}/{index.name}"
    assert offsets_of(location) == list(range(25))  # this needs no index


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("kind", BAD_INDEXES)
def test_past_a_bad_index_the_markers_say_the_same(
    kind: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = next(folder for folder in TRANSACTIONAL if folder.name == "transactions-0")
    changed = copied(folder, tmp_path)
    index = changed / "00000000000000000000.txnindex"
    change, message = BAD_INDEXES[kind]
    index.write_bytes(change(index.read_bytes()))
    expected = [row["offset"] for row in committed_in(folder)]
    assert offsets_of(changed, mode=mode, **COMMITTED) == expected
    assert re.search(f"{message}.* in {index}", caplog.text)


@given(st.data())
def test_any_interleaving_is_seen_as_a_consumer_sees_it(data: st.DataObject) -> None:
    segments = data.draw(transactional_logs())
    first, last = data.draw(st.tuples(st.integers(0, 30), st.integers(0, 60)))
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as monkeypatch:
        folder = write_partition(Path(root), segments)
        if data.draw(st.booleans()):
            write_transaction_indexes(folder)
        location = far_away(monkeypatch, folder) if data.draw(st.booleans()) else str(folder)
        expected = [row["offset"] for row in committed_in(folder)]
        options = COMMITTED | {
            "mode": data.draw(st.sampled_from(["FAILFAST", "PERMISSIVE"])),
            "maxPartitionBytes": data.draw(st.sampled_from([1, 200, 10**6])),
        }
        assert offsets_of(location, **options) == expected
        some = [Predicate("offset", ">=", first), Predicate("offset", "<", last)]
        assert offsets_of(location, predicates=some, **options) == [
            offset for offset in expected if first <= offset < last
        ]
        for log in logs_of(folder)[-1:]:  # a part of the log: the rest is read for its markers
            assert offsets_of(log, **options) == [
                offset for offset in expected if offset >= int(log.stem)
            ]


@given(transactional_logs())
def test_committed_batches_are_those_of_committed_rows(segments: dict[int, bytes]) -> None:
    with TemporaryDirectory() as root:
        folder = write_partition(Path(root), segments)
        batches = read_rows(folder, kind="batches", **COMMITTED)
        rows = committed_in(folder)
    assert [row["baseOffset"] for row in batches] == sorted({row["baseOffset"] for row in rows})


def aborted_and_open(folder: Path, mode: str = "FAILFAST") -> tuple[list[tuple[int, ...]], Any]:
    logs = [stored_file(str(log)) for log in logs_of(folder)]
    aborted, first_open = find_isolation([(log, None, ALL) for log in logs], mode)
    return list(zip(*(column.tolist() for column in aborted), strict=True)), first_open


@by_transactional_folder
def test_aborted_transactions_are_those_that_the_broker_wrote_down(folder: Path) -> None:
    entries = []
    for index in sorted(folder.glob("*.txnindex")):
        content = index.read_bytes()
        entries += [
            struct.unpack_from(">qqq", content, at + 2) for at in range(0, len(content), 34)
        ]
    found, _ = aborted_and_open(folder)
    # A transaction may be unknown if the cleaner has removed all of its records.
    is_compacted = folder.name == "compacted-transactions-0"
    assert set(found) < set(entries) if is_compacted else sorted(found) == sorted(entries)


def data_of(producer_id: int, base_offset: int, **fields: Any) -> bytes:
    return kt.batch(
        [kt.Record(value=b"v")],
        base_offset=base_offset,
        is_transactional=True,
        producer_id=producer_id,
        **fields,
    )


def marker_of(producer_id: int, base_offset: int, control_type: int = 0) -> bytes:
    return kt.control_batch(control_type, producer_id=producer_id, base_offset=base_offset)


BAD_MARKERS = {
    "with a wrong checksum": (lambda marker: marker[:-1] + b"\x01", "Record is corrupt"),
    "without a type": (
        lambda _: kt.batch(
            [kt.Record(key=b"\0\0")],
            base_offset=1,
            is_transactional=True,
            is_control=True,
            producer_id=1,
        ),
        "Must have at least 4 bytes, but found only 2",
    ),
    "with too many records": (
        lambda marker: kt.repair_crc(marker[:57] + b"\0\0\0\x05" + marker[61:]),
        "Incorrect declared batch size",
    ),
}


@pytest.mark.parametrize("kind", BAD_MARKERS)
def test_a_bad_marker_is_an_error_where_the_query_is_planned(kind: str, tmp_path: Path) -> None:
    change, message = BAD_MARKERS[kind]
    folder = write_partition(tmp_path, {0: data_of(1, 0) + change(marker_of(1, 1))})
    with pytest.raises(kafkajit.KafkaJitError, match=message) as caught:
        plan_of(folder, **COMMITTED)
    assert caught.value.position == len(data_of(1, 0))
    assert caught.value.path == str(logs_of(folder)[0])


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("kind", BAD_MARKERS)
def test_in_the_lenient_modes_a_bad_marker_ends_a_transaction_and_aborts_nothing(
    kind: str, mode: str, tmp_path: Path
) -> None:
    change, _ = BAD_MARKERS[kind]
    parts = [data_of(1, 0), change(marker_of(1, 1)), data_of(1, 2), marker_of(1, 3), data_of(2, 4)]
    folder = write_partition(tmp_path, {0: b"".join([*parts, marker_of(2, 5, 1)])})
    assert aborted_and_open(folder, mode) == ([(1, 2, 3)], None)
    assert offsets_of(folder, mode=mode, **COMMITTED) == [0, 4]


PLAIN = kt.batch([kt.Record()], base_offset=2)


@pytest.mark.parametrize("kind", BAD_MARKERS)
@pytest.mark.parametrize("first", [b"", data_of(1, 0)], ids=["alone", "of a transaction"])
def test_in_the_lenient_modes_a_bad_marker_is_reported(
    kind: str, first: bytes, tmp_path: Path
) -> None:
    change, message = BAD_MARKERS[kind]
    folder = write_partition(tmp_path, {0: first + change(marker_of(1, 1)) + PLAIN})
    rows = read_rows(folder, columns=["offset", "corruption"], mode="PERMISSIVE", **COMMITTED)
    assert [row["offset"] for row in rows] == [*range(bool(first)), None, 2]
    gap = rows[-2]["corruption"]
    assert message in gap["reason"]
    assert gap["position"] == len(first)


def hidden_by_one_bit(position: int, bit: int) -> bytes:
    """A committed batch of producer 3 with a bit of its header flipped."""
    batch = bytearray(data_of(3, 1))
    batch[position] ^= bit
    return bytes(batch)


@pytest.mark.parametrize(
    "bad",
    [hidden_by_one_bit(22, 0x20), hidden_by_one_bit(50, 2)],
    ids=["as a marker", "as another producer's"],
)
def test_a_batch_that_damage_hides_from_consumers_is_damage(bad: bytes, tmp_path: Path) -> None:
    parts = [
        data_of(1, 0),
        bad,
        marker_of(3, 2, 1),
        marker_of(1, 3),
        kt.batch([kt.Record()], base_offset=4),
    ]
    folder = write_partition(tmp_path, {0: b"".join(parts)})
    rows = read_rows(folder, columns=["offset", "corruption"], mode="PERMISSIVE", **COMMITTED)
    assert [row["offset"] for row in rows] == [None, 4]
    with pytest.raises(kafkajit.CorruptRecordError, match="Record is corrupt"):
        read_rows(folder, **COMMITTED)


def with_bit(batch: bytes, position: int, bit: int) -> bytes:
    changed = bytearray(batch)
    changed[position] ^= bit
    return bytes(changed)


def plain(base_offset: int, count: int = 5) -> bytes:
    return kt.batch([kt.Record()] * count, base_offset=base_offset)


# Damage that makes a transaction seem to be open, and the offsets of the sound records.
SEEM_OPEN = {
    "a plain batch": (
        [plain(0), with_bit(plain(5), 22, 0x10), plain(10)],
        [*range(5), *range(10, 15)],
    ),
    "data of another producer": (
        [with_bit(data_of(1, 0), 50, 2), plain(1), marker_of(1, 6, 1), plain(7)],
        [*range(1, 6), *range(7, 12)],
    ),
    "in a transaction that is open": (
        [plain(0), with_bit(data_of(1, 5), 50, 2), data_of(2, 6), with_bit(data_of(2, 7), 22, 2)],
        [*range(5)],
    ),
}


@pytest.mark.parametrize("kind", SEEM_OPEN)
def test_damage_that_makes_a_transaction_seem_open_hides_nothing(kind: str, tmp_path: Path) -> None:
    batches, sound = SEEM_OPEN[kind]
    folder = write_partition(tmp_path, {0: b"".join(batches)})
    assert offsets_of(folder, mode="DROPMALFORMED", **COMMITTED) == sound
    rows = read_rows(folder, columns=["offset", "corruption"], mode="PERMISSIVE", **COMMITTED)
    assert [row["offset"] for row in rows if row["corruption"] is None] == sound
    assert len(rows) > len(sound)
    with pytest.raises(kafkajit.KafkaJitError):
        offsets_of(folder, **COMMITTED)


MAY_BE_OPEN = {
    "a marker as data": with_bit(marker_of(1, 11, 1), 22, 0x20),
    "a marker of another producer": with_bit(marker_of(1, 11, 1), 50, 2),
    "a marker that is gone": bytes(len(marker_of(1, 11, 1))),
}


@pytest.mark.parametrize("kind", MAY_BE_OPEN)
def test_records_behind_a_marker_that_damage_took_are_named(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    batches = [plain(0), data_of(1, 5), plain(6), MAY_BE_OPEN[kind], plain(12)]
    folder = write_partition(tmp_path, {0: b"".join(batches)})
    text = (
        "records from offset 5 on are left out: a transaction is open since then, and damage at "
        "offset 11 may have been its marker"
    )
    assert offsets_of(folder, mode="DROPMALFORMED", **COMMITTED) == [*range(5)]
    assert text in caplog.text
    words = [str(folder), "--isolation-level", "read_committed"]
    assert main(["grep", "-c", "zz", *words]) == 2
    assert text in capsys.readouterr().err
    out = ["-o", str(tmp_path / "out"), "--to", "jsonl", "--mode", "DROPMALFORMED"]
    assert main(["export", *words, *out]) != 0
    assert text in capsys.readouterr().err
    with pytest.raises(kafkajit.KafkaJitError):
        offsets_of(folder, **COMMITTED)


def test_bytes_at_the_end_end_no_transaction(tmp_path: Path) -> None:
    batches = [plain(0), data_of(1, 5), plain(6), marker_of(1, 11, 1)[:-9]]
    folder = write_partition(tmp_path, {0: b"".join(batches)})
    assert offsets_of(folder, mode="DROPMALFORMED", **COMMITTED) == [*range(5)]


def test_a_wrong_checksum_is_no_error_where_nobody_checks(tmp_path: Path) -> None:
    wrong = bytearray(marker_of(1, 1))
    wrong[17] ^= 1
    folder = write_partition(
        tmp_path, {0: data_of(1, 0) + wrong + data_of(2, 2) + marker_of(2, 3, 1)}
    )
    with pytest.raises(kafkajit.CorruptRecordError):
        offsets_of(folder, **COMMITTED)
    assert offsets_of(folder, checkCrcs=False, **COMMITTED) == [2]


def test_an_emptied_marker_ends_its_transaction(tmp_path: Path) -> None:
    emptied = kt.batch([], base_offset=1, is_transactional=True, is_control=True, producer_id=1)
    folder = write_partition(tmp_path, {0: data_of(1, 0) + emptied + data_of(-1, 2)})
    # A consumer does not see an ABORT marker in it either.
    assert offsets_of(folder, **COMMITTED) == [row["offset"] for row in committed_in(folder)]


def test_the_controllers_records_are_no_transactions() -> None:
    folder = next(folder for folder in FOLDERS if folder.name == "__cluster_metadata-0")
    assert aborted_and_open(folder) == ([], None)
    data = [row for row in read_rows(folder) if row["controlType"] is None]
    assert read_rows(folder, **COMMITTED) == data
    assert len(data) < len(read_rows(folder))


def test_markers_that_end_nothing_abort_nothing(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: marker_of(1, 0) + marker_of(1, 1) + marker_of(2, 2, 1)})
    assert aborted_and_open(folder) == ([], None)


def test_no_segments_have_no_transactions() -> None:
    aborted, first_open = find_isolation([], "FAILFAST")
    assert (aborted.producer_id.size, first_open) == (0, None)


def test_a_transaction_is_ended_in_a_segment_that_nobody_asked_for(tmp_path: Path) -> None:
    folder = write_partition(
        tmp_path, {0: data_of(1, 0), 1: data_of(2, 1), 2: marker_of(1, 2) + marker_of(2, 3, 1)}
    )
    first, second, _ = logs_of(folder)
    assert offsets_of(first, second, **COMMITTED) == [1]
    assert offsets_of(first, **COMMITTED) == []
    assert offsets_of(folder, pathGlobFilter="*1.log", **COMMITTED) == [1]
