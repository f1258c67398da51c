"""The secrets in a command's arguments, which none of its errors repeats.

Each room hides those of a URI that it takes apart. But people misspell URIs, and name them where a
local path is meant: such a text comes back in the words of the system, or of the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from kafkajit.places.uri import SECRET_OPTIONS

_SHORTEST = 4  # a shorter text may be part of other words
_COLON, _AT = "(?::|%3a)", "(?:@|%40)"
# A key and its secret in front of a host, in a URI of a store however it is spelled, or in a query.
_PATTERNS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<![a-z0-9])(?:s3[an]?|gc?s|abfss?|wasbs?)\.?(?:{_COLON}|//)(?:/|%2f)*"
        rf"(?P<key>[^\s'\":@%]*){_COLON}(?P<secret>[^\s'\"]+){_AT}",
        r"(?://|=)[^\s'\"/:@=]*:(?P<secret>[^\s'\"@&/]+)@",
        rf"(?:{SECRET_OPTIONS}|[?&;#](?:token|sig|signature))(?:=|:|%3d)(?P<secret>[^&\s'\"]+)",
    )
]
_known: list[str] = []


def note_secrets(arguments: Iterable[str]) -> None:
    """Remember the secrets in the arguments of the command that runs."""
    found = {
        text
        for argument in arguments
        for pattern in _PATTERNS
        for match in pattern.finditer(argument)
        for text in match.groups()
    }
    texts = {text for one in found for text in (one, unquote(one), _quoted(one), repr(one)[1:-1])}
    _known[:] = sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True)


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")  # an argument need not be UTF-8


def hidden(text: str) -> str:
    """The text without the secrets of the command's arguments.

    >>> note_secrets(["-o", "s3:/AKIA:s3cr3t@bucket"])
    >>> hidden("No such file or directory: s3:/AKIA:s3cr3t@bucket")
    'No such file or directory: s3:/***:***@bucket'
    """
    for secret in _known:
        text = text.replace(secret, "***")
    return text
