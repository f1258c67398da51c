from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from kafkajit.log.config import LogConfig

NAMES = [field.name.replace("_", ".") for field in fields(LogConfig)]

# What LogConfig.configKeys() of Kafka 4.1.1 returns.
KAFKAS_DEFAULTS = {
    "cleanup.policy": ("delete",),
    "delete.retention.ms": 86400000,
    "index.interval.bytes": 4096,
    "max.compaction.lag.ms": 9223372036854775807,
    "max.message.bytes": 1048588,
    "min.cleanable.dirty.ratio": 0.5,
    "min.compaction.lag.ms": 0,
    "retention.bytes": -1,
    "retention.ms": 604800000,
    "segment.bytes": 1073741824,
    "segment.index.bytes": 10485760,
    "segment.jitter.ms": 0,
    "segment.ms": 604800000,
}


def test_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert {name: getattr(config, name.replace(".", "_")) for name in NAMES} == KAFKAS_DEFAULTS
    assert LogConfig.of({}) == config


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"cleanup.policy"}))
def test_every_number_is_taken_as_text_or_not(name: str) -> None:
    lag = {"max.compaction.lag.ms": 2**62} if name == "min.compaction.lag.ms" else {}
    number = 0.25 if name == "min.cleanable.dirty.ratio" else 123456
    for value in (number, str(number), f" {number} "):
        config = LogConfig.of({name: value} | lag)
        assert getattr(config, name.replace(".", "_")) == number


@pytest.mark.parametrize(
    ("value", "policies"),
    [
        ("compact", ("compact",)),
        ("delete, Compact", ("delete", "compact")),
        (["compact", "delete"], ("compact", "delete")),
        ("delete,delete", ("delete",)),
    ],
)
def test_policies_are_a_list(value: Any, policies: tuple[str, ...]) -> None:
    config = LogConfig.of({"cleanup.policy": value})
    assert config.cleanup_policy == policies
    assert config.compact == ("compact" in policies)
    assert config.delete == ("delete" in policies)


def test_an_unknown_name_is_told_with_what_may_have_been_meant() -> None:
    for wrong, meant in [("segment.byte", "segment.bytes"), ("retention_ms", "retention.ms")]:
        message = f"^unknown topic config name '{wrong}': did you mean '{meant}'\\?$"
        with pytest.raises(ValueError, match=message):
            LogConfig.of({wrong: 1})
    with pytest.raises(ValueError, match=r"'zzz'; there are: cleanup\.policy, del") as error:
        LogConfig.of({"zzz": 1})
    assert all(name in str(error.value) for name in NAMES)


def test_what_is_a_configuration_already_is_taken_as_it_is() -> None:
    config = LogConfig(segment_bytes=70)
    assert LogConfig.of(config) is config
    assert LogConfig.of(None) == LogConfig()
    with pytest.raises(TypeError, match=r"config must be a LogConfig or a mapping .*, not str$"):
        LogConfig.of("segment.bytes=70")  # type: ignore[arg-type]


def test_names_that_concern_no_file_are_left_alone() -> None:
    assert LogConfig.of({"flush.ms": "5", "compression.type": "producer"}) == LogConfig()


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"segment.bytes": "1GB"}, r"segment.bytes must be a number of bytes, not '1GB'"),
        ({"segment.bytes": 1.5}, r"segment.bytes must be a number of bytes, not 1.5"),
        ({"segment.bytes": None}, r"segment.bytes must be a number of bytes, not None"),
        ({"segment.bytes": 13}, "segment.bytes must be 14 to 2147483647, not 13"),
        ({"segment.bytes": 2**31}, "segment.bytes must be 14 to 2147483647, not 2147483648"),
        ({"segment.ms": 0}, "segment.ms must be 1 to "),
        ({"segment.index.bytes": 11}, "segment.index.bytes must be 12 to "),
        ({"index.interval.bytes": -1}, "index.interval.bytes must be 0 to "),
        ({"retention.ms": -2}, "retention.ms must be -1 to "),
        ({"min.cleanable.dirty.ratio": 1.1}, "min.cleanable.dirty.ratio must be 0 to 1, not 1.1"),
        ({"cleanup.policy": "compacted"}, "must be one or both of compact, delete, not compacted"),
        ({"cleanup.policy": ""}, "must be one or both of compact, delete, not empty"),
        ({"min.compaction.lag.ms": 3, "max.compaction.lag.ms": 2}, "conflict: min.compaction.lag"),
    ],
)
def test_a_bad_value_is_told(settings: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        LogConfig.of(settings)


def test_the_constructor_looks_at_values_too() -> None:
    with pytest.raises(ValueError, match=r"segment\.bytes must be"):
        LogConfig(segment_bytes=0)


def test_small_segments_go_by_kafkas_name_for_tests() -> None:
    settings = {"segment.bytes": 1 << 20, "internal.segment.bytes": "100"}
    assert LogConfig.of(settings).segment_bytes == 100


def test_a_compacted_log_rolls_before_its_records_have_to_be_compacted() -> None:
    lag = {"max_compaction_lag_ms": 500}
    assert LogConfig(**lag, cleanup_policy=("compact",)).max_segment_ms == 500
    assert LogConfig(**lag).max_segment_ms == LogConfig().segment_ms
    assert LogConfig(cleanup_policy=("compact",), segment_ms=7).max_segment_ms == 7
