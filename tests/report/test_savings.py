from __future__ import annotations

import time
from typing import Any

import pytest

import kafkajit
from kafkajit.report import savings


def test_seconds_do_not_count_the_compilation_of_a_codecs_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = set()
    encode = savings.encode_batches

    def compile_first(*args: Any, compression_type: str, **options: Any) -> Any:
        if compression_type not in compiled:
            compiled.add(compression_type)
            until = time.process_time() + 0.3
            while time.process_time() < until:
                pass
        return encode(*args, compression_type=compression_type, **options)

    records = kafkajit.read_records("sample:orders-0/00000000000000000000.log")
    savings.measured_in_all(records)  # the real kernels
    monkeypatch.setattr(savings, "encode_batches", compile_first)
    rows = savings.measured_in_all(records)
    assert compiled == {"none", "snappy", "lz4", "gzip", "zstd"}
    assert len(rows) == len(savings.ENCODINGS)
    assert max(row["encodeSeconds"] for row in rows) < 0.3
