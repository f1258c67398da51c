"""Commands whose standard streams are closed or full: nothing is lost in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = {
    "info": "info sample:",
    "tail": "tail sample:orders-0",
    "grep": "grep order-1 sample:",
    "dump-log": "dump-log --files sample:orders-0",
    "export": "export sample: --topic orders -o - --to csv",
    "repair": "repair {0}",
    "report": "report --quick --format json sample:",
    "completion": "completion bash",
    "restore": "restore --topic orders sample: {0}/restored",
    "help": "--help",
    "help of a command": "info --help",
    "version": "--version",
    "no command": "",
}


def run(command: str, streams: str) -> subprocess.CompletedProcess[str]:
    words = f"{sys.executable} -m kafkajit.cli {command} {streams}"
    return subprocess.run(
        ["/bin/sh", "-c", words], capture_output=True, text=True, check=False, timeout=100
    )


@pytest.fixture
def log_dirs(tmp_path: Path) -> Path:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_or_full_output_is_an_error(name: str, log_dirs: Path) -> None:
    command = COMMANDS[name].format(log_dirs)
    for streams, words in (
        (">&-", "standard output is closed: nothing could be printed"),
        (">/dev/full", "No space left on device"),
    ):
        done = run(command, streams)
        assert done.returncode in (1, 2), streams
        assert done.stderr.count("\n") == 1, done.stderr
        assert words in done.stderr
    assert run(command, ">&- 2>&- <&-").returncode in (1, 2)


def test_a_command_that_prints_nothing_needs_no_output(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    done = run(f"export sample: --topic orders --quiet -o {out}", ">&- 2>&- <&-")
    assert done.returncode == 0
    assert out.read_text().count("\n") == 26
