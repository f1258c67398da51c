"""The options of `compact`, and which logs it leaves alone.

A partition's folder does not show how its topic is configured. Compaction would lose records of a
topic that is not compacted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kafkajit.change.partition_offsets import offset_in
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.log_path import partition_of
from kafkajit.log.config import COMPACT, LogConfig
from kafkajit.log.producers import PRODUCER_EXPIRATION_MS
from kafkajit.log.topic_configs import cleanup_policies
from kafkajit.state.checkpoints import CLEANER_OFFSETS
from kafkajit.topics import TOPICS

DEDUPE_BUFFER_SIZE = 128 << 20
# The internal topics that brokers compact.
_COMPACTED = ("offsets", "transaction_state")


@dataclass(frozen=True)
class CompactOptions:
    """The options of `compact`, the same for every partition."""

    config: LogConfig
    is_compacted: bool  # the configuration says that the topic is compacted
    now: int
    producer_expiration_ms: int
    dedupe_buffer_size: int
    max_decompressed_bytes: int

    @classmethod
    def of(
        cls,
        config: LogConfig | Mapping[str, Any] | None,
        *,
        now: int | None = None,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> Self:
        """The options of `compact` with their defaults."""
        config = LogConfig.of(config)
        if dedupe_buffer_size < 1:
            raise ValueError(f"dedupe_buffer_size must be positive, not {dedupe_buffer_size}")
        return cls(
            config,
            config.compact,
            int(time.time() * 1000) if now is None else now,
            producer_expiration_ms,
            dedupe_buffer_size,
            max_decompressed_bytes,
        )


def why_left_alone(folder: Path, options: CompactOptions, *, is_named: bool) -> str | None:
    """Why a log must not be compacted; None if it may.

    The configuration can allow it for a partition that is named by itself, not for one of several.
    """
    topic = partition_of(folder).topic
    if folder.name.endswith("-future"):
        return "a replica that a broker is moving here"
    internal = {topic: name for name, topic in TOPICS.items()}.get(topic or "")
    if internal is not None and internal not in _COMPACTED:
        return "an internal topic that brokers do not compact"
    if internal is not None or offset_in(folder, CLEANER_OFFSETS) is not None:
        return None
    if COMPACT in cleanup_policies(folder) or (is_named and options.is_compacted):
        return None
    why = "nothing says that the topic is compacted"
    if not is_named:
        return why
    return (
        f"{why}, and records would be lost if it is not; if it is, pass --config "
        "cleanup.policy=compact for this partition"
    )
