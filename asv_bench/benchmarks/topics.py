"""kafkajit.topics: payloads of internal topics → JSON."""

from __future__ import annotations

from kafkajit import decode_payloads, read_records

from . import segments


class Payloads:
    """A million offset commits."""

    @staticmethod
    def setup_cache() -> None:
        segments.COMMITS.path()

    def setup(self) -> None:
        records = read_records(segments.COMMITS.path(), columns=["key", "value"])
        self.keys, self.values = records["key"], records["value"]
        decode_payloads("offsets", self.keys[:10], self.values[:10])

    def time_decode_payloads(self) -> None:
        decode_payloads("offsets", self.keys, self.values)
