"""The docs match their sources, and every file of sql/ has all of its fields."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import docs.generate
import kafkajit
from docs.generate import (
    DOCS,
    GROUPS,
    TABLES,
    SqlFile,
    arguments,
    generated,
    has_try,
    read_sql,
    reads,
    sql_files,
)
from kafkajit.spark.descriptions import FIXED_FIELDS

FUNCTIONS = sql_files("functions")
RECIPES = sql_files("recipes")


@pytest.mark.parametrize("page", generated(), ids=lambda page: page.name)
def test_a_page_is_what_its_sources_say(page: Path) -> None:
    assert page.read_text() == generated()[page], "run: python docs/generate.py"


def test_every_generated_table_is_on_a_page() -> None:
    text = "".join(page.read_text() for page in generated())
    assert {*re.findall(r"<!-- (\w+): python docs/generate.py -->", text)} == TABLES.keys()


@pytest.mark.parametrize("file", FUNCTIONS, ids=lambda file: file.name)
def test_a_function_says_what_it_is(file: SqlFile) -> None:
    assert file.fields.keys() > FIXED_FIELDS
    signature = file.fields["signature"]
    names = re.findall(r"\w+", signature)
    assert names == [file.name, *arguments(file)]
    assert re.fullmatch(r"\d+\.\d+\.\d+", file.fields["since"])
    assert file.fields["group"] in GROUPS
    others = {other.name for other in FUNCTIONS} - {file.name}
    assert others.issuperset(file.fields["see also"].split(", "))
    assert all(f"{file.name}(" in statement.sql for statement in file.statements)
    twins = [f"try_{file.name}(" in statement.sql for statement in file.statements]
    assert any(twins) == has_try(file)


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.name)
def test_a_recipe_says_what_it_is_for(file: SqlFile) -> None:
    assert file.fields.keys() == {"title", "question", "answer", "reads", "cost"}
    assert file.fields["question"].endswith("?")
    assert reads(file)
    assert file.statements


def test_a_page_of_recipes_has_a_heading_for_each() -> None:
    text = (DOCS / "recipes.md").read_text()
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == [file.fields["title"] for file in RECIPES]


def test_a_line_that_is_no_field_is_told(tmp_path: Path) -> None:
    path = tmp_path / "f.sql"
    path.write_text("-- signature: f()\n--returns: INT\n\nSELECT 1;\n")
    with pytest.raises(
        ValueError, match=r"f\.sql: neither a field nor the continuation of one: '--returns"
    ):
        read_sql(path)


def test_a_literal_may_take_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "f.sql"
    path.write_text("-- signature: f()\n\n-- Why.\n-- X'': b'a'\n--   + b'b'\nSELECT X'';\n")
    (statement,) = read_sql(path).statements
    assert statement == ("Why.", ("b'a' + b'b'",), "SELECT X''")


def test_the_examples_of_the_generator_hold() -> None:
    results = doctest.testmod(docs.generate)
    assert results.attempted > 0
    assert results.failed == 0


def test_every_public_name_is_on_the_page_about_python() -> None:
    documented = re.findall(
        r"^\.\. auto\w+:: kafkajit\.(\w+)$", (DOCS / "python.md").read_text(), re.M
    )
    assert sorted(documented) == sorted(kafkajit.__all__)
