"""Header keys that are not UTF-8: no exported column can hold them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scanning import write_partition

import kafkajit
import kafkajit.scan.export.header_keys as header_keys
import kafkajit.testing as kt
from kafkajit.cli import main

PLAIN = kt.Record(value=b"v", headers=[("\ufffd", b"1"), ("k", None)])
BAD = kt.Record(value=b"v", headers=[("k", b"1"), (b"k\xff", b"1")])


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_with_such_keys_are_counted_and_named(codec: str, tmp_path: Path) -> None:
    late = kt.Record(value=b"v", headers=BAD.headers, offset_delta=7)  # compaction leaves gaps
    first = kt.batch([PLAIN, BAD, kt.Record(), late], codec=codec)
    messages = kt.message_set(
        [kt.Record(value=b"v")], base_offset=8, codec=codec.replace("zstd", "gzip")
    )
    log = {0: first + messages, 20: kt.batch([BAD, PLAIN], base_offset=20, codec=codec)}
    write_partition(tmp_path / "logs", log, "o-0")
    result = kafkajit.export(tmp_path / "logs", tmp_path / "all", to="jsonl", mode="PERMISSIVE")
    assert (result.records, result.malformed) == (7, 3)
    assert result.partitions[0].passed.examples == [
        f"o-0 at offset {offset}: a header key is not UTF-8" for offset in (1, 7, 20)
    ]
    result = kafkajit.export(tmp_path / "logs", tmp_path / "out", to="jsonl", mode="DROPMALFORMED")
    assert (result.records, result.malformed) == (4, 3)
    texts = [(tmp_path / "out" / name).read_text() for name in result.files]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    assert [row["offset"] for row in rows] == [0, 2, 8, 21]
    assert rows[0]["headers"][0]["key"] == "\ufffd"


def test_small_segments_with_batches_at_one_position_are_told_apart(tmp_path: Path) -> None:
    log = {n: kt.batch([BAD if n == 2 else PLAIN], base_offset=n) for n in range(4)}
    write_partition(tmp_path / "logs", log, "o-0")
    with pytest.raises(kafkajit.KafkaJitError, match="a header key is not UTF-8 at offset 2 in "):
        kafkajit.export(tmp_path / "logs", tmp_path / "out", to="parquet")
    write_partition(tmp_path / "logs", {2: kt.batch([PLAIN], base_offset=2)}, "o-0")
    assert kafkajit.export(tmp_path / "logs", tmp_path / "out", to="parquet").records == 4


def test_of_overlapping_segments_the_one_that_is_read_decides(tmp_path: Path) -> None:
    log = {0: kt.batch([PLAIN]) + kt.batch([BAD], base_offset=1)}
    log[1] = kt.batch([PLAIN], base_offset=1) + kt.batch([BAD], base_offset=2)
    write_partition(tmp_path / "logs", log, "o-0")
    result = kafkajit.export(tmp_path / "logs", tmp_path / "out", to="avro", mode="PERMISSIVE")
    assert (result.records, result.malformed) == (3, 2)


def test_a_record_whose_value_is_malformed_too_counts_once(tmp_path: Path) -> None:
    write_partition(tmp_path / "logs", {0: kt.batch([BAD, PLAIN])}, "o-0")
    schema = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
    result = kafkajit.export(
        tmp_path / "logs", tmp_path / "out.parquet", value_schema=schema, mode="PERMISSIVE"
    )
    assert result.malformed == 2


def test_the_command_names_them_and_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(tmp_path / "logs", {0: kt.batch([BAD, PLAIN])}, "o-0")
    words = ["export", str(tmp_path / "logs"), "--to", "csv", "-o"]
    assert main([*words, str(tmp_path / "a")]) == 1
    assert "a header key is not UTF-8 at offset 0" in capsys.readouterr().err
    assert not list((tmp_path / "a").glob("*.csv"))
    assert main([*words, str(tmp_path / "b"), "--mode", "dropmalformed"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "kafkajit export: o-0 at offset 0: a header key is not UTF-8 (malformed)",
        "kafkajit export: 1 record is malformed",
    ]
    without = ["--columns", "offset,value"]
    assert main([*words, str(tmp_path / "c"), *without]) == 0


def test_batches_are_read_again_only_if_a_key_has_the_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path / "logs", {0: kt.batch([kt.Record(headers=[("k", b"\xff")])])}, "o-0")
    monkeypatch.delattr(header_keys, "_batch_with")
    assert kafkajit.export(tmp_path / "logs", tmp_path / "out", to="avro").records == 1
