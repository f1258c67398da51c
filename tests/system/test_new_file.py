"""Files that appear complete: what another process can see, plant or take away meanwhile."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import killed_at

from kafkajit.system.disk import open_to_lock
from kafkajit.system.new_file import NewFile


def write(path: Path, *, replaces: bool, meanwhile: Callable[[], object] = lambda: None) -> None:
    with NewFile(path, replaces=replaces) as file:
        file.write(b"new")
        meanwhile()


replacing = pytest.mark.parametrize("replaces", [False, True])


@replacing
def test_a_file_appears_when_it_is_complete(replaces: bool, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with NewFile(path, replaces=replaces) as file:
        file.write(b"wh")
        assert not path.exists()
        file.write(b"ole")
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


@replacing
def test_an_error_leaves_nothing_behind_and_the_old_file_in_place(
    replaces: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    if replaces:
        path.write_text("old")
    with pytest.raises(KeyError):
        write(path, replaces=replaces, meanwhile=lambda: {}["missing"])
    assert [found.read_text() for found in tmp_path.iterdir()] == ["old"] * replaces


def test_a_file_that_exists_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(FileExistsError, match=rf"File exists: '{path}'$"):
        write(path, replaces=False)
    assert path.read_text() == "old"
    write(path, replaces=True)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(FileExistsError):
        write(path, replaces=False, meanwhile=lambda: path.write_text("another's"))
    assert path.read_text() == "another's"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_under_the_name_is_not_followed(is_dangling: bool, tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "folder" / "a"
    path.parent.mkdir()
    path.symlink_to(target)
    if not is_dangling:
        target.write_text("another's")
    with pytest.raises(FileExistsError):
        write(path, replaces=False)
    assert path.is_symlink()
    write(path, replaces=True)
    assert not path.is_symlink()
    assert target.exists() is not is_dangling
    assert is_dangling or target.read_text() == "another's"


def test_the_name_until_then_cannot_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    for _ in range(100):
        with NewFile(tmp_path / "a", replaces=True):
            names |= {path.name for path in tmp_path.iterdir()} - {"a"}
    assert len(names) == 100
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    target = tmp_path / "target"
    target.write_text("another's")
    (tmp_path / ".kafkajit-guessed.part").symlink_to(target)
    with pytest.raises(FileExistsError), NewFile(tmp_path / "b", replaces=True):
        raise AssertionError
    assert target.read_text() == "another's"
    assert (tmp_path / ".kafkajit-guessed.part").is_symlink()


def test_a_folder_that_is_replaced_by_a_link_does_not_lead_elsewhere(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    with NewFile(folder / "a", replaces=True) as file:
        file.write(b"new")
        folder.rename(tmp_path / "moved")
        folder.symlink_to(elsewhere)
    assert list(elsewhere.iterdir()) == []
    assert (tmp_path / "moved" / "a").read_bytes() == b"new"


def test_file_systems_without_hard_links_refuse_a_name_that_is_taken_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    path = tmp_path / "a"
    write(path, replaces=False)
    path.write_text("first")
    with pytest.raises(FileExistsError):
        write(path, replaces=False)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_names_and_errors_are_those_that_the_caller_knows(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    with NewFile(path, replaces=False) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"
    missing = tmp_path / "missing" / "a"
    with (
        pytest.raises(FileNotFoundError, match=rf"'{missing}'$"),
        NewFile(missing, replaces=False),
    ):
        raise AssertionError


@replacing
def test_a_process_that_is_killed_leaves_the_old_file_or_all_of_the_new_one(
    replaces: bool, tmp_path: Path
) -> None:
    outcomes = []
    for call in range(10):
        path = tmp_path / str(call) / "a"
        path.parent.mkdir()
        if replaces:
            path.write_text("old")

        def run(path: Path = path) -> None:
            with NewFile(path, replaces=replaces) as file:
                file.write(b"new")

        was_killed = killed_at(call, run)
        outcomes.append(path.read_text() if path.exists() else "none")
        if not was_killed:
            break
    assert not was_killed
    assert set(outcomes) == {"old" if replaces else "none", "new"}
    assert outcomes == sorted(outcomes, key=lambda outcome: outcome == "new")


def test_a_lock_file_is_never_a_link_and_keeps_its_bytes(tmp_path: Path) -> None:
    path, target = tmp_path / "lock", tmp_path / "target"
    path.write_text("kept")
    os.close(open_to_lock(path))
    assert path.read_text() == "kept"
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        open_to_lock(path)
    assert not target.exists()
