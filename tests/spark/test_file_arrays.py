from __future__ import annotations

import pyarrow as pa
from evaluating import evaluated


def test_files_that_say_one_thing_are_a_struct() -> None:
    good = b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"
    other = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    rows = evaluated("kafka_partition_metadata", [good, None, other])
    assert rows == [
        {"version": 0, "topicId": "pUM3BMsVQk2fe-klgEgLLA"},
        None,
        {"version": 0, "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"},
    ]
    assert evaluated("try_kafka_partition_metadata", [b"", good, None])[0::2] == [None, None]
    assert evaluated("kafka_partition_metadata", pa.array([], pa.binary())) == []
