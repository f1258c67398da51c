from __future__ import annotations

import os
import re

import pytest

from kafkajit.cli import look
from kafkajit.cli.readable import print_line


def test_lines_are_wrapped_only_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "orders-0: " + "a long-winded word " * 8
    print_line(f"  {text}")
    assert capsys.readouterr().out == f"  {text}\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("shutil.get_terminal_size", lambda **_: os.terminal_size((60, 24)))
    for start, indent in [("", 4), ("  ", 2), ("  0.log  ", 9), ("  0.log     ", 12)]:
        print_line(start + text)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) > 2
        assert all(len(line) <= 60 for line in lines)
        assert lines[0].startswith(f"{start}orders-0: a long-winded")
        assert all(re.match(f" {{{indent}}}[a-z]", line) for line in lines[1:])
        assert " ".join(lines).split() == (start + text).split()


@pytest.mark.parametrize(
    ("line", "coloured"),
    [
        ("orders-0:", "\x1b[1morders-0:\x1b[0m"),
        ("orders-0: 3 records", "\x1b[1morders-0:\x1b[0m 3 records"),
        ("  0.log  cut off at 414", "  0.log  \x1b[1;31mcut off at 414\x1b[0m"),
        ("  0.index  create: it is missing", "  0.index  create: it is missing"),
        ("  note: a", "\x1b[33m  note:\x1b[0m a"),
        ("2 partitions left alone: b", "\x1b[33m2 partitions left alone:\x1b[0m b"),
        ("3 partitions, 1 to be repaired", "3 partitions, 1 to be repaired"),
        ("  done; the old files are kept", "\x1b[2m  done\x1b[0m; the old files are kept"),
    ],
)
def test_a_line_has_the_colours_of_its_meaning(
    line: str,
    coloured: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(look, "_chosen", "always")
    print_line(line)
    assert capsys.readouterr().out == f"{coloured}\n"
    monkeypatch.setattr(look, "_chosen", "never")
    print_line(line)
    assert capsys.readouterr().out == f"{line}\n"
