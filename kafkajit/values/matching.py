"""Matches texts of any length in bounded memory, with every Python.

`re` takes memory for each repetition of a group. A possessive group takes none, but Python before
3.11.5 accepts texts that such a group does not match. So a pattern matches a bounded number of
pieces, and is applied again and again.
"""

from __future__ import annotations

import re
from typing import AnyStr


def end_of_pieces(pieces: re.Pattern[AnyStr], text: AnyStr, at: int) -> int:
    """The end of all pieces from a position on; the pattern also matches no piece.

    >>> end_of_pieces(re.compile("(?:ab){0,2}"), "ababababa", 0)
    8
    """
    while (found := pieces.match(text, at)) and found.end() > at:
        at = found.end()
    return at
