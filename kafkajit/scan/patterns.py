"""Patterns to search for: bytes, or regular expressions in RE2's syntax, as RE2 reads them.

RE2 takes linear time for any expression, and `re` five times as long. It comes with pyarrow. An
expression is searched only in values that hold the longest text that all of its matches contain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.records.search import Needle, holders
from kafkajit.storage.source import Mask
from kafkajit.values.framing import places

# Parts of several characters, by the first: a class, the beginning of a group without flags, and a
# repetition.
_LONG = {
    "[": re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL),
    "(": re.compile(r"\((?:\?(?::|P?<\w+>))?(?!\?)"),
    "{": re.compile(r"\{(?:\d+(?:,\d*)?|,\d*)\}"),
}
# Letters behind a backslash that make a part of their own, and take no more text.
_KNOWN = frozenset("dDwWsSbBAznrtfva")
# Letters that are the same as others than a-z if case is ignored.
_SHARED = frozenset("iksIKS")


@dataclass(frozen=True)
class Pattern:
    """Something to search for in values; NULL never has it."""

    needle: Needle | None  # what every match contains, if that is known
    regex: str | None  # None: the needle is all, or nothing is asked for
    exact: re.Pattern[bytes] | None = None  # the bytes to find, without a regex

    @classmethod
    def of_bytes(cls, content: bytes, *, ignores_case: bool = False) -> Self:
        """The pattern of some bytes; `ignores_case` is about ASCII letters.

        >>> Pattern.of_bytes(b"b").rows(pa.array([b"abc", b"B", None])).tolist()
        [True, False, False]
        """
        flags = re.IGNORECASE if ignores_case else re.NOFLAG
        exact = re.compile(re.escape(content), flags)
        needle = Needle.of(content, ignores_case=ignores_case) if content else None
        return cls(needle, None, exact)

    @classmethod
    def of_hex(cls, text: str) -> Self:
        """The pattern of bytes in hex.

        >>> Pattern.of_hex("cafe").spans(bytes.fromhex("00cafe"))
        [(1, 3)]
        >>> Pattern.of_hex("coffee")
        Traceback (most recent call last):
        ValueError: expected bytes in hex such as cafebabe, not 'coffee'
        """
        try:
            return cls.of_bytes(bytes.fromhex(text))
        except ValueError:
            wrong = f"expected bytes in hex such as cafebabe, not {text!r}"
            raise ValueError(wrong) from None

    @classmethod
    def of_text(cls, text: str, *, ignores_case: bool = False) -> Self:
        """The pattern of a text as it is."""
        if ignores_case and not text.isascii():
            return cls._of_regex(re.escape(text), None, ignores_case=True)
        content = text.encode(errors="surrogateescape")
        return cls.of_bytes(content, ignores_case=ignores_case)

    @classmethod
    def of_regex(cls, text: str, *, ignores_case: bool = False) -> Self:
        """The pattern of a regular expression; one without metacharacters is a text.

        >>> Pattern.of_regex("^a+$").rows(pa.array([b"aa", b"ab"])).tolist()
        [True, False]
        >>> Pattern.of_regex("a(")
        Traceback (most recent call last):
        ValueError: the regular expression 'a(' is wrong: missing ): a(; -F searches for the text
        """
        tokens = _tokens(text)
        literal = _literal(tokens)
        if literal is not None:
            return cls.of_text(literal, ignores_case=ignores_case)
        run = _required(tokens, ignores_case=ignores_case).encode(errors="surrogateescape")
        needle = Needle.of(run, ignores_case=ignores_case) if run else None
        return cls._of_regex(text, needle, ignores_case=ignores_case)

    @classmethod
    def _of_regex(cls, text: str, needle: Needle | None, *, ignores_case: bool) -> Self:
        regex = f"(?i){text}" if ignores_case else text
        try:
            pc.match_substring_regex(pa.array([""]), regex)
            try:
                pc.replace_substring_regex(pa.array([""]), pattern=regex, replacement="")
            except pa.ArrowInvalid:
                # Arrow puts it in parentheses here. A \Q that is not closed would quote the second.
                regex += r"\E"
                pc.replace_substring_regex(pa.array([""]), pattern=regex, replacement="")
        except UnicodeEncodeError:
            raise ValueError(
                f"the regular expression {text!r} is not UTF-8: pass bytes with --hex"
            ) from None
        except pa.ArrowInvalid as error:
            why = str(error).removeprefix("Invalid regular expression: ")
            raise ValueError(
                f"the regular expression {text!r} is wrong: {why}; -F searches for the text"
            ) from None
        return cls(needle, regex)

    def rows(self, values: pa.Array) -> Mask:
        """Find the values, bytes or text, that have the pattern."""
        found: Mask = np.ones(len(values), dtype=np.bool_)
        if self.needle is not None:
            found = holders(*places(values), self.needle)
        elif values.null_count:
            found = np.asarray(values.is_valid())
        if self.regex is not None and found.any():
            some = values if found.all() else values.filter(pa.array(found))
            matched = pc.match_substring_regex(_as_text(some), self.regex)
            found[found] = np.asarray(matched.fill_null(False))
        return found

    def spans(self, value: bytes) -> list[tuple[int, int]]:
        """The places where the matches in a value begin and end."""
        if self.exact is not None:
            return [found.span() for found in self.exact.finditer(value)]
        assert self.regex is not None
        mark = b"\x01"
        while mark in value:  # it ends, and no other bytes in front of it can look like it
            mark += b"\x02"
        text = mark.decode()
        marked = pc.replace_substring_regex(
            _as_text(pa.array([value])), pattern=self.regex, replacement=f"{text}\\0{text}"
        )
        ends = np.cumsum([len(part) for part in marked[0].as_buffer().to_pybytes().split(mark)])
        return list(zip(ends[:-1:2].tolist(), ends[1::2].tolist(), strict=True))


def _as_text(values: pa.Array) -> pa.Array:
    """The same bytes as text, UTF-8 or not: RE2 takes no byte that is not for a character."""
    return values.view(pa.large_string() if pa.types.is_large_binary(values.type) else pa.string())


class _Token(NamedTuple):
    """A part of a regular expression."""

    kind: str  # its first letter; "" for a plain character
    text: str  # the plain character


def _literal(tokens: list[_Token] | None) -> str | None:
    """The text that is all that an expression matches; None if it is not known."""
    if tokens is None or any(token.kind for token in tokens):
        return None
    return "".join(token.text for token in tokens)


def _required(tokens: list[_Token] | None, *, ignores_case: bool) -> str:
    """The longest run of plain characters that every match has; empty if none is known."""
    runs = []
    run = ""
    depth = 0
    for kind, text in tokens or ():
        if kind == "|" and depth == 0:
            return ""
        depth += (kind == "(") - (kind == ")")
        is_shared = ignores_case and (text in _SHARED or not text.isascii())
        if text and depth == 0 and not is_shared:
            run += text
            continue
        if kind in ("?", "*", "{"):
            run = run[:-1]  # the last one may be missing
        runs.append(run)
        run = ""
    return max([*runs, run], key=len)


def _tokens(regex: str) -> list[_Token] | None:
    """The parts of an expression; None if it has one that is not known here, such as (?i)."""
    tokens = []
    at = 0
    while at < len(regex):
        letter = regex[at]
        match letter:
            case "\\":
                escaped = regex[at + 1 : at + 2]
                if not escaped or (escaped.isalnum() and escaped not in _KNOWN):
                    return None
                is_plain = not escaped.isalnum()
                token, size = _Token("" if is_plain else letter, escaped * is_plain), 2
            case "[" | "(" | "{":
                found = _LONG[letter].match(regex, at)
                if found is not None:
                    token, size = _Token(letter, ""), len(found[0])
                elif letter == "{":
                    token, size = _Token("", letter), 1
                else:
                    return None
            case "^" | "$" | "." | "|" | "?" | "*" | "+" | ")":
                token, size = _Token(letter, ""), 1
            case _:
                token, size = _Token("", letter), 1
        tokens.append(token)
        at += size
    return tokens
