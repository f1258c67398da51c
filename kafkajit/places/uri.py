"""URIs, and local paths that must not be taken for one, nor one for them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, unquote

from kafkajit.format.printable import printable
from kafkajit.places.profiles import secrets_of_profiles

# A scheme of one letter would be a Windows drive. A secret may contain slashes; a port may not.
_URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?=/)"
    r"(?://(?P<user>[^/?:@]*(?::(?!\d+/)[^?@]*)?@)?(?P<host>[^/?]*))?"
    r"(?P<path>.*?)(?P<query>\?\w[\w.-]*=.*)?",
    re.DOTALL,
)
# The options of a location that are secrets, which people write behind other characters, too.
_BETWEEN = "(?:.|%[0-9a-f]{2})?"
SECRET_OPTIONS = "|".join(
    _BETWEEN.join(words)
    for words in (
        *(("access", "key"), ("secret", "key"), ("account", "key"), ("client", "secret")),
        *(("session", "token"), ("sas", "token"), ("access", "token")),
    )
)
# The same in the environment.
_OF_STORES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET")
_SHORTEST = 4  # a shorter text may be part of other words
# Stores whose hosts have no port: what is before an @ there is a key and its secret.
_STORE = r"(?:s3[an]?|gc?s|abfss?|wasbs?):/"
_STORE_URI = re.compile(
    rf"(?P<scheme>(?=(?i:{_STORE}))[A-Za-z0-9]+):"
    r"(?://(?P<user>[^/?:@]*(?::[^@]*(?:@[^/?@]*)*?)?@(?=[^/?@]*(?:[/?]|\Z)))?(?P<host>[^/?]*))?"
    rf"(?P<path>.*?)(?P<query>\?\w[\w.-]*=.*|[?&;#](?i:{SECRET_OPTIONS})=.*)?",
    re.DOTALL,
)
_MISPLACED = re.compile("/*[^/?:@]*:[^?@]*@")  # a key and its secret, where a URI has its path
# What Spark must not show of a statement, a plan or an option: it writes them to its event log.
REDACTED = (
    rf"(?i)\b(?:{_STORE}[^\s'\"@]*(?::|%3a)|[a-z][a-z0-9+.-]+://[^\s'\"/:@]*:(?!\d+/))[^\s'\"]*@"
    rf"|\b(?:{SECRET_OPTIONS})=[^&\s'\"]*"
)
_LIKE_URI = re.compile(r"(?P<scheme>[^/]*)://")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_LOCAL = "file"


def parts_of(location: str) -> re.Match[str] | None:
    """The parts of a URI, whatever is wrong with it; None if the location is a local path.

    >>> parts_of("s3://key:9/secret@bucket/orders-0")["host"]
    'bucket'
    """
    return _STORE_URI.fullmatch(location) or _URI.fullmatch(location)


def uri_of(location: str) -> re.Match[str] | None:
    """The parts of a URI; None if the location is a local path.

    >>> uri_of("s3://bucket/orders-0")["path"]
    '/orders-0'
    >>> uri_of("/kafka/orders-0")

    Raises:
        ValueError: it looks like a URI, but has characters or parts that no URI here has.
    """
    uri = parts_of(location)
    if uri is None:
        like = _LIKE_URI.match(location)
        if like is not None and not (os.name == "nt" and _DRIVE.match(location)):
            raise ValueError(
                f"'{printable(like['scheme'])}' is not the scheme of a URI: write it as in "
                "s3://bucket/folder, and a local path that begins so with ./ in front"
            )
        return None
    control, visible = _CONTROL.search(location), printable(without_secrets(uri))
    if control is not None:
        raise ValueError(
            f"{visible} has a line break or another control character "
            f"({printable(control[0])}): write the URI without it"
        )
    if _STORE_URI.fullmatch(location):
        if not uri["host"]:
            raise ValueError(
                f"{visible} has no bucket: write the URI as in "
                f"{uri['scheme']}://bucket/folder (a Path drops a slash of a URI, so pass a str)"
            )
        if uri["query"] and not uri["query"].startswith("?"):
            raise ValueError(
                f"the options of {visible} do not begin with a question mark: write "
                f"the URI as in {uri['scheme']}://bucket/folder?region=eu-west-1"
            )
    if uri["scheme"] != _LOCAL and ".." in uri["path"].split("/"):
        raise ValueError(
            f"{visible} has a part '..': write the path without it (kafkajit neither "
            "reads nor writes objects whose keys have such a part)"
        )
    return uri


def path_in(uri: re.Match[str]) -> str:
    """The path of a URI, without empty parts and dots, which stores would take for names.

    >>> path_in(uri_of("s3://bucket//a/./b/"))
    'a/b'
    """
    return "/".join(part for part in uri["path"].split("/") if part not in ("", "."))


def without_secrets(uri: re.Match[str]) -> str:
    """A URI without its user, secret and query.

    >>> without_secrets(uri_of("s3://key:secret@bucket/orders-0?region=eu-west-1"))
    's3://bucket/orders-0'
    """
    if not uri["host"] and _MISPLACED.match(uri["path"]):
        return f"{uri['scheme']}://"
    return f"{uri['scheme']}://{uri['host'] or ''}/{path_in(uri)}".rstrip("/")


def has_secrets(location: str) -> bool:
    """Whether a location is a URI with a key or another secret.

    >>> has_secrets("s3://bucket/orders-0?region=eu-west-1"), has_secrets("s3://key:secret@bucket")
    (False, True)
    """
    uri = parts_of(location)
    if uri is None:
        return False
    is_misplaced = not uri["host"] and _MISPLACED.match(uri["path"])
    in_query = re.search(SECRET_OPTIONS, uri["query"] or "", re.IGNORECASE)
    return ":" in unquote(uri["user"] or "") or bool(is_misplaced or in_query)


def secrets_in(uri: re.Match[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts that a store's errors must not show: of a location, its settings, this user.

    Each comes before those that are parts of it.

    >>> location = uri_of("s3://key:a%2Fb+c@bucket/orders-0?session_token=token&region=x")
    >>> secrets_in(location, {"secret_key": "from a profile"})[-3:]
    ('a%2Fb%2Bc', 'a/b+c', 'token')
    """
    found = [unquote(uri["user"] or "").rstrip("@").partition(":")[2]]
    for name, value in [*parse_qsl((uri["query"] or "")[1:]), *settings.items()]:
        if re.search(SECRET_OPTIONS, name, re.IGNORECASE):
            found += [str(value), *parse_qs(str(value).removeprefix("?")).get("sig", [])]
    found += [os.environ.get(name, "") for name in _OF_STORES]
    if uri["scheme"].startswith("s3"):
        found += secrets_of_profiles()
    texts = {text for one in found for text in (one, quote(one, safe=""), escape(one))}
    known = sorted(text for text in texts if len(text) >= _SHORTEST)
    return tuple(sorted(known, key=len, reverse=True))
