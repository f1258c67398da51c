"""Hadoop's globs, as Spark's pathGlobFilter has them."""

from __future__ import annotations

import re

_SET = re.compile(r"\[(?P<negated>[!^]?)(?P<inside>.[^\]]*)\]")


def glob_to_regex(glob: str) -> re.Pattern[str]:
    r"""Compile a Hadoop glob for one name: ? * [a-z] [^a] {a,b}.

    >>> glob_to_regex("orders-{0,12}").pattern
    'orders\\-(?:0|12)'
    """
    regex, depth, at = "", 0, 0
    while at < len(glob):
        letter = glob[at]
        is_set = _SET.match(glob, at)
        if letter == "*":
            regex += ".*"
        elif letter == "?":
            regex += "."
        elif is_set:
            inside = re.sub(r"([^\w-])", r"\\\1", is_set["inside"])
            regex += f"[{'^' if is_set['negated'] else ''}{inside}]"
            at = is_set.end() - 1
        elif letter == "{":
            regex, depth = regex + "(?:", depth + 1
        elif letter == "}" and depth:
            regex, depth = regex + ")", depth - 1
        elif letter == "," and depth:
            regex += "|"
        else:
            regex += re.escape(letter)
        at += 1
    if depth:
        raise ValueError(f"the glob {glob!r} opens a {{ that it does not close")
    try:
        return re.compile(regex)
    except re.error as error:
        raise ValueError(f"the glob {glob!r} is malformed: {error.msg}") from None
