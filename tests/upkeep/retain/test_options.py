from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from retaining import checkpoint

from kafkajit.log.config import LogConfig
from kafkajit.upkeep.retain.options import RetainOptions, why_left_alone

CLEANER = "cleaner-offset-checkpoint"
STARTS = "log-start-offset-checkpoint"
NOTHING = RetainOptions.of({})
ONLY = {"is_named": True}


def partition(root: Path, name: str, *bases: int) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    for base in bases:
        (folder / f"{base:020d}.log").touch()
    return folder


def test_what_is_not_said_is_no_limit() -> None:
    assert (NOTHING.retention_ms, NOTHING.retention_bytes) == (-1, -1)
    assert NOTHING.log_start_offset is None
    assert abs(RetainOptions.of({}).now - time.time() * 1000) < 60_000
    assert not NOTHING.may_delete
    assert not NOTHING.is_local


def test_limits_are_topic_configs_in_kafkas_spelling() -> None:
    settings = {"retention.ms": "5", "retention.bytes": "7", "segment.bytes": "100"}
    options = RetainOptions.of(settings, log_start_offset=3, now=9)
    assert options == RetainOptions(5, 7, 3, 9, may_delete=False, is_local=False)


def test_what_is_said_of_the_topic_is_known() -> None:
    assert RetainOptions.of({"cleanup.policy": "compact, delete"}).may_delete
    assert RetainOptions.of({"remote.storage.enable": "FALSE"}).is_local
    assert RetainOptions.of({"remote.storage.enable": False}).is_local


def test_a_log_config_is_a_whole_configuration_and_its_default_policy_allows_nothing() -> None:
    options = RetainOptions.of(LogConfig(retention_bytes=7))
    assert (options.retention_ms, options.retention_bytes) == (7 * 24 * 60 * 60 * 1000, 7)
    assert not options.may_delete
    assert not options.is_local
    assert RetainOptions.of(LogConfig(cleanup_policy=("compact", "delete"))).may_delete
    with pytest.raises(ValueError, match="retention does not delete records"):
        RetainOptions.of(LogConfig(cleanup_policy=("compact",)))


REFUSED = [
    ({"retention.hours": "1"}, "unknown topic config name 'retention.hours'"),
    ({"retention.ms": "-2"}, "retention.ms must be -1 to"),
    ({"retention.ms": "a day"}, "retention.ms must be a number of milliseconds, not 'a day'"),
    (
        {"cleanup.policy": "compact"},
        "retention does not delete records of a topic with cleanup.policy=compact",
    ),
    ({"remote.storage.enable": "true"}, "remote.storage.enable=true: a segment of a topic in tier"),
    ({"remote.storage.enable": "maybe"}, "remote.storage.enable must be true or false, not maybe"),
    ({"local.retention.ms": "5"}, "local.retention.ms: a segment of a topic in tiered storage"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_what_is_no_limit_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        RetainOptions.of(settings)


def test_offsets_and_times_are_numbers_that_kafka_has() -> None:
    for offset in (-2, 2**63):
        with pytest.raises(ValueError, match="the log start offset must be -1 to"):
            RetainOptions.of({}, log_start_offset=offset)
    for now in (-1, 2**63):
        with pytest.raises(ValueError, match="milliseconds since 1970"):
            RetainOptions.of({}, now=now)


def test_an_ordinary_topics_log_is_not_left_alone(tmp_path: Path) -> None:
    folder = partition(tmp_path, "orders-0", 0, 10)
    checkpoint(tmp_path, STARTS, "orders-0", 4)  # it starts inside its first segment
    checkpoint(tmp_path, CLEANER, "orders-1", 4)
    assert why_left_alone(folder, NOTHING, is_named=True) is None
    assert why_left_alone(folder, NOTHING, is_named=False) is None


def test_a_compacted_topics_log_is_left_alone_unless_somebody_says_otherwise(
    tmp_path: Path,
) -> None:
    folder = partition(tmp_path, "orders-0", 0, 10)
    checkpoint(tmp_path, CLEANER, "orders-0", 4)
    said = RetainOptions.of({"cleanup.policy": "delete"})
    reason = "a compacted topic according to cleaner-offset-checkpoint"
    assert why_left_alone(folder, NOTHING, is_named=False) == reason
    advice = "if its segments may go, pass --config cleanup.policy=delete for this partition"
    assert why_left_alone(folder, NOTHING, is_named=True) == f"{reason}; {advice}"
    assert why_left_alone(folder, said, is_named=True) is None
    # A setting for all logs of a broker was not made with this one in mind.
    assert why_left_alone(folder, said, is_named=False) == reason


@pytest.mark.parametrize("start", [0, 9, 10])
def test_a_tiered_topics_log_is_left_alone_unless_somebody_says_otherwise(
    tmp_path: Path, start: int
) -> None:
    folder = partition(tmp_path, "orders-0", 10, 20)
    checkpoint(tmp_path, STARTS, "orders-0", start)
    said = RetainOptions.of({"remote.storage.enable": "false"})
    reason = why_left_alone(folder, NOTHING, is_named=False)
    assert reason is not None
    assert reason.startswith("a topic in tiered storage according to log-start-offset-checkpoint")
    asks = why_left_alone(folder, NOTHING, is_named=True)
    says = "if it is not, pass --config remote.storage.enable=false for this partition"
    assert asks == f"{reason}; {says}"
    assert why_left_alone(folder, said, is_named=True) is None
    assert why_left_alone(folder, said, is_named=False) == reason


@pytest.mark.parametrize(
    "topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"]
)
def test_an_internal_topics_log_is_left_alone_unless_somebody_says_otherwise(
    tmp_path: Path, topic: str
) -> None:
    folder = partition(tmp_path, f"{topic}-3", 0)
    said = RetainOptions.of({"cleanup.policy": "delete"})
    reason = "an internal topic, whose records brokers need"
    assert why_left_alone(folder, NOTHING, is_named=False) == reason
    assert why_left_alone(folder, said, is_named=False) == reason
    assert why_left_alone(folder, said, is_named=True) is None


def test_records_of_an_internal_topic_are_not_deleted_whatever_is_said(tmp_path: Path) -> None:
    folder = partition(tmp_path, "__consumer_offsets-3", 0)
    said = RetainOptions.of({"cleanup.policy": "delete"}, log_start_offset=4)
    assert (
        why_left_alone(folder, said, is_named=True)
        == "Cannot delete records of internal topic __consumer_offsets"
    )


def test_what_brokers_alone_can_delete_is_left_alone_whatever_is_said(tmp_path: Path) -> None:
    said = RetainOptions.of({"cleanup.policy": "delete", "remote.storage.enable": "false"})
    for name in ("__cluster_metadata-0", f"orders-0.{'0' * 32}-future"):
        folder = partition(tmp_path, name, 0)
        assert why_left_alone(folder, said, is_named=True) is not None
