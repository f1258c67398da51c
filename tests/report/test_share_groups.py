"""Share groups: the start offset and the records behind it that are done with."""

from __future__ import annotations

import base64
import shutil
import struct
import uuid
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.report.take import HEADERS, ReportOptions, take

NOW = 1_700_000_000_000
TOPIC_ID = uuid.UUID(int=0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def key(kind: int, partition: int = 0) -> bytes:
    return struct.pack(">hh", kind, 5) + b"group" + TOPIC_ID.bytes + struct.pack(">i", partition)


def batches(*states: tuple[int, int, int]) -> bytes:
    every = (struct.pack(">qqbhB", first, last, state, 1, 0) for first, last, state in states)
    return bytes([len(states) + 1]) + b"".join(every) + b"\0"


def snapshot(start: int, *states: tuple[int, int, int]) -> kt.Record:
    head = struct.pack(">hiiiqqq", 0, 1, 0, 0, start, NOW, NOW)
    return kt.Record(key(0), head + batches(*states))


def update(start: int, *states: tuple[int, int, int]) -> kt.Record:
    return kt.Record(key(1), struct.pack(">hiiq", 0, 1, 0, start) + batches(*states))


def share_state(folder: Path, *records: kt.Record, later: int = 0) -> None:
    log = kt.batch(list(records), base_timestamp=NOW)
    write_partition(folder, {0: log}, "__share_group_state-0")
    orders = kt.batch([kt.Record(b"k", b"v")] * 100, base_timestamp=NOW - later)
    found = write_partition(folder, {0: orders})
    text = base64.urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")
    (found / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}\n")


def document(folder: Path) -> dict[str, Any]:
    return take(ReportOptions((str(folder),), depth=HEADERS, now=NOW))


@pytest.mark.parametrize(
    ("records", "offset", "lag"),
    [
        ([snapshot(-1)], None, None),
        ([snapshot(10)], 10, 90),
        ([snapshot(10, (20, 29, ACKNOWLEDGED), (40, 44, ARCHIVED))], 10, 75),
        ([snapshot(10, (20, 29, AVAILABLE))], 10, 90),
        ([snapshot(-1), update(0, (0, 85, ACKNOWLEDGED))], 0, 14),
        ([snapshot(0), update(-1, (5, 9, ACKNOWLEDGED)), update(-1, (8, 11, ARCHIVED))], 0, 93),
        ([snapshot(0), update(-1, (5, 9, ACKNOWLEDGED)), update(8)], 8, 90),
        ([snapshot(0), update(0, (5, 9, ACKNOWLEDGED)), snapshot(0)], 0, 100),
        ([snapshot(0), update(60), snapshot(50)], 50, 50),
    ],
)
def test_lag_is_what_may_still_be_delivered(
    tmp_path: Path, records: list[kt.Record], offset: int | None, lag: int | None
) -> None:
    share_state(tmp_path, *records)
    assert document(tmp_path)["groups"] == [
        {
            "group": "group",
            "kind": "share",
            "topic": "orders",
            "partition": 0,
            "offset": offset,
            "endOffset": 100,
            "lag": lag,
            "committedAt": NOW,
            "hasMembers": None,
        }
    ]


def test_a_topic_that_a_share_group_consumes_is_in_use(tmp_path: Path) -> None:
    share_state(tmp_path, snapshot(10), later=1000)
    found = document(tmp_path)
    (orders,) = [topic for topic in found["topics"] if topic["topic"] == "orders"]
    assert (orders["groups"], orders["lastCommit"]) == (1, NOW)


def test_a_group_that_was_deleted_is_gone(tmp_path: Path) -> None:
    share_state(tmp_path, snapshot(10), kt.Record(key(0), None))
    assert document(tmp_path)["groups"] == []


def test_states_of_a_later_version_are_named(tmp_path: Path) -> None:
    share_state(tmp_path, snapshot(10), kt.Record(key(1), struct.pack(">h", 99)))
    (one,) = document(tmp_path)["trouble"]
    assert (one["severity"], one["kind"]) == ("damage", "unreadable")
    assert one["problem"].startswith("1 value cannot be decoded, and groups may be missing: ")


def test_a_broker_knows_the_members_of_share_groups(tmp_path: Path) -> None:
    shutil.copytree(DATA / "internal", tmp_path / "internal")
    found = document(tmp_path / "internal")["groups"]
    (share,) = [one for one in found if one["kind"] == "share"]
    # The folder of the topic is not there, so nothing tells its name.
    assert (share["group"], share["topic"]) == ("group-share", "CNEOT_ASTP-lstghcyiFKw")
    assert (share["offset"], share["hasMembers"]) == (0, False)


def test_a_copy_that_is_behind_does_not_count(tmp_path: Path) -> None:
    share_state(tmp_path / "a", snapshot(0), update(40))
    share_state(tmp_path / "b", snapshot(0))
    for paths in (("a", "b"), ("b", "a")):
        found = take(ReportOptions(tuple(str(tmp_path / one) for one in paths), depth=HEADERS))
        assert [one["offset"] for one in found["groups"]] == [40]
