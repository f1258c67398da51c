r"""The lines of the text files beside a log, as Java's BufferedReader gives them.

Bytes in, strings out: lines end at \n, \r or \r\n, and are UTF-8. They are taken in a block at
a time and no longer than a broker could have written them, so that a file of any size costs memory
for a block, and time for its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkajit.errors import CorruptCheckpointError
from kafkajit.storage.source import Bytes

# Topics have up to 249 characters. Kafka has no limit; a line beyond this one is not Kafka's.
MAX_LINE = 1 << 16
_BLOCK = 1 << 18
_SHOWN = 200


def lines(content: Bytes, path: str | None = None) -> Iterator[str]:
    """The lines, without their ends."""
    number, rest = 0, b""
    for start in range(0, content.size, _BLOCK):
        found = (rest + content[start : start + _BLOCK].tobytes()).splitlines(keepends=True)
        rest = b""
        if start + _BLOCK < content.size and not found[-1].endswith(b"\n"):
            rest = found.pop()  # perhaps with the \r of an \r\n that the block cuts in two
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
            f"The file is not UTF-8: {error.reason}, byte {error.start} of what stands",
            path=path,
            line=number,
        ) from error


def _too_long(number: int, path: str | None) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"No line of Kafka's has more than {MAX_LINE} bytes, as has that", path=path, line=number
    )


def malformed_line(line: str, number: int, path: str | None) -> CorruptCheckpointError:
    """Kafka's words for a line that it does not understand."""
    return CorruptCheckpointError(
        f"Malformed line in checkpoint file: {shown(line)}", path=path, line=number
    )


def shown(text: str) -> str:
    """A text as an error quotes it: no more than its beginning.

    >>> shown("0" * 1_000_000)[-23:]
    '0… (1000000 characters)'
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def parse_number(text: str, bits: int) -> int | None:
    """Integer.parseInt, or Long.parseLong for 64 bits; None where they throw.

    >>> parse_number("-2147483648", 32), parse_number("2147483648", 32), parse_number("1_0", 32)
    (-2147483648, None, None)
    """
    sign = text[:1] if text.startswith(("+", "-")) else ""
    digits = text[len(sign) :]
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0")
    if len(digits) > 19:  # more than int64 has; int() would take the square of their number
        return None
    number = int(sign + (digits or "0"))
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None
