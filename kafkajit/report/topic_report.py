"""The findings of a report about one topic, and its entry in the document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkajit.log.segment import Segment
from kafkajit.report import savings
from kafkajit.report.dry_runs import DryRuns
from kafkajit.report.folder import Folder
from kafkajit.report.groups import Commit
from kafkajit.report.headers import TopicFigures
from kafkajit.report.partition import PartitionFigures
from kafkajit.report.sample import Part
from kafkajit.values.registry import is_internal
from kafkajit.walk.damage import Gap

_TRANSACTION_ENTRY = 34  # bytes of an entry in a .txnindex


@dataclass
class TopicReport:
    """The findings of tasks about a topic."""

    name: str
    figures: TopicFigures
    segments: list[Segment] = field(default_factory=list)
    sampled: list[Part] = field(default_factory=list)
    sampled_records: int = 0
    sampled_bytes: int = 0
    sample: dict[str, Any] | None = None
    compaction: dict[str, Any] | None = None
    damage: list[Gap] = field(default_factory=list)  # that reading the sample has found
    encodings: dict[str, Any] = field(
        default_factory=lambda: {"sample": None, "now": None, "encodings": []}
    )
    dry_runs: DryRuns | None = None

    def newest_copies(self) -> list[Segment]:
        """The segments of each partition's copy with the highest end: a follower's may be behind.

        Copies cannot be read as one: a cleaner may have removed the tombstones of the newest one.
        """
        newest: dict[int | None, PartitionFigures] = {}
        for one in self.figures.partitions:
            known = newest.get(one.partition)
            if one.read and (known is None or one.end_offset > known.end_offset):
                newest[one.partition] = one
        return [segment for one in newest.values() for segment in one.read]

    def document(
        self, folder: Folder, commits: Iterable[Commit] | None, now: int
    ) -> dict[str, Any]:
        """The topic's entry in the document."""
        figures = self.figures
        own = [commit for commit in commits or () if commit.topic == figures.topic]
        modified = [one.log.modified_ns for one in self.segments if one.log.modified_ns]
        ages = [age for partition in figures.partitions for age in partition.ages[:-1]]
        aborted = sum(
            segment.transaction_index.size // _TRANSACTION_ENTRY
            for segment in self.segments
            if segment.transaction_index is not None
        )
        return figures.document() | {
            "topicId": folder.topic_ids.get(figures.topic),
            "isInternal": figures.topic is not None and is_internal(figures.topic),
            "bytesOnDisk": sum(one.log.bytes_on_disk for one in self.segments),
            "otherBytes": folder.other_bytes[figures.topic],
            "otherBytesOnDisk": folder.other_bytes_on_disk[figures.topic],
            "lastModified": max(modified) // 1_000_000 if modified else None,
            "abortedTransactions": aborted,
            "sample": self.sample,
            "savings": self.encodings
            | {
                "retention": savings.retention(ages, now),
                "compaction": self.compaction,
                "dryRuns": None if self.dry_runs is None else self.dry_runs.document(),
            },
            "groups": None if commits is None else len({commit.group for commit in own}),
            "lastCommit": max(
                (one.timestamp for one in own if one.timestamp is not None), default=None
            ),
        }
