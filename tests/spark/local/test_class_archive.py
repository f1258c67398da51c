"""Archives of Spark's classes, and the program that makes them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from local_java import environment, fake_java
from strangers import folder_that_others_enter

from kafkajit.spark.local import archive_maker, class_archive, java, jvm
from kafkajit.system.file_lock import try_lock

# Archives. The JVM starts without one that it cannot use, and says nothing.


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KAFKAJIT_CACHE", raising=False)
    return tmp_path / "kafkajit"


def archive_name() -> Path:
    name = class_archive.archive_name(java.find_java(), java.spark_jars())
    assert name is not None
    return name


def archived(content: bytes, said: int | None = None) -> Path:
    """An archive in the cache, with its size in its name; `said` is a wrong size."""
    name = archive_name()
    size = len(content) if said is None else said
    path = name.with_name(f"{name.name}-{size}.jsa")
    path.write_bytes(content)
    return path


def test_an_archive_is_named_after_java_and_the_jars(cache: Path, tmp_path: Path) -> None:
    found, jars = java.find_java(), [tmp_path / "a.jar"]
    jars[0].write_bytes(b"1")
    first = class_archive.archive_name(found, jars)
    assert first is not None
    assert first.parent == cache
    assert class_archive.archive_name(found, jars) == first
    assert class_archive.archive_name(java.Java(found.path, "another"), jars) != first
    jars[0].write_bytes(b"22")
    assert class_archive.archive_name(found, jars) != first


def test_the_cache_can_be_turned_off(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKAJIT_CACHE", "0")
    assert class_archive.archive_name(java.find_java(), java.spark_jars()) is None


def test_there_is_no_archive_where_none_can_be_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert class_archive.archive_name(java.find_java(), java.spark_jars()) is None


def test_no_archive_is_taken_from_where_others_can_write(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder_that_others_enter() as home:
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        archive_name().parent.chmod(0o777)
        assert class_archive.archive_name(java.find_java(), java.spark_jars()) is None


def test_an_archive_that_is_not_as_large_as_it_was_is_none(cache: Path) -> None:
    assert class_archive.find_archive(archive_name()) is None
    path = archived(b"whole")
    assert class_archive.find_archive(archive_name()) == path
    path.write_bytes(b"who")
    assert class_archive.find_archive(archive_name()) is None


@pytest.fixture(scope="module")
def small_archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A sound archive of the few classes that a program loads which starts nothing."""
    path = tmp_path_factory.mktemp("archive") / "small.jsa"
    subprocess.run(
        [
            java.find_java().path,
            "-Xlog:disable",
            f"-XX:ArchiveClassesAtExit={path}",
            "-cp",
            ":".join(map(str, java.spark_jars())),
            "org.apache.spark.launcher.Main",
        ],
        check=False,
        capture_output=True,
    )
    return path.read_bytes()


STARTED = """
from kafkajit.spark.local import java, session
jvm = session._start_from_archive(java.find_java(), java.spark_jars(), {}, verbose=False)
session.atexit.unregister(session.start_maker)
print(jvm.port)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["sound", "of another Java", "zeros", "text"])
def test_java_starts_in_silence_whatever_the_archive_is(
    cache: Path, small_archive: bytes, what: str
) -> None:
    contents = {
        "sound": small_archive,
        "of another Java": re.sub(rb"JRE \(\S+", rb"JRE (99.0.0+1", small_archive),
        "zeros": bytes(len(small_archive)),
        "text": b"not an archive" * 100_000,
    }
    archived(contents[what])
    done = started()
    assert int(done.stdout) > 0
    assert done.stderr == ""


def started(**more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STARTED],
        env=environment() | {"KAFKAJIT_CACHE": "1"} | more,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.thorough
def test_an_archive_in_which_java_dies_is_removed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = java.find_java()
    fake_java(tmp_path, f'grep -q SharedArchive "${{1#@}}" && exit 1\nexec {real.path} "$@"')
    (tmp_path / "release").write_text(real.release)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    path = archived(b"deadly")
    done = started()
    assert int(done.stdout) > 0
    assert done.stderr == ""
    assert not path.exists()


# The maker.


@pytest.fixture
def recorded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What the maker has recorded, with everything slow about it taken out."""
    done: list[Path] = []

    def record(_: java.Java, jars: list[Path], target: Path) -> None:
        done.append(target)
        target.write_bytes(b"classes")

    monkeypatch.setattr(archive_maker, "_record", record)
    monkeypatch.setattr(archive_maker, "_check", lambda *_: None)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(signal, "alarm", lambda _: 0)
    return done


