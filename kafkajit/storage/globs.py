"""Hadoop's globs, as Spark's pathGlobFilter has them."""

from __future__ import annotations

import re

_SET = re.compile(r"\[(?P<negated>[!^]?)(?P<inside>(?:\\.|[^\\])(?:\\.|[^\]\\])*)\]")

# In a set: an escaped letter, or one that has a meaning in a regular expression's sets.
_IN_SET = re.compile(r"\\(.)|([^\w-])")


def glob_to_regex(glob: str) -> re.Pattern[str]:
    r"""Compile a Hadoop glob for one name: ? * [a-z] [^a] {a,b}; a backslash escapes a letter.

    >>> glob_to_regex("orders-{0,12}").pattern
    'orders\\-(?:0|12)'
    >>> glob_to_regex(r"a\*b").pattern
    'a\\*b'
    """
    regex, depth, at = "", 0, 0
    while at < len(glob):
        letter = glob[at]
        is_set = _SET.match(glob, at)
        if letter == "\\":
            if at + 1 == len(glob):
                raise ValueError(f"the glob {glob!r} ends in a backslash, which escapes nothing")
            regex += re.escape(glob[at + 1])
            at += 1
        elif letter == "*":
            regex += ".*"
        elif letter == "?":
            regex += "."
        elif is_set:
            inside = _IN_SET.sub(lambda one: re.escape(one[1] or one[2]), is_set["inside"])
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
