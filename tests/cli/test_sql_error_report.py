"""Exceptions as Spark 4.3 throws them, and the messages made of them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkajit.cli.sql.error_report import Known, pointed_at, report_of, what_python_raised

KNOWN = Known(["records", "batches", "files"], ["kafka_records", "kafka_log"])

PLAN = """\
'Project ['ofset]
+- SubqueryAlias records
   +- View (`records`, [key#0, value#1])
      +- RelationV2[key#0, value#1] kafkaLog
"""


class SparksError(Exception):
    """As pyspark.errors.exceptions.captured has them."""

    def __init__(self, text: str, condition: str = "", **parameters: str) -> None:
        super().__init__(text)
        self._condition = condition
        self._parameters = parameters

    def getCondition(self) -> str:  # noqa: N802
        return self._condition

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802
        return self._parameters


class Py4JJavaError(Exception):
    """As py4j.protocol has it: its text is Java's stack trace."""


class Py4JNetworkError(Exception):
    pass


Py4JJavaError.__module__ = Py4JNetworkError.__module__ = "py4j.protocol"


def pointed(error: Exception, sql: str) -> tuple[str, str | None]:
    """The message, and the part of the statement that it points at."""
    report = report_of(error, sql, KNOWN)
    if report.start is None:
        return report.message, None
    return report.message, sql[report.start : report.start + report.length]


def test_a_syntax_error_has_its_place() -> None:
    sql = "SELECT * FORM records"
    error = SparksError(
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'records': extra input 'records'. "
        "SQLSTATE: 42601 (line 1, pos 14)\n\n== SQL ==\nSELECT * FORM records\n"
        "--------------^^^\n",
        "PARSE_SYNTAX_ERROR",
    )
    message = "Syntax error at or near 'records': extra input 'records'"
    assert pointed(error, sql) == (message, "records")


def test_a_syntax_error_on_a_later_line_has_its_place() -> None:
    sql = "SELECT *\nFROM records\nWHERE ofset > 3 AND"
    error = SparksError(
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'AND': extra input 'AND'. "
        "SQLSTATE: 42601 (line 3, pos 16)\n\n== SQL ==\n...",
    )
    message, part = pointed(error, sql)
    assert part == "AND"
    assert message == "Syntax error at or near 'AND': extra input 'AND'"
    start = report_of(error, sql).start
    assert start is not None
    assert pointed_at(sql, start, 3, 80) == [
        "  WHERE ofset > 3 AND",
        "                  ^^^",
    ]


def test_a_syntax_error_at_the_end_points_behind_it() -> None:
    error = SparksError(
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near end of input. SQLSTATE: 42601 "
        "(line 1, pos 10)\n\n== SQL ==\nSELECT 1 +\n----------^^^\n"
    )
    report = report_of(error, "SELECT 1 +")
    assert (report.start, report.length) == (10, 1)
    assert pointed_at("SELECT 1 +", 10, 1, 80)[1] == " " * 12 + "^"


def test_an_unknown_column_gets_a_suggestion() -> None:
    error = SparksError(
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name "
        "`ofset` cannot be resolved. Did you mean one of the following? [`offset`, `key`]. "
        f"SQLSTATE: 42703; line 1 pos 7;\n{PLAN}",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        objectName="`ofset`",
        proposal="`offset`, `key`, `topic`",
    )
    assert pointed(error, "SELECT ofset FROM records") == (
        "there is no column ofset, did you mean offset?",
        "ofset",
    )


def test_a_column_without_a_neighbour_has_those_there_are() -> None:
    error = SparksError(
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] … SQLSTATE: 42703; line 1 pos 7;",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        objectName="`zzz`",
        proposal="`r`.`offset`, `r`.`key`",
    )
    assert pointed(error, "SELECT zzz FROM records r") == (
        "there is no column zzz; there are: r.offset, r.key",
        "zzz",
    )


def test_of_many_columns_spark_names_some() -> None:
    error = SparksError(
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] … SQLSTATE: 42703; line 1 pos 7;",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        objectName="`zzz`",
        proposal="`topic`, `path`, `suffix`, `entries`, `problem`",
    )
    assert pointed(error, "SELECT zzz FROM indexes") == (
        "there is no column zzz; there are: topic, path, suffix, entries, problem, …",
        "zzz",
    )


def test_an_unknown_view_gets_a_suggestion() -> None:
    text = (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `recrds` cannot be found. Verify the "
        "spelling and correctness of the schema and catalog.\nSearch path: [`system`.`builtin`].\n"
        "To tolerate the error on drop use DROP VIEW IF EXISTS or DROP TABLE IF EXISTS. "
        "SQLSTATE: 42P01; line 1 pos 14;\n'Project [*]\n"
    )
    error = SparksError(text, "TABLE_OR_VIEW_NOT_FOUND", relationName="`recrds`")
    assert pointed(error, "SELECT * FROM recrds") == (
        "there is no table or view recrds, did you mean records?",
        "recrds",
    )
    error = SparksError(
        text.replace("; line 1 pos 14", ""),
        "TABLE_OR_VIEW_NOT_FOUND",
        relationName="`spark_catalog`.`default`.`zzz`",
    )
    message, part = pointed(error, "DROP TABLE zzz")
    assert message == "there is no table or view zzz; there are: records, batches, files"
    assert report_of(error, "").message.endswith("zzz; name the logs with --path")
    assert part is None


def test_an_unknown_function_gets_a_suggestion() -> None:
    error = SparksError(
        "[UNRESOLVED_ROUTINE] Cannot resolve routine `kafka_record` on search path "
        "[`system`.`builtin`, `spark_catalog`.`default`]. SQLSTATE: 42883; line 1 pos 7",
        "UNRESOLVED_ROUTINE",
        routineName="`kafka_record`",
    )
    assert pointed(error, "SELECT kafka_record(content) FROM bin") == (
        "there is no function kafka_record, did you mean kafka_records?",
        "kafka_record",
    )


def test_an_error_while_running_has_its_position_and_no_advice() -> None:
    error = SparksError(
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and "
        'return NULL instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this '
        "error. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nSELECT 1/0\n       ^^^\n",
        "DIVIDE_BY_ZERO",
    )
    assert pointed(error, "SELECT 1/0") == (
        "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead",
        "1/0",
    )


def test_an_error_within_a_view_points_at_nothing() -> None:
    error = SparksError(
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL of VIEW mine (line 1, position 8) ==\nSELECT 1/0 AS a\n       ^^^\n"
    )
    assert pointed(error, "SELECT a FROM mine") == ("Division by zero", None)


def test_an_error_of_ours_is_our_message() -> None:
    ours = "Record is corrupt (stored crc = 1, computed crc = 2) at position 211, base offset 5"
    raised = f"kafkajit.errors.CorruptRecordError: {ours} in /logs/a-0/0.log\n"
    error = SparksError(
        f"An exception was thrown from the Python worker:\n{raised}",
        "PYTHON_EXCEPTION",
        msg="An exception was thrown from the Python worker",
        traceback=raised,
    )
    expected = f"CorruptRecordError: {ours} in /logs/a-0/0.log"
    assert pointed(error, "SELECT 1") == (expected, None)
    error = SparksError(
        f"[PYTHON_DATA_SOURCE_ERROR] Failed to generate read partitions: {raised}",
        "PYTHON_DATA_SOURCE_ERROR",
        action="generate",
        type="read partitions",
        msg=raised,
    )
    assert pointed(error, "SELECT 1") == (expected, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ValueError: unknown option 'kin': did\n", "unknown option 'kin': did"),
        ("FileNotFoundError: there is nothing at /nope\n", "there is nothing at /nope"),
        ("KeyError: 'x'", "KeyError: 'x'"),
        ("StopIteration", "StopIteration"),
        (
            "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n    raise E\n"
            "package.module.OddError: one\ntwo",
            "OddError: one\ntwo",
        ),
        (
            "Traceback (most recent call last):\n  File \"x\"\nKeyError: 1\n\nDuring handling of "
            "the above exception, another exception occurred:\n\n"
            "Traceback (most recent call last):\n  File \"y\"\nValueError: outer",
            "outer",
        ),
    ],
)  # fmt: skip
def test_the_end_of_a_traceback_is_the_message(text: str, message: str) -> None:
    assert what_python_raised(text) == message


