"""Parts of a .proto file that values do not need, and the few options that they do.

Options are kept as they are written. Only the values of features that change how values are read
are checked.
"""

from __future__ import annotations

from kafkajit.errors import did_you_mean
from kafkajit.values.protobuf.tokens import Token, Tokens, shown

INT32 = (-(2**31), 2**31 - 1)
PRESENCE = "features.field_presence"
ENCODING = "features.message_encoding"
_FEATURES = {
    PRESENCE: ("EXPLICIT", "IMPLICIT", "LEGACY_REQUIRED"),
    ENCODING: ("LENGTH_PREFIXED", "DELIMITED"),
}


def parse_option_statement(tokens: Tokens, options: dict[str, str]) -> None:
    """An option behind its keyword, which is added to the others."""
    _option(tokens, options)
    tokens.expect(";")


def parse_options(tokens: Tokens) -> dict[str, str]:
    """The options in brackets, if some are there."""
    options: dict[str, str] = {}
    if tokens.accept("["):
        _option(tokens, options)
        while tokens.accept(","):
            _option(tokens, options)
        tokens.expect("]")
    return options


def _option(tokens: Tokens, options: dict[str, str]) -> None:
    parts = [_name(tokens)]
    while tokens.accept("."):
        parts.append(_name(tokens))
    name = ".".join(parts)
    tokens.expect("=")
    tokens.accept("-")
    begin = tokens.token
    if begin.text == "{":
        texts = skip_block(tokens)
        if name == "features":  # { field_presence: IMPLICIT } as one option
            triples = zip(texts, texts[1:], texts[2:], strict=False)
            options |= {f"features.{key}": text for key, colon, text in triples if colon == ":"}
    else:
        options[name] = _value(tokens)
    _check_features(tokens, begin, options)


def _check_features(tokens: Tokens, place: Token, options: dict[str, str]) -> None:
    for feature, values in _FEATURES.items():
        given = options.get(feature)
        if given is not None and given not in values:
            advice = did_you_mean(shown(given), values) or f"write {' or '.join(values)}"
            raise tokens.error(f"{feature} does not have the value {shown(given)}", place, advice)


def _name(tokens: Tokens) -> str:
    if not tokens.accept("("):
        return tokens.name("the name of an option").text
    dot = "." if tokens.accept(".") else ""
    name = tokens.full_name("the name of an option")
    tokens.expect(")")
    return f"({dot}{name})"


def _value(tokens: Tokens) -> str:
    token = tokens.token
    if token.kind not in ("name", "number", "string"):
        raise tokens.expected("the value of the option")
    tokens.take()
    while token.kind == "string" == tokens.token.kind:  # adjacent literals are one
        tokens.take()
    return token.text


def skip_block(tokens: Tokens) -> list[str]:
    """The texts of the tokens inside of braces."""
    tokens.expect("{")
    texts = []
    depth = 1
    while depth:
        is_closed = tokens.closes()
        texts.append("}" if is_closed else tokens.take().text)
        depth += -1 if is_closed else texts[-1] == "{"
    return texts[:-1]


def skip_ranges(tokens: Tokens) -> None:
    """Names or ranges of numbers, which are reserved or set apart for extensions."""
    tokens.take()
    while True:
        if tokens.token.kind == "string":
            tokens.string("a name")
        elif tokens.token.kind == "name":
            tokens.take()
        else:
            tokens.integer("a name or a number", *INT32)
        if tokens.accept("to") and not tokens.accept("max"):
            tokens.integer("a number or 'max'", *INT32)
        if not tokens.accept(","):
            break
    parse_options(tokens)
    tokens.expect(";")
