from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from producing import rows
from strategies import NULLABLE

from kafkajit.encode.partitioner import partitions_of
from kafkajit.encode.rows import byte_strings_of
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.router import Router

ROW = st.tuples(
    st.sampled_from(["orders", "payments", "a-1"]),
    st.one_of(st.none(), st.integers(0, 11)),
    NULLABLE,
)


def router(turn: int = 0, **options: str) -> Router:
    return Router(ProduceOptions.parse({"path": "/kafka", **options}), turn)


def by_key(key: bytes, partitions: int) -> int:
    return int(partitions_of(byte_strings_of(rows(key=[key]).column("key"), "key"), partitions)[0])


@given(st.lists(st.lists(ROW, max_size=8), max_size=4), st.integers(0, 20))
def test_a_row_goes_to_its_partition_else_to_its_keys_else_to_each_in_turn(
    pieces: list[list[tuple[str, int | None, bytes | None]]], turn: int
) -> None:
    found, expected = [], []
    asked = router(turn, partitions="12")
    for piece in pieces:
        topics, partitions, keys = zip(*piece, strict=True) if piece else ([], [], [])
        records = rows(topic=topics, partition=partitions, key=keys, value=keys)
        found += [asked.partitions[place] for place in asked.route(records).tolist()]
        for topic, partition, key in piece:
            if partition is None and key is None:
                partition, turn = turn % 12, turn + 1
            elif partition is None:
                partition = by_key(key, 12)
            expected.append((topic, partition))
    assert found == expected
    assert len(set(asked.partitions)) == len(asked.partitions)


def test_the_option_topic_is_that_of_all_rows() -> None:
    asked = router(topic="all")
    asked.route(rows(topic=["a", None], partition=[3, 4], value=[b"", b""]))
    assert list(map(str, asked.partitions)) == ["all-3", "all-4"]


def test_rows_without_a_column_key_take_turns() -> None:
    asked = router(1, topic="orders", partitions="2")
    places = asked.route(rows(value=[b""] * 3)).tolist()
    assert [asked.partitions[place].partition for place in places] == [1, 0, 1]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"topic": ["a", None], "partition": [0, 0]}, {}, "null topic present in the data"),
        ({"partition": [0]}, {}, "null topic present in the data: fill the column topic, or set"),
        ({"topic": ["../etc"], "partition": [0]}, {}, "Topic name is invalid: '../etc'"),
        ({"topic": [".."], "partition": [0]}, {}, "Topic name is invalid"),
        ({"topic": ["a" * 250], "partition": [0]}, {}, "length of a name of 250 characters"),
        ({"topic": ["a"], "partition": [None]}, {}, "null partition present in the data: fill"),
        ({"topic": ["a"], "key": [b"k"]}, {}, "set the option partitions to the topic's number"),
        ({"topic": ["a"], "partition": [-1]}, {}, "there is no partition -1"),
        (
            {"topic": ["a"], "partition": [4]},
            {"partitions": "4"},
            "there is no partition 4 in a topic of 4, the number that the option partitions gives",
        ),
    ],
)
def test_a_row_without_a_partition_is_an_error_with_advice(
    columns: dict, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        router(**options).route(rows(**columns))
