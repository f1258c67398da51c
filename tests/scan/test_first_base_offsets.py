"""A segment whose first batch begins before the offset in its name: damage, or another's name."""

from __future__ import annotations

from pathlib import Path

import pytest
from partitions import data, log_name, moved
from scanning import read_table
from streaming import Query, finished, started

import kafkajit
from kafkajit.cli import main
from kafkajit.errors import KafkaJitError

COMPACTED = [data(0, 5), data(7, 3)]
# With the offsets of the sound batches. The first batch of the last segment has another bit.
DAMAGED = {
    "behind a hole": ({0: COMPACTED, 20: [moved(data(20), 16), data(22, 5)]}, [*range(22, 27)]),
    "before a hole": ({0: COMPACTED, 20: [moved(data(20), 16), data(24)]}, [24, 25]),
    "alone": ({0: COMPACTED, 20: [moved(data(20), 16)]}, []),
    "alone, as if it overlapped": ({0: [data(0, 10)], 10: [moved(data(10, 5), 8)]}, []),
    "far back": ({0: [data(0, 10)], 10: [moved(data(10, 5), 2)]}, []),
}
by_damage = pytest.mark.parametrize("kind", DAMAGED)


@pytest.fixture
def damaged(kind: str, tmp_path: Path) -> tuple[Path, list[int]]:
    """A partition's folder, and the offsets of its sound batches."""
    segments, behind = DAMAGED[kind]
    folder = finished(tmp_path / "logs" / "orders-0", segments)
    first = kafkajit.read_records(folder / log_name(0))["offset"].to_pylist()
    return folder, [*first, *behind]


def everything(query: Query) -> list[int]:
    found: list[int] = []
    while rows := query.trigger(["offset"])["offset"].drop_null().to_pylist():
        found += rows
    return found


@by_damage
def test_a_query_returns_the_others_or_fails(damaged: tuple[Path, list[int]]) -> None:
    folder, sound = damaged
    found = read_table(folder, mode="DROPMALFORMED")["offset"].to_pylist()
    assert found == sound
    with pytest.raises(KafkaJitError, match="base offset does not fit"):
        read_table(folder)


@by_damage
def test_a_stream_returns_the_others_or_fails(damaged: tuple[Path, list[int]]) -> None:
    folder, sound = damaged
    lenient = started(folder, mode="DROPMALFORMED", failOnDataLoss="false")
    assert everything(lenient) == sound
    with pytest.raises(KafkaJitError, match=r"base offset (does not fit|is damaged)"):
        everything(started(folder))


@by_damage
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_an_export_and_a_search_do_not_end_well(
    mode: str, damaged: tuple[Path, list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = damaged
    words = [str(folder), "-o", str(folder.parents[1] / "out"), "--to", "jsonl", "--mode", mode]
    assert main(["export", *words]) != 0
    assert "base offset" in capsys.readouterr().err
    assert main(["grep", "-c", "0", str(folder)]) == 2
    assert "base offset" in capsys.readouterr().err


@pytest.mark.parametrize(
    "batches", [[data(16), data(18, 5)], [data(16), data(18), data(22)], [data(11, 3)]]
)
def test_a_file_with_the_name_of_a_later_segment_is_no_damage(
    batches: list[bytes], tmp_path: Path
) -> None:
    folder = finished(tmp_path / "orders-0", {0: [data(0, 10)], 20: batches})
    offsets = kafkajit.read_records(b"".join(batches))["offset"].to_pylist()
    assert read_table(folder)["offset"].to_pylist() == [*range(10), *offsets]
