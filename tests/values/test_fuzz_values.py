"""Spoilt values: whatever the bytes, the schema and the framing, there are columns or named errors.

A short run of tests/support/fuzz_values.py: a few thousand values by default, N with
KAFKAJIT_FUZZ=N; pytest runs them all with --thorough.
"""

from __future__ import annotations

import os

import pytest
from corpus import NO_JIT, run_python

COUNT = int(os.environ.get("KAFKAJIT_FUZZ", "500" if NO_JIT else "20_000"))
SHARDS = 4


by_format = pytest.mark.parametrize("format_", ["avro", "protobuf", "json"])


@by_format
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.thorough
def test_spoilt_values_are_read_or_refused(format_: str, shard: int) -> None:
    check(format_, 1000 * shard, COUNT // SHARDS)


@by_format
def test_a_few_spoilt_values_are_read_or_refused(format_: str) -> None:
    check(format_, 0, COUNT // 20)


def check(format_: str, seed: int, values: int) -> None:
    """Read values in a process of its own: a read behind their memory ends it."""
    code = "import sys, fuzz_values as f; f.main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"
    read, refused = map(int, run_python(code, format_, str(seed), str(values)).split())
    # neither all refused nor all read, or nothing was learnt
    assert 0.05 < read / (read + refused) < 0.9
