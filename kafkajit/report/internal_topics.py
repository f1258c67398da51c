"""Reads the internal topics that a report needs, by tasks: groups, coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar, cast

from kafkajit.errors import KafkaJitError
from kafkajit.format.amounts import number_of
from kafkajit.log.segment import Segment
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.places.tiered_files import TieredFile
from kafkajit.report.coordinators import TRANSACTIONS_TOPIC, Coordinators
from kafkajit.report.groups import OFFSETS_TOPIC, Commit, Groups
from kafkajit.report.newest import Newest, plan_newest
from kafkajit.report.share_groups import SCHEMA, SHARE_TOPIC, ShareGroups
from kafkajit.report.tasks import HERE, ReadNewest, Runner, Unread
from kafkajit.report.trouble import DAMAGE, Trouble
from kafkajit.scan.plan import Split
from kafkajit.scan.table import read_task

# How often the logs are read from the start if a segment goes meanwhile.
_TURNS = 10

_Found = TypeVar("_Found", Newest, ShareGroups)


class InternalTopics:
    """The internal topics among those of a report.

    Args:
        topics: the segments of each topic.
        paths: the report's.
        keys: decrypt segments of tiered storage.
        runner: runs the tasks.
        troubles: what is known, and what cannot be read is added to it.
    """

    def __init__(
        self,
        topics: Mapping[str, Sequence[Segment]],
        paths: Sequence[str],
        keys: PrivateKeys,
        runner: Runner,
        troubles: list[Trouble],
    ) -> None:
        self._topics = topics
        self._paths = paths
        self._keys = keys
        self._runner = runner
        self._troubles = troubles

    def commits(self, topic_ids: Mapping[str, str]) -> list[Commit] | None:
        """The newest commits of groups, and the states of share groups; None without their topics.

        `topic_ids` has the names of topics by id.
        """
        newest, shares = self._newest(OFFSETS_TOPIC), self._share_groups()
        if newest is None and shares is None:
            return None
        groups = Groups(newest or Newest())
        if newest is not None and newest.damaged:
            problem = (
                f"{number_of(newest.damaged, 'damaged stretch', 'damaged stretches')} of its logs: "
                "newer commits may have been there"
            )
            self._troubles.append(Trouble(DAMAGE, "unreadable", OFFSETS_TOPIC, None, "", problem))
        self._tell_undecoded(OFFSETS_TOPIC, groups.undecoded)
        if shares is None:
            return groups.commits
        self._tell_undecoded(SHARE_TOPIC, shares.undecoded)
        return sorted([*groups.commits, *shares.commits(topic_ids, groups.members)], key=_order)

    def coordinators(self) -> Coordinators | None:
        """The coordinators of transactions; None if their logs are not there or are damaged."""
        topic = TRANSACTIONS_TOPIC
        newest = self._newest(topic)
        is_damaged = any(
            one.severity == DAMAGE
            and (one.topic == topic or (one.topic is None and topic in one.path + one.problem))
            for one in self._troubles
        )
        if newest is None or newest.damaged or is_damaged:
            return None
        # A cleaner keeps the first offset in the name of the first segment.
        whole = {one.path.partition for one in self._topics[topic] if one.base_offset == 0}
        found = Coordinators(newest, whole)
        self._tell_undecoded(topic, found.undecoded)
        return found

    def _newest(self, topic: str) -> Newest | None:
        return self._read(
            topic, lambda paths: newest_values(topic, paths, self._keys, self._runner)
        )

    def _share_groups(self) -> ShareGroups | None:
        return self._read(SHARE_TOPIC, lambda paths: share_groups(paths, self._keys))

    def _read(self, topic: str, read: Callable[[Sequence[str]], _Found | str]) -> _Found | None:
        segments = self._topics.get(topic)
        if not segments:
            return None
        found = read(self._paths_of(segments))
        if isinstance(found, str):
            self._troubles.append(Trouble(DAMAGE, "unreadable", topic, None, "", found))
            return None
        return found

    def _tell_undecoded(self, topic: str, values: int) -> None:
        if values:
            what = "transactions" if topic == TRANSACTIONS_TOPIC else "groups"
            problem = (
                f"{number_of(values, 'value')} cannot be decoded, and {what} may be missing: they "
                "are damaged or too large, or kafkajit does not know their version"
            )
            self._troubles.append(Trouble(DAMAGE, "unreadable", topic, None, "", problem))

    def _paths_of(self, segments: Iterable[Segment]) -> Sequence[str]:
        """The folders of the segments; the report's paths if some are tiered."""
        if any(isinstance(segment.log, TieredFile) for segment in segments):
            return self._paths
        return sorted({segment.log.folder for segment in segments})


def newest_values(
    topic: str, paths: Sequence[str], keys: PrivateKeys = NO_KEYS, runner: Runner = HERE
) -> Newest | str:
    """The newest values in the topic's logs at these paths, or the problem."""

    def read() -> Newest | Unread:
        newest = Newest()
        tasks, options = plan_newest(topic, paths, keys)
        for piece in runner.run(ReadNewest(task, options) for task in tasks):
            if isinstance(piece, Unread):
                return piece
            newest.follow(piece)
        return newest

    return _patiently(read)


def share_groups(paths: Sequence[str], keys: PrivateKeys = NO_KEYS) -> ShareGroups | str:
    """The states of share groups in the logs at these paths, or the problem."""

    def read() -> ShareGroups:
        logs: dict[str, ShareGroups] = {}
        tasks, options = plan_newest(SHARE_TOPIC, paths, keys)
        for task in tasks:
            for folder, splits in groupby(cast("list[Split]", task), _folder_of):
                log = logs.setdefault(folder, ShareGroups())
                for rows in read_task([*splits], SCHEMA, options):
                    log.add(rows)
        found = ShareGroups()
        for log in logs.values():
            found.add_copy(log)
        return found

    return _patiently(read)


def _patiently(read: Callable[[], _Found | Unread]) -> _Found | str:
    """The result of reading, or the problem."""
    for turn in reversed(range(_TURNS)):
        try:
            found = read()
        except (OSError, EOFError, KafkaJitError) as error:
            found = Unread.of(error)
        if not isinstance(found, Unread):
            return found
        # A running broker compacts these logs: a segment that was listed may be gone.
        if not found.is_gone or turn == 0:
            return found.problem
    raise AssertionError("the last turn returns")


def _folder_of(split: Split) -> str:
    return split.file.folder


def _order(commit: Commit) -> tuple[str, str, int]:
    return commit.group, commit.topic, commit.partition
