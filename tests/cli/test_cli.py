from __future__ import annotations

import pytest

from kafkajit.cli import main


@pytest.mark.parametrize("command", ["compact", "repair", "retain"])
def test_what_a_command_does_not_know_is_told_with_its_own_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, unknown in [(["--dry-run", "/k"], "--dry-run"), (["/k", "--m", "--n"], "--m --n")]:
        with pytest.raises(SystemExit) as exit_:
            main([command, *words])
        assert exit_.value.code == 1
        name = f"kafkajit {command}"
        error = capsys.readouterr().err
        assert error == f"{name}: unrecognized arguments: {unknown}; see {name} --help\n"


def test_a_command_that_there_is_not_is_told_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["repir", "/k"])
    assert exit_.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "'repair'" in error
    assert error.endswith("see kafkajit --help\n")
