"""Options of S3 in a location's query that pyarrow takes only in code, such as anonymous.

s3://bucket/kafka?anonymous=true&region=eu-west-1
"""

from __future__ import annotations

import configparser
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from pyarrow.fs import FileSystem

from kafkajit.format.text_options import boolean
from kafkajit.places.profiles import OF_PROFILE, files_of_profiles, profiles

_OF_AZURE: dict[str, Callable[[str], Any]] = {"sas_token": str}
_OF_S3: dict[str, Callable[[str], Any]] = {
    "anonymous": boolean,
    "profile": str,
    "session_token": str,
    "role_arn": str,
    "external_id": str,
    "force_virtual_addressing": boolean,
    "connect_timeout": float,
    "request_timeout": float,
}


def taken_out(scheme: str, user: str, query: str) -> tuple[str, dict[str, Any]]:
    """A query without these options, and their values.

    >>> taken_out("s3", "", "?region=eu-west-1&anonymous=true")
    ('?region=eu-west-1', {'anonymous': True})
    """
    key = unquote(user.rstrip("@").partition(":")[2])
    if scheme.startswith("abfs"):
        known, settings = _OF_AZURE, {"account_key": key} if key else {}
    else:
        known, settings = (_OF_S3 if scheme == "s3" else {}), {}
    pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True)
    others = [pair for pair in pairs if pair[0] not in known]
    if len(others) == len(pairs):
        return query, settings
    for name, text in pairs:
        if name in known:
            try:
                settings[name] = known[name](text)
            except ValueError as error:
                raise ValueError(f"option {name}: {error}") from None
    profile = settings.pop("profile", None)
    if profile is not None:
        settings |= {
            name: value for name, value in _of_profile(profile).items() if name not in dict(others)
        }
    return f"?{urlencode(others)}" if others else "", settings


def with_settings(filesystem: FileSystem, settings: Mapping[str, Any]) -> FileSystem:
    """The same file system with other settings."""
    make, (known,) = filesystem.__reduce__()
    return make({**known, **settings})


def _of_profile(name: str) -> dict[str, str]:
    """The settings of a profile in the files of AWS's tools."""
    try:
        parser = profiles()
    except configparser.Error as error:
        raise ValueError(f"profile {name!r}: {error}") from None
    found: dict[str, str] = {}
    for section in (f"profile {name}", name):
        if parser.has_section(section):
            found |= parser[section]
    if "aws_access_key_id" not in found:
        places = " and ".join(map(str, files_of_profiles()))
        raise ValueError(
            f"profile {name!r} has no access key in {places}: set AWS_PROFILE instead, which also "
            "takes roles and single sign-on"
        )
    return {name: found[key] for name, key in OF_PROFILE.items() if key in found}
