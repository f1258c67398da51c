"""The docs match their sources, and every file of sql/ has all of its fields."""

from __future__ import annotations

import argparse
import ast
import doctest
import re
import shlex
import tomllib
from pathlib import Path

import pyarrow.parquet
import pytest
from packaging.version import Version

import docs.generate
import kafkajit
import kafkajit.cli.sql
from docs.generate import (
    DOCS,
    GROUPS,
    REPOSITORY,
    TABLES,
    SqlFile,
    arguments,
    generated,
    has_try,
    read_sql,
    reads,
    sql_files,
)
from kafkajit.places.locations import find_segments
from kafkajit.schema import RECORD_COLUMNS
from kafkajit.spark.descriptions import FIXED_FIELDS
from kafkajit.storage.source import SAMPLE_FOLDER

FUNCTIONS = sql_files("functions")
RECIPES = sql_files("recipes")


def test_pages_agree_with_their_sources() -> None:
    differing = [page.name for page, text in generated().items() if page.read_text() != text]
    assert not differing, "run: python docs/generate.py"


def test_every_generated_table_is_on_a_page() -> None:
    text = "".join(page.read_text() for page in generated())
    assert {*re.findall(r"<!-- (\w+): python docs/generate.py -->", text)} == TABLES.keys()


@pytest.mark.parametrize("file", FUNCTIONS, ids=lambda file: file.name)
def test_every_function_has_a_description(file: SqlFile) -> None:
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
def test_every_recipe_has_a_description(file: SqlFile) -> None:
    assert file.fields.keys() == {"title", "question", "answer", "reads", "cost"}
    assert file.fields["question"].endswith("?")
    assert reads(file)
    assert file.statements


def test_a_page_of_recipes_has_a_heading_for_each() -> None:
    text = (DOCS / "recipes.md").read_text()
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == [file.fields["title"] for file in RECIPES]


def test_a_line_that_is_not_a_field_is_an_error(tmp_path: Path) -> None:
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


def _released() -> list[Version]:
    """The versions with a section in the changelog, the newest first."""
    headings = re.findall(r"^## (.*)", (DOCS / "changelog.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    return [Version(heading) for heading in headings[1:]]


def test_sections_of_the_changelog_are_in_the_order_of_their_versions() -> None:
    assert _released() == sorted(_released(), reverse=True)


def test_a_version_since_when_something_is_there_has_a_section_in_the_changelog() -> None:
    named = {file.fields["since"] for file in FUNCTIONS}
    for path in sorted((REPOSITORY / "kafkajit").rglob("*.py")):
        named |= set(re.findall(r"versionadded:: ([\d.]+)", path.read_text()))
    assert named <= {version.base_version for version in _released()}


def test_a_checkout_without_tags_works_towards_the_newest_version_of_the_changelog() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    towards = Version(project["tool"]["hatch"]["version"]["fallback-version"])
    assert towards.is_devrelease
    assert Version(towards.public.partition(".dev")[0]) >= _released()[0]


_PYTHON = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
_SHELL = re.compile(r"```(?:sh|console)\n(.*?)```", re.DOTALL)


def _result(code: str, names: dict[str, object]) -> str:
    """Run a block, and return the text of its last expression."""
    *statements, last = ast.parse(code).body
    exec(compile(ast.Module(statements, []), "<page>", "exec"), names)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), "<page>", "exec"), names)
        return ""
    shown = eval(compile(ast.Expression(last.value), "<page>", "eval"), names)
    return "" if shown is None else str(shown)


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_python_on_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = _PYTHON.findall((REPOSITORY / page).read_text())
    assert blocks
    for code, expected in blocks:
        result = _result(code.replace("/tmp/", f"{tmp_path}/"), names)
        if expected:
            assert result.rstrip() == expected.rstrip()


@pytest.mark.parametrize("page", ["python.md", "values.md", "engines.md", "export.md"])
def test_the_examples_about_python_hold(page: str, tmp_path: Path) -> None:
    runner = doctest.DocTestRunner()
    names: dict[str, object] = {}
    for code, _ in _PYTHON.findall((DOCS / page).read_text()):
        for place in ("/tmp/", "/data/", "/var/kafka-restored"):
            code = code.replace(place, f"{tmp_path}/{place.strip('/').rpartition('/')[2]}/")
        code = code.replace("/var/kafka/", "sample:")
        test = doctest.DocTestParser().get_doctest(code, names, page, None, 0)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.tries > 0
    assert runner.failures == 0


def test_the_parquet_recipe_works_on_an_empty_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(
        r"```python\n(import pyarrow\.parquet.*?)```",
        (DOCS / "quickstart.md").read_text(),
        re.DOTALL,
    )
    empty = tmp_path / "00000000000000000000.log"
    empty.touch()
    _result(code, {"kafkajit": kafkajit, "segment": str(empty)})
    table = pyarrow.parquet.read_table("orders.parquet")
    assert (table.num_rows, table.column_names) == (0, list(RECORD_COLUMNS))


def _commands(page: Path) -> list[str]:
    """The commands of kafkajit on a page, as one would type them, on the sample."""
    lines = "".join(_SHELL.findall(page.read_text())).replace("\\\n", "").splitlines()
    commands = (line.removeprefix("$ ").partition(" | ")[0] for line in lines)
    return [line for line in commands if line.startswith("kafkajit ") and "sample:" in line]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_commands_on_a_page_are_understood(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    for command in _commands(page):
        _, name, *arguments = shlex.split(command, comments=True)
        if name == "sql":  # tests/spark runs statements
            parser = argparse.ArgumentParser()
            kafkajit.cli.sql.add_arguments(parser)
            options = parser.parse_args(arguments)
            kafkajit.cli.sql._take_statement(options)
            assert find_segments(options.path)[0]
        else:
            assert kafkajit.cli.main([name, *arguments]) in (0, 2), command


def test_the_dump_in_the_quickstart_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "quickstart.md").read_text()
    found = re.search(r"```console\n\$ kafkajit (.*?) \|.*?\n(.*?)```", text, re.DOTALL)
    assert found is not None
    assert kafkajit.cli.main(shlex.split(found[1])) == 0
    printed = capsys.readouterr().out.replace(str(SAMPLE_FOLDER.parent.parent), "…").splitlines()
    for line, shown in zip(printed[:4], found[2].splitlines(), strict=True):
        assert line == shown if not shown.endswith("…") else line.startswith(shown[:-1])


def test_what_info_prints_is_on_the_report_page(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "report.md").read_text()
    commands = re.findall(r"kafkajit (info sample:.*)\n", text)
    assert len(commands) == 2
    for command in commands:
        assert kafkajit.cli.main(shlex.split(command)) == 0
        printed = capsys.readouterr().out.replace(str(SAMPLE_FOLDER.parent.parent), "/opt")
        assert printed in text


def test_every_page_is_linked_from_readme_and_the_index() -> None:
    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    readme = (REPOSITORY / "README.md").read_text()
    index = (DOCS / "index.md").read_text()
    assert set(re.findall(r"\(docs/([\w-]+\.md)\)", readme)) == pages
    assert {name for name in pages if re.search(rf"^(?:.*<)?{name[:-3]}>?$", index, re.M)} == pages
