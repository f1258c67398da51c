"""Names of files with records in formats that kafkajit does not read, and why."""

from __future__ import annotations

import re
from typing import NamedTuple

_ID = r"[A-Za-z0-9_-]{22}"


class _Format(NamedTuple):
    name: str  # the end of a path: a file, perhaps with its folder
    whose: str
    why: str


_FORMATS = {
    "redpanda": _Format(
        r"\d+-(?:\d+-\d+-)?\d+-v1\.log(?:\.\d+)?|\d+_\d+/manifest\.(?:bin|json)",
        "Redpanda's",
        "its batches have little-endian headers, and its offsets count batches of its own",
    ),
    "tansu": _Format(r"\d{20}\.batch", "Tansu's", "it has an object for each batch"),
    "iceberg": _Format(
        r"[^/]+\.metadata\.json|[^/]+\.puffin",
        "an Iceberg table's",
        "Aiven's plugin can make columns of records, which Iceberg's readers read",
    ),
    "old": _Format(rf"{_ID}\.log", "that of a plugin before Kafka 3.6", "its name has no offset"),
    "hdfs": _Format(
        rf"\d{{20}}\.log\.{_ID}", "that of a plugin for HDFS", "kafkajit does not know its layout"
    ),
}
_ANY = re.compile(
    "(?:.*/)?(?:" + "|".join(f"(?P<{key}>{one.name})" for key, one in _FORMATS.items()) + ")"
)


def foreign_format(path: str) -> str | None:
    """Whose format a file has by its name, and why it is not read; None for others.

    >>> foreign_format("/data/kafka/orders/0_15/0-1-v1.log")[:41]
    "Redpanda's, which kafkajit does not read:"
    >>> foreign_format("/var/kafka/orders-0/00000000000000000000.log")
    """
    found = _ANY.fullmatch(path)
    if found is None or found.lastgroup is None:
        return None
    format_ = _FORMATS[found.lastgroup]
    return f"{format_.whose}, which kafkajit does not read: {format_.why}"
