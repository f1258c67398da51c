"""The options of `restore`: which records come back, and under which ids of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from kafkajit.format.limits import MAX_INT32
from kafkajit.format.topic import check_topic
from kafkajit.places.named import ALL, Named, each_name
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.state.uuid import ZERO, parse_uuid

_TRANSACTIONS = "__transaction_state"


@dataclass(frozen=True)
class RestoreOptions:
    """The options of `restore`, the same for every partition."""

    named: Named = ALL
    starting_offset: int | None = None
    ending_offset: int | None = None
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    writes_topic_ids: bool = True
    into_existing_topics: bool = False
    skip_existing: bool = False
    leader_epoch: int | None = None
    keys: PrivateKeys = NO_KEYS

    def __post_init__(self) -> None:
        for name in ("starting_offset", "ending_offset", "starting_timestamp", "ending_timestamp"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{_spoken(name)} must not be negative, not {value}")
        for of in ("offset", "timestamp"):
            start, end = getattr(self, f"starting_{of}"), getattr(self, f"ending_{of}")
            if start is not None and end is not None and start >= end:
                raise ValueError(f"the ending {of} {end} is not behind the starting {of} {start}")
        if self.leader_epoch is not None and not 0 <= self.leader_epoch <= MAX_INT32:
            raise ValueError(f"leader_epoch must be 0 to {MAX_INT32}, not {self.leader_epoch}")
        is_elsewhere = self.into_existing_topics or self.leader_epoch is not None
        if is_elsewhere and _TRANSACTIONS in self.named.of_topics:
            raise ValueError(
                f"the records of {_TRANSACTIONS} have ids of producers, and in another cluster the "
                "logs get others: leave the topic out, or restore without "
                f"{'into_existing_topics' if self.into_existing_topics else 'leader_epoch'}"
            )
        if self.into_existing_topics and (self.topic_ids or not self.writes_topic_ids):
            raise ValueError(
                "an existing topic has an id: give either topic ids or into_existing_topics"
            )

    @classmethod
    def of(
        cls,
        *,
        topics: Iterable[str] | str = (),
        partitions: Iterable[str] | str = (),
        topic_ids: Mapping[str, str] | None = MappingProxyType({}),
        **others: object,
    ) -> Self:
        """The options of `restore`, with names and ids checked.

        >>> RestoreOptions.of(topics=["orders"], topic_ids=None).writes_topic_ids
        False
        >>> RestoreOptions.of(topic_ids={"orders": "A"})
        Traceback (most recent call last):
        ValueError: 'A' is not the id of a topic: it has 22 letters, as kafka-topics.sh --describe
        prints it
        """
        ids = {}
        for topic, id_ in (topic_ids or {}).items():
            parsed = parse_uuid(id_)
            if parsed is None or parsed == ZERO:
                raise ValueError(
                    f"{id_!r} is not the id of a topic: it has 22 letters, as kafka-topics.sh "
                    "--describe prints it"
                )
            ids[check_topic(topic)] = parsed
        return cls(
            Named.of(map(check_topic, each_name(topics)), partitions),
            topic_ids=ids,
            writes_topic_ids=topic_ids is not None,
            **others,  # type: ignore[arg-type]
        )

    @property
    def has_range(self) -> bool:
        """Whether offsets or timestamps choose among the records."""
        return any(
            bound is not None
            for bound in (
                self.starting_offset,
                self.ending_offset,
                self.starting_timestamp,
                self.ending_timestamp,
            )
        )


def _spoken(name: str) -> str:
    return name.replace("_", " ")
