"""Options given as text, as Spark hands them over: how they are described, parsed and suggested.

The options of the reader (`scan/options.py`) and of the writer (`produce/options.py`) are such
tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kafkajit.errors import did_you_mean

# The properties that CREATE TABLE adds to a table's options (TableCatalog's reserved properties).
_SPARKS_OWN = {
    "collation",
    "comment",
    "external",
    "is_managed_location",
    "location",
    "owner",
    "provider",
    "serialization.format",
}


class Option(NamedTuple):
    """An option: the attribute that holds it, how its text is parsed, and its line in the docs."""

    attribute: str
    parse: Callable[[str], Any]
    doc: str


def is_sparks_own(key: str) -> bool:
    """Whether Spark added this option: a reserved property, or an option again as option.NAME.

    >>> is_sparks_own("provider"), is_sparks_own("option.kind"), is_sparks_own("kind")
    (True, True, False)
    """
    return key.lower() in _SPARKS_OWN or key.lower().startswith("option.")


def suggestion(key: str, options: Iterable[str], spelled: Callable[[str], str] = str.lower) -> str:
    """The end of an error about an unknown option: the name that is close to it, or all names.

    >>> suggestion("Kin", ["kind", "mode"])
    ": did you mean 'kind'?"
    """
    hint = did_you_mean(key, options, spelled=spelled)
    return f": {hint}" if hint else f"; there are: {', '.join(options)}"


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """A parser that accepts these words in upper or lower case.

    >>> one_of(("static", "dynamic"))("DYNAMIC")
    'dynamic'
    """

    def parse(text: str) -> str:
        for choice in choices:
            if text.lower() == choice.lower():
                return choice
        hint = did_you_mean(text, choices)
        raise ValueError(
            f"unknown value {text!r}{f' ({hint})' if hint else ''}; there are: {', '.join(choices)}"
        )

    return parse


def boolean(text: str) -> bool:
    """Parse true or false, in upper or lower case.

    >>> boolean("TRUE")
    True
    """
    if text.lower() not in ("true", "false"):
        raise ValueError(f"expected true or false, not {text!r}")
    return text.lower() == "true"
