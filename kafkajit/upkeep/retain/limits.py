"""What retention may delete, and what it leaves to brokers.

A compacted topic's segments have the last values of keys, and a tiered one's may be in no other
place. How a topic is configured is not said in its folder: what looks like one of these is left
alone, unless somebody says that it is none. Answers to the topic configs of Kafka 4.1.1 that
UnifiedLog.deleteOldSegments reads, and to ReplicaManager.deleteRecordsOnLocalLog.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kafkajit.change.journal import logs_in
from kafkajit.change.partition_offsets import offset_in
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.log.config import LogConfig
from kafkajit.state.checkpoints import CLEANER_OFFSETS, START_OFFSETS
from kafkajit.topics import TOPICS

_BOOLEANS = ("true", "false")


@dataclass(frozen=True)
class Limits:
    """What may stay, and what is known of the topic."""

    retention_ms: int
    retention_bytes: int
    log_start_offset: int | None
    now: int
    # What was said, not what is so by default:
    may_delete: bool  # cleanup.policy has delete
    is_local: bool  # remote.storage.enable is false

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        *,
        log_start_offset: int | None = None,
        now: int | None = None,
    ) -> Self:
        """Limits from topic configs in Kafka's spelling. What is not said is no limit.

        >>> Limits.of({"retention.bytes": "1000"}).retention_ms
        -1
        """
        config = LogConfig.of({"retention.ms": -1, **settings})
        if not config.delete:
            raise ValueError(
                "records of a topic with cleanup.policy=compact are not deleted by retention: "
                "`kafkajit compact` compacts it"
            )
        local = sorted(name for name in settings if name.startswith("local.retention."))
        remote = str(settings.get("remote.storage.enable", "")).strip().lower()
        if remote not in {"", *_BOOLEANS}:
            raise ValueError(f"remote.storage.enable is true or false, not {remote}")
        if local or remote == "true":
            raise ValueError(
                f"{local[0] if local else 'remote.storage.enable=true'}: a segment of a topic in "
                "tiered storage may go when it is in the remote tier, and only brokers know which "
                "are"
            )
        if log_start_offset is not None and not -1 <= log_start_offset <= MAX_INT64:
            raise ValueError(f"the offset {log_start_offset} is not valid")
        now = int(time.time() * 1000) if now is None else now
        if not 0 <= now <= MAX_INT64:
            raise ValueError(f"now is milliseconds since 1970, not {now}")
        return cls(
            config.retention_ms,
            config.retention_bytes,
            log_start_offset,
            now,
            may_delete="cleanup.policy" in settings,
            is_local=remote == "false",
        )


def why_left_alone(folder: Path, limits: Limits, *, is_named: bool) -> str | None:
    """Why this may be no retention's to delete, unless somebody has said that it is."""
    topic = parse_log_path(folder / "any").topic
    if folder.name.endswith("-future"):
        return "a replica that a broker is moving here"
    if topic == TOPICS["cluster_metadata"]:
        return "brokers delete of this log what their snapshots have"
    may_delete = is_named and limits.may_delete
    if topic in TOPICS.values() and limits.log_start_offset is not None:
        return f"Cannot delete records of internal topic {topic}"
    say = "if its segments may go, say --config cleanup.policy=delete" if is_named else ""
    if topic in TOPICS.values() and not may_delete:
        return _because("an internal topic, whose records brokers need", say)
    if not may_delete and offset_in(folder, CLEANER_OFFSETS) is not None:
        return _because("a compacted topic, as cleaner-offset-checkpoint says", say)
    if is_named and limits.is_local:
        return None
    start, logs = offset_in(folder, START_OFFSETS), logs_in(folder)
    if start is not None and logs and start <= int(Path(logs[0]).stem):
        say = "if it is none, say --config remote.storage.enable=false" if is_named else ""
        return _because(
            f"a topic in tiered storage, as log-start-offset-checkpoint says: it has {start}, and "
            f"{Path(logs[0]).name} comes behind that",
            say,
        )
    return None


def _because(reason: str, say: str) -> str:
    return f"{reason}; {say} of the partition" if say else reason
