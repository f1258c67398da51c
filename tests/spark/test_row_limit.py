from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from corpus import log_of, run_python
from needs import need

import kafkajit.testing as kt
from kafkajit.spark import record_arrays, row_limit
from kafkajit.spark.catalogue import evaluator
from kafkajit.spark.row_limit import Heap

MIB = 2**20


# MiB of heap, of content and of records that Spark 4.3 was measured with.
@pytest.mark.parametrize("measured", [(1024, 42, 105), (2048, 84, 211), (4096, 201, 201)])
def test_a_row_that_spark_can_take_is_allowed(measured: tuple[int, int, int]) -> None:
    heap, content, records = measured
    assert Heap(heap * MIB).problem_with(content * MIB, records * MIB) is None


@pytest.mark.parametrize("measured", [(1024, 65, 65), (2048, 151, 151), (4096, 302, 302)])
def test_a_row_that_ends_the_jvm_is_refused(measured: tuple[int, int, int]) -> None:
    heap, content, records = measured
    problem = Heap(heap * MIB, "spark.driver.memory").problem_with(content * MIB, records * MIB)
    assert problem is not None
    assert re.fullmatch(
        rf"Spark needs \d+\.\d GiB of heap for it, and spark.driver.memory is {heap // 1024}.0 GiB",
        problem,
    )


def test_no_row_is_larger_than_sparks_largest() -> None:
    assert Heap().problem_with(2**31 - 17, 1) is None
    assert "2,147,483,632 bytes" in str(Heap().problem_with(2**31 - 16, 1))


def test_a_refusal_names_the_ways_to_read_a_large_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_limit, "MAX_ROW_BYTES", 1000)
    for name in ("kafka_records", "try_kafka_records"):
        with pytest.raises(ValueError, match="do not fit in one row") as raised:
            evaluator(name)(pa.array([log_of("headers-0")]))
        assert "kafka_log(TABLE(SELECT path" in str(raised.value)
        assert "format('kafkaLog')" in str(raised.value)


OWN_SESSION = """
import sys
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from kafkajit.spark import register

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
register(spark)
try:
    spark.sql(f"SELECT size(kafka_records(content)) FROM binaryFile.`{sys.argv[1]}`").first()
except PythonException as error:
    print(error)
print("then", spark.sql("SELECT 1").first()[0])
"""


@pytest.mark.thorough
def test_a_row_too_large_for_the_drivers_heap_is_refused_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    need("java")
    # In a JVM of its own with Spark's default heap of 1 GiB: the bytes alone take most of it.
    log = tmp_path / f"{0:020}.log"
    with log.open("wb") as file:
        for offset in range(70):
            file.write(kt.batch([kt.Record(value=bytes(2**20))], base_offset=offset))
    message = run_python(
        OWN_SESSION, str(log), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"
    )
    assert "do not fit in one row: Spark needs 1.1 GiB of heap for it" in message
    assert "spark.driver.memory is 1.0 GiB; read it in pieces: " in message
    assert "Traceback" not in message
    assert message.endswith("then 1\n")


def test_row_bytes_count_only_what_a_slice_has() -> None:
    part = pa.RecordBatch.from_pydict({"key": pa.array([b"k" * 100] * 10)})
    least = 10 * record_arrays.row_bytes(part.slice(0, 1))
    assert record_arrays.row_bytes(part) == least
