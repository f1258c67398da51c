from __future__ import annotations

import re
from pathlib import Path

import pytest
import reference
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT64

import kafkajit
from kafkajit.index.transaction_index import (
    ENTRY,
    TransactionIndex,
    aborted_transactions,
)
from kafkajit.storage.source import as_bytes

INDEXES = sorted(DATA.rglob("*.txnindex"))
ENTRIES = st.lists(st.builds(reference.AbortedTransaction, INT64, INT64, INT64, INT64, st.just(0)))


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: f"{path.parent.name}/{path.stem[-3:]}")
def test_the_entries_are_those_that_kafka_prints(path: Path) -> None:
    printed = re.findall(
        r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: \d+",
        path.with_name(path.name + ".dump.out").read_text(),
    )
    aborted = aborted_transactions(as_bytes(path.read_bytes()))
    assert [tuple(map(int, entry)) for entry in printed] == list(
        zip(*(column.tolist() for column in aborted), strict=True)
    )


def test_the_corpus_has_transaction_indexes() -> None:
    assert len(INDEXES) > 5
    assert ENTRY.itemsize == 34


@given(ENTRIES)
def test_every_entry_is_read(entries: list[reference.AbortedTransaction]) -> None:
    aborted = aborted_transactions(as_bytes(b"".join(entry.encode() for entry in entries)))
    assert aborted.producer_id.tolist() == [entry.producer_id for entry in entries]
    assert aborted.first_offset.tolist() == [entry.first_offset for entry in entries]
    assert aborted.last_offset.tolist() == [entry.last_offset for entry in entries]
    assert {column.dtype.str for column in aborted} == {"<i8"}


@given(ENTRIES, st.integers(1, 33))
def test_a_part_of_an_entry_is_an_error(
    entries: list[reference.AbortedTransaction], cut: int
) -> None:
    content = b"".join(entry.encode() for entry in entries) + bytes(cut)
    with pytest.raises(
        kafkajit.CorruptIndexError,
        match=rf"^a transaction index of {len(content)} bytes is not made of entries of 34 in a/b$",
    ):
        aborted_transactions(as_bytes(content), "a/b")


@pytest.mark.parametrize("version", [1, -1, 256])
def test_an_entry_of_another_version_is_an_error_with_its_place(version: int) -> None:
    entry = reference.AbortedTransaction(1, 2, 3, 4, 0).encode()
    content = entry + version.to_bytes(2, signed=True) + entry[2:] + entry
    with pytest.raises(
        kafkajit.CorruptIndexError,
        match=rf"^Unexpected aborted transaction version {version} \(entry 1\) at position 34 in",
    ) as caught:
        aborted_transactions(as_bytes(content), "a/b")
    assert (caught.value.path, caught.value.position) == ("a/b", 34)


def test_a_file_that_is_not_there_has_no_transactions(tmp_path: Path) -> None:
    assert TransactionIndex(tmp_path / "00000000000000000000.txnindex").aborted == []


def test_a_transaction_that_ends_before_its_segment_is_refused(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "00000000000000000100.txnindex")
    index.path.write_bytes(reference.AbortedTransaction(7, 0, 99, 11, 0).encode())
    index.sanity_check(99)
    with pytest.raises(kafkajit.CorruptIndexError, match="is less than start offset 100"):
        index.sanity_check(100)
