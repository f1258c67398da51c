"""Text that may have anything in it, such as names of files → text on one line."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text on one line, with escapes in place of line breaks and control characters.

    >>> print(printable("a\nb\x1b[2K"))
    a\nb\x1b[2K
    """
    if text.isprintable():
        return text
    escaped = (repr(letter)[1:-1] for letter in text)
    return "".join(
        letter if letter.isprintable() else code for letter, code in zip(text, escaped, strict=True)
    )
