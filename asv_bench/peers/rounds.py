"""Interleaved rounds: A B C A B C ..., so that a busy machine is unfair to all alike.

A subject is a process that waits for a line and answers with the time of one pass (`Worker`), or a
whole process whose time is that from its start to its end (`Command`). All are bound to one and
the same CPU, and so is this process: a pipe that crosses to another CPU of a virtual machine makes
`kafkajit dump-log` take 3.4 s instead of 1.8.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parents[2]


class Pass(NamedTuple):
    """One pass: how much it found (0: it does not count) and how long it took."""

    found: int
    seconds: float


class Worker:
    """A process that does one pass for each line; see subjects.py and ReadRecords.java."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=REPO,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._answer()

    def __call__(self) -> Pass:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        nanoseconds, found = self._answer().split()
        return Pass(int(found), int(nanoseconds) / 1e9)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended with code {self._process.wait()}")
        return line

    def close(self) -> None:
        """End the process: it leaves when its input ends."""
        self._process.communicate()


class Command:
    """A whole process, from its start to its end; its output goes into a pipe and is counted."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def __call__(self) -> Pass:
        start = time.perf_counter()
        size = 0
        with subprocess.Popen(
            self._command,
            cwd=REPO,
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as process:
            assert process.stdout is not None
            buffer = bytearray(1 << 20)
            while read := os.readv(process.stdout.fileno(), [buffer]):
                size += read
        if process.returncode:
            raise RuntimeError(f"{self._command} ended with code {process.returncode}")
        return Pass(size, time.perf_counter() - start)

    def close(self) -> None:
        """Do nothing: no process is left running."""


def python(module: str, *arguments: str) -> list[str]:
    """A command that runs a module with this Python."""
    return [sys.executable, "-m", module, *arguments]


def measure(
    subjects: Mapping[str, Callable[[], Worker | Command]],
    *,
    warm: float,
    rounds: int,
    bind: bool = True,
) -> dict[str, list[float]]:
    """Seconds of each pass of each subject, after `warm` seconds of passes that do not count.

    Subjects that count must have found the same. Without `bind` they may use every CPU.
    """
    if bind:  # inherited by every subject
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    seconds: dict[str, list[float]] = {name: [] for name in subjects}
    found: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        running: dict[str, Worker | Command] = {}
        for name, start in subjects.items():
            running[name] = subject = start()
            stack.callback(subject.close)
            found[name], spent = subject()
            while spent < warm:
                spent += subject().seconds
        for _ in range(rounds):
            for name, subject in running.items():
                seconds[name].append(subject().seconds)
    if len(set(found.values()) - {0}) > 1:
        raise RuntimeError(f"subjects do not agree on what is there: {found}")
    return seconds


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Median and best."""
    return {"median": statistics.median(seconds), "best": min(seconds)}
