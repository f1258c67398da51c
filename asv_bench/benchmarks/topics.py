"""kafkajit.topics: payloads of internal topics → JSON."""

from __future__ import annotations

import struct

import pyarrow as pa

from kafkajit import decode_payloads

COMMITS = 1_000_000


class Commits:
    """A million offset commits, as __consumer_offsets has them."""

    def setup(self) -> None:
        group, topic = b"payments-service", b"orders"
        keys, values = [], []
        for i in range(COMMITS):
            key = struct.pack(">hh", 1, len(group)) + group + struct.pack(">h", len(topic)) + topic
            keys.append(key + struct.pack(">i", i % 100))
            values.append(
                struct.pack(">hqih", 3, 1000 + i, 5, 0) + struct.pack(">q", 1_700_000_000_000 + i)
            )
        self.keys, self.values = pa.array(keys), pa.array(values)
        decode_payloads("offsets", self.keys[:10], self.values[:10])

    def time_decode(self) -> None:
        decode_payloads("offsets", self.keys, self.values)
