"""kafkajit.compaction: of each key the last record."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from kafkajit import LogConfig, compact, encode_batches
from kafkajit.testing import producer_snapshot

from . import segments
from .logs import temporary_folder

RECORDS = 500_000
COMPACT = LogConfig(cleanup_policy=("compact",))


class Compact:
    """500,000 records, 64 MB of them, in which a key comes ten times or not again."""

    params = [["none", "lz4"], [RECORDS // 10, RECORDS]]
    param_names = ["codec", "keys"]

    def setup(self, codec: str, keys: int) -> None:
        self.folder = temporary_folder()
        self.path = Path(self.folder.name) / "users-0"
        self.path.mkdir()
        numbers = np.random.default_rng(segments.SEED).integers(0, keys, RECORDS)
        values = [b"%d " % number * 20 for number in range(100)]
        table = pa.table(
            {
                "key": [b"user-%08d" % number for number in numbers.tolist()],
                "value": [values[number % 100][:100] for number in numbers.tolist()],
            }
        )
        log = encode_batches(table, compression_type=codec, timestamp=segments.BASE_TIMESTAMP)
        (self.path / f"{0:020}.log").write_bytes(log)
        (self.path / f"{RECORDS:020}.log").touch()
        (self.path / f"{RECORDS:020}.snapshot").write_bytes(producer_snapshot([]))
        self.time_find_out(codec, keys)

    def teardown(self, codec: str, keys: int) -> None:
        self.folder.cleanup()

    def time_find_out(self, codec: str, keys: int) -> None:
        """All but writing what stays."""
        assert compact(self.path, config=COMPACT).partitions[0].segments
