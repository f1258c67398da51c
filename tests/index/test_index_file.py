"""After each change that Kafka made to an index, we read and report the same as Kafka."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA

import kafkajit
from kafkajit.index import OffsetIndex, TimeIndex, TransactionIndex
from kafkajit.index.offset_index import OffsetPosition
from kafkajit.index.time_index import TimestampOffset

ERRORS: dict[str, type[Exception]] = {
    "IllegalArgumentException": IndexError,
    "CorruptIndexException": kafkajit.CorruptIndexError,
}
READS = {"lookup", "entry", "last", "all", "sanityCheck"}
# What Kafka's classes do for a broker that writes: `Script` does it to the bytes.
WRITES = {"append", "truncateTo", "truncate", "open", "close", "trim", "resize"}
NOT_OURS = {"upper", "collect"}  # a fetch's end, and a consumer's aborted transactions

SCRIPTS = DATA / "indexes" / "operations.txt"


def test_the_answers_are_those_of_kafka(tmp_path: Path) -> None:
    lines = SCRIPTS.read_text().splitlines()
    assert len(lines) > 1000
    assert list(differences(iter(lines), tmp_path)) == []


@pytest.mark.parametrize("row", [-1, 1])
def test_there_is_no_entry_before_the_first_or_behind_the_last(row: int) -> None:
    with pytest.raises(IndexError, match=f"fetch the {row}th entry from index given, which has si"):
        OffsetIndex(bytes.fromhex("0000000500000064"), 0).entry(row)


class Script:
    """The bytes that Kafka's index holds while tests/broker/IndexOperations.java writes to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "index-of-a-script"

    def start(self, kind: str, base: str, _most: str, content: str) -> None:
        self.kind, self.base = kind, int(base)
        self.entry = {"offset": ">ii", "time": ">qi", "transaction": ">hqqqq"}[kind]
        size = struct.calcsize(self.entry)
        found = bytes.fromhex(content[1:]) if content != "-" else b""
        whole = len(found) // size * size
        self.entries = list(struct.iter_unpack(self.entry, found[:whole]))
        # A file that ends inside an entry keeps its length until it is trimmed.
        self.torn_length = len(found) if len(found) > whole else 0
        self.write()

    @property
    def content(self) -> bytes:
        return b"".join(struct.pack(self.entry, *entry) for entry in self.entries)

    def write(self) -> None:
        self.path.write_bytes(self.content.ljust(self.torn_length, b"\0"))

    def apply(self, word: str, numbers: list[int], answer: str) -> None:
        """Change the bytes as Kafka did when it gave this answer."""
        if word == "append" and self.kind == "offset":
            self.entries.append((numbers[0] - self.base, numbers[1]))
        elif word == "append" and self.kind == "time":
            if not self.entries or numbers[0] > self.entries[-1][0]:
                self.entries.append((numbers[0], numbers[1] - self.base))
        elif word == "append":
            self.entries.append((0, *numbers))
        elif word == "truncateTo":
            ends = {"offset": 0, "time": 1, "transaction": 3}[self.kind]
            before = numbers[0] - (0 if self.kind == "transaction" else self.base)
            gone = [row for row, entry in enumerate(self.entries) if entry[ends] >= before]
            self.entries = self.entries[: min(gone, default=len(self.entries))]
        elif word == "truncate":
            self.entries = []
        elif word == "close":
            assert answer in (f"x{self.content.hex()}", "-"), "the script's own bytes are wrong"
        if word in ("close", "trim", "resize"):
            self.torn_length = 0
        self.write()

    def opened(self) -> Any:
        if self.kind == "transaction":
            return TransactionIndex(self.path)
        return {"offset": OffsetIndex, "time": TimeIndex}[self.kind](self.path, self.base)

    def is_counted(self, answer: str) -> bool:
        """Whether we count as many entries as Kafka, in a preallocated file too."""
        if self.kind == "transaction":
            return answer in ("ok", "-") or answer == str(len(self.opened().aborted))
        count, room, length = map(int, re.findall(r"\d+", answer))
        kind = {"offset": OffsetIndex, "time": TimeIndex}[self.kind]
        index = kind(self.content.ljust(length, b"\0"), self.base)
        return (len(index), index.max_entries, index.length) == (count, room, length)

    def read(self, word: str, numbers: list[int]) -> str:
        index = self.opened()
        match word:
            case "lookup":
                return shown(index.lookup(*numbers))
            case "entry":
                return shown(index.entry(*numbers))
            case "last":
                return str(index.last_offset) if self.kind == "offset" else shown(index.last_entry)
            case "all":
                return f"[{', '.join(map(str, index.aborted))}]"
        index.sanity_check(*([self.base] if self.kind == "transaction" else []))
        return "ok"


def shown(entry: Any) -> str:
    """As Java's toString."""
    match entry:
        case OffsetPosition():
            return f"OffsetPosition(offset={entry.offset}, position={entry.position})"
        case TimestampOffset():
            return f"TimestampOffset(offset = {entry.offset}, timestamp = {entry.timestamp})"
    return "-"


def differences(lines: Iterator[str], folder: Path) -> Iterator[str]:
    """Yield the lines that we answer otherwise than Kafka."""
    script = Script(folder)
    history: list[str] = []
    for line in lines:
        operation, _, expected = line.rstrip("\n").partition(" => ")
        word, *arguments = operation.split()
        kind, _, message = expected.partition(": ")
        if word == "index":
            history = []
            script.start(*arguments)
        history.append(operation)
        if word in READS:
            try:
                answer = script.read(word, list(map(int, arguments)))
            except (IndexError, kafkajit.CorruptIndexError) as error:
                said = str(error).replace(str(script.path), "FILE")
                is_same = said.replace(",", "") in message.replace(",", "")
                answer = expected if is_same and isinstance(error, ERRORS[kind]) else repr(error)
            if answer != expected:
                yield "\n".join(
                    [*history[-12:], f"    Kafka: {expected:.300}", f"    we:    {answer:.300}"]
                )
        elif not kind.endswith("Exception") and word not in NOT_OURS:
            if word != "index":
                assert word in WRITES
                script.apply(word, list(map(int, arguments)), expected)
            if word != "close" and not script.torn_length and not script.is_counted(expected):
                yield "\n".join([*history[-12:], f"    Kafka: {expected:.300}", "    we differ"])
