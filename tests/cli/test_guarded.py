"""No control character of a name or a record reaches a terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal import Terminal, command, environment

import kafkajit.testing as kt
from kafkajit.cli.guarded import guard_terminals, guarded
from kafkajit.cli.look import COLOURS, DAMAGE, END, start_of

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb"
SHOWN = r"a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb"


@pytest.mark.parametrize("color", ["always", "never"])
@pytest.mark.parametrize(
    "words",
    [
        "info {logs}",
        "info {partition}",
        "tail {logs} {partition}",
        "grep v {logs} {partition}",
        "dump-log --print-data-log {partition}/{log}",
        "dump-log {partition}",
        "repair {logs}",
        "repair {partition}",
        "retain --config retention.ms=1 {logs}",
        "compact {logs}",
        "report {logs} -o {out}/r.html",
        "export {partition} -o {out}/o --to jsonl",
        "export {logs}/none-0 -o {out}/o --to jsonl",
        "restore {partition} {out}/kafka",
        "import {logs} {out}/kafka",
    ],
)
def test_a_command_in_a_terminal_shows_escapes(words: str, color: str, tmp_path: Path) -> None:
    logs = tmp_path / f"logs{HOSTILE}"
    partition = logs / f"{HOSTILE}-0"
    partition.mkdir(parents=True)
    log = partition / f"{0:020}.log"
    log.write_bytes(kt.batch([kt.Record(HOSTILE.encode(), f"v{HOSTILE}".encode())]) + b"torn")
    (partition / f"{0:020}{HOSTILE} (1).log").write_bytes(b"x")
    (logs / f"link{HOSTILE}-1").symlink_to(f"nowhere{HOSTILE}")
    places = {"logs": logs, "partition": partition, "log": log.name, "out": tmp_path}
    given_ = [word.format(**places) for word in words.split()]
    colors = [] if words.split()[0] in ("import", "dump-log") else ["--color", color]
    with Terminal(command(*given_, *colors), environment(NO_COLOR="")) as terminal:
        _, text = terminal.wait(120)
    for colour in COLOURS:
        text = text.replace(start_of(colour), "")
    assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", text), text
    assert "title" in text


@given(st.text())
def test_printable_text_and_our_colours_stay(text: str) -> None:
    shown = f"{start_of(DAMAGE)}{guarded(text)}{END}\r"
    assert guarded(shown) == shown
    assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    if text.isprintable() or (text.isascii() and text.replace("\n", "").isprintable()):
        assert guarded(text) == text


def test_bytes_are_shown_as_text_is() -> None:
    script = (
        "import sys; from kafkajit.cli.guarded import guard_terminals; guard_terminals();"
        f"sys.stdout.buffer.write({HOSTILE!r}.encode() + b'\\n'); sys.stdout.flush();"
        f"sys.stdout.writelines([{HOSTILE!r}, chr(10)]); print({HOSTILE!r}, file=sys.stderr)"
    )
    with Terminal([sys.executable, "-c", script], environment()) as terminal:
        _, text = terminal.wait()
    assert text.splitlines() == [SHOWN] * 3


def test_a_pipe_gets_everything(capsys: pytest.CaptureFixture[str]) -> None:
    guard_terminals()
    sys.stdout.write(HOSTILE)
    assert capsys.readouterr().out == HOSTILE
