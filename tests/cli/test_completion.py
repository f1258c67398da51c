"""kafkajit completion: shells complete commands, options, and the words that options take."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkajit.cli import main, new_parser

Complete = Callable[..., list[str]]


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[[str], Path]:
    def write(shell: str) -> Path:
        assert main(["completion", shell]) == 0
        path = tmp_path / "_kafkajit"
        path.write_text(capsys.readouterr().out)
        return path

    return write


@pytest.fixture
def complete(script: Callable[[str], Path]) -> Complete:
    """The words that bash offers for the last of these."""
    path = script("bash")

    def run(*words: str) -> list[str]:
        program = (
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kafkajit;'
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        arguments = ["bash", "-c", program, "bash", str(path), "kafkajit", *words]
        run = subprocess.run(arguments, capture_output=True, text=True, check=True)
        assert run.stderr == ""
        return run.stdout.split()

    return run


def test_commands_are_completed(complete: Complete) -> None:
    assert complete("re") == ["repair", "report", "restore", "retain"]
    assert set(complete("")) == {*new_parser()[1], "--help", "--version"}


@pytest.mark.parametrize("command", sorted(new_parser()[1]))
def test_every_option_is_completed(command: str, complete: Complete) -> None:
    parser = new_parser()[1][command]
    names = {name for name in parser._option_string_actions if name.startswith("--")}
    assert set(complete(command, "--")) == names


def test_words_that_an_option_takes_are_completed(complete: Complete) -> None:
    assert complete("tail", "--format", "") == ["text", "json"]
    assert complete("tail", "--format", "j") == ["json"]
    assert complete("completion", "") == ["bash", "fish", "zsh"]


def test_other_words_are_files(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    assert complete("info", f"{tmp_path}/ord") == [f"{tmp_path}/orders-0"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_name_every_option(shell: str, script: Callable[[str], Path]) -> None:
    text = script(shell).read_text()
    for command, parser in new_parser()[1].items():
        assert command in text
        for name in parser._option_string_actions:
            assert (f"*{name}[" if shell == "zsh" else f"{name.lstrip('-')} ") in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_take_the_script(shell: str, script: Callable[[str], Path]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert os.fspath(script(shell))
    run = subprocess.run([shell, "-n", script(shell)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_kafkajit_alone_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"    {command}" in shown for command in new_parser()[1])
