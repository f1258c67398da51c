from __future__ import annotations

import shutil
from pathlib import Path

from corpus import DATA

import kafkajit
from kafkajit.log.topic_configs import cleanup_policies, topic_configs


def test_topics_have_the_configs_that_a_controller_wrote(tmp_path: Path) -> None:
    assert topic_configs(tmp_path) == {}
    shutil.copytree(DATA / "internal" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    configs = topic_configs(tmp_path)
    assert configs["__consumer_offsets"]["cleanup.policy"] == "compact"
    assert configs["append-time-gzip"]["message.timestamp.type"] == "LogAppendTime"
    assert "cleanup.policy" not in configs["headers"]


def test_a_damaged_log_of_metadata_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    content = bytearray((DATA / "internal" / folder.name / f"{0:020}.log").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / f"{0:020}.log").write_bytes(content)
    assert topic_configs(tmp_path)
    (folder / f"{7:020}.log").write_bytes(b"noise" * 99)
    assert topic_configs(tmp_path)


def test_a_compacted_topic_that_no_cleaner_has_reached_is_compacted_and_never_expires(
    tmp_path: Path,
) -> None:
    shutil.copytree(DATA / "internal" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    for name in ("compacted-0", "headers-0"):
        shutil.copytree(DATA / "v2" / name, tmp_path / name)
    assert cleanup_policies(tmp_path / "compacted-0") == {"compact"}
    assert cleanup_policies(tmp_path / "headers-0") == set()
    retained = kafkajit.retain(tmp_path, config={"retention.bytes": 1}).partitions
    assert {plan.folder.name: plan.left_alone for plan in retained if plan.left_alone} == {
        "__cluster_metadata-0": "brokers delete from this log what their snapshots have",
        "compacted-0": "a compacted topic according to __cluster_metadata-0",
    }
    compacted = kafkajit.compact(tmp_path).partitions
    assert [plan.folder.name for plan in compacted if not plan.left_alone] == ["compacted-0"]
