"""Schemas that headers of records name, as newer serialisers write them: keys and values are bare.

| header | bytes |
|---|---|
| `__value_schema_id`, `__key_schema_id` | 01, UUID; or 00, id as int32: Confluent's registry |
| `apicurio.value.globalId`, `apicurio.value.contentId`, and those of keys | id as int64 |

Behind Confluent's UUID stand the indexes of a Protobuf message. So a header is put in front of its
value, as it is or behind a magic byte; then the value has a framing like others.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_APICURIO = ("globalId", "contentId")


def framed_by_headers(values: pa.Array, headers: pa.Array, part: str) -> pa.Array:
    r"""Keys or values with what names their schema in front; `part` is "key" or "value".

    The last header with the name counts. A record without one stays as it is.

    >>> headers = pa.array([[{"key": "__value_schema_id", "value": b"\0\0\0\0\7"}]])
    >>> framed_by_headers(pa.array([b"\x54"]), headers, "value").to_pylist()
    [b'\x00\x00\x00\x00\x07T']
    """
    rows = pc.list_parent_indices(headers)
    flat = pc.list_flatten(headers)
    names, contents = pc.struct_field(flat, "key"), pc.struct_field(flat, "value")
    confluent = pc.equal(names, f"__{part}_schema_id")
    apicurio = pc.is_in(names, pa.array([f"apicurio.{part}.{name}" for name in _APICURIO]))
    is_asked = pc.and_(pc.or_(confluent, apicurio), pc.is_valid(contents))
    places = np.flatnonzero(np.asarray(pc.fill_null(is_asked, False)))
    if not places.size:
        return values
    last = np.full(len(values), -1, dtype=np.int64)
    last[np.asarray(rows)[places]] = places
    prefixes = contents.take(pa.array(last, mask=last < 0))
    magic = pc.if_else(apicurio.take(pa.array(last, mask=last < 0)), b"\0", b"")
    empty = pa.scalar(b"", pa.binary())
    parts = [pc.fill_null(part_, empty) for part_ in (magic.cast(pa.binary()), prefixes)]
    return pc.binary_join_element_wise(*parts, values, empty)
