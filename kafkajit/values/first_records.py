"""The first records of a partition, which decide how all of them are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafkajit.arrow.arrays import allocate
from kafkajit.arrow.record_batches import record_record_batch, wanted_for
from kafkajit.places.locations import find_segments
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.records.columns import ColumnMemory
from kafkajit.schema import record_schema
from kafkajit.walk.damage import PERMISSIVE, Gap
from kafkajit.walk.walk import Walk

_SAMPLE = 64


def first_records_in(
    folder: str, column: str, keys: PrivateKeys = NO_KEYS
) -> pa.RecordBatch | None:
    """Some records from the beginning of a partition whose key or value is not NULL, if any.

    They have the column and the headers.
    """
    schema = record_schema([column, "headers"])
    # The plan of the query reports what is left out.
    for log in find_segments([folder], keys=keys, failed=lambda _: None)[0]:
        walk = Walk(log.open(), mode=PERMISSIVE)
        for chunk in walk.chunks(ColumnMemory(wanted_for(schema), allocate), reads_markers=False):
            if not isinstance(chunk, Gap):
                rows = record_record_batch(chunk, schema)
                places = np.flatnonzero(np.asarray(rows[column].is_valid()))[:_SAMPLE]
                if places.size:
                    return rows.take(pa.array(places))
    return None
