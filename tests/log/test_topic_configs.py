from __future__ import annotations

import shutil
from pathlib import Path

from corpus import DATA

from kafkajit.log.topic_configs import topic_configs


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
