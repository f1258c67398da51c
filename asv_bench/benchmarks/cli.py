"""kafkajit.cli: whole commands as a shell runs them, on a log of 27 records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kafkajit.testing import SAMPLE

LOG = str(Path(SAMPLE) / "orders-0" / f"{0:020}.log")
COMMANDS = {
    "--help": ["--help"],
    "dump-log": ["dump-log", "--files", LOG],
    "dump-log --print-data-log": ["dump-log", "--print-data-log", "--files", LOG],
}


class Command:
    """From the start of the interpreter to its end, kernels compiled earlier."""

    params = list(COMMANDS)
    param_names = ["command"]

    def setup(self, command: str) -> None:
        self.time_command(command)

    def time_command(self, command: str) -> None:
        arguments = [sys.executable, "-m", "kafkajit.cli", *COMMANDS[command]]
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