def test_a_bug_in_a_worker_is_one_line() -> None:
    trace = 'Traceback (most recent call last):\n  File "x"\nKeyError: 1'
    error = SparksError(f"An exception was thrown:\n{trace}", "PYTHON_EXCEPTION", traceback=trace)
    assert report_of(error, "SELECT 1").message == "KeyError: 1"


JAVA = """\
An error occurred while calling o251.collectAsList.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 22.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 22.0 (TID 59) (192.0.2.2 executor driver): {what}
\tat org.apache.spark.sql.catalyst.expressions.codegen.BufferHolder.grow(BufferHolder.java:85)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:4568)
Caused by: {what}
\tat org.apache.spark.sql.catalyst.expressions.codegen.BufferHolder.grow(BufferHolder.java:85)
"""


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "Spark has run out of memory: give it more with --conf spark.driver.memory=8g",
        ),
        ("java.io.IOException: No space left on device", "No space left on device"),
        (
            "java.lang.IllegalArgumentException: [BAD] Cannot grow BufferHolder. SQLSTATE: 54000",
            "Cannot grow BufferHolder",
        ),
        ("java.lang.NullPointerException", "java.lang.NullPointerException"),
    ],
)
def test_the_cause_in_a_java_stack_trace_is_the_message(what: str, message: str) -> None:
    assert pointed(Py4JJavaError(JAVA.format(what=what)), "SELECT 1") == (message, None)


