"""kafkajit.state: the small files beside a log, read into tables."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

from kafkajit import read_leader_epochs, read_producer_snapshot
from kafkajit.testing import Producer, producer_snapshot


class StateFiles:
    """Files in memory, by their number of entries."""

    params = [10, 100_000]
    param_names = ["entries"]

    def setup(self, entries: int) -> None:
        self.snapshot = producer_snapshot([Producer(number) for number in range(entries)])
        epochs = "".join(f"{number} {number * 10}\n" for number in range(entries))
        self.epochs = f"0\n{entries}\n{epochs}".encode()
        self.time_read_producer_snapshot(entries)
        self.time_read_leader_epochs(entries)

    def time_read_producer_snapshot(self, entries: int) -> None:
        read_producer_snapshot(self.snapshot)

    def time_read_leader_epochs(self, entries: int) -> None:
        read_leader_epochs(self.epochs)
