from __future__ import annotations

import re

import pytest

from kafkajit.format import layout

# The constants X_OFFSET and X_LENGTH of Kafka's DefaultRecordBatch.
FIELDS = {
    "baseOffset": (0, 8),
    "batchLength": (8, 4),
    "partitionLeaderEpoch": (12, 4),
    "magic": (16, 1),
    "crc": (17, 4),
    "attributes": (21, 2),
    "lastOffsetDelta": (23, 4),
    "baseTimestamp": (27, 8),
    "maxTimestamp": (35, 8),
    "producerId": (43, 8),
    "producerEpoch": (51, 2),
    "baseSequence": (53, 4),
    "recordsCount": (57, 4),
}


def test_a_batchs_header_has_kafkas_fields() -> None:
    assert layout.BATCH_HEADER.names == tuple(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_stands_where_kafka_has_it(name: str) -> None:
    dtype, offset = layout.BATCH_HEADER.fields[name][:2]
    assert (offset, dtype.itemsize) == FIELDS[name]
    assert dtype.byteorder in (">", "|")
    assert layout.NATIVE_BATCH_HEADER[name] == dtype.newbyteorder("=")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECORD_BATCH_OVERHEAD", 61),
        ("LOG_OVERHEAD", 12),
        ("HEADER_SIZE_UP_TO_MAGIC", 17),
        ("BATCH_LENGTH_OFFSET", 8),
        ("MAGIC_OFFSET", 16),
        ("ATTRIBUTES_OFFSET", 21),
        ("RECORDS_COUNT_OFFSET", 57),
        ("MIN_ENTRY_SIZE", 14),
        ("MAX_RECORD_OVERHEAD", 21),
        ("COMPRESSION_CODEC_MASK", 0x07),
        ("TIMESTAMP_TYPE_MASK", 0x08),
        ("TRANSACTIONAL_MASK", 0x10),
        ("CONTROL_MASK", 0x20),
        ("DELETE_HORIZON_MASK", 0x40),
    ],
)
def test_a_constant_is_kafkas(name: str, value: int) -> None:
    assert getattr(layout, name) == value


def test_the_docs_table_lists_the_fields_in_order() -> None:
    assert layout.__doc__ is not None
    types = {"int64": ">i8", "int32": ">i4", "int16": ">i2", "int8": "i1", "uint32": ">u4"}
    rows = re.findall(r"^    (\w+)\s+(u?int\d+)", layout.__doc__, re.MULTILINE)
    assert [(name, layout.BATCH_HEADER[name]) for name in FIELDS] == [
        (name, types[type_]) for name, type_ in rows
    ]
