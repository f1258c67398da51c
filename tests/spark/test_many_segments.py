"""10,000 small segments, a hundred of which are damaged, each in a way of its own, as one table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import reference
from corpus import batch_rows
from fuzz import our_decompress
from mutations import framed_mutant, seeds
from pyspark.sql import SparkSession

import kafkajit.testing as kt

PARTITIONS, SEGMENTS, DAMAGED = 100, 100, 100
OFFSETS = 10  # of a segment; its three batches have nine


def batches(base_offset: int) -> list[bytes]:
    """A segment's: one of each format, compressed in turn."""
    records = [kt.Record(key=b"k%d" % i, value=b"value") for i in range(3)]
    codec = ("none", "gzip", "snappy", "lz4")[base_offset // OFFSETS % 4]
    return [
        kt.message_set(records, magic=0, base_offset=base_offset, codec=codec),
        kt.message_set(records, magic=1, base_offset=base_offset + 3, codec=codec),
        kt.batch(records, base_offset=base_offset + 6, codec=codec),
    ]


def refused() -> Iterator[bytes]:
    """Mutated batches of the lengths that they say, none of which the reference reads."""
    rng, sources = random.Random(5), seeds()
    while True:
        mutant = framed_mutant(rng, sources)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference, "decompress", our_decompress)
            try:
                read, end = reference.read_batches(mutant)
                if end == len(mutant):
                    batch_rows(mutant, read[0])
            except reference.Invalid:
                yield mutant


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("logs")
    bad = refused()
    for partition in range(PARTITIONS):
        (root / f"orders-{partition}").mkdir()
        for segment in range(SEGMENTS):
            whole = batches(segment * OFFSETS)
            if segment == partition:  # the first batch, or another, or all that is between
                place = partition % 3
                whole[place] = next(bad)
            path = root / f"orders-{partition}" / f"{segment * OFFSETS:020}.log"
            path.write_bytes(b"".join(whole))
    return root


@pytest.mark.thorough
def test_exactly_the_sound_batches_records_are_read(spark: SparkSession, folder: Path) -> None:
    logs = spark.read.format("kafkaLog").load(str(folder), mode="PERMISSIVE")
    logs.createOrReplaceTempView("logs")
    rows = spark.sql("SELECT partition, offset, corruption IS NULL AS sound FROM logs").collect()
    expected = [
        (partition, segment * OFFSETS + offset)
        for partition in range(PARTITIONS)
        for segment in range(SEGMENTS)
        for offset in range(9)
        if segment != partition or offset // 3 != partition % 3
    ]
    found = sorted((row["partition"], row["offset"]) for row in rows if row["sound"])
    assert found == expected
    gaps = sorted(row["partition"] for row in rows if not row["sound"])
    assert gaps == list(range(DAMAGED))


@pytest.mark.thorough
def test_what_is_missing_is_what_was_damaged(spark: SparkSession, folder: Path) -> None:
    damage = spark.read.format("kafkaLog").load(str(folder), kind="corruption").collect()
    found = {
        row["partition"]: (row["firstMissingOffset"], row["lastMissingOffset"]) for row in damage
    }
    assert len(damage) == DAMAGED
    for partition in range(PARTITIONS):
        first = partition * OFFSETS + 3 * (partition % 3)
        # A segment's last batch is followed by the offset that the next one's name says.
        last = OFFSETS * (partition + 1) - 1 if partition % 3 == 2 else first + 2
        assert found[partition] == (first, last), partition
