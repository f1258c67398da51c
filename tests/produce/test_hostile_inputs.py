from __future__ import annotations

import gzip
import random
from pathlib import Path

import fuzz_inputs
import pytest
from corpus import NO_JIT

import kafkajit


def test_mutated_files_are_read_or_an_error_that_names_them(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = 3 if NO_JIT else 200 if request.config.getoption("--thorough") else 15
    for suffix, content in fuzz_inputs.SEEDS:
        sound = content()
        path = tmp_path / f"sound{suffix}"
        path.write_bytes(sound)
        assert fuzz_inputs.read(path, tmp_path) == "3 partitions"
        for seed in range(count):
            path = tmp_path / f"{seed}{suffix}"
            path.write_bytes(fuzz_inputs.mutated(sound, random.Random(seed)))
            fuzz_inputs.read(path, tmp_path)  # raises if it is another error


def test_every_cut_file_is_an_error_or_has_fewer_records(tmp_path: Path) -> None:
    for suffix, content in fuzz_inputs.SEEDS:
        sound = content()
        is_text = suffix in (".csv", ".jsonl")
        for size in range(1, len(sound), max(1, len(sound) // (3 if NO_JIT else 25))):
            path = tmp_path / f"cut{suffix}"
            path.write_bytes(sound[:size])
            found = fuzz_inputs.read(path, tmp_path)
            # Lines of text, and blocks of Avro, have no end that could be missing.
            assert found == "error" or is_text or suffix == ".avro", (suffix, size)


@pytest.mark.skipif(NO_JIT, reason="large")
def test_a_line_of_gigabytes_is_an_error_in_bounded_time(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", 1) as file:
        file.write(b'{"value":"')
        for _ in range(300):
            file.write(b"x" * (1 << 20))
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz, line 1: a record has more than 256 MiB"):
        kafkajit.import_files(tmp_path / "a.jsonl.gz", tmp_path / "logs", topic="t", partitions=1)
