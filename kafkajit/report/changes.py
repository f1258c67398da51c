"""Changes between two documents: topics, their bytes and records, and trouble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]

# Trouble is the same in two documents if these are. Its position moves when a log is compacted.
_SAME_TROUBLE = ("kind", "topic", "partition", "path", "problem")


def changes_since(earlier: Document, document: Document) -> dict[str, Any]:
    """The part `changes` of a document, which the page shows beside the document's figures."""
    before = {topic["topic"]: topic for topic in earlier["topics"]}
    after = {topic["topic"]: topic for topic in document["topics"]}
    old_trouble = {_identity(row) for row in earlier["trouble"]}
    new_trouble = {_identity(row) for row in document["trouble"]}
    return {
        "madeAt": earlier["madeAt"],
        "totals": dict(earlier["totals"]),
        "newTopics": sorted(after.keys() - before.keys()),
        "goneTopics": sorted(before.keys() - after.keys()),
        "topics": [
            _changed(before[name], after[name])
            for name in sorted(after.keys() & before.keys())
            if _figures(before[name]) != _figures(after[name])
        ],
        "newTrouble": [row for row in document["trouble"] if _identity(row) not in old_trouble],
        "goneTrouble": [row for row in earlier["trouble"] if _identity(row) not in new_trouble],
    }


def is_document(found: Any) -> bool:
    """Whether this is a document that another one can be compared with.

    >>> is_document({"version": 1, "topics": [{"topic": "orders"}]})
    False
    """
    try:
        topics, trouble, totals = found["topics"], found["trouble"], found["totals"]
        return (
            found["version"] == 1
            and isinstance(found["madeAt"], (int, str))
            and all(isinstance(topic["topic"], str) for topic in topics)
            and all(type(figure) is int for topic in topics for figure in _figures(topic))
            and all(
                isinstance(one, (str, int, type(None))) for row in trouble for one in _identity(row)
            )
            and all(isinstance(one, (str, int, float, type(None))) for one in totals.values())
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _figures(topic: Document) -> tuple[int, int]:
    return topic["bytes"], topic["records"]


def _changed(before: Document, after: Document) -> dict[str, Any]:
    return {
        "topic": after["topic"],
        "bytes": after["bytes"],
        "records": after["records"],
        "bytesChange": after["bytes"] - before["bytes"],
        "recordsChange": after["records"] - before["records"],
    }


def _identity(trouble: Document) -> tuple[Any, ...]:
    return tuple(trouble.get(name) for name in _SAME_TROUBLE)