def test_an_archive_is_made_once(recorded: list[Path], cache: Path) -> None:
    assert archive_maker.main() == 0
    archive = class_archive.find_archive(archive_name())
    assert archive is not None
    assert archive.read_bytes() == b"classes"
    assert archive_maker.main() == 0
    assert len(recorded) == 1
    assert sorted(path.suffix for path in cache.iterdir()) == [".jsa", ".lock"]


def test_only_one_maker_runs_at_a_time(recorded: list[Path], cache: Path) -> None:
    archive_name()
    with (cache / "spark.lock").open("w") as lock:
        assert try_lock(lock.fileno())
        assert archive_maker.main() == 0
    assert recorded == []
    assert archive_maker.main() == 0
    assert len(recorded) == 1


def test_what_a_killed_maker_left_is_replaced(recorded: list[Path], cache: Path) -> None:
    name = archive_name()
    name.with_suffix(".unfinished").write_bytes(b"half")
    truncated = archived(b"half", said=100)
    assert class_archive.find_archive(name) is None
    assert archive_maker.main() == 0
    assert class_archive.find_archive(name) is not None
    assert not truncated.exists()


def test_a_maker_that_failed_is_not_followed_by_another_for_a_day(
    recorded: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: java.Java, jars: list[Path], archive: Path) -> None:
        raise subprocess.CalledProcessError(1, "java")

    with monkeypatch.context() as patch:
        patch.setattr(archive_maker, "_check", fail)
        with pytest.raises(subprocess.CalledProcessError):
            archive_maker.main()
    assert archive_maker.main() == 0
    assert len(recorded) == 1
    assert class_archive.find_archive(archive_name()) is None
    yesterday = time.time() - 90_000
    os.utime(archive_name().with_suffix(".failed"), (yesterday, yesterday))
    assert archive_maker.main() == 0
    assert class_archive.find_archive(archive_name()) is not None


def test_archives_that_nobody_uses_are_removed(recorded: list[Path], cache: Path) -> None:
    archive_name()
    used, unused = cache / "spark-used-1.jsa", cache / "spark-unused-1.jsa"
    for path in (used, unused):
        path.write_bytes(b"1")
    past = time.time() - 40 * 86_400
    os.utime(unused, (past, past))
    assert archive_maker.main() == 0
    assert used.exists()
    assert not unused.exists()


def test_what_java_cannot_use_is_not_published(cache: Path, tmp_path: Path) -> None:
    unfinished = tmp_path / "archive"
    unfinished.write_bytes(b"no classes" * 10_000)
    with pytest.raises(subprocess.CalledProcessError):
        archive_maker._check(java.find_java(), java.spark_jars(), unfinished)


@pytest.mark.thorough
def test_a_session_starts_from_the_archive_that_the_maker_made(cache: Path, tmp_path: Path) -> None:
    program = (
        "from kafkajit.spark.local import archive_maker\n"
        "archive_maker._QUERIES = archive_maker._QUERIES[:1]\n"
        "raise SystemExit(archive_maker.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment() | {"KAFKAJIT_CACHE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    archive = class_archive.find_archive(archive_name())
    assert archive is not None
    loaded = tmp_path / "classes.txt"
    assert started(_JAVA_OPTIONS=f"-Xlog:class+load:file={loaded}").returncode == 0
    gateway = next(line for line in loaded.read_text().splitlines() if jvm.GATEWAY in line)
    assert gateway.endswith("source: shared objects file (top)")
