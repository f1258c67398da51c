"""Text → statements, with strings, names and comments as in Spark's lexer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.cli.sql.statements import (
    mentioned,
    names_in,
    on_one_line,
    split,
    tokens,
)


def texts(sql: str) -> list[str]:
    whole, rest = split(sql)
    return [statement.text for statement in [*whole, *([rest] if rest else [])]]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("", []),
        (" ;; ; ", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; b", ["SELECT ';'", "b"]),
        ("SELECT 'it''s;'; b", ["SELECT 'it''s;'", "b"]),
        (r"SELECT 'it\';s'; b", [r"SELECT 'it\';s'", "b"]),
        (r"SELECT '\\'; b", [r"SELECT '\\'", "b"]),
        ('SELECT ";", "\\";"; b', ['SELECT ";", "\\";"', "b"]),
        (r"SELECT r'\'; b", [r"SELECT r'\'", "b"]),
        (r'SELECT R"\"; b', [r'SELECT R"\"', "b"]),
        (r"SELECT bar'\';'; b", [r"SELECT bar'\';'", "b"]),
        ("SELECT `a;``b`; c", ["SELECT `a;``b`", "c"]),
        ("SELECT $$it's; $$; b", ["SELECT $$it's; $$", "b"]),
        ("SELECT $x$ $$; $x$; b", ["SELECT $x$ $$; $x$", "b"]),
        ("SELECT 1 -- one; 'two\n; b", ["SELECT 1 -- one; 'two", "b"]),
        ("-- all; of it\\\n still; a comment\nSELECT 1", ["SELECT 1"]),
        ("/* a; /* nested; */ 'b */ SELECT 1; c", ["SELECT 1", "c"]),
        ("SELECT /*+ BROADCAST(r) */ 1; b", ["SELECT /*+ BROADCAST(r) */ 1", "b"]),
        ("SELECT 'two\nlines;'; b", ["SELECT 'two\nlines;'", "b"]),
        ("BEGIN SELECT 1; SELECT 2; END; b", ["BEGIN SELECT 1; SELECT 2; END", "b"]),
        (
            "BEGIN IF a THEN SELECT 1; END IF; WHILE b DO SELECT 2; END WHILE; END; c",
            ["BEGIN IF a THEN SELECT 1; END IF; WHILE b DO SELECT 2; END WHILE; END", "c"],
        ),
        (
            "BEGIN SELECT CASE WHEN a THEN 1 END; BEGIN SELECT 2; END; END; c",
            ["BEGIN SELECT CASE WHEN a THEN 1 END; BEGIN SELECT 2; END; END", "c"],
        ),
        (
            "BEGIN CASE WHEN a THEN SELECT 1; END CASE; END; c",
            ["BEGIN CASE WHEN a THEN SELECT 1; END CASE; END", "c"],
        ),
    ],
)
def test_a_semicolon_ends_a_statement_unless_something_holds_it(
    sql: str, expected: list[str]
) -> None:
    assert texts(sql) == expected


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "SELECT 'a;", 'SELECT "a;', "SELECT `a;", "SELECT 1 /* ;", "SELECT $$ ;"]
)
def test_an_unfinished_statement_is_the_rest(sql: str) -> None:
    whole, rest = split(f"SELECT 0; {sql}")
    assert [statement.text for statement in whole] == ["SELECT 0"]
    assert rest is not None
    assert rest.text == sql


def test_a_comment_that_is_not_closed_waits_for_more() -> None:
    assert split("/* SELECT 1;") == ([], ("/* SELECT 1;", 1))


def test_a_statement_has_the_line_on_which_it_begins() -> None:
    whole, rest = split("-- first\n\nSELECT 1\n, 2; /* a\nb */ SELECT 3;\n\nSELECT 4")
    assert [statement.line for statement in whole] == [3, 5]
    assert rest is not None
    assert rest.line == 7


@given(st.text(alphabet="ab;'\"`-/*$\\ \n+r", max_size=40))
def test_tokens_are_the_text_and_statements_are_parts_of_it(sql: str) -> None:
    assert "".join(token.text for token in tokens(sql)) == sql
    at = 0
    for statement in texts(sql):
        at = sql.index(statement, at) + len(statement)


@given(st.lists(st.sampled_from(["SELECT 'a;b'", "x /* ; */ y", "`;` -- ;\n z", "f(1)"])))
def test_statements_that_are_joined_come_apart_again(statements: list[str]) -> None:
    assert texts(" ;\n".join(statements)) == statements


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT 1,\n       2;", "SELECT 1, 2;"),
        ("SELECT 1 -- one\n, /* two */ 2", "SELECT 1 , 2"),
        ("SELECT 'a\nb'", r"SELECT 'a\nb'"),
        ("SELECT '  a  '", "SELECT '  a  '"),
        ("SELECT /*+ h */ 1", "SELECT /*+ h */ 1"),
        ("\n\n  SELECT 1\n", "SELECT 1"),
    ],
)
def test_a_history_keeps_a_statement_on_one_line(sql: str, line: str) -> None:
    assert on_one_line(sql) == line


def test_names_are_words_and_texts_in_backquotes() -> None:
    assert names_in("SELECT `Odd ``name`, r.Offset FROM t -- x\n WHERE y = 'z'") == {
        "select", "odd `name", "r", "offset", "from", "t", "where", "y",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "views"),
    [
        ("SELECT * FROM Records", ["records"]),
        ("SELECT * FROM `binaryFile` JOIN batches", ["batches", "binaryFile"]),
        ("SELECT 'records' -- records", []),
        ("SHOW TABLES", ["records", "batches", "binaryFile"]),
        ("SHOW FUNCTIONS", []),
    ],
)
def test_views_are_made_that_a_statement_mentions(sql: str, views: list[str]) -> None:
    assert mentioned(sql, {"records": 1, "batches": 1, "binaryFile": 1}) == views
