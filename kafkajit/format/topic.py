"""Checks the name of a topic. Answers to Topic.validate of Kafka 4.1.1, in its words."""

from __future__ import annotations

import re

_MOST_CHARACTERS = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]*")


def check_topic(name: str) -> str:
    """Return the name, or raise a ValueError if no topic can have it.

    >>> check_topic("orders")
    'orders'
    >>> check_topic("../etc")
    Traceback (most recent call last):
    ValueError: Topic name is invalid: '../etc' contains one or more characters other than ASCII
    alphanumerics, '.', '_' and '-'
    """
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > _MOST_CHARACTERS:
        reason = f"the length of a name of {len(name)} characters is longer than the max allowed "
        reason += f"length {_MOST_CHARACTERS}"
    elif not _LEGAL.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, "
        reason += "'.', '_' and '-'"
    else:
        return name
    raise ValueError(f"Topic name is invalid: {reason}")
