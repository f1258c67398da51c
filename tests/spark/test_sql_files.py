"""The statements of sql/ return what their golden files contain, in the form of Spark's own.

    KAFKAJIT_GENERATE_GOLDEN_FILES=1 pytest tests/spark/test_sql_files.py

writes the golden files, and the literals of sql/functions, instead of comparing them. Look at the
changes with `git diff`, and generate the pages with `python docs/generate.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession
from sample_views import KINDS, copy_of_sample, create_view, new_session

import kafkajit.testing as kt
from docs.generate import (
    RESULTS_HEAD,
    SQL,
    Result,
    SqlFile,
    Statement,
    has_try,
    read_results,
    read_sql,
    reads,
    sql_files,
)
from kafkajit.spark.catalogue import FUNCTIONS as IN_SQL
from kafkajit.spark.catalogue import TABLE_FUNCTION

GENERATES = os.environ.get("KAFKAJIT_GENERATE_GOLDEN_FILES", "0") not in ("", "0")
FUNCTIONS = sql_files("functions")
RECIPES = sql_files("recipes")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    return copy_of_sample(tmp_path_factory.mktemp("log") / "dirs")


def run(session: SparkSession, statement: Statement) -> Result:
    """What Spark's SQLQueryTestSuite would write of a statement."""
    query = "\n".join(line for line in statement.sql.splitlines() if not is_comment(line))
    # Spark keeps these off its Python API, and its own tests write their golden files with them.
    spark = session.sparkContext._jvm.org.apache.spark
    try:
        frame = session.sql(statement.sql)
        plan = frame._jdf.queryExecution().executedPlan()
        with active(session):
            output = spark.sql.execution.HiveResult.hiveResultString(plan).mkString("\n")
        return Result(query, frame._jdf.schema().catalogString(), output)
    except CapturedException as error:
        origin = error._origin
        minimal = spark.ErrorMessageFormat.MINIMAL()
        message = spark.SparkThrowableHelper.getMessage(origin, minimal)
        return Result(query, "struct<>", f"{origin.getClass().getName()}\n{message}")


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """HiveResult sets spark.sql.binaryOutputStyle of the active session: not another test's."""
    sessions = session.sparkContext._jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def is_comment(line: str) -> bool:
    return line.strip().startswith("--")


def compare(file: SqlFile, results: list[Result]) -> None:
    golden = "\n\n\n".join([RESULTS_HEAD, *map(str, results)]).replace("\n\n\n", "\n", 1) + "\n"
    if GENERATES:
        file.path.with_suffix(".out").write_text(golden)
    assert results == read_results(file.path)
    assert golden == file.path.with_suffix(".out").read_text()


def of_kafkajit_testing(expressions: tuple[str, ...]) -> list[str]:
    return [f"X'{eval(expression, vars(kt).copy()).hex().upper()}'" for expression in expressions]


def with_built_literals(file: SqlFile) -> str:
    """The file's text, each literal being what the comment above its statement builds."""
    text = file.path.read_text()
    for statement in file.statements:
        if statement.literals:
            built = iter(of_kafkajit_testing(statement.literals))
            sql = re.sub(r"X'[0-9A-F]*'", lambda _, built=built: next(built), statement.sql)
            assert next(built, None) is None, statement
            text = text.replace(statement.sql, sql, 1)
    return text


@pytest.mark.parametrize("file", FUNCTIONS, ids=lambda file: file.name)
def test_a_function_gives_what_its_golden_file_says(
    file: SqlFile, spark: SparkSession, sample: str
) -> None:
    built = with_built_literals(file)
    if GENERATES:
        file.path.write_text(built)
        file = read_sql(file.path)
    assert file.path.read_text() == built
    session = new_session(spark, sample)
    compare(file, [run(session, statement) for statement in file.statements])


def narrow(session: SparkSession, file: SqlFile, sample: str) -> None:
    """Leave a recipe no view but those it names, of no column but those it names."""
    for view in KINDS:
        types = {field.name: field.dataType.simpleString() for field in session.table(view).schema}
        session.catalog.dropTempView(view)
        if view in reads(file):
            columns = ", ".join(f"{column} {types[column]}" for column in reads(file)[view])
            create_view(session, view, sample, f"({columns})")


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.name)
def test_a_recipe_gives_what_its_golden_file_says(
    file: SqlFile, spark: SparkSession, sample: str
) -> None:
    session = new_session(spark, sample)
    schemas = [session.sql(statement.sql).schema for statement in file.statements]
    narrow(session, file, sample)
    results = [run(session, statement) for statement in file.statements]
    assert schemas == [session.sql(statement.sql).schema for statement in file.statements]
    compare(file, results)


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.name)
def test_a_recipe_names_no_column_that_it_does_not_need(file: SqlFile) -> None:
    text = " ".join(statement.sql for statement in file.statements)
    for view, columns in reads(file).items():
        assert re.search(rf"\b{view}\b", text)
        assert [column for column in columns if not re.search(rf"\b{column}\b", text)] == []


@pytest.mark.parametrize("file", [*filter(has_try, FUNCTIONS)], ids=lambda file: file.name)
def test_a_try_twin_differs_only_in_its_null_for_damage(
    file: SqlFile, spark: SparkSession, sample: str
) -> None:
    session = new_session(spark, sample)
    damaged = 0
    for statement, plain in zip(file.statements, read_results(file.path), strict=True):
        if f"try_{file.name}(" in statement.sql:
            continue
        sql = statement.sql.replace(f"{file.name}(", f"try_{file.name}(")
        found = run(session, statement._replace(sql=sql))
        if re.search(r"kafkajit\.errors\.|(Corrupt|Invalid|Unsupported)\w*Error: ", plain.output):
            assert set(found.output.split("\t")) == {"NULL"}
            damaged += 1
        else:
            assert found.output == plain.output
    assert damaged


def test_every_function_has_a_file() -> None:
    plain = {name for name in IN_SQL if not name.startswith("try_")}
    assert {file.name for file in FUNCTIONS} == {*plain, TABLE_FUNCTION}


def test_every_sql_file_has_a_golden_file() -> None:
    for folder in ("functions", "recipes"):
        names = {path.stem for path in (SQL / folder).glob("*.sql")}
        assert {path.stem for path in (SQL / folder).glob("*.out")} == names
