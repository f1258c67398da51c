"""The document of a report: every figure has its source, and trouble is listed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.report import take as module
from kafkajit.report.take import ALL, HEADERS, SAMPLE, ReportOptions, take

NOW = 1_700_000_000_000
DAY = 86_400_000


def document_of(*paths: Path | str, **options: Any) -> dict[str, Any]:
    document = take(ReportOptions(tuple(map(str, paths)), **{"now": NOW, **options}))
    # It is JSON, without NaN.
    found: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return found


def log(first: int, count: int = 1, timestamp: int = NOW, **fields: Any) -> bytes:
    records = [kt.Record(key=b"k%d" % at, value=b"value" * 10) for at in range(count)]
    return kt.batch(records, base_offset=first, base_timestamp=timestamp, **fields)


def kinds(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["severity"], each["kind"]) for each in document["trouble"]]


def test_totals_are_the_sums_of_topics(tmp_path: Path) -> None:
    for number in range(3):
        write_partition(tmp_path, {0: log(0, 5), 5: log(5, 2)}, f"orders-{number}")
    write_partition(tmp_path, {0: log(0)}, "payments-0")
    found = document_of(tmp_path)
    assert found["totals"] == {
        "topics": 2,
        "partitions": 4,
        "segments": 7,
        "bytes": sum(path.stat().st_size for path in tmp_path.rglob("*.log")),
        "bytesOnDisk": sum(path.stat().st_size for path in tmp_path.rglob("*.log")),
        "otherBytes": 0,
        "otherBytesOnDisk": 0,
        "records": 22,
        "batches": 7,
        "firstTimestamp": NOW,
        "lastTimestamp": NOW,
    }
    for name in ("partitions", "segments", "bytes", "records", "batches"):
        assert sum(topic[name] for topic in found["topics"]) == found["totals"][name]
    assert [topic["topic"] for topic in found["topics"]] == ["orders", "payments"]


def test_a_folder_that_is_not_named_after_a_topic_stands_for_one(tmp_path: Path) -> None:
    for name in ("copy", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").write_bytes(log(0) + b"\xff" * 50)
    found = document_of(tmp_path / "copy", tmp_path / "other")
    assert [topic["topic"] for topic in found["topics"]] == ["copy", "other"]
    assert [one["topic"] for one in found["trouble"]] == ["copy", "other"]
    assert found["topics"][0]["eachPartition"][0]["partition"] is None


def test_headers_alone_give_no_sample(tmp_path: Path) -> None:
    found = document_of(write_partition(tmp_path, {0: log(0)}), depth=HEADERS)
    assert found["takenFrom"]["sample"] is None
    assert found["takenFrom"]["headers"]["batches"] == 1
    (topic,) = found["topics"]
    assert topic["sample"] is None
    assert topic["savings"]["encodings"] == []


def test_the_size_of_a_sample_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.report.headers._MARK", 100)
    monkeypatch.setattr(module, "_SAMPLE_BYTES", 1000)
    monkeypatch.setattr(module, "_LEAST_SAMPLE", 1000)
    content = b"".join(log(number) for number in range(100))
    folder = write_partition(tmp_path, {0: content})
    found = document_of(folder)
    sample = found["takenFrom"]["sample"]
    assert (sample["ofRecords"], sample["ofBytes"]) == (100, len(content))
    assert 0 < sample["records"] < 20
    assert sample["bytes"] == sample["records"] * len(log(0))
    assert document_of(folder, depth=ALL)["takenFrom"]["sample"]["records"] == 100


def test_a_small_share_of_small_segments_is_a_few_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SAMPLE_BYTES", 0)
    write_partition(tmp_path, {number: log(number) for number in range(50)})
    (topic,) = document_of(tmp_path)["topics"]
    assert topic["sample"]["records"] == module._LEAST_PARTS


def test_a_small_folder_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_partition(tmp_path, {number: log(number) for number in range(100)})
    write_partition(tmp_path, {0: log(0)}, "other-0")
    assert document_of(tmp_path)["takenFrom"]["sample"]["records"] == 101
    assert document_of(tmp_path)["takenFrom"]["dryRuns"]["partitions"] == 2
    monkeypatch.setattr(module, "_WHOLE_SEGMENTS", 50)
    assert document_of(tmp_path)["takenFrom"]["sample"]["records"] < 101
    assert document_of(tmp_path)["takenFrom"]["dryRuns"] is None


def test_encodings_are_measured_on_the_same_records(tmp_path: Path) -> None:
    content = b"".join(log(number * 5, 5) for number in range(40))
    (topic,) = document_of(write_partition(tmp_path, {0: content}))["topics"]
    savings = topic["savings"]
    assert savings["sample"] == {"records": 200, "bytes": len(content)}
    by_encoding = {
        (one["codec"], one["level"], one["batchBytes"]): one for one in savings["encodings"]
    }
    assert len(by_encoding) == 21
    assert by_encoding["zstd", 3, 16384]["bytes"] < by_encoding["none", None, 16384]["bytes"]
    assert by_encoding["none", None, 1 << 20]["bytes"] < len(content)  # one header, not forty
    assert all(one["encodeSeconds"] >= 0 for one in savings["encodings"])


def test_retention_frees_whole_segments_and_never_the_last(tmp_path: Path) -> None:
    old, newer = log(0, timestamp=NOW - 10 * DAY), log(1, timestamp=NOW - 2 * DAY)
    last = log(2, timestamp=NOW - 20 * DAY)
    (topic,) = document_of(write_partition(tmp_path, {0: old, 1: newer, 2: last}))["topics"]
    freed = {one["days"]: one["bytes"] for one in topic["savings"]["retention"]}
    assert freed[1] == len(old) + len(newer)
    assert freed[7] == len(old)
    assert freed[14] == 0


def test_retention_of_records_without_timestamps_goes_by_their_files(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {n: log(n, timestamp=-1) for n in range(3)})
    for path, days in zip(sorted(folder.glob("*.log")), (10, 2, 0), strict=True):
        os.utime(path, (NOW / 1000 - days * 86_400,) * 2)
    (topic,) = document_of(tmp_path)["topics"]
    freed = {each["days"]: each["bytes"] for each in topic["savings"]["retention"]}
    size = len(log(0, timestamp=-1))
    assert (freed[1], freed[3], freed[14]) == (2 * size, size, 0)


def test_damage_comes_first_with_its_place(tmp_path: Path) -> None:
    good = log(0)
    write_partition(tmp_path, {0: good + b"\xff" * 50 + log(1)}, "orders-0")
    write_partition(tmp_path, {0: log(0, 3), 2: log(2)}, "orders-1")
    (tmp_path / "orders-1" / f"{0:020}.log.deleted").write_bytes(b"old")
    found = document_of(tmp_path)
    assert kinds(found) == [("damage", "corruption"), ("damage", "overlap"), ("note", "leftover")]
    first = found["trouble"][0]
    assert (first["topic"], first["partition"]) == ("orders", 0)
    assert (first["position"], first["length"]) == (len(good), 50)


@pytest.mark.parametrize(("depth", "count"), [(HEADERS, 0), (SAMPLE, 1), (ALL, 1)])
def test_a_batch_with_a_wrong_checksum_is_damage_if_its_records_are_read(
    depth: str, count: int, tmp_path: Path
) -> None:
    content = bytearray(b"".join(log(number) for number in range(5)))
    content[2 * len(log(0)) + 80] ^= 1
    found = document_of(write_partition(tmp_path, {0: bytes(content)}), depth=depth)
    damage = [one for one in found["trouble"] if one["severity"] == "damage"]
    where = (2 * len(log(0)), len(log(0)), "orders", 0)
    names = ("position", "length", "topic", "partition")
    assert [tuple(one[name] for name in names) for one in damage] == [where] * count


def test_damage_is_listed_once(tmp_path: Path) -> None:
    size = len(log(0))
    wrong = log(1)[:-1] + b"?"
    content = log(0) + wrong + b"\xff" * 50 + log(2) + wrong + log(3)
    found = document_of(write_partition(tmp_path, {0: content}), depth=ALL)
    corruption = [one for one in found["trouble"] if one["kind"] == "corruption"]
    places = [(one["position"], one["length"]) for one in corruption]
    assert places == [(size, size + 50), (3 * size + 50, size)]


def test_an_index_that_does_not_fit_is_told(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: log(0)})
    (folder / f"{0:020}.index").write_bytes(kt.offset_index([(0, 77)]))
    found = document_of(tmp_path)
    assert kinds(found) == [("warning", "index")]
    assert found["takenFrom"]["indexes"] == {"checked": 1, "of": 1}


def test_of_many_indexes_some_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHECKED_INDEXES", 3)
    folder = write_partition(tmp_path, {number: log(number) for number in range(10)})
    for number in range(10):
        (folder / f"{number:020}.index").write_bytes(kt.offset_index([(0, 77)]))
    found = document_of(tmp_path)
    assert found["takenFrom"]["indexes"] == {"checked": 3, "of": 10}
    assert len(found["trouble"]) == 3
    assert len(document_of(tmp_path, depth=ALL)["trouble"]) == 10


def test_a_transaction_may_hang_after_a_quarter_of_an_hour(tmp_path: Path) -> None:
    begun = log(0, producer_id=7, is_transactional=True)
    write_partition(tmp_path, {0: begun + log(1, timestamp=NOW + 60_000)}, "orders-0")
    write_partition(tmp_path, {0: begun + log(1, timestamp=NOW + 3_600_000)}, "orders-1")
    found = document_of(tmp_path, now=NOW + 3_600_000)
    assert kinds(found) == [("warning", "openTransaction"), ("note", "openTransaction")]
    assert found["trouble"][0]["partition"] == 1
    assert "is open since offset 0: the log has much newer" in found["trouble"][0]["problem"]
    assert "find-hanging tells whether it hangs" in found["trouble"][0]["advice"]
    assert "until its producer ends it" in found["trouble"][1]["advice"]


def test_groups_have_their_newest_commits_and_lag() -> None:
    found = document_of(DATA / "internal", DATA / "v2", depth=HEADERS)
    if found["groups"] is None:
        pytest.fail("the corpus has __consumer_offsets")
    assert all(group["group"] and group["offset"] >= 0 for group in found["groups"])
    known = {
        (topic["topic"], partition["partition"]): partition["endOffset"]
        for topic in found["topics"]
        for partition in topic["eachPartition"]
    }
    for group in (one for one in found["groups"] if one["kind"] == "consumers"):
        end = known.get((group["topic"], group["partition"]))
        assert group["endOffset"] == end
        assert group["lag"] == (None if end is None else end - group["offset"])


def test_without_consumer_offsets_groups_are_unknown(tmp_path: Path) -> None:
    found = document_of(write_partition(tmp_path, {0: log(0)}))
    assert found["groups"] is None
    assert found["topics"][0]["groups"] is None


@pytest.mark.parametrize("folder", ["v2", "old", "damaged", "tiered", "written"])
@pytest.mark.parametrize("depth", [HEADERS, ALL])
def test_a_report_of_any_logs_can_be_made(folder: str, depth: str) -> None:
    found = document_of(DATA / folder, depth=depth)
    assert found["totals"]["bytes"] > 0
    assert all(each["problem"] for each in found["trouble"])


def test_the_same_folder_gives_the_same_figures(tmp_path: Path) -> None:
    shutil.copytree(kt.SAMPLE, tmp_path / "copy")

    def figures() -> dict[str, Any]:
        found = document_of(tmp_path / "copy")
        for topic in found["topics"]:
            for one in topic["savings"]["encodings"]:
                del one["encodeSeconds"], one["decodeSeconds"]
        del found["seconds"]
        return found

    assert figures() == figures()


def test_of_a_topic_whose_headers_are_read_sums_alone_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("orders", "payments"):
        for partition in range(3):
            write_partition(tmp_path, {0: log(0)}, f"{topic}-{partition}")
    added_up: list[tuple[str | None, int]] = []
    monkeypatch.setattr(
        module.TopicFigures,
        "add_up",
        lambda topic: added_up.append((topic.topic, len(topic.partitions))),
    )
    document_of(tmp_path, depth=HEADERS)
    assert added_up == [("orders", 3), ("payments", 3)]
