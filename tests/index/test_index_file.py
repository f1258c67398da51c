"""Whatever is done to an index, its answers and its file are those of Kafka's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA

import kafkajit
from kafkajit.index.index_file import IndexFile
from kafkajit.index.offset_index import OffsetIndex, OffsetPosition
from kafkajit.index.time_index import TimeIndex, TimestampOffset
from kafkajit.index.transaction_index import AbortedTxn, TransactionIndex

ERRORS: dict[str, type[Exception] | tuple[type[Exception], ...]] = {
    "IllegalArgumentException": (ValueError, IndexError),
    "IllegalStateException": ValueError,
    "InvalidOffsetException": kafkajit.InvalidOffsetError,
    "IndexOffsetOverflowException": kafkajit.InvalidOffsetError,
    "CorruptIndexException": kafkajit.CorruptIndexError,
    "BufferOverflowException": ValueError,
}


SCRIPTS = DATA / "indexes" / "operations.txt"


def test_the_answers_and_the_files_are_those_of_kafka(tmp_path: Path) -> None:
    lines = SCRIPTS.read_text().splitlines()
    assert len(lines) > 1000
    assert list(differences(iter(lines), tmp_path)) == []


def test_what_is_truncated_is_gone_for_who_opens_the_file_after_a_crash(tmp_path: Path) -> None:
    # Kafka leaves the bytes, and believes them and the zeros behind them.
    index = OffsetIndex(tmp_path / "index", 45, writable=True, max_index_size=80)
    index.append(50, 100)
    index.append(60, 200)
    index.truncate_to(60)
    assert (tmp_path / "index").read_bytes() == bytes.fromhex("0000000500000064") + bytes(72)
    again = OffsetIndex(tmp_path / "index", 45, writable=True)
    assert (len(again), again.is_full) == (1, False)
    again.sanity_check()


def test_of_several_entries_of_an_offset_none_is_left(tmp_path: Path) -> None:
    # Kafka's search ends at any of them, and those before it stay.
    index = TimeIndex(tmp_path / "index", 0, writable=True, max_index_size=1200)
    for timestamp in range(1, 9):
        index.maybe_append(timestamp, 7)
    index.truncate_to(7)
    assert len(index) == 0


@pytest.mark.parametrize("size", [0, 24])
def test_what_has_no_room_is_refused(tmp_path: Path, size: int) -> None:
    index = TimeIndex(tmp_path / "index", 0, writable=True, max_index_size=24)
    index.resize(size)
    for timestamp in range(1, size // 12 + 1):
        index.maybe_append(timestamp, timestamp, skip_full_check=True)
    content = (tmp_path / "index").read_bytes()
    with pytest.raises(ValueError, match=rf"full time index \(size = {size // 12}\)\.$"):
        index.maybe_append(9, 9, skip_full_check=True)
    assert (tmp_path / "index").read_bytes() == content


def test_a_number_that_no_entry_can_have_is_refused(tmp_path: Path) -> None:
    offsets = OffsetIndex(tmp_path / "offsets", 0, writable=True)
    with pytest.raises(ValueError, match=r"^\(5, 2147483648\) do not fit into an entry: relativeO"):
        offsets.append(5, 2**31)
    times = TimeIndex(tmp_path / "times", 0, writable=True)
    with pytest.raises(ValueError, match="do not fit into an entry: timestamp, relativeOffset"):
        times.maybe_append(2**63, 5)
    assert (len(offsets), len(times)) == (0, 0)


@pytest.mark.parametrize("row", [-1, 1])
def test_there_is_no_entry_before_the_first_or_behind_the_last(row: int) -> None:
    with pytest.raises(IndexError, match=f"fetch the {row}th entry from index given, which has si"):
        OffsetIndex(bytes.fromhex("0000000500000064"), 0).entry(row)


class Operations:
    """Does to an index what tests/broker/IndexOperations.java does to Kafka's."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "index-of-a-script"
        self.index: Any = None

    def answer(self, line: str) -> str:
        word, *arguments = line.split()
        if word == "index":
            self.kind, self.base, self.most = arguments[0], int(arguments[1]), int(arguments[2])
            self.index = None
            self.path.unlink(missing_ok=True)
            if arguments[3] != "-":
                self.path.write_bytes(bytes.fromhex(arguments[3][1:]))
            return self.open()
        if word == "open":
            return self.open()
        if word == "close":
            if isinstance(self.index, IndexFile):
                self.index.make_read_only()
            return f"x{self.path.read_bytes().hex()}" if self.path.exists() else "-"
        numbers = list(map(int, arguments))
        if isinstance(self.index, TransactionIndex):
            return self.of_transactions(word, numbers)
        return self.of_index(word, numbers)

    def open(self) -> str:
        if self.kind == "transaction":
            self.index = TransactionIndex(self.path)
            return "ok"
        kind = {"offset": OffsetIndex, "time": TimeIndex}[self.kind]
        self.index = kind(self.path, self.base, writable=True, max_index_size=self.most)
        return self.state()

    def state(self) -> str:
        full = ", full" if self.index.is_full else ""
        return f"{len(self.index)} of {self.index.max_entries}{full}, {self.index.length} bytes"

    def of_index(self, word: str, numbers: list[int]) -> str:
        index = self.index
        match word:
            case "append" if self.kind == "offset":
                index.append(*numbers)
            case "append":
                index.maybe_append(*numbers[:2], skip_full_check=numbers[2] == 1)
            case "truncateTo":
                index.truncate_to(*numbers)
            case "truncate":
                index.truncate_to_entries(0)
            case "resize":
                return f"{str(index.resize(*numbers)).lower()}, {self.state()}"
            case "trim":
                index.trim_to_valid_size()
            case "lookup":
                return shown(index.lookup(*numbers))
            case "entry":
                return shown(index.entry(*numbers))
            case "upper":
                offset, position, size = numbers
                return shown(index.fetch_upper_bound_offset(OffsetPosition(offset, position), size))
            case "last":
                return str(index.last_offset) if self.kind == "offset" else shown(index.last_entry)
            case "sanityCheck":
                index.sanity_check()
                return "ok"
        return self.state()

    def of_transactions(self, word: str, numbers: list[int]) -> str:
        index: TransactionIndex = self.index
        match word:
            case "append":
                index.append(AbortedTxn(*numbers))
            case "truncateTo":
                index.truncate_to(*numbers)
            case "collect":
                found, complete = index.collect_aborted_txns(*numbers)
                return f"[{', '.join(map(str, found))}] {str(complete).lower()}"
            case "all":
                return f"[{', '.join(map(str, index.aborted))}]"
            case "sanityCheck":
                index.sanity_check(self.base)
                return "ok"
        return str(len(index.aborted))


def shown(entry: Any) -> str:
    """As Java's toString."""
    match entry:
        case OffsetPosition():
            return f"OffsetPosition(offset={entry.offset}, position={entry.position})"
        case TimestampOffset():
            return f"TimestampOffset(offset = {entry.offset}, timestamp = {entry.timestamp})"
    return "-"


def differences(lines: Iterator[str], folder: Path) -> Iterator[str]:
    """Lines that we answer otherwise than Kafka."""
    operations = Operations(folder)
    script = []
    for line in lines:
        operation, _, expected = line.rstrip("\n").partition(" => ")
        if operation.startswith("index"):
            script = []
        script.append(operation)
        try:
            answer = operations.answer(operation)
        except Exception as error:
            kind, _, message = expected.partition(": ")
            said = getattr(error, "message", str(error)).replace(str(operations.path), "FILE")
            # Java says nothing of what has no room.
            is_same = said.replace(",", "") in message.replace(",", "") or message == "null"
            if is_same and isinstance(error, ERRORS.get(kind, ())):
                continue
            answer = f"{type(error).__name__}: {said}"
        if answer != expected:
            yield "\n".join(
                [*script[-12:], f"    Kafka: {expected:.300}", f"    we:    {answer:.300}"]
            )
