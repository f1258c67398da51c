"""Writes the manual pages of the commands from their parsers, for man(1).

`python docs/generate.py` calls this, and the wheel installs the pages under share/man/man1.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

# The ends of each command's help: a heading and lines below it.
_HEADING = re.compile(r"(exit code|examples?|views over the logs):")


def man_pages() -> dict[str, str]:
    """The pages by the names of their files: one of kafkajit, and one of each command."""
    from kafkajit.cli import new_parser

    parser, commands = new_parser()
    names = [f"kafkajit-{name}" for name in commands]
    pages = {"kafkajit": [*_head("kafkajit", parser), *_commands(parser, commands)]}
    for name, command in commands.items():
        pages[f"kafkajit-{name}"] = [*_head(f"kafkajit-{name}", command), *_body(command)]
    for name, lines in pages.items():
        others = names if name == "kafkajit" else ["kafkajit"]
        lines += [".SH SEE ALSO", ",\n".join(f".BR {_text(other)} (1)" for other in others)]
    # A comma is an argument of the macro that it follows.
    return {
        f"{name}.1": re.sub(r" \(1\),\n", " (1),\n", "\n".join(lines)) + "\n"
        for name, lines in pages.items()
    }


def _head(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    summary = (parser.description or "").rstrip(".")
    yield f'.TH {name.upper()} 1 "" kafkajit "Commands of kafkajit"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(summary[:1].lower() + summary[1:])}"
    yield ".SH SYNOPSIS"
    yield from _verbatim(_usage(parser).splitlines())


def _usage(parser: argparse.ArgumentParser) -> str:
    usage = parser.format_usage().removeprefix("usage: ")
    return re.sub(r"(?m)^ {7}", "", usage)


def _commands(
    parser: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser]
) -> Iterator[str]:
    yield ".SH DESCRIPTION"
    yield _text(parser.description or "")
    yield ".SH COMMANDS"
    for name, command in commands.items():
        yield from (".TP", f".BR {_text(f'kafkajit-{name}')} (1)", _text(command.description or ""))
    yield from _options(parser, ".SH OPTIONS")


def _body(parser: argparse.ArgumentParser) -> Iterator[str]:
    parts = re.split(r"\n\n+", (parser.epilog or "").rstrip())
    prose = [part for part in parts if not _HEADING.match(part)]
    yield ".SH DESCRIPTION"
    yield _text(parser.description or "")
    for part in prose:
        yield from (".PP", _text(" ".join(part.split())))
    yield from _arguments(parser)
    yield from _options(parser, ".SH OPTIONS")
    for part in parts:
        if part in prose:
            continue
        heading, *lines = part.splitlines()
        yield f".SH {heading.removesuffix(':').upper()}"
        if heading == "exit code:":
            yield _text(" ".join(" ".join(lines).split()))
        else:
            yield from _verbatim([line.removeprefix("  ") for line in lines])


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    positional = [action for action in parser._actions if not action.option_strings]
    if positional:
        yield ".SH ARGUMENTS"
    for action in positional:
        yield from (".TP", f".I {_text(str(action.metavar or action.dest))}", _help(parser, action))


def _options(parser: argparse.ArgumentParser, heading: str) -> Iterator[str]:
    yield heading
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            formatter = parser._get_formatter()
            invocation = formatter._format_action_invocation(action)
            yield from (".TP", f".B {_text(invocation)}", _help(parser, action))


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return _text(" ".join(parser._get_formatter()._expand_help(action).split()))


def _verbatim(lines: list[str]) -> Iterator[str]:
    """Lines as they are."""
    yield ".nf"
    yield from map(_text, lines)
    yield ".fi"


_ESCAPES = {
    "\\": "\\e",
    "-": "\\-",
    "'": "\\(aq",
    "`": "\\(ga",
    "^": "\\(ha",
    "~": "\\(ti",
    "…": "...",
}


def _text(text: str) -> str:
    """Text with the characters escaped that troff would obey, or print as others."""
    escaped = text.translate(str.maketrans(_ESCAPES))
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
