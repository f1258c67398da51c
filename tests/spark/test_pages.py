r"""What the pages say about Spark is so: their examples run, over the sample.

    KAFKAJIT_GENERATE_GOLDEN_FILES=1 pytest tests/spark/test_pages.py

writes the results behind ```sql blocks, as `kafkajit sql` prints them, instead of comparing them.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from sample_views import copy_of_sample, new_session

from docs.generate import DOCS
from kafkajit.cli.sql.query import Result
from kafkajit.cli.sql.shell import Shell
from kafkajit.cli.sql.statements import Statement

GENERATES = os.environ.get("KAFKAJIT_GENERATE_GOLDEN_FILES", "0") not in ("", "0")
PAGES = [DOCS / "sql.md", DOCS / "datasource.md", DOCS / "restore.md"]
# Where the pages say that logs are.
VAR_KAFKA = "/var/kafka"

_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_SQL = re.compile(r"```sql\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


@pytest.fixture
def sample(tmp_path: Path) -> str:
    """One's own: a page may write into it."""
    return copy_of_sample(tmp_path / "dirs")


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_a_page_gives_what_it_says(page: Path, spark: SparkSession, sample: str) -> None:
    text = page.read_text()
    blocks = list(_PYTHON.finditer(text))
    assert blocks
    session = spark.newSession()
    names: dict[str, object] = {"spark": session}
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    for block in blocks:
        code = block[1].replace(VAR_KAFKA, sample)
        assert ">>>" in code
        line = text[: block.start()].count("\n") + 1
        test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sql_on_a_page_gives_what_it_says(page: Path, spark: SparkSession, sample: str) -> None:
    text = page.read_text()
    shown = _SQL.sub(shower(new_session(spark, sample), sample), text)
    if GENERATES:
        page.write_text(shown)
    assert shown == page.read_text()


class _Session:
    """Stands for the tool's engine, with a result that is there already."""

    started = failure = None

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def is_ready(self, _: threading.Event) -> bool:
        return True

    def run(self, _: str) -> Result:
        return Result(self._frame)


def shower(session: SparkSession, sample: str) -> Callable[[re.Match[str]], str]:
    segments = f"{sample}/*/*.log"
    session.read.format("binaryFile").load(segments).createOrReplaceTempView("binaryFile")

    def show(block: re.Match[str]) -> str:
        statement = block[1].strip().removesuffix(";").replace(VAR_KAFKA, sample)
        # A page's own views have no such names.
        statement = statement.replace("TEMPORARY VIEW", "OR REPLACE TEMPORARY VIEW")
        frame = session.sql(statement)
        if block[2] is None:
            frame.collect()
            return block[0]
        out = io.BytesIO()
        Shell(cast(Any, _Session(frame)), out, "table", rows=40).run(Statement(statement, 1))
        return f"```sql\n{block[1]}```\n\n```text\n{out.getvalue().decode()}```"

    return show
