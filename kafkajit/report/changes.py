"""Changes between two documents: topics, their bytes and records, and trouble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]

# Trouble is the same in two documents if these are. Its position moves when a log is compacted.
_SAME_TROUBLE = ("kind", "topic", "partition", "path", "problem")
_DEPTHS = ("headers", "a sample of records", "all records")


def changes_since(earlier: Document, document: Document) -> dict[str, Any]:
    """The part `changes` of a document, which the page shows beside the document's figures."""
    before = {topic["topic"]: topic for topic in earlier["topics"]}
    after = {topic["topic"]: topic for topic in document["topics"]}
    old_trouble = {_identity(row) for row in earlier["trouble"]}
    new_trouble = {_identity(row) for row in document["trouble"]}
    look = _Look(earlier, document)
    gone = [row for row in earlier["trouble"] if _identity(row) not in new_trouble]
    return {
        "madeAt": earlier["madeAt"],
        "totals": dict(earlier["totals"]),
        "newTopics": sorted(after.keys() - before.keys()),
        "goneTopics": sorted(filter(look.asks_for, before.keys() - after.keys())),
        "topics": [
            _changed(before[name], after[name])
            for name in sorted(after.keys() & before.keys())
            if _figures(before[name]) != _figures(after[name])
        ],
        "newTrouble": [row for row in document["trouble"] if _identity(row) not in old_trouble],
        "goneTrouble": [row for row in gone if look.would_find(row)],
        "unknownTrouble": [row for row in gone if not look.would_find(row)],
        "unlike": [*look.differences()],
    }


class _Look:
    """Compares at what two reports have looked: what the later one left out need not be gone."""

    def __init__(self, earlier: Document, document: Document) -> None:
        paths = _paths(document)
        self._left_out = [path for path in _paths(earlier) if path not in paths]
        self._asked = [sorted(_texts(one.get("asked"))) for one in (earlier, document)]
        self._is_asked_known = "asked" in earlier
        self._depths = _depth(earlier), _depth(document)
        # Samples differ.
        self._reads_as_much = self._depths[1] == 2 or self._depths == (0, 0)
        self._checks_all_indexes = _checks_all_indexes(document)

    def asks_for(self, topic: str) -> bool:
        """Whether the later report would have a topic, if it is there."""
        asked = self._asked[1]
        return not self._left_out and (not asked or topic in asked)

    def would_find(self, trouble: Document) -> bool:
        """Whether the later report would find this trouble of the earlier one, if it is there."""
        topic, kind = trouble.get("topic"), trouble.get("kind")
        return not (
            self._left_out
            or (kind == "corruption" and not self._reads_as_much)
            or (kind == "index" and not self._checks_all_indexes)
            or (topic is not None and not self.asks_for(topic))
        )

    def differences(self) -> Iterator[str]:
        """The differences, in sentences."""
        if self._left_out:
            yield f"This report does not look at {', '.join(self._left_out)}."
        before, now = (", ".join(one) or "all topics" for one in self._asked)
        if self._is_asked_known and before != now:
            yield f"The earlier report is of {before}, this one of {now}."
        before, now = (_DEPTHS[depth] for depth in self._depths)
        if before != now:
            yield f"The earlier report has read {before}, this one {now}."


def _checks_all_indexes(document: Document) -> bool:
    taken = document.get("takenFrom")
    indexes = taken.get("indexes") if isinstance(taken, dict) else None
    return isinstance(indexes, dict) and indexes.get("checked") == indexes.get("of")


def _paths(document: Document) -> list[str]:
    return [path.rstrip("/") or "/" for path in _texts(document.get("paths"))]


def _texts(found: Any) -> list[str]:
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


def _depth(document: Document) -> int:
    """The place in _DEPTHS of what a report has read."""
    taken = document.get("takenFrom")
    sample = taken.get("sample") if isinstance(taken, dict) else None
    if not isinstance(sample, dict):
        return 0
    figures = [sample.get(name) for name in ("bytes", "ofBytes")]
    if not all(type(figure) is int for figure in figures):
        return 1
    is_whole = document.get("depth") == "all" or figures[0] >= figures[1]  # type: ignore[operator]
    return 2 if is_whole else 1


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