def test_the_end_of_the_jvm_is_reported() -> None:
    error = Py4JNetworkError("Answer from Java side is empty")
    assert report_of(error, "SELECT 1").message == (
        "Spark has ended unexpectedly: run with --verbose to see its log"
    )
    refused: Exception = ConnectionRefusedError(111, "Connection refused")
    assert report_of(refused, "SELECT 1").message == "Connection refused"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError("there is nothing at /nope"), "there is nothing at /nope"),
        (PermissionError(13, "Permission denied", "/x"), "Permission denied: /x"),
        (ValueError("two\n  lines"), "two lines"),
        (RuntimeError(), "RuntimeError"),
        (AttributeError("no x"), "AttributeError: no x"),
    ],
)
def test_others_errors_are_one_line(error: Exception, message: str) -> None:
    assert report_of(error, "").message == message


def test_a_message_is_one_line() -> None:
    error = SparksError("[X] The columns:\n`a`,\n`b`. SQLSTATE: 21S01")
    assert report_of(error, "").message == "The columns: `a`, `b`"


@pytest.mark.parametrize("column", [0, 5, 150, 290, 299])
def test_a_long_line_is_cut_around_the_place(column: int) -> None:
    sql = f"{'a' * column}XYZ{'b' * (300 - column)}"
    line, carets = pointed_at(sql, column, 3, 60)
    assert len(line) <= 60
    assert len(carets) <= 60
    at = carets.index("^")
    assert line[at : at + 3] == "XYZ"
    assert carets.strip() == "^^^"


def test_tabs_do_not_move_the_carets() -> None:
    assert pointed_at("\tSELECT\tx", 8, 1, 80) == ["   SELECT x", "          ^"]


def test_a_position_outside_the_statement_is_dropped() -> None:
    error: Any = SparksError("[X] odd SQLSTATE: 42601 (line 7, pos 3)")
    assert pointed(error, "SELECT 1") == ("odd", None)
