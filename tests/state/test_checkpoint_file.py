from __future__ import annotations

from pathlib import Path

import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT32, INT64
from text_twins import Refused, checkpoint

import kafkajit
from kafkajit.schema import CHECKPOINT_COLUMNS, LEADER_EPOCH_COLUMNS, table_schema
from kafkajit.state.checkpoints import NAMES, offsets_text
from kafkajit.state.leader_epochs import leader_epochs_text

EPOCHS = sorted(DATA.rglob("leader-epoch-checkpoint"))
OFFSETS = sorted(path for path in DATA.rglob("*-offset-checkpoint") if path.name in NAMES)
PARTS = ["0", "1", "-", "+1", " ", "\t", "\x0b", "\n", "\r", "\r\n", "é", "\u00a0", "\u2028"]
PARTS += ["orders", "2147483648", "9223372036854775808", "0" * 30, "١", "1_0"]
TEXT = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def epochs(content: bytes) -> list[list[int]]:
    return [list(row.values()) for row in kafkajit.read_leader_epochs(content).to_pylist()]


def offsets(content: bytes) -> list[list[object]]:
    return [list(row.values()) for row in kafkajit.read_checkpoint(content).to_pylist()]


@pytest.mark.parametrize("path", EPOCHS, ids=lambda path: path.parent.name)
def test_the_epochs_of_a_broker_are_read(path: Path) -> None:
    table = kafkajit.read_leader_epochs(path)
    assert table.schema == table_schema(LEADER_EPOCH_COLUMNS)
    assert epochs(path.read_bytes()) == checkpoint(path.read_bytes(), 32, 64)


@pytest.mark.parametrize("path", OFFSETS, ids=lambda path: path.name)
def test_the_offsets_of_a_broker_are_read(path: Path) -> None:
    table = kafkajit.read_checkpoint(path)
    assert table.schema == table_schema(CHECKPOINT_COLUMNS)
    assert offsets(path.read_bytes()) == checkpoint(path.read_bytes(), 0, 32, 64)


def test_the_corpus_has_checkpoints() -> None:
    assert len(EPOCHS) > 50
    assert {path.name for path in OFFSETS} == set(NAMES)
    assert [2, 5] in [row for path in EPOCHS for row in epochs(path.read_bytes())]


@given(st.lists(st.tuples(INT32, INT64), max_size=5), st.sampled_from(["\n", "\r", "\r\n"]))
def test_every_epoch_is_read(entries: list[tuple[int, int]], end: str) -> None:
    lines = ["0", str(len(entries)), *[f"{epoch} {offset}" for epoch, offset in entries]]
    assert epochs(end.join(lines).encode()) == [list(entry) for entry in entries]
    assert epochs((end.join(lines) + end).encode()) == [list(entry) for entry in entries]


def test_more_entries_than_are_kept_as_objects_are_read_in_order() -> None:
    entries = [["orders", number % 50, number] for number in range(40_000)]
    text = "".join(f"{topic} {partition} {offset}\n" for topic, partition, offset in entries)
    assert offsets(f"0\n{len(entries)}\n{text}".encode()) == entries


@given(st.sampled_from(["", "0\n", "0\n1\n", "0\n2\n1 2\n", "0\n1\na 0"]), TEXT)
def test_whatever_the_text_it_is_read_or_refused_as_kafka_does(start: str, rest: str) -> None:
    content = (start + rest).encode()
    for read, bits in ((epochs, (32, 64)), (offsets, (0, 32, 64))):
        try:
            expected = checkpoint(content, *bits)
        except Refused:
            with pytest.raises(kafkajit.CorruptCheckpointError):
                read(content)
        else:
            assert read(content) == expected


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (
            b"1\n0\n",
            "Unrecognised version:1, expected version: 0 in checkpoint file",
            1,
        ),
        (b"x\n0\n", "Malformed line in checkpoint file: x", 1),
        (b"2147483648\n0\n", "Malformed line in checkpoint file: 2147483648", 1),
        (b"0\n-1\n", "Malformed line in checkpoint file: -1", 2),
        (b"0\n1 \n", "Malformed line in checkpoint file: 1 ", 2),
        (b"0\n1\nmy topic 0 5\n", "Malformed line in checkpoint file: my topic 0 5", 3),
        (b"0\n1\nt 0 5\n\n", "Malformed line in checkpoint file: ", 4),
        (
            b"0\n1\nt 0 9223372036854775808\n",
            "Malformed line in checkpoint file: t 0 9223372036854775808",
            3,
        ),
        (b"0\n2\nt 0 5\n", "Expected [2] entries in checkpoint file, but found only [1]", None),
        (
            b"0\n2147483647\n",
            "Expected [2147483647] entries in checkpoint file, but found only [0]",
            None,
        ),
        (
            b"0\n1\nt 0 5\nt 1 5\n",
            "Expected [1] entries in checkpoint file, but found only [2]",
            None,
        ),
        (
            b"0\n1\nt\xff 0 5\n",
            "not UTF-8: invalid start byte, byte 1",
            3,
        ),
    ],
)
def test_a_checkpoint_that_is_none_is_refused_with_its_line(
    content: bytes, message: str, line: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(content)
    with pytest.raises(kafkajit.CorruptCheckpointError) as caught:
        kafkajit.read_checkpoint(path)
    assert (caught.value.message, caught.value.line, caught.value.path) == (
        message,
        line,
        str(path),
    )
    place = "" if line is None else f" at line {line}"
    assert str(caught.value) == f"{message}{place} in {path}"


@pytest.mark.parametrize("content", [b"", b"0", b"0\n", b"0\n0", b"0\r\n0\r\n"])
def test_a_checkpoint_may_be_empty(content: bytes) -> None:
    assert epochs(content) == offsets(content) == []


def test_white_space_is_java_s_behind_an_entry_too_and_before_it_makes_a_part() -> None:
    assert offsets(b"0\n2\norders\t 0 \x0b5 \n 1 7\n") == [["orders", 0, 5], ["", 1, 7]]
    with pytest.raises(kafkajit.CorruptCheckpointError, match="Malformed line"):
        offsets("0\n1\norders\u00a00 5\n".encode())


@pytest.mark.parametrize("path", EPOCHS, ids=lambda path: path.parent.name)
def test_the_epochs_of_a_broker_are_written_as_they_were(path: Path) -> None:
    rows = [(epoch, offset) for epoch, offset in epochs(path.read_bytes())]
    # A broker creates an empty file before it knows an epoch.
    assert leader_epochs_text(rows) == (path.read_bytes() or b"0\n0\n")


@pytest.mark.parametrize("path", OFFSETS, ids=lambda path: path.name)
def test_the_offsets_of_a_broker_are_written_as_they_were(path: Path) -> None:
    assert offsets_text(map(tuple, offsets(path.read_bytes()))) == path.read_bytes()  # type: ignore[arg-type]


@given(st.lists(st.tuples(INT32, INT64), max_size=5))
def test_what_is_written_is_read(entries: list[tuple[int, int]]) -> None:
    assert epochs(leader_epochs_text(entries)) == [list(entry) for entry in entries]
    rows = [("orders", *entry) for entry in entries]
    assert offsets(offsets_text(rows)) == [list(row) for row in rows]
