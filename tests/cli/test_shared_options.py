"""The same names for the same options in all commands."""

from __future__ import annotations

import argparse
from collections import defaultdict

import pytest

from kafkajit.cli import main, new_parser, shared_options

# An option with a meaning of its own in each command, and why.
DIFFERENT = {
    "--format",  # text or JSON, but also what sql and report write
    "--topic",  # import's is the topic of all records
    "--partitions",
    "-f",  # a file of statements as psql has it, and to follow as tail has it
    "--output",
    "-o",  # a file, or a folder
    "--config",
    "--topic-id",
    "--codec",  # of files, or of batches
}


def options() -> dict[str, dict[str, argparse.Action]]:
    """The commands' actions by the names of options."""
    found: dict[str, dict[str, argparse.Action]] = defaultdict(dict)
    for command, parser in new_parser()[1].items():
        for action in parser._actions:
            for name in action.option_strings:
                found[name][command] = action
    return found


def test_an_option_takes_the_same_values_in_all_commands() -> None:
    forms = {
        name: {
            (type(action).__name__, str(action.metavar), str(action.choices), str(action.type))
            for action in actions.values()
        }
        for name, actions in options().items()
        if name not in DIFFERENT
    }
    assert {name: form for name, form in forms.items() if len(form) > 1} == {}


@pytest.mark.parametrize(
    ("metavar", "kind"),
    [
        ("SIZE", shared_options.Size),
        ("NAME=VALUE", shared_options.setting),
        ("EPOCH", shared_options.number),
    ],
)
def test_values_of_a_kind_are_read_by_one_function(metavar: str, kind: object) -> None:
    exceptions = {"--file-size"}  # whose text the exporter reads, as kafkajit.export does
    wrong = [
        f"{command} {name}"
        for name, actions in options().items()
        for command, action in actions.items()
        if action.metavar == metavar
        and kind not in (action.type, type(action.type))
        and name not in exceptions
    ]
    assert wrong == []


def test_no_option_has_two_names_for_one_meaning() -> None:
    names = options().keys()
    assert not names & {"--from-timestamp", "--to-timestamp", "--limit", "--dry-run", "--colour"}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["grep", "--max-decompressed-bytes", "much", "a", "b"],
            "kafkajit grep: argument --max-decompressed-bytes: expected a number of bytes "
            "from 1 to 2147483647, such as 128m, not 'much'; see kafkajit grep --help\n",
        ),
        (
            ["tail", "--isolation-level", "committed", "a"],
            "kafkajit tail: argument --isolation-level: unknown value 'committed' (did you mean "
            "'read_committed'?); there are: read_uncommitted, read_committed; see kafkajit tail "
            "--help\n",
        ),
        (
            ["export", "--starting-offset", "-1", "-o", "x", "a"],
            "kafkajit export: argument --starting-offset: expected a number, not '-1'; see "
            "kafkajit export --help\n",
        ),
    ],
)
def test_errors_have_one_shape(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert capsys.readouterr().err == error


def test_modes_and_levels_are_accepted_in_any_case() -> None:
    parser = new_parser()[1]["export"]
    words = ["--mode", "permissive", "--isolation-level", "READ_COMMITTED", "-o", "x", "a"]
    given = parser.parse_args(words)
    assert (given.mode, given.isolation_level) == ("PERMISSIVE", "read_committed")
