"""Print a script with which bash, zsh or fish completes commands and options.

The script lists the commands and options of this version.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

EXAMPLE = """\
Put the script for zsh into a folder of zsh's fpath. To use ~/.zfunc, add
fpath+=~/.zfunc to .zshrc.

examples:
  kafkajit completion bash > ~/.local/share/bash-completion/completions/kafkajit
  kafkajit completion zsh > ~/.zfunc/_kafkajit
  kafkajit completion fish > ~/.config/fish/completions/kafkajit.fish
"""


class Option(NamedTuple):
    """An option of a command."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]


class Command(NamedTuple):
    """A command, and its options."""

    name: str
    help: str
    options: tuple[Option, ...]
    choices: tuple[str, ...] = ()  # of its argument, if that is one of a few words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=sorted(_SCRIPTS), metavar="SHELL", help="bash, fish, zsh")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from kafkajit.cli import new_parser

    sys.stdout.write(script(options.shell, new_parser()[1]))
    return 0


def script(shell: str, parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """The script for a shell."""
    commands = [_command(name, parser) for name, parser in parsers.items()]
    return "".join(f"{line}\n" for line in _SCRIPTS[shell](commands))


def _command(name: str, parser: argparse.ArgumentParser) -> Command:
    options = []
    choices: tuple[str, ...] = ()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        known = tuple(map(str, action.choices or ()))
        if not action.option_strings:
            choices = choices or known
            continue
        help_ = parser._get_formatter()._expand_help(action) if action.help else ""
        options.append(Option(tuple(action.option_strings), help_, action.nargs != 0, known))
    return Command(name, parser.description or "", tuple(options), choices)


def _bash(commands: list[Command]) -> Iterator[str]:
    yield "# bash completion of kafkajit"
    yield "_kafkajit() {"
    yield "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}"
    yield "  local command=${COMP_WORDS[1]} options= words= arguments="
    yield '  if [ "$COMP_CWORD" = 1 ]; then'
    names = " ".join(command.name for command in commands)
    yield f"    words={shlex.quote(f'{names} --help --version')}"
    yield "  else"
    yield "    case $command in"
    for command in commands:
        options = " ".join(name for option in command.options for name in option.names)
        arguments = shlex.quote(" ".join(command.choices))
        yield f"      {command.name}) options={shlex.quote(options)} arguments={arguments};;"
    yield "    esac"
    yield '    case "$command $before" in'
    for command in commands:
        for option in command.options:
            for name in option.names if option.choices else ():
                words = " ".join(option.choices)
                yield f"      {shlex.quote(f'{command.name} {name}')}) words={shlex.quote(words)};;"
    yield "    esac"
    yield "  fi"
    yield '  if [ -z "$words" ]; then'
    yield "    if [[ $current == -* ]]; then words=$options; else words=$arguments; fi"
    yield "  fi"
    yield '  if [ -n "$words" ]; then'
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "  else"
    yield '    COMPREPLY=($(compgen -f -- "$current"))'
    yield "  fi"
    yield "}"
    yield "complete -o filenames -F _kafkajit kafkajit"


def _zsh(commands: list[Command]) -> Iterator[str]:
    yield "#compdef kafkajit"
    yield "_kafkajit() {"
    yield "  local -a commands"
    yield "  commands=("
    for command in commands:
        yield f"    {shlex.quote(f'{command.name}:{command.help}')}"
    yield "  )"
    yield "  if (( CURRENT == 2 )); then"
    yield "    _describe command commands"
    yield "    return"
    yield "  fi"
    yield "  local command=$words[2]"
    yield "  shift words"
    yield "  (( CURRENT-- ))"
    yield "  case $command in"
    for command in commands:
        yield f"    {command.name})"
        yield "      _arguments -s \\"
        for option in command.options:
            for name in option.names:
                yield f"        {shlex.quote(_zsh_option(name, option))} \\"
        values = f"({' '.join(command.choices)})" if command.choices else "_files"
        yield f"        {shlex.quote(f'*:argument:{values}')}"
        yield "      ;;"
    yield "  esac"
    yield "}"
    # Zsh calls the function if it found this file in its fpath; otherwise the file was sourced.
    yield 'if [ "$funcstack[1]" = _kafkajit ]; then _kafkajit "$@"'
    yield "else compdef _kafkajit kafkajit; fi"


def _zsh_option(name: str, option: Option) -> str:
    help_ = "".join(f"\\{letter}" if letter in "[]:\\" else letter for letter in option.help)
    value = ""
    if option.takes_value:
        values = f"({' '.join(option.choices)})" if option.choices else "_files"
        value = f":value:{values}"
    return f"*{name}[{help_}]{value}"


def _fish(commands: list[Command]) -> Iterator[str]:
    yield "# fish completion of kafkajit"
    start = "complete -c kafkajit"
    for command in commands:
        help_ = _fish_text(command.help)
        yield f"{start} -n __fish_use_subcommand -f -a {command.name} -d {help_}"
    for command in commands:
        only = f"{start} -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = " -r" if option.takes_value else ""
            if option.choices:
                value = f" -x -a {_fish_text(' '.join(option.choices))}"
            yield f"{only} {names}{value} -d {_fish_text(option.help)}"
        if command.choices:
            yield f"{only} -f -a {_fish_text(' '.join(command.choices))}"


def _fish_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
