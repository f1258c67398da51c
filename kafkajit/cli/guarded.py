r"""Guards terminals from control characters that names, records and errors may have.

A file's name, or a record's value, may have escape sequences that clear the screen, set the
window's title or hide text. Each of them is written as an escape, such as \x1b, except for line
breaks, tabs and the colours of `look`. Pipes and files get everything as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from kafkajit.cli.look import COLOURS

_SGR = "|".join(re.escape(f"\x1b[{one}m") for one in COLOURS)
# C0 and C1, what breaks lines elsewhere, and what turns the direction of text around.
# A line of progress is written over, and taken away.
_TEXT = re.compile(
    rf"({_SGR}|^\r(?:\x1b\[K)?|\r\Z)|[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_BYTES = re.compile(
    rb"(%b)|[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c"
    rb"|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]" % _SGR.encode()
)


def guard_terminals() -> None:
    """Let nothing but text and our own colours reach the terminal of this process."""
    if sys.stdout.isatty():
        sys.stdout = _Guarded(sys.stdout)
    if sys.stderr.isatty():
        sys.stderr = _Guarded(sys.stderr)


def guarded(text: str) -> str:
    r"""The text as a terminal gets it.

    >>> print(guarded("a\x1b]0;title\x07\u202eb"))
    a\x1b]0;title\x07\u202eb
    """
    return _TEXT.sub(lambda found: found[1] or repr(found[0])[1:-1], text)


def _guarded_bytes(content: bytes) -> bytes:
    return _BYTES.sub(lambda found: found[1] or _escaped(found[0]), content)


def _escaped(character: bytes) -> bytes:
    return repr(character.decode())[1:-1].encode()


class _Guarded:
    """A stream to a terminal, and the same of its bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.buffer = _GuardedBytes(stream.buffer)

    def write(self, text: str) -> int:
        self._stream.write(guarded(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _GuardedBytes:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, content: Any) -> int:
        content = bytes(content)
        self._stream.write(_guarded_bytes(content))
        return len(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
