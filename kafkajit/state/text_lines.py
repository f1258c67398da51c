r"""Reads the lines of the text files beside a log as Java's BufferedReader does.

Lines are UTF-8 and end at \n, \r or \r\n. The bytes are read a block at a time, and a line that is
longer than any that a broker writes is refused. So a file of any size takes the memory of a block,
and time in proportion to its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkajit.errors import CorruptCheckpointError
from kafkajit.storage.source import Bytes

# Topics have up to 249 characters. Kafka has no limit, but writes no line that is longer than this.
MAX_LINE = 1 << 16
_BLOCK = 1 << 18
_SHOWN = 200


def lines(content: Bytes, path: str | None = None) -> Iterator[str]:
    """Yield the lines without their ends."""
    number, rest = 0, b""
    for start in range(0, content.size, _BLOCK):
        found = (rest + content[start : start + _BLOCK].tobytes()).splitlines(keepends=True)
        rest = b""
        if start + _BLOCK < content.size and not found[-1].endswith(b"\n"):
            rest = found.pop()  # perhaps with the \r of an \r\n that spans two blocks
        for line in found:
            number += 1
            yield _decoded(line.rstrip(b"\r\n"), number, path)
        if len(rest) > MAX_LINE + 1:
            raise _too_long(number + 1, path)


def _decoded(line: bytes, number: int, path: str | None) -> str:
    if len(line) > MAX_LINE:
        raise _too_long(number, path)
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError(
            f"not UTF-8: {error.reason}, byte {error.start}",
            path=path,
            line=number,
        ) from error


def _too_long(number: int, path: str | None) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"more than {MAX_LINE} bytes, and Kafka writes no line that long", path=path, line=number
    )


def malformed_line(line: str, number: int, path: str | None) -> CorruptCheckpointError:
    """Kafka's error for a line that it does not understand."""
    return CorruptCheckpointError(
        f"Malformed line in checkpoint file: {shown(line)}", path=path, line=number
    )


def shown(text: str) -> str:
    """A text as an error quotes it: only its beginning, if it is long.

    >>> shown("0" * 1_000_000)[-23:]
    '0… (1000000 characters)'
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def parse_number(text: str, bits: int) -> int | None:
    """Integer.parseInt, or Long.parseLong for 64 bits; None if they would throw.

    >>> parse_number("-2147483648", 32), parse_number("2147483648", 32), parse_number("1_0", 32)
    (-2147483648, None, None)
    """
    sign = text[:1] if text.startswith(("+", "-")) else ""
    digits = text[len(sign) :]
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0")
    if len(digits) > 19:  # more than int64 has; int() takes quadratic time
        return None
    number = int(sign + (digits or "0"))
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None
