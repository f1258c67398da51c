"""kafkajit.index: bisection of an index in vectors, beside numpy's."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import numpy as np

from kafkajit.index.offset_index import ENTRY, OffsetIndex
from kafkajit.index.verify import verify_offset_index

from . import segments

TARGETS = 10_000_000


class Bisection:
    """Ten million random targets, by the size of the index."""

    params = [4096, 1 << 20, 10 << 20]
    param_names = ["index_bytes"]

    def setup(self, index_bytes: int) -> None:
        rng = np.random.default_rng(segments.SEED)
        entries = np.empty(index_bytes // ENTRY.itemsize, ENTRY)
        entries["relativeOffset"] = np.cumsum(rng.integers(1, 400, entries.size))
        entries["position"] = np.arange(1, entries.size + 1) * 700
        self.keys = entries["relativeOffset"]
        self.index = OffsetIndex(entries.tobytes(), base_offset=0)
        self.targets = rng.integers(-100, int(self.keys[-1]) + 1000, TARGETS)
        self.index.slots(self.targets[:100])

    def time_slots(self, index_bytes: int) -> None:
        self.index.slots(self.targets)

    def time_numpy(self, index_bytes: int) -> None:
        """The same by numpy.searchsorted, conversion of the keys included."""
        np.searchsorted(self.keys.astype(np.int64), self.targets, side="right")

    def time_lookup(self, index_bytes: int) -> None:
        """One target."""
        self.index.lookup(int(self.targets[0]))


class Verification:
    """An index with an entry for each batch of a segment, against it."""

    params = segments.VALUE_SIZES
    param_names = ["value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, value_size: int) -> None:
        from kafkajit import read_record_batches

        self.log = segments.small(value_size).path().read_bytes()
        batches = read_record_batches(self.log)
        entries = np.empty(batches.num_rows, ENTRY)
        entries["relativeOffset"] = batches["lastOffset"].to_numpy()
        entries["position"] = batches["position"].to_numpy()
        self.index = entries.tobytes()
        assert verify_offset_index(self.log, self.index, 0).num_rows == 0

    def time_verify(self, value_size: int) -> None:
        verify_offset_index(self.log, self.index, 0)
