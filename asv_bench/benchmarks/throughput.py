"""Throughput in GB/s, for people. asv compares times, of which less is better."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

ROUNDS = 7


def gigabytes_per_second(size: int, work: Callable[[], object]) -> float:
    """The best of some rounds, after one that does not count."""
    work()
    return round(size / min(_seconds(work) for _ in range(ROUNDS)) / 1e9, 2)


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
