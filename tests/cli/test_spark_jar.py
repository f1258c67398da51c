from __future__ import annotations

from pathlib import Path

import pytest

from kafkajit import cli


def test_it_writes_the_bridge_of_the_spark_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = object()
    monkeypatch.setattr("kafkajit.spark.local.session.local_session", lambda **_: session)
    monkeypatch.setattr(
        "kafkajit.spark.bridge.write_jar",
        lambda spark, out: out.write(b"a jar") if spark is session else None,
    )
    jar = tmp_path / "bridge.jar"
    assert cli.main(["spark-jar", "-o", str(jar)]) == 0
    assert jar.read_bytes() == b"a jar"
    jar.write_bytes(b"another's")
    assert cli.main(["spark-jar", "-o", str(jar)]) == 1
    assert jar.read_bytes() == b"another's"


def test_a_folder_that_is_missing_is_named_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jar = tmp_path / "none" / "bridge.jar"
    assert cli.main(["spark-jar", "-o", str(jar)]) == 1
    assert capsys.readouterr().err == (
        f"kafkajit spark-jar: there is no folder {jar.parent}: make it, or name another\n"
    )


def test_it_needs_a_file_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        cli.main(["spark-jar"])
    assert exited.value.code == 1
    assert "-o/--output" in capsys.readouterr().err
