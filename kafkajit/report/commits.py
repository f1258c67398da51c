"""Reads the newest commits of groups, by tasks."""

from __future__ import annotations

from collections.abc import Sequence

from kafkajit.errors import KafkaJitError
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.report.groups import Commit, Newest, commits_of, plan_commits
from kafkajit.report.tasks import HERE, ReadCommits, Runner, Unread

# How often the logs are read from the start if a segment goes meanwhile.
_TURNS = 10


def read_commits(
    paths: Sequence[str], keys: PrivateKeys = NO_KEYS, runner: Runner = HERE
) -> list[Commit] | str:
    """The newest commits in the logs of __consumer_offsets at these paths, or the problem."""
    newest = _newest(paths, keys, runner)
    for _ in range(_TURNS):
        # A running broker compacts these logs: a segment that was listed may be gone.
        if not isinstance(newest, Unread) or not newest.is_gone:
            break
        newest = _newest(paths, keys, runner)
    return newest.problem if isinstance(newest, Unread) else commits_of(newest)


def _newest(paths: Sequence[str], keys: PrivateKeys, runner: Runner) -> Newest | Unread:
    try:
        tasks, options = plan_commits(paths, keys)
    except (OSError, EOFError, KafkaJitError) as error:
        return Unread.of(error)
    newest = Newest()
    for piece in runner.run(ReadCommits(task, options) for task in tasks):
        if isinstance(piece, Unread):
            return piece
        newest.follow(piece)
    return newest
