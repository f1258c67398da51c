"""Text of a .proto file → its tokens, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.matching import end_of_pieces

# A number ends as a C preprocessor's does; `Tokens.integer` checks its digits. Quantifiers of
# single characters are possessive, so that no text makes the search go back; those of groups are
# bounded (see `matching`).
_TOKEN = re.compile(
    r"""
      (?P<space>  [ \t\n\r\f\v]++ | //[^\n]*+ | /\*(?s:.*?)\*/ )
    | (?P<name>   [A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<number> \.?[0-9][A-Za-z0-9_.]*+(?:(?<=[eE])[+-][A-Za-z0-9_.]*+){0,100} )
    | (?P<string> ["'] )
    | (?P<symbol> /(?!\*) | [!\#-&(-.:-@[-`{-~] )
    """,
    re.VERBOSE,
)
_INSIDE = {quote: re.compile(rf"(?:[^{quote}\\\n]++|\\[^\n]){{0,1000}}") for quote in ('"', "'")}
_NEVER = re.compile(r"[\0\ud800-\udfff]")  # UTF-8 has no half of a pair, and protoc stops at NUL
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]++|0[0-7]*+|[1-9][0-9]*+")
_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<byte>[0-9a-fA-F]{1,2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<letter>.))"
)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MOST_DIGITS = 20  # those of the largest number of 64 bits
_TOO_LARGE = 1 << 70


class Token(NamedTuple):
    """A word of the text, and the position of its first character; the end has no text."""

    kind: str
    text: str
    position: int


class Tokens:
    """The tokens of a text; `token` is the next one."""

    def __init__(self, text: str, path: str | None = None) -> None:
        self.text = text
        self.path = path
        never = _NEVER.search(text)
        if never is not None:
            raise self.error_at(never.start(), f"a .proto file has no character {never[0]!r}")
        self._rest = self._scan()
        self.token = next(self._rest)

    def _scan(self) -> Iterator[Token]:
        text = self.text
        position = 1 if text.startswith("\ufeff") else 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise self._no_token(position)
            kind = found.lastgroup
            assert kind is not None
            end = found.end() if kind != "string" else self._behind_string(position)
            if kind != "space":
                yield Token(kind, text[position:end], position)
            position = end
        while True:
            yield Token("end", "", position)

    def _behind_string(self, position: int) -> int:
        quote = self.text[position]
        at = end_of_pieces(_INSIDE[quote], self.text, position + 1)
        if not self.text.startswith(quote, at):
            advice = f"close it with {quote} on the same line"
            raise self.error_at(position, "a string does not end", advice)
        return at + 1

    def _no_token(self, position: int) -> InvalidSchemaError:
        if self.text.startswith("/*", position):
            return self.error_at(position, "a comment does not end", "close it with */")
        letter = self.text[position]
        advice = "only strings and comments may have it"
        return self.error_at(position, f"unexpected character {letter!r}", advice)

    def error_at(
        self, position: int, message: str, advice: str | None = None
    ) -> InvalidSchemaError:
        """An error about a place in the text."""
        line, column = self.place(position)
        return InvalidSchemaError(
            message, path=self.path, line=line, column=column, advice=advice or None
        )

    def place(self, position: int) -> tuple[int, int]:
        """The line and the column of a position, from 1."""
        line = self.text.count("\n", 0, position) + 1
        return line, position - self.text.rfind("\n", 0, position)

    def error(
        self, message: str, token: Token | None = None, advice: str | None = None
    ) -> InvalidSchemaError:
        """An error about a token, or about the next one."""
        return self.error_at((token or self.token).position, message, advice)

    def take(self) -> Token:
        """The next token; the one behind it is the next from here on."""
        token = self.token
        self.token = next(self._rest)
        return token

    def accept(self, text: str) -> bool:
        """Whether the next token is this one, which is then taken."""
        if self.token.text != text:
            return False
        self.take()
        return True

    def closes(self) -> bool:
        """Whether the next token is a closing brace, which is then taken; the text must have it."""
        if self.token.kind == "end":
            raise self.expected("'}'")
        return self.accept("}")

    def expect(self, text: str) -> Token:
        """The next token, which must be this one."""
        if self.token.text != text:
            raise self.expected(f"'{text}'")
        return self.take()

    def expected(self, things: str, advice: str | None = None) -> InvalidSchemaError:
        """An error: something else stands here than it must."""
        if self.token.kind == "end":
            return self.error(f"expected {things}, found the end of the text", advice=advice)
        return self.error(f"expected {things}, found {shown(self.token.text)}", advice=advice)

    def name(self, things: str) -> Token:
        """The next token, which must be a name; a keyword is one, too."""
        if self.token.kind != "name":
            raise self.expected(things)
        return self.take()

    def full_name(self, things: str) -> str:
        """Names with dots between them."""
        parts = [self.name(things).text]
        while self.accept("."):
            parts.append(self.name("a name").text)
        return ".".join(parts)

    def string(self, things: str) -> str:
        """The characters of a string literal, or of several that follow each other."""
        if self.token.kind != "string":
            raise self.expected(things)
        parts = []
        while self.token.kind == "string":
            token = self.take()
            parts.append(self._unescaped(token))
        return "".join(parts)

    def _unescaped(self, token: Token) -> str:
        # Escapes are bytes of UTF-8, as in \303\251, so characters become bytes and back.
        try:
            content = _ESCAPE.sub(_character, token.text[1:-1])
            return content.encode("utf-8", "surrogateescape").decode()
        except (ValueError, OverflowError):
            raise self.error(f"the string {shown(token.text)} is not UTF-8", token) from None

    def integer(self, things: str, least: int, most: int) -> int:
        """An integer, in decimal, octal or hexadecimal digits; `least` below 0 allows a sign."""
        first = self.token
        is_negative = least < 0 and self.accept("-")
        if self.token.kind != "number" or _INTEGER.fullmatch(self.token.text) is None:
            raise self.expected(things)
        digits = self.take().text
        value = -_value(digits) if is_negative else _value(digits)
        if not least <= value <= most:
            given = shown("-" * is_negative + digits)
            raise self.error(f"{things} must be from {least} to {most}, not {given}", first)
        return value


def _value(digits: str) -> int:
    if digits[0] != "0" and len(digits) > _MOST_DIGITS:
        return _TOO_LARGE  # for any use; int() takes quadratic time
    return int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10)


def _character(escape: re.Match[str]) -> str:
    number = escape["octal"] or escape["byte"]
    if number:
        value = int(number, 8 if escape["octal"] else 16) & 0xFF
        return bytes([value]).decode("utf-8", "surrogateescape")
    code = escape["short"] or escape["long"]
    return chr(int(code, 16)) if code else _LETTERS.get(escape["letter"], escape["letter"])


def shown(text: str) -> str:
    """A text in quotes, for an error: not all of a long one."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
