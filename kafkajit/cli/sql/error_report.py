r"""An exception of Spark → one line on the problem, and its position in the statement.

Spark's exceptions carry a condition, parameters, hints on settings, the plan, and stack traces of
two languages. An exception of our data sources and functions has our own message at the end of a
worker's traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kafkajit.cli.error_text import of_system
from kafkajit.cli.sql.statements import line_and_column, tokens
from kafkajit.errors import did_you_mean

_HEAP = "Java heap space"
_MORE_HEAP = "Spark has run out of memory: give it more with --conf spark.driver.memory=8g"
_GONE = "Spark has ended unexpectedly: run with --verbose to see its log"
_MOST_PROPOSED = 5  # Spark names no more columns than this

_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\] ?")
# The text behind the message itself: SQLSTATE, position, plan, the statement again,
_AFTERWARDS = re.compile(
    r"\s*;?\s*SQLSTATE: \w{5}.*|\s*\n== SQL.*|\s*\n\s*JVM stacktrace:.*"
    # and the advice to turn errors off
    r'| If necessary set "spark\.sql\.ansi\.enabled".*',
    re.DOTALL,
)
_STAGE_FAILURE = re.compile(r"Lost task .*?: ((?:[\w$]+\.)+[\w$]+(?:: .*)?)")
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)

# Positions as Spark prints them: `(line 1, pos 9)`, `== SQL (line 1, position 8) ==`,
# `; line 1 pos 7`.
_PLACES = (
    (re.compile(r"\(line (\d+), pos (\d+)\)"), 0),
    (re.compile(r"== SQL \(line (\d+), position (\d+)\) =="), 1),
    (re.compile(r"SQLSTATE: \w{5}; line (\d+) pos (\d+)"), 0),
)
_CARETS = re.compile(r"^ *(\^+) *$", re.MULTILINE)

# The last line of a traceback, and the lines that continue its message.
_RAISED = re.compile(r"^((?:\w+\.)*)(\w+)(?:: (.*))?", re.DOTALL)
_BUILTIN = (
    "ValueError",
    "TypeError",
    "OSError",
    "FileNotFoundError",
    "IsADirectoryError",
    "NotADirectoryError",
    "PermissionError",
    "FileExistsError",
)

# Exceptions whose message needs no name before it.
_TELLING = (ValueError, RuntimeError)


class ErrorReport(NamedTuple):
    """One line on the problem, and the part of the statement that it is about, if known."""

    message: str
    start: int | None = None
    length: int = 1


class Known(NamedTuple):
    """Names that may have been meant."""

    views: Sequence[str] = ()
    functions: Sequence[str] = ()


def report_of(error: BaseException, statement: str, known: Known = Known()) -> ErrorReport:  # noqa: B008
    """Describe what is wrong with a statement.

    Args:
        error: the exception, of Spark or of any code between.
        statement: the text that Spark was given.
        known: names to suggest.
    """
    text = str(error)
    start, length = _place(text, statement)
    message = _message(error, text, known)
    return ErrorReport(" ".join(message.split()), start, length)


def _message(error: BaseException, text: str, known: Known) -> str:
    if _HEAP in text or "OutOfMemoryError" in text:
        return _MORE_HEAP
    if type(error).__module__.startswith("py4j") and "JavaError" not in type(error).__name__:
        return _GONE
    condition, parameters = _parts(error)
    special = _in_our_words(condition, parameters, known)
    if special is not None:
        return special
    if "Traceback (most recent call last)" in text or condition.startswith("PYTHON"):
        raised = parameters.get("traceback") or parameters.get("msg") or text
        return what_python_raised(raised)
    if type(error).__name__ == "Py4JJavaError":
        return _of_java(text)
    if isinstance(error, OSError):
        return of_system(error)
    name = type(error).__name__
    if isinstance(error, _TELLING) or _CONDITION.match(text):
        return _shortened(text) or name
    return f"{name}: {_shortened(text)}"  # a bug: its name helps to find it


def _parts(error: BaseException) -> tuple[str, dict[str, str]]:
    """Spark's name for the error, and its parameters; both calls go to the JVM."""
    asked: Any = error
    try:
        return asked.getCondition() or "", dict(asked.getMessageParameters() or {})
    except Exception:  # not an exception of Spark, or the JVM is gone
        return "", {}


