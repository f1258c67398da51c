"""Parses UUIDs as Kafka writes them: in base64 for URLs, without padding (Uuid)."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

_BASE64 = re.compile("([A-Za-z0-9_-]{22})(?:==)?")

ZERO = "A" * 22


def parse_uuid(text: str) -> str | None:
    """The id as Kafka prints it; None if Uuid.fromString would throw.

    Kafka ignores four bits of the last of 22 characters, and prints them as zeros.

    >>> parse_uuid("pUM3BMsVQk2fe-klgEgLLB==")
    'pUM3BMsVQk2fe-klgEgLLA'
    """
    match = _BASE64.fullmatch(text)
    if match is None:
        return None
    return urlsafe_b64encode(urlsafe_b64decode(match[1] + "==")).decode()[:22]
