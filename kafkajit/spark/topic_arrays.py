"""Evaluates the SQL functions that decode records of internal topics."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafkajit.spark.arrays import BINARY, as_structs, check_type
from kafkajit.topics.structs import decode_payloads


def decode(key: pa.Array, value: pa.Array, *, topic: str, lenient: bool) -> pa.Array:
    """Keys and values as JSON; NULL if both are NULL."""
    for array, name in ((key, "key"), (value, "value")):
        check_type(array, f"{name} must be BINARY, as the record has it", *BINARY)
    decoded = decode_payloads(topic, key, value, lenient=lenient)
    fields = [decoded.field("key"), decoded.field("value")]
    is_null = decoded.is_null().to_numpy(zero_copy_only=False)
    is_null = is_null | np.logical_and(
        *(field.is_null().to_numpy(zero_copy_only=False) for field in fields)
    )
    table = pa.Table.from_arrays(fields, schema=pa.schema(list(decoded.type)))
    return as_structs(table, is_null)
