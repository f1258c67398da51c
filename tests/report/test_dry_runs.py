"""Dry runs: a report frees to the byte what `kafkajit retain` and `kafkajit compact` would free."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA
from retaining import checkpoint, make_log

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.report import take as module
from kafkajit.report.savings import DAY, DAYS
from kafkajit.report.take import ALL, HEADERS, SAMPLE, ReportOptions, take

NOW = 1_900_000_000_000

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A command's plans as JSON, without --apply."""

    def run(command: str, *arguments: object) -> dict[str, Any]:
        code = main([command, "--format", "json", "--now", str(NOW), *map(str, arguments)])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert (code == 1) == bool(found["errors"])
        return found

    return run


def dry_runs(root: Path, depth: str = ALL, now: int = NOW) -> dict[str, dict[str, Any]]:
    document = take(ReportOptions((str(root),), depth=depth, now=now))
    return {topic["topic"]: topic["savings"]["dryRuns"] for topic in document["topics"]}


@pytest.fixture(params=["ages", "keys", "v2", "internal"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Folders of a broker, with topics of several partitions and segments."""
    root = tmp_path / "kafka"
    root.mkdir()
    (root / "meta.properties").write_text("node.id=1\n")
    if request.param == "ages":
        for number in range(3):
            days = [400, 100, 40, 20 - number, 10, 5, 2, 0]
            make_log(root / f"orders-{number}", [NOW - day * DAY for day in days])
        make_log(root / "old-0", [NOW - 50 * DAY] * 3)
        checkpoint(root, "log-start-offset-checkpoint", "orders-0", 3)
        checkpoint(root, "replication-offset-checkpoint", "orders-1", 4)
    elif request.param == "keys":
        for number in range(2):
            write_keys(root / f"users-{number}", number)
        write_keys(root / "plain-0", 2)
        checkpoint(root, "cleaner-offset-checkpoint", "users-0", 0)
    else:
        ignored = shutil.ignore_patterns("*.out", "*.err", "*.exit", "*.sha256")
        for folder in (DATA / request.param).iterdir():
            if folder.is_dir() and not folder.name.startswith("large-value"):
                shutil.copytree(folder, root / folder.name, ignore=ignored)
    return root


def write_keys(folder: Path, seed: int) -> None:
    """Keys that come again, tombstones, and records without a key."""
    with kafkajit.LogWriter(folder, {"segment.bytes": 4000}) as log:
        for number in range(60):
            keys = [
                None if seed == 1 and at == 3 else b"k%d" % (at * number % 17) for at in range(9)
            ]
            records = [
                kt.Record(key, None if at == 5 else b"v" * 40, timestamp=NOW - DAY * 9)
                for at, key in enumerate(keys)
            ]
            log.append(kt.batch(records, base_offset=9 * number, base_timestamp=NOW - DAY * 9))


def test_retention_frees_what_the_command_would_delete(root: Path, run: Run) -> None:
    found = dry_runs(root)
    for days in DAYS:
        planned = run("retain", "--config", f"retention.ms={days * DAY}", root)["partitions"]
        theirs: dict[str, list[int]] = {}
        for partition in planned:
            if partition["leftAlone"] is None:
                sizes = [segment["bytes"] for segment in partition["expired"]]
                freed = theirs.setdefault(Path(partition["folder"]).name.rpartition("-")[0], [0, 0])
                freed[0] += sum(sizes)
                freed[1] += len(sizes)
        ours = {
            topic: [limit["bytes"], limit["segments"]]
            for topic, one in found.items()
            if one["retention"] is not None
            for limit in one["retention"]["limits"]
            if limit["days"] == days
        }
        assert ours == theirs


def test_compaction_frees_what_the_command_would(root: Path, run: Run) -> None:
    planned = 0
    for topic, one in dry_runs(root).items():
        found = one["compaction"]
        if found is None:
            continue
        freed = records = without_key = partitions = 0
        for folder in root.glob(f"{topic}-*"):
            if folder.name.rpartition("-")[0] != topic or not list(folder.glob("*.log")):
                continue
            try:
                plan = run("compact", "--config", "cleanup.policy=compact", folder)
            except (OSError, ValueError):
                continue
            (partition,) = plan["partitions"]
            partitions += 1
            for segment in partition["segments"]:
                freed += segment["bytesBefore"] - segment["bytes"]
                records += segment["recordsBefore"] - segment["records"]
                without_key += segment["recordsWithoutKey"]
        assert [freed, records, without_key] == [
            found[name] for name in ("bytes", "records", "recordsWithoutKey")
        ]
        assert partitions == found["partitions"]
        planned += freed
    assert planned > 0 or not (root / "plain-0").exists()


def test_a_topic_that_brokers_compact_is_known_by_their_checkpoint(tmp_path: Path) -> None:
    for topic in ("users", "plain"):
        write_keys(tmp_path / f"{topic}-0", 0)
    checkpoint(tmp_path, "cleaner-offset-checkpoint", "users-0", 0)
    found = dry_runs(tmp_path)
    assert found["users"]["compaction"]["isCompacted"]
    assert not found["plain"]["compaction"]["isCompacted"]
    assert found["users"]["retention"] is None
    assert [one["command"] for one in found["users"]["leftAlone"]] == ["retain"]
    assert found["plain"]["leftAlone"] == []


def test_a_partition_that_has_to_be_repaired_is_left_alone_with_the_reason(tmp_path: Path) -> None:
    write_keys(tmp_path / "users-0", 0)
    write_keys(tmp_path / "users-1", 0)
    first = min((tmp_path / "users-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[70] ^= 1
    first.write_bytes(content)
    found = dry_runs(tmp_path)["users"]
    assert [(one["command"], one["partitions"]) for one in found["leftAlone"]] == [
        ("compact", 1),
        ("retain", 1),  # without an index, the log tells its age
    ]
    assert all("repair" in one["reason"] for one in found["leftAlone"])
    assert (found["partitions"], found["compaction"]["partitions"]) == (2, 1)


def test_a_sample_of_all_records_is_planned_and_a_smaller_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_keys(tmp_path / "users-0", 0)
    assert dry_runs(tmp_path, SAMPLE)["users"]["partitions"] == 1
    assert dry_runs(tmp_path, HEADERS)["users"] is None
    monkeypatch.setattr(module, "_SAMPLE_BYTES", 1000)
    assert dry_runs(tmp_path, SAMPLE)["users"] is None
    assert dry_runs(tmp_path, ALL)["users"] is not None
    monkeypatch.undo()
    monkeypatch.setattr(module, "_PLANNED_PARTITIONS", 0)
    assert dry_runs(tmp_path, SAMPLE)["users"] is None


def test_a_segment_by_itself_is_not_planned(tmp_path: Path) -> None:
    write_keys(tmp_path / "users-0", 0)
    segment = min((tmp_path / "users-0").glob("*.log"))
    document = take(ReportOptions((str(segment),), now=NOW))
    assert document["takenFrom"]["dryRuns"] == {"partitions": 0, "of": 1}
