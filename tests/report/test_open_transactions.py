"""An open transaction hangs if its coordinator has ended it or does not know its producer."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.report import internal_topics
from kafkajit.report.take import HEADERS, ReportOptions, take

ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, COMPLETE_ABORT = 1, 2, 4, 5
HOUR = 3_600_000
NOW = 1_700_000_000_000
PARTITIONS = 50


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def state(
    producer: int,
    status: int,
    parts: dict[str, list[int]] | None = None,
    transactional_id: str = "copier",
) -> kt.Record:
    """A record of __transaction_state, version 0."""
    partitions = b"".join(
        text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in (parts or {}).items()
    )
    value = struct.pack(">hqhib", 0, producer, 0, 60_000, status)
    value += struct.pack(">i", len(parts or {})) + partitions + struct.pack(">qq", NOW, NOW)
    return kt.Record(struct.pack(">h", 0) + text(transactional_id), value)


def coordinators(folder: Path, *records: kt.Record, partitions: int = PARTITIONS) -> None:
    for number in range(partitions):
        log = kt.batch(list(records), base_timestamp=NOW) if records and number == 7 else b""
        write_partition(folder, {0: log}, f"__transaction_state-{number}")


def open_log(timestamp: int = NOW, newer: int = NOW) -> bytes:
    """The transaction of producer 9 is open since offset 1."""
    fields: dict[str, Any] = {"producer_id": 9, "is_transactional": True}
    return (
        kt.batch([kt.Record(b"k", b"v")], base_timestamp=timestamp)
        + kt.batch([kt.Record(b"k", b"v")], base_offset=1, base_timestamp=timestamp, **fields)
        + kt.batch([kt.Record(b"k", b"v")], base_offset=2, base_timestamp=newer)
    )


def found(*paths: Path) -> tuple[str, str, str] | None:
    document = take(ReportOptions(tuple(map(str, paths)), depth=HEADERS, now=NOW + HOUR))
    every = [one for one in document["trouble"] if one["kind"] == "openTransaction"]
    if not every:
        return None
    (one,) = every
    return one["severity"], one["problem"].partition("offset 1")[2], one["advice"]


OPEN_HERE = {"orders": [1, 0], "other": [3]}
ABORT = "kafka-transactions.sh abort --topic orders --partition 0 --start-offset 1 ends it"


@pytest.mark.parametrize("status", [ONGOING, PREPARE_COMMIT])
def test_a_copy_of_old_records_is_alive_while_its_coordinator_has_it(
    tmp_path: Path, status: int
) -> None:
    coordinators(tmp_path, state(9, status, OPEN_HERE))
    write_partition(tmp_path, {0: open_log(timestamp=NOW - 1000 * HOUR)})
    name = {ONGOING: "Ongoing", PREPARE_COMMIT: "PrepareCommit"}[status]
    said = f": its coordinator has 'copier' as {name} since 2023-11-14 22:13:20"
    assert found(tmp_path) == (
        "note",
        said,
        "consumers with read_committed wait before it until its producer or its coordinator ends "
        "it",
    )


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([state(9, COMPLETE_ABORT)], "its coordinator has 'copier' as CompleteAbort since"),
        ([state(9, ONGOING, OPEN_HERE), state(9, COMPLETE_COMMIT)], "as CompleteCommit since"),
        ([state(9, ONGOING, {"orders": [1]})], "its coordinator has 'copier' as Ongoing since"),
        ([state(8, ONGOING, OPEN_HERE)], "no coordinator knows its producer"),
        ([], "no coordinator knows its producer"),
    ],
)
def test_a_transaction_that_its_coordinator_will_not_end_hangs(
    tmp_path: Path, records: list[kt.Record], why: str
) -> None:
    coordinators(tmp_path, *records)
    write_partition(tmp_path, {0: open_log()})
    severity, problem, advice = found(tmp_path) or ("", "", "")
    assert severity == "warning"
    assert problem.startswith(", and hangs unless the files were copied at different times: ")
    assert why in problem
    assert ABORT in advice
    assert "if kafka-transactions.sh find-hanging lists it too" in advice


def unknown_producer_of_a_share(folder: Path) -> None:
    coordinators(folder, partitions=PARTITIONS - 1)


def no_coordinator(folder: Path) -> None:
    del folder


def damaged_end(folder: Path) -> None:
    coordinators(folder, state(9, COMPLETE_ABORT))
    log = folder / "__transaction_state-7" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + b"\xff" * 100)


def damaged_record(folder: Path) -> None:
    """The newest state, of which a report of headers alone checks no checksum."""
    coordinators(folder)
    old = kt.batch([state(9, COMPLETE_COMMIT)], base_timestamp=NOW)
    new = bytearray(kt.batch([state(9, ONGOING, OPEN_HERE)], base_offset=1, base_timestamp=NOW))
    new[-20] ^= 1
    (folder / "__transaction_state-7" / f"{0:020}.log").write_bytes(old + bytes(new))


def lost_first_segment(folder: Path) -> None:
    coordinators(folder)
    (folder / "__transaction_state-7" / f"{0:020}.log").rename(
        folder / "__transaction_state-7" / f"{5:020}.log"
    )


def record_of_the_future(folder: Path) -> None:
    coordinators(folder, kt.Record(struct.pack(">h", 0) + text("x"), struct.pack(">h", 99)))


def state_of_the_future(folder: Path) -> None:
    coordinators(folder, state(9, 99))


def two_clusters(folder: Path) -> None:
    coordinators(folder / "other", state(9, COMPLETE_ABORT))
    for where, cluster in ((folder, "a"), (folder / "other", "b")):
        (where / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster}\n")


def perhaps_two_clusters(folder: Path) -> None:
    two_clusters(folder)
    (folder / "meta.properties").unlink()


@pytest.mark.parametrize(
    "make",
    [
        *(unknown_producer_of_a_share, no_coordinator, lost_first_segment),
        *(damaged_end, damaged_record, record_of_the_future, state_of_the_future),
        *(two_clusters, perhaps_two_clusters),
    ],
)
def test_nothing_is_guessed_where_coordinators_are_unknown(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path)
    paths = [path for path in (tmp_path, tmp_path / "other") if path.exists()]
    write_partition(tmp_path, {0: open_log()})
    waits = (
        "consumers with read_committed wait before it until its producer ends it, or the "
        "coordinator after transaction.timeout.ms; kafka-transactions.sh find-hanging tells "
        "whether it hangs"
    )
    assert found(*paths) == ("note", "", waits)
    write_partition(tmp_path, {0: open_log(newer=NOW + HOUR)})
    severity, problem, advice = found(*paths) or ("", "", "")
    assert (severity, problem) == ("warning", ": the log has much newer records, so it may hang")
    assert "find-hanging" in advice
    assert "abort" not in advice


@pytest.mark.parametrize("where", ["same segment", "next segment"])
def test_a_transaction_that_ends_before_its_coordinator_is_asked_is_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    coordinators(tmp_path, state(9, COMPLETE_COMMIT))
    folder = write_partition(tmp_path, {0: open_log()})
    ask = internal_topics.InternalTopics.coordinators

    def end(topics: internal_topics.InternalTopics) -> Any:
        marker = kt.control_batch(1, base_offset=3, producer_id=9)
        name = {"same segment": 0, "next segment": 3}[where]
        with (folder / f"{name:020}.log").open("ab") as log:
            log.write(marker)
        return ask(topics)

    monkeypatch.setattr(internal_topics.InternalTopics, "coordinators", end)
    assert found(tmp_path) is None


def test_the_old_id_of_a_producer_has_the_state_of_its_new_one(tmp_path: Path) -> None:
    # Version 1 has previousProducerId as a tagged field.
    value = struct.pack(">hqhibB", 1, 10, 0, 60_000, COMPLETE_COMMIT, 1)
    value += struct.pack(">qqBBBq", NOW, NOW, 1, 0, 8, 9)
    record = kt.Record(struct.pack(">h", 0) + text("copier"), value)
    coordinators(tmp_path, record, partitions=8)
    write_partition(tmp_path, {0: open_log()})
    severity, problem, _ = found(tmp_path) or ("", "", "")
    assert severity == "warning"
    assert "'copier' as CompleteCommit" in problem


def test_a_copy_that_is_behind_does_not_hang(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=a\n")
        write_partition(tmp_path / name, {0: open_log()})
    coordinators(tmp_path / "one", state(9, COMPLETE_COMMIT))
    marker = kt.control_batch(1, base_offset=3, producer_id=9)
    write_partition(tmp_path / "two", {0: open_log() + marker})
    severity, problem, advice = found(tmp_path / "one", tmp_path / "two") or ("", "", "")
    assert (severity, problem) == ("note", ": another copy has its marker")
    assert "abort" not in advice


def test_a_folder_that_is_not_named_after_a_partition_is_unknown_to_coordinators(
    tmp_path: Path,
) -> None:
    coordinators(tmp_path, state(9, COMPLETE_ABORT))
    folder = write_partition(tmp_path / "x", {0: open_log()})
    folder.rename(tmp_path / "snapshot")
    severity, _, advice = found(tmp_path, tmp_path / "snapshot") or ("", "", "")
    assert severity == "note"
    assert "abort" not in advice


def test_an_unread_folder_of_others_does_not_matter(tmp_path: Path) -> None:
    coordinators(tmp_path, state(9, COMPLETE_ABORT))
    write_partition(tmp_path, {0: open_log()})
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / f"{0:020}.log").write_bytes(open_log())
    document = take(ReportOptions((str(tmp_path),), depth=HEADERS, now=NOW + HOUR))
    assert [one["kind"] for one in document["trouble"]] == ["unreadable", "openTransaction"]
    assert document["trouble"][1]["severity"] == "warning"


def test_a_log_that_cannot_be_looked_at_again_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinators(tmp_path, state(9, COMPLETE_COMMIT))
    write_partition(tmp_path, {0: open_log()})

    def refuse(*_: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr("kafkajit.report.open_transactions.listed_again", refuse)
    severity, problem, _ = found(tmp_path) or ("", "x", "")
    assert (severity, problem) == ("note", "")


def marker(offset: int) -> bytes:
    return kt.control_batch(1, base_offset=offset, producer_id=9)


def test_only_a_marker_in_a_copy_tells_that_a_transaction_has_ended(tmp_path: Path) -> None:
    write_partition(tmp_path / "a", {0: open_log()})
    write_partition(tmp_path / "b", {0: open_log() + marker(3)})
    _, problem, _ = found(tmp_path / "a", tmp_path / "b") or ("", "", "")
    assert problem == ": another copy has its marker"
    other = b"".join(kt.batch([kt.Record(b"k", b"v")], base_offset=at) for at in range(4))
    (tmp_path / "b" / "orders-0" / f"{0:020}.log").write_bytes(other)
    _, problem, _ = found(tmp_path / "a", tmp_path / "b") or ("", "", "")
    assert problem == ""


@pytest.mark.parametrize("offset", [3, 5], ids=["damaged", "missing"])
def test_a_marker_may_have_been_where_the_log_has_damage(tmp_path: Path, offset: int) -> None:
    coordinators(tmp_path, state(9, COMPLETE_COMMIT))
    damage = bytes(len(marker(3))) if offset == 3 else b""
    behind = kt.batch([kt.Record(b"k", b"v")], base_offset=offset + 1)
    parts = {0: open_log() + damage + behind} if damage else {0: open_log(), offset + 1: behind}
    write_partition(tmp_path, parts)
    severity, problem, advice = found(tmp_path) or ("", "", "")
    assert severity == "warning"
    assert problem == ": its marker may have been among the offsets that are damaged or missing"
    assert "abort" not in advice


def test_a_damaged_batch_begins_and_ends_no_transaction(tmp_path: Path) -> None:
    coordinators(tmp_path)
    log = bytearray(open_log() + marker(3))
    log[len(kt.batch([kt.Record(b"k", b"v")])) + 45] ^= 1  # of the producer id
    write_partition(tmp_path, {0: bytes(log)})
    document = take(ReportOptions((str(tmp_path),), depth=HEADERS, now=NOW + HOUR))
    assert [one["kind"] for one in document["trouble"]] == ["corruption"]


@pytest.mark.parametrize(("timestamp", "newer"), [(-1, NOW), (NOW + HOUR, NOW + 9 * HOUR)])
def test_no_time_makes_a_transaction_old(tmp_path: Path, timestamp: int, newer: int) -> None:
    write_partition(tmp_path, {0: open_log(timestamp, newer)})
    severity, problem, _ = found(tmp_path) or ("", "x", "")
    assert (severity, problem) == ("note", "")


@pytest.mark.parametrize("newest", ["a", "b"])
def test_the_newest_copy_of_a_coordinators_log_counts(tmp_path: Path, newest: str) -> None:
    for name in ("a", "b"):
        write_partition(tmp_path / name, {0: open_log()})
        states = [state(9, COMPLETE_COMMIT), state(9, ONGOING, OPEN_HERE)]
        coordinators(tmp_path / name, *states[: 1 + (name == newest)])
        properties = "version=1\nnode.id=1\ncluster.id=c\n"  # coordinators of one cluster count
        (tmp_path / name / "meta.properties").write_text(properties)
    document = take(
        ReportOptions((str(tmp_path / "a"), str(tmp_path / "b")), depth=HEADERS, now=NOW + HOUR)
    )
    severities = [one["severity"] for one in document["trouble"]]
    assert severities == ["note", "note"]


def test_damage_in_another_copy_has_not_the_marker(tmp_path: Path) -> None:
    coordinators(tmp_path / "a", state(9, COMPLETE_COMMIT))
    write_partition(tmp_path / "a", {0: open_log()})
    plain = b"".join(kt.batch([kt.Record(b"k", b"v")], base_offset=at) for at in range(2))
    behind = kt.batch([kt.Record(b"k", b"v")], base_offset=4)
    write_partition(tmp_path / "b", {0: plain + bytes(len(behind)) + behind})
    for name in ("a", "b"):
        (tmp_path / name / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    severity, problem, advice = found(tmp_path / "a", tmp_path / "b") or ("", "", "")
    assert (severity, ABORT in advice) == ("warning", True), problem


def test_a_coordinator_that_will_end_a_transaction_does_so_beside_damage(tmp_path: Path) -> None:
    coordinators(tmp_path, state(9, ONGOING, OPEN_HERE))
    write_partition(tmp_path, {0: open_log() + bytes(100) + marker(4)[:-1]})
    severity, problem, _ = found(tmp_path) or ("", "", "")
    assert severity == "note"
    assert "'copier' as Ongoing" in problem
