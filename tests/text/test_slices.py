"""Large compressed batches are dumped slice by slice, as if they were read at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from corpus import NO_JIT
from hypothesis import given
from hypothesis import strategies as st

from kafkajit import testing as kt
from kafkajit.cli import main
from kafkajit.records import decode
from kafkajit.testing.batches import varint
from kafkajit.text.pairs import OffsetPairs

pytestmark = pytest.mark.skipif(NO_JIT, reason="megabytes")

SHORT = 150_000  # the record whose value is shorter


def _record(delta: int) -> bytes:
    value = b"short" if delta == SHORT else b"%8d" % delta
    body = b"\0" + varint(delta) + varint(delta + (delta > 10)) + varint(30) + b"k" * 30
    body += varint(len(value)) + value + b"\2" + varint(1) + b"h" + varint(-1)
    return varint(len(body)) + body


RECORDS = [_record(delta) for delta in range(200_000)]
SMALL = kt.batch([kt.Record(b"k", b"smaller8")], codec="lz4")
BEHIND = kt.batch([kt.Record(b"k", b"behind_8")], base_offset=300_000, codec="lz4")
LONG = ["--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"]
OPTIONS = {
    "Kafka's": [],
    "JSON": ["--format", "json"],
    "readers'": ["--mode", "PERMISSIVE"],
    "longs": LONG,
    "longs of readers": [*LONG, "--mode", "PERMISSIVE"],
    "longs in JSON": [*LONG, "--mode", "DROPMALFORMED", "--format", "json"],
}


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_slices_are_printed_as_the_whole_batch(
    options: str,
    is_damaged: bool,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [*RECORDS, b"\x0e\0\0\0\x05k"] if is_damaged else RECORDS
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(SMALL + kt.batch(records, base_offset=1, codec="zstd") + BEHIND)
    words = ["dump-log", "--files", str(path), "--print-data-log", *OPTIONS[options]]
    code = main(words)
    found = capfd.readouterr()
    monkeypatch.setattr(decode, "SLICE_BYTES", 1 << 30)
    assert main(words) == code
    assert capfd.readouterr() == found
    assert len(found.out) > 500


@given(st.lists(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2))))
def test_pairs_of_offsets_are_those_that_were_added(blocks: list[list[tuple[int, int]]]) -> None:
    pairs, others = OffsetPairs(), OffsetPairs()
    for number, block in enumerate(blocks):
        both = np.array(block, dtype=np.int64).reshape(-1, 2)
        (pairs if number < 2 else others).add(both[:, 0], both[:, 1])
    pairs.extend(others)
    flat = [pair for block in blocks for pair in block]
    assert len(pairs) == len(flat)
    assert list(pairs) == flat
    assert list(reversed(pairs)) == flat[::-1]
