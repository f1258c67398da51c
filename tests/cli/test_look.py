"""Colours: on a terminal whose user wants them, and nowhere else unless asked for."""

from __future__ import annotations

import io
import sys

import pytest
from terminal import Terminal, command, environment

from kafkajit.cli import look


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(look, "_chosen", "auto")


def test_only_a_terminal_gets_colours() -> None:
    assert look.is_coloured(Screen())
    assert not look.is_coloured(io.StringIO())


@pytest.mark.parametrize(
    ("variables", "on_terminal", "in_pipe"),
    [
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),  # https://no-color.org: set and not empty
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_variables_decide(
    variables: dict[str, str],
    on_terminal: bool,
    in_pipe: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (look.is_coloured(Screen()), look.is_coloured(io.StringIO())) == (on_terminal, in_pipe)


def test_the_option_decides_before_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    look.choose("always")
    assert look.painted("x", look.DAMAGE, io.StringIO()) == "\x1b[1;31mx\x1b[0m"
    monkeypatch.setenv("FORCE_COLOR", "1")
    look.choose("never")
    assert look.painted("x", look.DAMAGE, Screen()) == "x"


def test_an_empty_text_stays_empty() -> None:
    assert look.painted("", look.DAMAGE, Screen()) == ""


def test_a_complaint_comes_behind_what_was_printed(capfd: pytest.CaptureFixture[str]) -> None:
    sys.stdout.write("before")
    look.complain("repair", "no")
    assert capfd.readouterr() == ("before", "kafkajit repair: no\n")


@pytest.mark.parametrize(
    ("variable", "is_red"), [("", True), ("1", False)], ids=["plain", "NO_COLOR"]
)
def test_an_error_is_red_on_a_terminal(variable: str, is_red: bool) -> None:
    with Terminal(command("repair", "/no/such"), environment(NO_COLOR=variable)) as terminal:
        code, shown = terminal.wait()
    assert code == 1
    assert ("\x1b[1;31mkafkajit repair:\x1b[0m there is no folder" in shown) == is_red
    assert ("\x1b" in shown) == is_red
