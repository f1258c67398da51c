"""Evaluates the SQL function that writes: arrays of records in, batches of a log out."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from kafkajit.encode.encode_options import BATCH_NAMES, EncodeOptions
from kafkajit.encode.writer import Encoder
from kafkajit.schema import RECORD_COLUMNS
from kafkajit.spark.arrays import check_type, forgiving

# A batch takes all records of its array, unless options set a limit.
_ONE_BATCH = 2**31 - 1


def encode_batch(records: pa.Array, options: pa.Array | None = None, *, lenient: bool) -> pa.Array:
    """The batch, or the batches, of each array of records."""
    check_type(records, "records must be an ARRAY of STRUCT, as kafka_records gives", _is_records)
    if pa.types.is_null(records.type):
        return pa.nulls(len(records), pa.binary())
    if options is None:
        options = pa.nulls(len(records))
    check_type(options, "options must be a MAP of STRING to STRING", pa.types.is_map)
    encode = forgiving(_encode, lenient)
    parsed: dict[tuple[tuple[str, str | None], ...], EncodeOptions] = {}
    encoded: list[bytes | None] = []
    ends = records.offsets.to_pylist()
    for row, (is_valid, given) in enumerate(
        zip(records.is_valid().to_pylist(), options.to_pylist(), strict=True)
    ):
        if not is_valid:
            encoded.append(None)
            continue
        stated = tuple(given or ())
        if stated not in parsed:
            parsed[stated] = _options(stated)
        structs = records.values.slice(ends[row], ends[row + 1] - ends[row])
        if structs.null_count:
            raise ValueError(
                "records must not be NULL: a record is a STRUCT, and only its fields may be"
            )
        encoded.append(encode(pa.RecordBatch.from_struct_array(structs), parsed[stated]))
    return pa.array(encoded, pa.binary())


def _is_records(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) and pa.types.is_struct(type_.value_type))


def _encode(rows: pa.RecordBatch, options: EncodeOptions) -> bytes:
    known = {name.lower(): name for name in RECORD_COLUMNS}
    # A column that is NULL in all records was not selected, as in kafka_records(content, 'key').
    kept = [
        field
        for field in rows.schema
        if field.name.lower() in ("key", "value") or rows.column(field.name).null_count < len(rows)
    ]
    names = [known.get(field.name.lower(), field.name) for field in kept]
    columns = [rows.column(field.name) for field in kept]
    if options.batch_size is None and not any(name in names for name in BATCH_NAMES):
        options = replace(options, batch_size=_ONE_BATCH)
    part = pa.RecordBatch.from_arrays(columns, names=names)
    return b"".join(Encoder(options).encode([part]))


def _options(stated: tuple[tuple[str, str | None], ...]) -> EncodeOptions:
    """Options as SQL spells them: names such as compressionType, values as text."""
    return EncodeOptions.parse({name: text for name, text in stated if text is not None})
