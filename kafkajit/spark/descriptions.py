"""Describes the SQL functions: reads the headers of sql/functions, and makes docstrings of them.

The files are in sql/functions of a checkout. The wheel has them beside this module, in `sql`.
"""

from __future__ import annotations

import pkgutil
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2] / "sql" / "functions"
_FIELD = re.compile(r"-- (?P<name>\w[\w ]*): (?P<text>.+)")
# The fields of a header that describe the function; the others describe its arguments.
FIXED_FIELDS = {"signature", "description", "returns", "group", "since", "see also"}
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z`])")

# How an annotation reads in a docstring.
_TYPES = {
    "ColumnOrName": "Column or column name",
    "ColumnOrName | int": "Column, column name or int",
    "str | None": "str, optional",
    "Column | str": "str or Column",
    "Column | Mapping[str, object] | None": "dict or Column, optional",
}


def header_fields(text: str) -> dict[str, str]:
    r"""The fields at the top of a .sql file, up to its first empty line.

    >>> header_fields("-- signature: f(a)\n-- a: INT, which\n--   counts.\n\nSELECT f(1);")
    {'signature': 'f(a)', 'a': 'INT, which counts.'}
    """
    fields: dict[str, str] = {}
    for line in text.partition("\n\n")[0].splitlines():
        field = _FIELD.fullmatch(line)
        if field is not None:
            name = field["name"]
            fields[name] = field["text"]
        elif line.startswith("--   ") and fields:
            fields[name] += " " + line[2:].strip()
        else:
            raise ValueError(f"neither a field nor the continuation of one: {line!r}")
    return fields


@cache
def header(name: str) -> dict[str, str] | None:
    """The header of a plain function's file; None if the files were not installed."""
    try:
        content = pkgutil.get_data("kafkajit.spark", f"sql/{name}.sql")
    except OSError:
        content = None
    if content is None:
        path = _CHECKOUT / f"{name}.sql"
        if not path.is_file():
            return None
        content = path.read_bytes()
    return header_fields(content.decode())


def summary(name: str) -> str:
    """The first sentence of a function's description."""
    fields = header(name)
    return "" if fields is None else _SENTENCE.split(fields["description"], maxsplit=1)[0]


def docstring(name: str, signature: Signature) -> str | None:
    """The docstring of a function of columns, in numpydoc as pyspark has it."""
    plain = name.removeprefix("try_")
    fields = header(plain)
    if fields is None:
        return None
    return "\n".join(_docstring(name, plain, fields, signature))


def _docstring(
    name: str, plain: str, fields: dict[str, str], signature: Signature
) -> Iterator[str]:
    first, *rest = _SENTENCE.split(fields["description"], maxsplit=1)
    is_twin = name != plain
    if is_twin:
        yield f"Returns what {plain} returns, or NULL if the bytes are damaged.\n"
        yield from _wrapped(first)
    else:
        yield first + "\n"
    yield from (part for text in rest for part in _wrapped(text))
    yield f".. versionadded:: {fields['since']}\n"
    yield from _head("Parameters")
    arguments = [text for field, text in fields.items() if field not in FIXED_FIELDS]
    for parameter, text in zip(signature.parameters.values(), arguments, strict=True):
        yield f"{parameter.name} : {_TYPES[str(parameter.annotation)]}"
        yield from _wrapped(text, "    ", end="")
    yield ""
    yield from _head("Returns")
    yield "Column"
    yield from _wrapped(fields["returns"], "    ")
    yield from _head("See Also")
    others = fields["see also"].split(", ")
    yield ", ".join(others if not is_twin else [plain, *others]) + "\n"
    yield from _head("Examples")
    yield f">>> from kafkajit.spark.functions import {name}"
    required = [
        f'"{parameter.name}"'
        for parameter in signature.parameters.values()
        if parameter.default is Parameter.empty
    ]
    yield f">>> found = df.select({name}({', '.join(required)}))\n"
    yield "The page Functions of the documentation has examples in SQL.\n"


def _head(title: str) -> Iterator[str]:
    yield title
    yield "-" * len(title)


def _wrapped(text: str, indent: str = "", end: str = "\n") -> Iterator[str]:
    yield textwrap.fill(text, 88, initial_indent=indent, subsequent_indent=indent) + end
