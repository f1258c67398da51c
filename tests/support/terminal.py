"""A command as a user sees it: in a terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from corpus import REPOSITORY

# An environment variable that marks the processes of a test, so that they can be found.
_MARK = "KAFKAJIT_TEST_MARK"
_ARCHIVER = "kafkajit.spark.local.archive_maker"


def command(*arguments: str) -> list[str]:
    """`kafkajit` with these arguments."""
    return [sys.executable, "-m", "kafkajit.cli", *arguments]


def environment(**changes: str) -> dict[str, str]:
    """A command's environment: this checkout, no colours unless NO_COLOR="" asks for them, and a
    mark that all its processes inherit.
    """
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
    }
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    marked = {"PYTHONPATH": path, "NO_COLOR": "1", _MARK: uuid.uuid4().hex}
    return inherited | marked | changes


def processes(environment: Mapping[str, str]) -> list[str]:
    """The command lines of processes with this environment's mark."""
    mark = f"{_MARK}={environment[_MARK]}".encode()
    marked: dict[int, tuple[int, str]] = {}  # process: its parent, its command line
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                marked[int(folder.name)] = (parent, line)
        except OSError:
            continue  # it has ended, or is not ours

    def is_left(process: int) -> bool:
        parent, line = marked[process]
        # The archive of classes is made after a session, for later ones.
        return _ARCHIVER not in line and (parent not in marked or is_left(parent))

    return [line for process, (_, line) in marked.items() if line and is_left(process)]


class Terminal:
    """A command that runs in a terminal, with what it has printed."""

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], *, columns: int = 80
    ) -> None:
        self._terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            arguments,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**environment, "TERM": "xterm"},
            preexec_fn=_take_terminal,
        )
        os.close(inside)
        self._unread = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._terminal)

    def type(self, keys: str) -> None:
        """Press keys; \\r is Enter, \\x03 Ctrl-C, \\x04 Ctrl-D."""
        os.write(self._terminal, keys.encode())

    def read_until(self, text: str, seconds: float = 120) -> str:
        """Read the output up to that text."""
        end = time.monotonic() + seconds
        while text not in self._unread:
            left = end - time.monotonic()
            if left < 0 or not self._receive(left):
                raise AssertionError(f"no {text!r} in\n{self._unread}")
        at = self._unread.index(text) + len(text)
        read, self._unread = self._unread[:at], self._unread[at:]
        return as_shown(read)

    def clear_line(self, prompt: str) -> None:
        """Press Ctrl-C until the prompt is there again.

        Python's readline misses a Ctrl-C that comes just before it waits for a key.
        """
        for _ in range(20):
            self.type("\x03")
            with suppress(AssertionError):
                self.read_until(prompt, 2)
                return
        raise AssertionError(f"no {prompt!r} after Ctrl-C")

    def terminate(self) -> tuple[int, str]:
        """Send SIGTERM until the command ends, and `wait`: readline misses it as it does Ctrl-C."""
        for _ in range(20):
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                return self.wait(2)
        return self.wait()

    def wait(self, seconds: float = 30) -> tuple[int, str]:
        """Wait for the command's end; return its exit code and the rest of its output."""
        end = time.monotonic() + seconds
        while self._receive(max(end - time.monotonic(), 0)):
            pass
        return self.process.wait(max(end - time.monotonic(), 1)), as_shown(self._unread)

    def _receive(self, seconds: float) -> bool:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:  # the process has closed its end
            return False
        self._unread += data.decode(errors="replace")
        return bool(data)


def _take_terminal() -> None:
    """Set up a process as a login does, so that keys such as Ctrl-C send it signals."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # jobs in the background may ignore it


def as_shown(text: str) -> str:
    """The screen after all this output: overwritten lines are gone."""
    text = re.sub(r"\x1b\[\?2004[hl]\r?", "", text)  # readline switches bracketed paste on and off
    lines = [re.sub(r".*\r(?!$)", "", line.removesuffix("\r")) for line in text.split("\n")]
    return "\n".join(lines)
