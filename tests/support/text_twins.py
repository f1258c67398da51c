"""Slow twins of the readers of text files: loops, no shared code. They refuse as Kafka does."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """Kafka refuses to read the file."""


def java_lines(content: bytes) -> list[str]:
    """BufferedReader.readLine, character by character."""
    found, line, last = [], b"", b""
    for i in range(len(content)):
        byte = content[i : i + 1]
        if byte in b"\r\n":
            if not (byte == b"\n" and last == b"\r"):
                found.append(line)
            line = b""
        else:
            line += byte
        last = byte
    if line:
        found.append(line)
    try:
        return [line.decode() for line in found]
    except UnicodeDecodeError as error:
        raise Refused from error


def java_int(text: str, bits: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(digit not in "0123456789" for digit in digits):
        raise Refused
    number = 0
    for digit in digits:
        number = 10 * number + ord(digit) - ord("0")
    number = -number if text[0] == "-" else number
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise Refused
    return number


def words(line: str) -> list[str]:
    """Java's split at white space: empty parts count in front, but not behind."""
    found, word, between = [], "", False
    for character in line:
        if character in " \t\n\x0b\f\r":
            if not between:
                found.append(word)
            word, between = "", True
        else:
            word, between = word + character, False
    found.append(word)
    while found and not found[-1]:
        del found[-1]
    return found


def checkpoint(content: bytes, *bits: int) -> list[list[Any]]:
    """CheckpointFile's entries; 0 bits stand for a string."""
    found = java_lines(content)
    version, count, *entries = found if len(found) > 1 else [*found, None, None][:2]
    if version is None:
        return []
    if java_int(version, 32) != 0:
        raise Refused
    if count is None:
        return []
    expected = java_int(count, 32)
    rows = []
    for line in entries:
        assert line is not None
        parts = words(line)
        if len(parts) != len(bits):
            raise Refused
        rows.append([java_int(p, size) if size else p for p, size in zip(parts, bits, strict=True)])
    if len(rows) != expected:
        raise Refused
    return rows
