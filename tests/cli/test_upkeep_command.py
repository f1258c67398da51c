from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest
from retaining import broker_of

import kafkajit
from kafkajit.cli import upkeep_command

Change = Callable[[Path, bool], bool]


def options_of(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kafkajit change", exit_on_error=False)
    upkeep_command.add_arguments(parser, "the topic's")
    options = parser.parse_args(words)
    options.words, options.command, options.debug = list(words), "change", False
    return options


def each(options: argparse.Namespace, change: Change) -> int:
    with upkeep_command.Report(options) as report:
        return upkeep_command.each_partition(options, change, report)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A log.dirs folder with three partitions."""
    for name in ("a-0", "a-1", "b-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020d}.log").touch()
    return tmp_path


def changed(folder: Path, is_alone: bool) -> bool:
    return True


def test_each_partition_is_passed_once_with_whether_it_is_alone(root: Path) -> None:
    given: list[tuple[Path, bool]] = []

    def change(folder: Path, is_alone: bool) -> bool:
        given.append((folder, is_alone))
        return False

    assert each(options_of(str(root)), change) == 0
    assert given == [(root / name, False) for name in ("a-0", "a-1", "b-0")]
    given.clear()
    assert each(options_of(f"{root}/a-1"), change) == 0
    assert given == [(root / "a-1", True)]


def test_a_folder_to_which_several_paths_lead_is_done_once(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    given: list[tuple[str, bool]] = []

    def change(folder: Path, is_alone: bool) -> bool:
        given.append((folder.name, is_alone))
        return False

    link = tmp_path_factory.mktemp("other") / "link"
    link.symlink_to(root)
    assert each(options_of(f"{root}/a-0", str(root), str(link), f"{link}/b-0"), change) == 0
    assert given == [("a-0", False), ("a-1", False), ("b-0", False)]
    given.clear()
    assert each(options_of(f"{root}/a-0", f"{link}/a-0"), change) == 0
    assert given == [("a-0", True)]
    given.clear()
    (root / "a-2").symlink_to(root / "a-1")  # another partition, with the same files
    assert each(options_of(str(root)), change) == 0
    assert [name for name, _ in given] == ["a-0", "a-1", "a-2", "b-0"]


def test_several_folders_are_done_one_after_the_other(
    root: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path_factory.mktemp("other") / "c-0"
    other.mkdir()
    given: list[tuple[str, bool]] = []

    def change(folder: Path, is_alone: bool) -> bool:
        given.append((folder.name, is_alone))
        return folder == other

    names = [f"{root}/b-0", str(other), f"{root}/a-0"]
    assert each(options_of("--apply", *names), change) == 2
    assert given == [("b-0", False), ("c-0", False), ("a-0", False)]
    given.clear()
    with broker_of(root):  # which has two of them
        assert each(options_of("--apply", *names), change) == 1
    assert given == [("c-0", False)]
    assert capsys.readouterr().err.count("kafkajit change: LockedError: ") == 2
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*/nothing"):
        each(options_of(str(other), f"{root}/nothing"), change)
    with pytest.raises(ValueError, match="--truncate-to is for one log"):
        upkeep_command.check_alone(options_of(*names), "--truncate-to")


def test_the_lock_is_held_if_something_may_be_changed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(folder: Path, is_alone: bool) -> bool:
        locked.append((root / ".lock").exists())
        return True

    locked: list[bool] = []
    assert each(options_of(str(root)), change) == 2
    assert locked == [False] * 3
    locked.clear()
    assert each(options_of("--apply", str(root)), change) == 2
    assert locked == [True] * 3
    assert not (root / ".lock").exists()


def test_an_error_of_one_partition_does_not_stop_the_next(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(folder: Path, is_alone: bool) -> bool:
        if folder.name == "a-1":
            raise kafkajit.CorruptRecordError("no batch", path=str(folder))
        done.append(folder.name)
        return True

    done: list[str] = []
    assert each(options_of(str(root)), change) == 1
    assert done == ["a-0", "b-0"]
    captured = capsys.readouterr()
    assert captured.err == f"kafkajit change: CorruptRecordError: no batch in {root}/a-1\n"
    assert captured.out == ""


def test_an_error_of_the_only_one_is_the_commands(root: Path) -> None:
    def change(folder: Path, is_alone: bool) -> bool:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        each(options_of(f"{root}/a-1"), change)
    options = options_of(str(root))
    options.debug = True
    with pytest.raises(OSError, match="no"):
        each(options, change)


def test_a_closed_pipe_ends_the_command(root: Path) -> None:
    def change(folder: Path, is_alone: bool) -> bool:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        each(options_of(str(root)), change)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    for words in ([], ["--apply"]):
        with pytest.raises(FileNotFoundError, match="a partition's, such as"):
            each(options_of(*words, f"{tmp_path}/nothing"), changed)
    assert list(tmp_path.iterdir()) == []


def test_the_exit_code_is_2_if_something_is_to_be_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = options_of("--config", "retention.ms=5", "/var/my kafka")
    assert upkeep_command.Report(options).end(0) == 0
    assert upkeep_command.Report(options).end(1) == 1
    assert capsys.readouterr().out == ""
    assert upkeep_command.Report(options).end(upkeep_command.NEEDED) == 2
    assert capsys.readouterr().out == (
        "Nothing was changed. To do it: kafkajit change --apply --config retention.ms=5 "
        "'/var/my kafka'\n"
    )


def test_the_sample_is_to_be_copied_first(capsys: pytest.CaptureFixture[str]) -> None:
    upkeep_command.Report(options_of("sample:orders-0")).end(upkeep_command.NEEDED)
    assert capsys.readouterr().out == (
        "Nothing was changed. The sample stays as it is: copy it to a folder of your own.\n"
    )


def test_applied_changes_are_not_to_be_done_again(capsys: pytest.CaptureFixture[str]) -> None:
    options = options_of("--apply", "/var/kafka")
    assert upkeep_command.Report(options).end(upkeep_command.NEEDED) == 0
    assert upkeep_command.Report(options).end(1) == 1
    assert capsys.readouterr().out == ""


def test_configs_are_names_and_values() -> None:
    options = options_of("--config", "a.b=c=d", "--config", " e = ", "/")
    assert options.config == [("a.b", "c=d"), ("e", "")]
    with pytest.raises(argparse.ArgumentError, match="expected NAME=VALUE, not 'retention"):
        options_of("--config", "retention.ms", "/")


def test_a_folder_that_a_broker_has_locked_is_left_alone_unless_it_is_forced(root: Path) -> None:
    with broker_of(root):
        assert each(options_of(str(root)), changed) == 2  # nothing is touched
        with pytest.raises(kafkajit.LockedError, match="stop the broker first"):
            each(options_of("--apply", str(root)), changed)
        assert each(options_of("--apply", "--force", str(root)), changed) == 2


def test_an_option_for_one_partition_is_refused_for_several(root: Path) -> None:
    upkeep_command.check_alone(options_of(f"{root}/a-1"), "--truncate-to")
    with pytest.raises(ValueError, match="--truncate-to is for one log: pass a partition's folder"):
        upkeep_command.check_alone(options_of(str(root)), "--truncate-to")
    for name in ("a-1", "b-0"):
        (root / name / f"{0:020d}.log").unlink()
        (root / name).rmdir()
    with pytest.raises(
        ValueError, match="pass a partition's folder as DIR"
    ):  # and not what is in it today
        upkeep_command.check_alone(options_of(str(root)), "--truncate-to")
