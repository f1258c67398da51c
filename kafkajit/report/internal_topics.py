"""Reads the internal topics that a report needs, by tasks: groups, coordinators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkajit.errors import KafkaJitError
from kafkajit.log.segment import Segment
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.places.tiered_files import TieredFile
from kafkajit.report.coordinators import TRANSACTIONS_TOPIC, Coordinators
from kafkajit.report.groups import OFFSETS_TOPIC, Commit, commits_of
from kafkajit.report.newest import Newest, plan_newest
from kafkajit.report.tasks import HERE, ReadNewest, Runner, Unread
from kafkajit.report.trouble import DAMAGE, Trouble

# How often the logs are read from the start if a segment goes meanwhile.
_TURNS = 10


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

    def commits(self) -> list[Commit] | None:
        """The newest commits of groups; None without __consumer_offsets."""
        newest = self._newest(OFFSETS_TOPIC)
        return None if newest is None else commits_of(newest)

    def coordinators(self) -> Coordinators | None:
        """The coordinators of transactions; None if their logs are not there or are damaged."""
        topic = TRANSACTIONS_TOPIC
        newest = self._newest(topic)
        is_damaged = any(
            one.severity == DAMAGE and one.topic in (topic, None) for one in self._troubles
        )
        if newest is None or is_damaged:
            return None
        return Coordinators(newest, {one.path.partition for one in self._topics[topic]})

    def _newest(self, topic: str) -> Newest | None:
        segments = self._topics.get(topic)
        if not segments:
            return None
        newest = newest_values(topic, self._paths_of(segments), self._keys, self._runner)
        if isinstance(newest, Newest):
            return newest
        self._troubles.append(Trouble(DAMAGE, "unreadable", topic, None, "", newest))
        return None

    def _paths_of(self, segments: Iterable[Segment]) -> Sequence[str]:
        """The folders of the segments; the report's paths if some are tiered."""
        if any(isinstance(segment.log, TieredFile) for segment in segments):
            return self._paths
        return sorted({segment.log.folder for segment in segments})


def newest_values(
    topic: str, paths: Sequence[str], keys: PrivateKeys = NO_KEYS, runner: Runner = HERE
) -> Newest | str:
    """The newest values in the topic's logs at these paths, or the problem."""
    newest = _newest(topic, paths, keys, runner)
    for _ in range(_TURNS):
        # A running broker compacts these logs: a segment that was listed may be gone.
        if not isinstance(newest, Unread) or not newest.is_gone:
            break
        newest = _newest(topic, paths, keys, runner)
    return newest.problem if isinstance(newest, Unread) else newest


def _newest(topic: str, paths: Sequence[str], keys: PrivateKeys, runner: Runner) -> Newest | Unread:
    try:
        tasks, options = plan_newest(topic, paths, keys)
    except (OSError, EOFError, KafkaJitError) as error:
        return Unread.of(error)
    newest = Newest()
    for piece in runner.run(ReadNewest(task, options) for task in tasks):
        if isinstance(piece, Unread):
            return piece
        newest.follow(piece)
    return newest
