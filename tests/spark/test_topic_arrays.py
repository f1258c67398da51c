from __future__ import annotations

import pyarrow as pa
import pytest
from evaluating import evaluated

import kafkajit

KEY = b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
VALUE = b"\0\3" + bytes(7) + b"\x2a" + bytes(14)


def test_records_of_internal_topics_are_json() -> None:
    keys = pa.array([KEY, None, KEY], pa.binary())
    values = pa.array([VALUE, None, None], pa.binary())
    row, nothing, tombstone = evaluated("kafka_decode_offsets", keys, values)
    assert row["key"] == '{"type":"1","data":{"group":"group","topic":"orders","partition":0}}'
    assert row["value"].startswith('{"version":"3","data":{"offset":42,')
    assert nothing is None
    assert tombstone == {"key": row["key"], "value": None}


def test_a_record_that_cannot_be_decoded_raises_and_try_gives_null() -> None:
    with pytest.raises(kafkajit.InvalidRecordError):
        evaluated("kafka_decode_offsets", [b"\0", KEY], [VALUE, VALUE])
    bad, good = evaluated("try_kafka_decode_offsets", [b"\0", KEY], [VALUE, VALUE])
    assert bad is None
    assert good["value"] is not None


def test_a_bare_null_has_no_type() -> None:
    assert evaluated("kafka_decode_offsets", pa.nulls(2), pa.nulls(2)) == [None, None]
    assert evaluated("kafka_decode_cluster_metadata", pa.nulls(1), pa.nulls(1)) == [None]
    assert evaluated("kafka_meta_properties", pa.nulls(1)) == [None]
    assert evaluated("kafka_verify_index", pa.nulls(1), pa.nulls(1), pa.nulls(1)) == [None]
