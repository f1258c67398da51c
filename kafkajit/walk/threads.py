"""Split a large segment for several threads into stretches of whole batches."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterator

from kafkajit.errors import KafkaJitError
from kafkajit.storage.source import Source
from kafkajit.walk.damage import Stretch
from kafkajit.walk.frames import frames
from kafkajit.walk.kafscale import is_kafscale

# The least bytes of a stretch: a thread begins each stretch with memory of its own.
LEAST_BYTES = 4 << 20
# The number of stretches for each thread, so that no thread works alone for long in the end.
_SHARES = 4


def thread_count(asked: int | None) -> int:
    """The number of threads; by default one for each processor that this process may use."""
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
    """Whether this process is one of Spark's workers, which are as many as the processors."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.TaskContext.get() is not None


def stretches(source: Source, threads: int) -> Iterator[Stretch]:
    """Split a segment where its headers allow it; the last stretch has the rest."""
    if is_kafscale(source):  # one reader compares all batches with the footer
        yield Stretch(0, source.content.size)
        return
    start, least = 0, max(LEAST_BYTES, source.content.size // (_SHARES * threads))
    try:
        for framing in frames(source):
            if framing.position - start >= least:
                yield Stretch(start, framing.position)
                start = framing.position
    except KafkaJitError:
        pass  # the thread that walks the last stretch reports it
    yield Stretch(start, source.content.size)