def _in_our_words(condition: str, parameters: dict[str, str], known: Known) -> str | None:
    if condition.startswith("UNRESOLVED_COLUMN"):
        column = _plain(parameters.get("objectName", ""))
        there = [_plain(name) for name in parameters.get("proposal", "").split(", ") if name]
        said = [*there, "…"] if len(there) >= _MOST_PROPOSED else there
        return f"there is no column {column}{meant(column, there, said)}"
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = _plain(parameters.get("relationName", "")).removeprefix("spark_catalog.default.")
        hint = meant(name, known.views, known.views) or "; name the logs with --path"
        return f"there is no table or view {name}{hint}"
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = _plain(parameters.get("routineName", ""))
        return f"there is no function {name}{meant(name, known.functions)}"
    return None


def _plain(name: str) -> str:
    return name.replace("`", "")


def meant(name: str, candidates: Iterable[str], there: Sequence[str] = ()) -> str:
    """The end of a message on an unknown name: the name that was meant, or else all names."""
    hint = did_you_mean(name, candidates, quoted=False)
    if hint:
        return f", {hint}"
    return f"; there are: {', '.join(there)}" if there else ""


def what_python_raised(text: str) -> str:
    r"""The message at the end of a traceback, without the module that its class is from.

    >>> what_python_raised('Traceback (most recent call last):\n  File "x"\nValueError: no')
    'no'
    >>> what_python_raised("kafkajit.errors.CorruptRecordError: crc at position 4096\n")
    'CorruptRecordError: crc at position 4096'
    """
    lines = text.strip().splitlines()
    frames = [at for at, line in enumerate(lines) if line.startswith((" ", "Traceback"))]
    last = "\n".join(lines[frames[-1] + 1 :] if frames else lines)
    raised = _RAISED.match(last)
    if raised is None or raised[3] is None:
        return last
    return raised[3] if raised[2] in _BUILTIN else f"{raised[2]}: {raised[3]}"


def _of_java(text: str) -> str:
    """The innermost cause in a Java stack trace."""
    found = _CAUSE.findall(text) or _STAGE_FAILURE.findall(text)
    reason: str = (
        found[-1]
        if found
        else next((line for line in text.splitlines()[1:] if line.strip()), text).lstrip(": ")
    )
    name, colon, rest = reason.partition(": ")
    return _shortened(rest) if colon and re.fullmatch(r"[\w.$]+", name) else reason


def _shortened(text: str) -> str:
    return _AFTERWARDS.sub("", _CONDITION.sub("", text.strip())).strip().rstrip(".")


def _place(text: str, statement: str) -> tuple[int | None, int]:
    """The position and length of the error in the statement, if the text contains them."""
    if "== SQL of" in text:  # within a view, whose text is not the statement's
        return None, 1
    for pattern, first in _PLACES:
        found = pattern.search(text)
        if found:
            lines = statement.split("\n")
            line, column = int(found[1]) - 1, int(found[2]) - first
            if line >= len(lines) or column > len(lines[line]):
                return None, 1
            start = sum(len(before) + 1 for before in lines[:line]) + column
            carets = _CARETS.search(text, found.end()) if first else None
            if carets:
                return start, len(carets[1])
            token = next((t for t in tokens(statement) if t.start == start), None)
            return start, len(token.text) if token and token.kind in ("word", "name") else 1
    return None, 1


def pointed_at(statement: str, start: int, length: int, width: int) -> list[str]:
    """The line of the statement with carets below it, cut around them to a width.

    >>> pointed_at("SELECT ofset FROM records", 7, 5, 80)
    ['  SELECT ofset FROM records', '         ^^^^^']
    """
    line, column = line_and_column(statement, start)
    text = statement.split("\n")[line].replace("\t", " ")
    length = max(1, min(length, len(text) - column))
    room = max(width - 2, 20)
    if len(text) > room:
        first = max(0, min(column - room // 3, len(text) - room))
        cut = text[first : first + room]
        column -= first
        cut = f"…{cut[1:]}" if first else cut
        text = f"{cut[:-1]}…" if first + room < len(text) else cut
        length = max(1, min(length, room - column))
    return [f"  {text}", "  " + " " * column + "^" * length]
