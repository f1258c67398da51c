from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from corpus import REPOSITORY

from kafkajit.system import current_folder
from kafkajit.system.current_folder import temporary_folder, without_current_folder

COMMAND = """
import os, sys
sys.path.append({checkout!r})  # behind Python's library, as the folder of installed packages is
from kafkajit.system import current_folder
current_folder.leave_out()
print(current_folder.entries_in_front())
print(os.environ.get("PYTHONPATH"), os.environ["PATH"], current_folder.is_left_out())
"""


def left_out(folder: Path, *options: str, **environment: str) -> list[str]:
    """What a command in a folder has in front of Python's library, and in its environment."""
    script = folder.parent / "bin" / "command"
    script.parent.mkdir(exist_ok=True)
    script.write_text(COMMAND.format(checkout=str(REPOSITORY)))
    done = subprocess.run(
        [sys.executable, *options, str(script)],
        cwd=folder,
        env={"PATH": "/usr/bin:."} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("path", ["", ":", "::"])
def test_a_command_imports_nothing_from_where_it_is_started(folder: Path, path: str) -> None:
    assert left_out(folder, PYTHONPATH=path) == ["[]", "None /usr/bin True"]


def test_a_command_imports_from_the_folders_that_pythonpath_names(folder: Path) -> None:
    assert left_out(folder, PYTHONPATH=":/opt/modules:") == [
        "['/opt/modules']",
        "/opt/modules /usr/bin True",
    ]
    assert left_out(folder, PYTHONPATH=".") == [f"['{folder}']", ". /usr/bin True"]
    assert left_out(folder, PYTHONPATH=f":{folder}") == [
        f"['{folder}']",
        f"{folder} /usr/bin True",
    ]


def test_pythons_own_switch_changes_nothing(folder: Path) -> None:
    assert left_out(folder, "-P", PYTHONPATH="/a") == ["['/a']", "/a /usr/bin True"]
    assert left_out(folder, PYTHONSAFEPATH="1", PYTHONPATH="/a:") == ["['/a']", "/a /usr/bin True"]


def test_a_checkout_stays_importable_for_a_command_that_is_started_in_it() -> None:
    code = f"{COMMAND.format(checkout='/')}print({str(REPOSITORY)!r} in sys.path or sys.path[0])"
    environment = {"PATH": "/usr/bin"}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=REPOSITORY, env=environment, capture_output=True, check=True)
    assert done.stdout.splitlines()[0] == b"['']"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "value", "becomes"),
    [
        ("PATH", "/usr/bin:/bin", "/usr/bin:/bin"),
        ("PATH", ":.:/usr/bin::bin:./bin:..:~/bin:", "/usr/bin"),
        ("PATH", "", None),  # the system would take it for the current folder
        ("PATH", ".", None),
        ("PYTHONPATH", ":/a::./b:", "/a:./b"),
        ("PYTHONPATH", ":", None),
        ("CLASSPATH", ":/hadoop/*:.", "/hadoop/*:."),
        ("LD_LIBRARY_PATH", "/lib:", "/lib"),
        ("SPARK_HOME", "", None),
        ("SPARK_HOME", "../spark", "../spark"),
        ("HOME", "", ""),
    ],
)
def test_an_empty_entry_of_a_list_of_folders_is_not_handed_to_a_child(
    name: str, value: str, becomes: str | None
) -> None:
    assert without_current_folder({name: value}).get(name) == becomes


def test_a_child_is_a_python_without_the_current_folder() -> None:
    assert without_current_folder({}) == {"PYTHONSAFEPATH": "1"}


def test_files_that_children_run_are_not_made_in_the_current_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(Path.cwd()))  # as if /tmp could not be written to
    with pytest.raises(FileNotFoundError, match="set TMPDIR to one"):
        temporary_folder()
    assert not list(folder.iterdir())
    monkeypatch.setenv("TMPDIR", str(folder))
    assert temporary_folder().parent == folder


def test_a_user_in_the_folder_for_temporary_files_has_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(Path.cwd()))
    monkeypatch.setattr(current_folder, "_TEMPORARY", [str(folder)])
    assert temporary_folder().parent == folder


def test_a_folder_that_was_removed_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert current_folder._resolved("") == Path()
