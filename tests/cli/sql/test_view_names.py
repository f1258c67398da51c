"""Names in `kafkajit sql`: paths as shells expand globs, and commands of other prompts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
import pytest

from kafkajit.cli import sql
from kafkajit.cli.sql.commands import _as_dotted
from kafkajit.values.arrow_text import text_of


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    sql.add_arguments(parser)
    options = parser.parse_args(words)
    sql._take_statement(options)
    return options


@pytest.mark.parametrize(
    ("words", "paths", "statement"),
    [
        (["--path", "a", "b", "SELECT 1"], ["a", "b"], "SELECT 1"),
        (["--path", "a", "SELECT 1"], ["a"], "SELECT 1"),
        (["--path", "a", "b"], ["a", "b"], None),
        (["--path", "a b"], ["a b"], None),
        (["SELECT 1", "--path", "a", "b c"], ["a", "b c"], "SELECT 1"),
        (
            ["--path", "a", "--path", "b", "c", "--rows", "3", "SELECT 1"],
            ["a", "b", "c"],
            "SELECT 1",
        ),
        (["--path", "a", "b c", "-f", "x.sql"], ["a", "b c"], None),
    ],
)
def test_the_statement_behind_paths_is_told_from_them(
    words: list[str], paths: list[str], statement: str | None
) -> None:
    options = parsed(*words)
    assert (options.path, options.statement) == (paths, statement)


def test_a_folder_with_a_space_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "my logs"
    folder.mkdir()
    options = parsed("--path", "a", str(folder))
    assert (options.path, options.statement) == (["a", str(folder)], None)


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (r"\d", ".tables"),
        (r"\dt;", ".tables"),
        (r"\d records", ".schema records"),
        (r"\df", ".functions"),
        (r"\?", ".help"),
        (r"\q", ".quit"),
        (r"\x", r"\x"),
    ],
)
def test_commands_of_psql_are_understood(typed: str, command: str) -> None:
    assert _as_dotted(typed) == command


def test_bytes_in_json_are_told_from_texts_that_look_like_them() -> None:
    values = pa.array([b"\xff\xfe", b"X'FFFE'", b'{"base64":"//4="}', b"\x00", None])
    assert text_of(values, as_json=True).to_pylist() == [
        '{"base64":"//4="}',
        "\"X'FFFE'\"",
        '"{\\"base64\\":\\"//4=\\"}"',
        '"\\u0000"',
        None,
    ]
