"""Options given as text, as Spark hands them over: how they are described, parsed and suggested.

The options of the reader (`scan/options.py`) and of the writer (`produce/options.py`) are such
tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

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


def suggestion(key: str, names: Mapping[str, str], every: Iterable[str]) -> str:
    """The end of an error about an unknown option: the name that is close to it, or all names.

    Args:
        key: the unknown option, spelled like the keys of `names`
        names: the options, by the spelling in which they are compared
        every: the options to list if none is close

    >>> suggestion("kin", {"kind": "kind"}, ["kind", "mode"])
    ": did you mean 'kind'?"
    """
    close = get_close_matches(key, names, n=1)
    if close:
        return f": did you mean {names[close[0]]!r}?"
    return f"; there are: {', '.join(every)}"


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """A parser that accepts these words in upper or lower case.

    >>> one_of(("static", "dynamic"))("DYNAMIC")
    'dynamic'
    """

    def parse(text: str) -> str:
        for choice in choices:
            if text.lower() == choice.lower():
                return choice
        close = get_close_matches(text.lower(), [choice.lower() for choice in choices], n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"there is no {text!r}{hint}, but {', '.join(choices)}")

    return parse


def boolean(text: str) -> bool:
    """Parse true or false, in upper or lower case.

    >>> boolean("TRUE")
    True
    """
    if text.lower() not in ("true", "false"):
        raise ValueError(f"true or false, not {text!r}")
    return text.lower() == "true"
