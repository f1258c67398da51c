"""The topics and partitions that somebody asks for by name. A name without segments is an error.

A name may be missing only where something is waited for: in a stream that goes on, and in the
conditions of a query, which choose among rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from kafkajit.errors import did_you_mean
from kafkajit.places.left_out import waiting_text
from kafkajit.places.location import shown

# Names that an error lists, if none of them is close to the one that was asked for.
_MOST = 10


class Place(NamedTuple):
    """A topic and a partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def each_name(given: Iterable[str] | str) -> tuple[str, ...]:
    """The names in a list, or the one that is given by itself.

    >>> each_name("orders"), each_name(["orders", "payments"])
    (('orders',), ('orders', 'payments'))
    """
    return (given,) if isinstance(given, str) else tuple(given)


@dataclass(frozen=True)
class Named:
    """The topics and the partitions that are wanted: those of either list, or all without names."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, topics: Iterable[str] | str = (), partitions: Iterable[str] | str = ()) -> Self:
        """The names as options have them: topics, and partitions such as orders-0.

        >>> Named.of("orders").has("orders", 0), Named.of(partitions=["orders-1"]).has("orders", 0)
        (True, False)
        """
        return cls(frozenset(each_name(topics)), frozenset(each_name(partitions)))

    def __bool__(self) -> bool:
        return bool(self.topics or self.partitions)

    def has(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition is wanted."""
        return not self or topic in self.topics or f"{topic}-{partition}" in self.partitions

    def may_have(self, topic: str | None) -> bool:
        """Whether a topic may have wanted partitions."""
        return not self or topic in self.of_topics

    def wants(self, place: Mapping[str, Any]) -> bool:
        """As `has`, of what is known in a listing; it may be too lenient."""
        topic = place.get("topic")
        if topic is None:
            return True
        return self.has(topic, place["partition"]) if "partition" in place else self.may_have(topic)

    @property
    def of_topics(self) -> frozenset[str]:
        """The topics, and those of the partitions."""
        return self.topics | {name.rpartition("-")[0] for name in self.partitions}

    def missing(self, found: Iterable[tuple[str | None, int | None]]) -> list[str]:
        """The names that none of these partitions has."""
        places = [Place(*place) for place in set(found) if None not in place]  # type: ignore[arg-type]
        topics = self.topics - {place.topic for place in places}
        return sorted(topics | (self.partitions - set(map(str, places))))

    def check(
        self, found: Iterable[tuple[str | None, int | None]], locations: Iterable[str]
    ) -> None:
        """Raise an error for the names that no partition found at the locations has."""
        found, locations = list(found), list(locations)
        missing = self.missing(found)
        if missing:
            error = nothing_of(missing, found, locations)
            waiting = waiting_text(locations, Named.of(missing, missing).has)
            raise error if waiting is None else FileNotFoundError(f"{error}; {waiting}")


# Without names, everything is wanted.
ALL = Named()


def nothing_of(
    names: Iterable[str],
    found: Iterable[tuple[str | None, int | None]],
    locations: Iterable[str],
    by: str = "",
) -> FileNotFoundError:
    """The error of topics and partitions without segments; `by` is what names them.

    >>> print(nothing_of(["ordres"], [("orders", 0)], ["/var/kafka"]))
    there are no segments of ordres at /var/kafka: did you mean 'orders'?
    """
    names = list(names)
    places = [Place(*place) for place in found if None not in place]  # type: ignore[arg-type]
    text = f"there are no segments of {', '.join(names)}{by} at {', '.join(map(shown, locations))}"
    hint = next(filter(None, (_hint(name, places) for name in names)), "")
    topics = sorted({place.topic for place in places})
    if not hint and topics:
        more = f" and {len(topics) - _MOST} more" if len(topics) > _MOST else ""
        return FileNotFoundError(f"{text}; there are: {', '.join(topics[:_MOST])}{more}")
    return FileNotFoundError(f"{text}: {hint}" if hint else text)


def _hint(name: str, places: list[Place]) -> str:
    """Return a text about a name that no topic or partition has."""
    topic, _, _ = name.rpartition("-")
    numbers = sorted(place.partition for place in places if place.topic == topic)
    if numbers:
        shown_numbers = ", ".join(map(str, numbers[:_MOST]))
        more = f" and {len(numbers) - _MOST} more" if len(numbers) > _MOST else ""
        noun = "partition" if len(numbers) == 1 else "partitions"
        if name in map(str, places):
            return f"{name} is a partition, not a topic"
        return f"{topic} has the {noun} {shown_numbers}{more}"
    topics = {place.topic for place in places}
    if name in topics:
        return f"{name} is a topic: name its partitions, such as {name}-0"
    if name.rpartition("-")[2].isdecimal() and (hint := did_you_mean(name, map(str, places))):
        return hint
    return did_you_mean(name, topics)
