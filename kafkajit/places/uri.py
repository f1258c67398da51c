"""URIs, and local paths that must not be taken for one, nor one for them."""

from __future__ import annotations

import os
import re

from kafkajit.format.printable import printable

# A scheme of one letter would be a Windows drive. A secret may contain slashes; a port may not.
URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?=/)"
    r"(?://(?P<user>[^/?:@]*(?::(?!\d+/)[^?@]*)?@)?(?P<host>[^/?]*))?"
    r"(?P<path>.*?)(?P<query>\?\w+=.*)?",
    re.DOTALL,
)
_LIKE_URI = re.compile(r"(?P<scheme>[^/]*)://")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_LOCAL = "file"


def uri_of(location: str) -> re.Match[str] | None:
    """The parts of a URI; None if the location is a local path.

    >>> uri_of("s3://bucket/orders-0")["path"]
    '/orders-0'
    >>> uri_of("/kafka/orders-0")

    Raises:
        ValueError: it looks like a URI, but has characters or parts that no URI here has.
    """
    uri = URI.fullmatch(location)
    if uri is None:
        like = _LIKE_URI.match(location)
        if like is not None and not (os.name == "nt" and _DRIVE.match(location)):
            raise ValueError(
                f"'{printable(like['scheme'])}' is not the scheme of a URI: write it as in "
                "s3://bucket/folder, and a local path that begins so with ./ in front"
            )
        return None
    control = _CONTROL.search(location)
    if control is not None:
        raise ValueError(
            f"{printable(without_secrets(uri))} has a line break or another control character "
            f"({printable(control[0])}): write the URI without it"
        )
    if uri["scheme"] != _LOCAL and ".." in uri["path"].split("/"):
        raise ValueError(
            f"{without_secrets(uri)} has a part '..': write the path without it (kafkajit neither "
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
    return f"{uri['scheme']}://{uri['host'] or ''}/{path_in(uri)}".rstrip("/")
