"""The profiles in the files of AWS's tools, which have credentials."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

# The settings that a profile has, and their names in it.
OF_PROFILE = {
    "access_key": "aws_access_key_id",
    "secret_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "region",
    "endpoint_override": "endpoint_url",
}


def secrets_of_profiles() -> list[str]:
    """The secrets of all profiles, one of which AWS's library may use by itself."""
    try:
        parser = profiles()
    except (OSError, RuntimeError, ValueError, configparser.Error):  # no home, not a text
        return []
    names = (OF_PROFILE["secret_key"], OF_PROFILE["session_token"])
    return [profile[name] for profile in parser.values() for name in names if name in profile]


def files_of_profiles() -> list[Path]:
    """The files that may have profiles, which may be missing."""
    return [
        Path(os.environ.get(variable) or Path.home() / ".aws" / file)
        for variable, file in (
            ("AWS_CONFIG_FILE", "config"),
            ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        )
    ]


def profiles() -> configparser.RawConfigParser:
    """The profiles in them, each a section."""
    parser = configparser.RawConfigParser(strict=False)
    parser.read(files_of_profiles())
    return parser
