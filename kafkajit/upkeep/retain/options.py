"""The options of `retain`: how much of a log may stay, and which logs it leaves to brokers.

A compacted topic's segments hold the last values of its keys, and a tiered topic's segments may be
stored nowhere else. A partition's folder does not show how its topic is configured: a log that
looks compacted or tiered is left alone unless the configuration allows it. Answers to the topic
configs of Kafka 4.1.1 that UnifiedLog.deleteOldSegments reads, and to
ReplicaManager.deleteRecordsOnLocalLog.
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
from kafkajit.format.log_path import partition_of
from kafkajit.log.config import COMPACT, LogConfig
from kafkajit.log.topic_configs import cleanup_policies
from kafkajit.state.checkpoints import CLEANER_OFFSETS, START_OFFSETS
from kafkajit.topics import TOPICS

_BOOLEANS = ("true", "false")


@dataclass(frozen=True)
class RetainOptions:
    """The limits of a log, and the configuration of its topic as far as it is known."""

    retention_ms: int
    retention_bytes: int
    log_start_offset: int | None
    now: int
    # Only what the configuration names, not a default:
    may_delete: bool  # cleanup.policy has delete
    is_local: bool  # remote.storage.enable is false

    @classmethod
    def of(
        cls,
        config: LogConfig | Mapping[str, Any] | None,
        *,
        log_start_offset: int | None = None,
        now: int | None = None,
    ) -> Self:
        """The options of `retain` with their defaults.

        A mapping limits a log only by what it names. A `LogConfig` is a topic's whole
        configuration, with Kafka's seven days if it names no other time. Its default
        cleanup.policy does not count as named, since it may have been left out.

        >>> RetainOptions.of({"retention.bytes": "1000"}).retention_ms
        -1
        >>> RetainOptions.of(LogConfig(retention_bytes=1000)).retention_ms
        604800000
        """
        named = {} if config is None or isinstance(config, LogConfig) else config
        if not isinstance(config, LogConfig):
            config = LogConfig.of({"retention.ms": -1, **named})
        if not config.delete:
            raise ValueError(
                "retention does not delete records of a topic with cleanup.policy=compact: "
                "`kafkajit compact` compacts it"
            )
        local = sorted(name for name in named if name.startswith("local.retention."))
        remote = str(named.get("remote.storage.enable", "")).strip().lower()
        if remote not in {"", *_BOOLEANS}:
            raise ValueError(f"remote.storage.enable must be true or false, not {remote}")
        if local or remote == "true":
            raise ValueError(
                f"{local[0] if local else 'remote.storage.enable=true'}: a segment of a topic in "
                "tiered storage may go once it is in the remote tier, and only brokers know which "
                "segments are"
            )
        if log_start_offset is not None and not -1 <= log_start_offset <= MAX_INT64:
            raise ValueError(
                f"the log start offset must be -1 to {MAX_INT64}, not {log_start_offset}"
            )
        now = int(time.time() * 1000) if now is None else now
        if not 0 <= now <= MAX_INT64:
            raise ValueError(f"now must be milliseconds since 1970, not {now}")
        return cls(
            config.retention_ms,
            config.retention_bytes,
            log_start_offset,
            now,
            may_delete="cleanup.policy" in named or config.compact,
            is_local=remote == "false",
        )


def why_left_alone(folder: Path, options: RetainOptions, *, is_named: bool) -> str | None:
    """Why retention must not delete from this log; None if it may.

    The configuration can allow it for a partition that is named by itself, not for one of several.
    """
    topic = partition_of(folder).topic
    if folder.name.endswith("-future"):
        return "a replica that a broker is moving here"
    if topic == TOPICS["cluster_metadata"]:
        return "brokers delete from this log what their snapshots have"
    may_delete = is_named and options.may_delete
    if topic in TOPICS.values() and options.log_start_offset is not None:
        return f"Cannot delete records of internal topic {topic}"
    advice = "if its segments may go, pass --config cleanup.policy=delete" if is_named else ""
    if topic in TOPICS.values() and not may_delete:
        return _reason("an internal topic, whose records brokers need", advice)
    if not may_delete and offset_in(folder, CLEANER_OFFSETS) is not None:
        return _reason("a compacted topic according to cleaner-offset-checkpoint", advice)
    if not may_delete and cleanup_policies(folder) == {COMPACT}:
        return _reason("a compacted topic according to __cluster_metadata-0", advice)
    if is_named and options.is_local:
        return None
    start, logs = offset_in(folder, START_OFFSETS), logs_in(folder)
    if start is not None and logs and start <= int(Path(logs[0]).stem):
        advice = "if it is not, pass --config remote.storage.enable=false" if is_named else ""
        return _reason(
            f"a topic in tiered storage according to log-start-offset-checkpoint: it has {start}, "
            f"and {Path(logs[0]).name} begins behind that",
            advice,
        )
    return None


def _reason(reason: str, advice: str) -> str:
    return f"{reason}; {advice} for this partition" if advice else reason
