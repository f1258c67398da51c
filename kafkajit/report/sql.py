"""For each group of figures the SQL that gives them, from assets/figures.sql."""

from __future__ import annotations

import re
from importlib.resources import files

_NAMED = re.compile(r"^-- name: (\w+)\n((?:(?!-- name: ).*\n)+)", re.MULTILINE)


def statements() -> dict[str, str]:
    """The statements by the names of their figures.

    >>> statements()["formats"].splitlines()[0]
    'SELECT topic, magic, count(*) AS batches'
    """
    text = files("kafkajit.report").joinpath("assets/figures.sql").read_text("utf-8")
    return {name: statement.strip() for name, statement in _NAMED.findall(text)}
