"""How a session gets the bridge, and how it reads where it cannot have it."""

from __future__ import annotations

import logging
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_state import BRIDGE, BY_COLUMNS, plan_of, setting

import kafkajit.testing as kt
from kafkajit.spark import bridge
from kafkajit.spark.datasource import KafkaLogDataSource
from kafkajit.spark.java_sources import sources_digest


def is_bridged(spark: SparkSession) -> bool:
    """Whether a query reads through the bridge; its answer is right in any case."""
    log = spark.read.format("kafkaLog").load(kt.SAMPLE)
    assert log.groupBy("topic").count().count() == 2
    return BY_COLUMNS in plan_of(log)


def test_a_registered_session_has_the_bridge(spark: SparkSession) -> None:
    assert bridge.install(spark)
    assert is_bridged(spark)


def test_a_setting_switches_it_off(spark: SparkSession) -> None:
    with setting(spark, BRIDGE, "false"):
        assert not is_bridged(spark)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, for a session that does not have the bridge yet."""
    monkeypatch.setattr(bridge, "_is_on_class_path", lambda _: False)
    monkeypatch.setattr(bridge, "cache_folder", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def refusal(
    spark: SparkSession, cache: Path, caplog: pytest.LogCaptureFixture
) -> Callable[[], str]:
    """A call that has the session ask for the bridge in vain, and returns the line at INFO."""

    def asked() -> str:
        caplog.set_level(logging.INFO, logger="kafkajit")
        assert bridge.install(spark) is False
        (message,) = caplog.messages
        assert message.startswith("kafkaLog is read by Spark's Python source: ")
        assert len(message) < 300
        assert "\n" not in message
        assert not list(cache.glob("*.jar"))
        return message

    return asked


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("no cache", "no folder of this user's own"),
        ("no compiler", "Cannot compile"),
        ("read-only", "Read-only file system"),
    ],
)
def test_a_session_that_cannot_have_it_says_why(
    trouble: str, reason: str, refusal: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        if trouble == "no compiler":
            raise bridge.NoBridgeError("Cannot compile")
        raise OSError(30, "Read-only file system")

    if trouble == "no cache":
        monkeypatch.setattr(bridge, "cache_folder", lambda: None)
    else:
        monkeypatch.setattr(bridge, "write_jar", fail)
    assert reason in refusal()


def test_a_source_that_does_not_compile_is_no_error(
    refusal: Callable[[], str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a Spark whose internals have changed."""
    broken = {"A.java": "package kafkajit; class A { org.apache.spark.NoSuchClass it; }"}
    monkeypatch.setattr(bridge, "java_sources", lambda: broken)
    assert "File 'A.java', Line 1" in refusal()
    assert not list(cache.glob("*.unfinished"))


def test_a_spark_without_a_compiler_is_no_error(
    refusal: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "_COMPILERS", "org.codehaus.commons.compiler.NoSuchFactory")
    missing = "ClassNotFoundException: org.codehaus.commons.compiler.NoSuchFactory"
    assert missing in refusal()


@pytest.mark.parametrize("jar", ["nosuchscheme://bridge.jar", "ivy://nosuchscheme"])
def test_a_jar_that_spark_refuses_is_no_error(
    jar: str, refusal: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "_jar_in_cache", lambda _: jar)
    assert "nosuchscheme" in refusal()


def test_classes_of_another_version_are_not_used(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As after an upgrade of the package in a notebook."""
    monkeypatch.setattr(bridge, "sources_digest", lambda: "another")
    caplog.set_level(logging.INFO, logger="kafkajit")
    try:
        assert not bridge.install(spark)
        assert "the classes of another version of kafkajit" in caplog.text
        assert not is_bridged(spark)
    finally:
        spark.conf.unset(BRIDGE)
    assert is_bridged(spark)


def test_a_jar_of_another_version_is_named_by_the_source() -> None:
    """As on a Connect server whose class path has the jar of an older kafkajit."""
    options = {"path": kt.SAMPLE, "kafkajit.conditions": "[]", "kafkajit.sources": "another"}
    source = KafkaLogDataSource(options)
    with pytest.raises(ValueError, match="another version of kafkajit: write its jar anew"):
        source.reader(source.schema())
    options["kafkajit.sources"] = sources_digest()
    assert KafkaLogDataSource(options).reader(source.schema()).partitions()


def test_the_jar_is_made_once(
    spark: SparkSession, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    write = bridge.write_jar
    monkeypatch.setattr(bridge, "write_jar", lambda *given: made.append(write(*given)))
    threads = [
        threading.Thread(target=lambda: bridge._jar_in_cache(spark), daemon=True) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    (jar,) = cache.glob("*.jar")
    names = zipfile.ZipFile(jar).namelist()
    assert "kafkajit/KafkaLog.class" in names
    assert bridge._SERVICE in names
