"""Kafka's topic configuration, as far as it concerns the files of a log.

Answers to LogConfig: names, defaults and limits are those of Kafka 4.1.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kafkajit.errors import did_you_mean
from kafkajit.format.limits import MAX_INT32, MAX_INT64

_DAY = 24 * 60 * 60 * 1000

COMPACT = "compact"
DELETE = "delete"
_POLICIES = (COMPACT, DELETE)

# The values that each config may have. Kafka 4 requires segments of at least 1 MiB, but keeps
# smaller ones of older topics. An index of less than 12 bytes has no room for an entry.
_RANGES: dict[str, tuple[float, float]] = {
    "segment.bytes": (14, MAX_INT32),
    "segment.ms": (1, MAX_INT64),
    "segment.jitter.ms": (0, MAX_INT64),
    "segment.index.bytes": (12, MAX_INT32),
    "index.interval.bytes": (0, MAX_INT32),
    "max.message.bytes": (0, MAX_INT32),
    "retention.ms": (-1, MAX_INT64),
    "retention.bytes": (-MAX_INT64 - 1, MAX_INT64),
    "delete.retention.ms": (0, MAX_INT64),
    "min.compaction.lag.ms": (0, MAX_INT64),
    "max.compaction.lag.ms": (1, MAX_INT64),
    "min.cleanable.dirty.ratio": (0, 1),
}
# Other names in a topic's configuration, which do not change its files here.
_WITHOUT_EFFECT = {
    *("compression.type", "compression.gzip.level", "compression.lz4.level"),
    *("compression.zstd.level", "file.delete.delay.ms", "flush.messages", "flush.ms"),
    *("follower.replication.throttled.replicas", "leader.replication.throttled.replicas"),
    *("local.retention.bytes", "local.retention.ms", "message.timestamp.after.max.ms"),
    *("message.timestamp.before.max.ms", "message.timestamp.type", "min.insync.replicas"),
    *("preallocate", "remote.log.copy.disable", "remote.log.delete.on.disable"),
    *("remote.storage.enable", "unclean.leader.election.enable"),
}
# Kafka's own tests set small segments with this name.
_SMALL_SEGMENTS = "internal.segment.bytes"
_UNITS = {"ms": " of milliseconds", "bytes": " of bytes"}
# All names that a topic's configuration may have.
TOPIC_CONFIGS = frozenset({*_RANGES, "cleanup.policy", _SMALL_SEGMENTS, *_WITHOUT_EFFECT})


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """A topic's configuration; each field is Kafka's name with _ for a dot.

    With `segment_jitter_ms`, brokers roll many partitions at different times; it has no effect
    here.

    >>> LogConfig(segment_bytes=1 << 20).retention_ms
    604800000
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = (1 << 20) + 12
    retention_ms: int = 7 * _DAY
    retention_bytes: int = -1
    delete_retention_ms: int = _DAY
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_INT64
    min_cleanable_dirty_ratio: float = 0.5
    cleanup_policy: tuple[str, ...] = (DELETE,)

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, _field_name(name))
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least} to {most}, not {value}")
        unknown = set(self.cleanup_policy) - set(_POLICIES)
        if unknown or not self.cleanup_policy:
            raise ValueError(
                f"cleanup.policy must be one or both of {', '.join(_POLICIES)}, "
                f"not {', '.join(self.cleanup_policy) or 'empty'}"
            )
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ValueError(
                f"conflict: min.compaction.lag.ms ({self.min_compaction_lag_ms}) > "
                f"max.compaction.lag.ms ({self.max_compaction_lag_ms})"
            )

    @classmethod
    def of(cls, settings: LogConfig | Mapping[str, Any] | None) -> LogConfig:
        """Make a configuration of Kafka's names; values may be text, defaults fill the rest.

        Kafka's names that do not concern files have no effect.

        >>> config = LogConfig.of({"segment.bytes": "1048576", "cleanup.policy": "compact,delete"})
        >>> config.segment_bytes, config.compact, config.delete
        (1048576, True, True)
        """
        if isinstance(settings, cls):
            return settings
        if settings is None:
            return cls()
        if not isinstance(settings, Mapping):
            kind = type(settings).__name__
            raise TypeError(
                f"config must be a LogConfig or a mapping of names to values, not {kind}"
            )
        values: dict[str, Any] = {}
        for name, value in settings.items():
            if name in _RANGES:
                values[_field_name(name)] = _number(name, value)
            elif name == "cleanup.policy":
                values["cleanup_policy"] = _policies(value)
            elif name not in TOPIC_CONFIGS:
                raise ValueError(f"unknown topic config name {name!r}{_meant(name)}")
        if _SMALL_SEGMENTS in settings:
            values["segment_bytes"] = _number(_SMALL_SEGMENTS, settings[_SMALL_SEGMENTS])
        return cls(**values)

    @property
    def compact(self) -> bool:
        """Whether compaction removes the older records of a key."""
        return COMPACT in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether retention deletes old segments."""
        return DELETE in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The longest time between the first record of a segment and any other."""
        return min(self.max_compaction_lag_ms, self.segment_ms) if self.compact else self.segment_ms


def _field_name(name: str) -> str:
    return name.replace(".", "_")


def _number(name: str, value: Any) -> float:
    kind = float if name == "min.cleanable.dirty.ratio" else int
    try:
        # int() would drop the decimals of a float.
        return kind(value if isinstance(value, str) or kind is float else str(value))
    except (TypeError, ValueError):
        unit = _UNITS.get(name.rpartition(".")[2], "")
        raise ValueError(f"{name} must be a number{unit}, not {value!r}") from None


def _meant(name: str) -> str:
    """Advice for a name that is not a topic config."""
    hint = did_you_mean(name, TOPIC_CONFIGS, spelled=lambda given: given.replace("_", "."))
    if hint:
        return f": {hint}"
    known = [field.name.replace("_", ".") for field in fields(LogConfig)]
    known = sorted([*known, "remote.storage.enable"])  # which retention asks for
    return f"; there are: {', '.join(known)}"


def _policies(value: str | Iterable[str]) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else list(value)
    return tuple(dict.fromkeys(part.strip().lower() for part in parts if part.strip()))
