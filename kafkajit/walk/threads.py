"""A large segment for several threads: stretches of whole batches, each walked by itself."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterator

from kafkajit.errors import KafkaJitError
from kafkajit.storage.source import Source
from kafkajit.walk.walk import Stretch, frames

# What a thread reads at a time, at least: it begins each stretch with memory of its own.
LEAST_BYTES = 4 << 20
# So many stretches for each thread, so that none of them is long alone in the end.
_SHARES = 4


def thread_count(asked: int | None) -> int:
    """How many threads; if nobody says, one for each processor that this process may use."""
    if asked is not None:
        count = operator.index(asked)
        if count < 1:
            raise ValueError(f"threads must be at least 1, not {asked}")
        return count
    if _is_in_a_task():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_in_a_task() -> bool:
    """Whether this is a worker of Spark's, which has as many as there are processors."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.TaskContext.get() is not None


def stretches(source: Source, threads: int) -> Iterator[Stretch]:
    """A segment from end to end, as far as headers lead; the last stretch has the rest."""
    start, least = 0, max(LEAST_BYTES, source.content.size // (_SHARES * threads))
    try:
        for framing in frames(source):
            if framing.position - start >= least:
                yield Stretch(start, framing.position)
                start = framing.position
    except KafkaJitError:
        pass  # which who walks the last stretch comes upon again
    yield Stretch(start, source.content.size)
