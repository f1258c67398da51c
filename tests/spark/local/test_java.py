from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from corpus import REPOSITORY
from local_java import fake_java

from kafkajit.spark.local import java, session


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no test before had started a session in this process."""
    monkeypatch.setattr(session, "_jvm", None)
    monkeypatch.setattr(session, "_is_running", lambda: False)


OLD = """echo 'openjdk version "1.8.0_292"' >&2"""


def test_no_java_is_one_line_that_says_what_to_install(
    nothing_runs: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(java.JavaNotFoundError) as raised:
        session.local_session()
    assert re.fullmatch(
        r"there is no java on the PATH: Spark needs Java 17 or newer: install one \(.*\), "
        r"or set JAVA_HOME",
        str(raised.value),
    )


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "16"])
def test_a_java_that_is_too_old_is_named(
    nothing_runs: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    fake = fake_java(tmp_path, OLD.replace("1.8.0_292", version))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(fake.parent))
    number = version.removeprefix("1.").partition(".")[0]
    with pytest.raises(java.JavaNotFoundError, match=f"^{fake} is Java {number}: Spark needs"):
        session.local_session()


@pytest.mark.parametrize("path", ["", ":", ".", "bin", "./bin::../bin"])
def test_a_java_in_the_current_folder_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    fake_java(tmp_path, "touch ran")
    (tmp_path / "java").symlink_to("bin/java")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr(java.os, "defpath", "/nowhere")
    with pytest.raises(java.JavaNotFoundError, match="there is no java on the PATH"):
        java.find_java()
    assert not (tmp_path / "ran").exists()


def test_java_home_goes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = fake_java(tmp_path, "exit 1")
    (tmp_path / "release").write_text('IMPLEMENTOR="X"\nJAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.find_java().path == str(fake)


@pytest.mark.parametrize("script", ["exit 1", "echo no Java here >&2; exit 1"])
def test_a_java_that_does_not_work_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(java.JavaNotFoundError, match=r"^JAVA_HOME=.* has no bin/java: Spark"):
        java.find_java()
    fake = fake_java(tmp_path, script)
    with pytest.raises(java.JavaNotFoundError, match=f"^{fake} is not a working Java: Spark"):
        java.find_java()


def test_no_pyspark_is_one_line_that_says_what_to_install(
    nothing_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(java.SparkNotFoundError) as raised:
        session.local_session()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = " ".join(f"'{each}'" for each in project["optional-dependencies"]["spark"])
    assert str(raised.value) == f"pyspark is not installed; run pip install {wanted}"
