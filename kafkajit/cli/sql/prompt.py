"""The prompt: reads statements of several lines and commands, with a history."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path

from kafkajit.cli.look import DAMAGE, painted
from kafkajit.cli.sql.cancellable import interrupt_main_thread, run_cancellable
from kafkajit.cli.sql.commands import Commands, Leave
from kafkajit.cli.sql.completion import Completer
from kafkajit.cli.sql.shell import Failed, Shell
from kafkajit.cli.sql.statements import on_one_line, split
from kafkajit.cli.sql.views import Logs
from kafkajit.format.amounts import number_of, size_text
from kafkajit.places.location import shown
from kafkajit.places.uri import REDACTED

try:
    import readline
except ImportError:  # the prompt then has no history and no completion
    readline = None  # type: ignore[assignment]

_PROMPT = "kafkajit> "
_CONTINUED = "     ...> "
# Within these seconds a missing or too old Java is noticed.
_FAILS_WITHIN = 0.3


class Prompt:
    """Reads statements and commands from the terminal, and runs them."""

    def __init__(self, shell: Shell, logs: Logs | None) -> None:
        self._shell = shell
        self._logs = logs
        self._commands = Commands(shell, logs)
        self._history = History(_history_path())
        self._is_typing = False

    def run(self) -> int:
        """Run until the user leaves, and return the exit code."""
        self._shell.engine.start(self._interrupt_typing)
        self._shell.engine.wait(_FAILS_WITHIN)
        self._shell.print(self._greeting())
        if readline is not None:
            completer = Completer(self._logs, self._shell.engine, list(self._commands.by_name))
            completer.install(readline)
        typed = ""
        while True:
            try:
                line = self._read(_CONTINUED if typed else _PROMPT)
                typed = self._take(f"{typed}\n{line}" if typed else line)
            except KeyboardInterrupt:
                print()
                typed = ""
            except EOFError:
                print()
                return 0
            except Leave:
                return 0

    def _read(self, prompt: str) -> str:
        """Read a line; raise an error if Spark could not be started."""
        self._is_typing = True
        try:
            self._shell.engine.wait(0)
            return input(prompt)
        finally:
            self._is_typing = False

    def _interrupt_typing(self) -> None:
        """End a call of `input`, which only a signal can do."""
        if self._is_typing:
            interrupt_main_thread()

    def _take(self, typed: str) -> str:
        """Run all complete statements, and return the text that is to be continued."""
        command = self._commands.named_in(typed)
        if command is not None:
            self._history.add(typed)
            try:
                run_cancellable(partial(self._run_command, command), lambda: None)
            except ValueError as error:
                self._print_error(str(error))
            return ""
        statements, rest = split(typed)
        if rest is not None:
            return typed
        self._history.add(on_one_line(typed))
        try:
            for statement in statements:
                self._shell.run(statement)
        except Failed as failed:
            self._print_error(str(failed))
        except KeyboardInterrupt:
            self._print_error("cancelled")
        return ""

    def _run_command(self, command: str) -> None:
        text = self._commands.run(command)
        if text:
            self._shell.print([text])

    def _print_error(self, text: str) -> None:
        problem, *pointer = text.split("\n")
        lines = [painted(problem, DAMAGE, sys.stderr), *pointer]
        print("\n".join(lines), file=sys.stderr, flush=True)

    def _greeting(self) -> list[str]:
        lines = []
        if self._logs is not None:
            segments = self._logs.find_segments()
            folders = {segment.folder for segment in segments}
            lines.append(
                f"{number_of(len(segments), 'segment')} in {number_of(len(folders), 'folder')}, "
                f"{size_text(sum(segment.size for segment in segments))}: "
                f"{', '.join(map(shown, self._logs.paths))}"
            )
        return [*lines, "Statements end with a semicolon; .help lists the commands."]


class History:
    """The lines that were typed, kept in a file of the user."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_kept = False
        if readline is None:
            return
        readline.set_auto_history(False)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            readline.read_history_file(path)
            self._is_kept = True
        except OSError:
            pass  # the home is missing or not writable: the prompt works without a history

    def add(self, line: str) -> None:
        """Write a line to the file, unless it has a secret.

        That is done at once: a closed terminal leaves no time to do so later.
        """
        if readline is None or not line.strip() or re.search(REDACTED, line):
            return
        length = readline.get_current_history_length()
        if length and readline.get_history_item(length) == line:
            return
        readline.add_history(line)
        try:
            if self._is_kept:
                readline.append_history_file(1, self._path)
        except OSError:
            self._is_kept = False


def _history_path() -> Path:
    """The history's file, in XDG's folder for the state of programs."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    home = state if state.is_absolute() else Path.home() / ".local" / "state"
    return home / "kafkajit" / "history"
