from __future__ import annotations

import io

import fastavro
import pyarrow as pa
import pytest
from corpus import NO_JIT

from kafkajit.scan.export.avro_file import AvroFile


@pytest.mark.parametrize("codec", ["none", "deflate", "snappy", "zstd"])
def test_fastavro_reads_what_is_written(codec: str) -> None:
    rows = range(5000 if NO_JIT else 50_000)
    table = pa.table(
        {
            "id": pa.array(rows),
            "text": [None if n % 5 == 0 else f"text {n}" for n in rows],
            "list": [[n, None] if n % 2 else None for n in rows],
            "inside": [{"flag": n % 2 == 0, "ratio": n / 4} for n in rows],
        }
    ).slice(3)
    sink = pa.BufferOutputStream()
    writer = AvroFile(sink, table.schema, codec, None, {"kafkajit.topic": "orders"})
    writer.write(table)
    writer.close({})
    reader = fastavro.reader(io.BytesIO(sink.getvalue().to_pybytes()))
    assert reader.metadata["kafkajit.topic"] == "orders"
    assert list(reader) == table.to_pylist()


def test_a_name_that_avro_does_not_have_is_refused() -> None:
    schema = pa.schema([("customer id", pa.int64())])
    with pytest.raises(ValueError, match="Avro does not allow the name 'customer id'"):
        AvroFile(pa.BufferOutputStream(), schema, "none", None, {})
