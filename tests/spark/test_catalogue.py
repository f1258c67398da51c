"""All functions of the catalogue, as functions of arrays: no Spark is started."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import pyarrow as pa
import pytest
from evaluating import evaluated

import kafkajit
import kafkajit.testing as kt
from kafkajit.spark.catalogue import FUNCTIONS, evaluator, plain, usage
from kafkajit.spark.descriptions import FIXED_FIELDS, header


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_evaluator_takes_its_arguments_by_the_names_in_sql(name: str) -> None:
    fields = header(plain(name))
    assert fields is not None
    parameters = signature(evaluator(name)).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert names == [field for field in fields if field not in FIXED_FIELDS]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_error_shows_a_call_as_the_docs_do(name: str) -> None:
    fields = header(plain(name))
    assert fields is not None
    assert usage(name).removeprefix("try_") == fields["signature"]


@pytest.mark.parametrize(
    ("positions", "names", "problem"),
    [
        (0, [], "was not given content, baseOffset, targetOffset"),
        (1, ["targetOffset"], "was not given baseOffset"),
        (4, [], "has at most 3 arguments, not 4"),
        (3, ["targetOffset"], "was given the argument targetOffset twice"),
        (3, ["target"], "has no argument target"),
        (3, ["lenient"], "has no argument lenient"),  # a setting, not an argument
    ],
)
def test_wrong_arguments_are_an_error_that_shows_the_right_ones(
    positions: int, names: list[str], problem: str
) -> None:
    array = pa.array([b""])
    call = r"call kafka_offset_lookup\(content, baseOffset, targetOffset\)"
    with pytest.raises(TypeError, match=f"^kafka_offset_lookup {problem}: {call}$"):
        evaluator("kafka_offset_lookup")(*[array] * positions, **dict.fromkeys(names, array))


# Bytes that are not what any function reads, and a damaged file of each kind.
DAMAGED = (
    b"",
    b"x",
    b"1\n",
    b"{}",
    b"a=\\u1",
    b"\0",
    b"\xff" * 61,
    b"\xff" * 24,
    *(kt.broken(name) for name in kt.BREAKS),
)


def values(name: str, damaged: bytes) -> list[pa.Array]:
    """Arguments of which those of BINARY are damaged."""
    fields = header(plain(name))
    assert fields is not None
    made = {
        "BINARY": pa.array([damaged]),
        "STRING": pa.array([damaged.decode("latin-1")]),
        "BIGINT": pa.array([0]),
        "INT": pa.array([12]),
        "TIMESTAMP": pa.array([0]),
        "ARRAY": pa.array([[{"offset": 2}, {"offset": 1}]]),
    }
    optional = ("columns", "mode", "options")
    given = {name: text for name, text in fields.items() if name not in FIXED_FIELDS}
    types = {field: re.match(r"\w+", text)[0] for field, text in given.items()}
    made_by_name = {"schema": pa.array(['"long"'])}
    return [
        made_by_name.get(field, made[type_])
        for field, type_ in types.items()
        if field not in optional
    ]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name == plain(name)])
def test_a_function_has_a_try_twin_exactly_if_damage_makes_it_raise(name: str) -> None:
    raised = 0
    for damaged in DAMAGED:
        arguments = values(name, damaged)
        try:
            expected = evaluator(name)(*arguments)
        except kafkajit.KafkaJitError:
            raised += 1
            expected = pa.nulls(1, FUNCTIONS[name].returns)
        if f"try_{name}" in FUNCTIONS:
            assert evaluator(f"try_{name}")(*arguments) == expected
    assert (raised > 0) == (f"try_{name}" in FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "damaged", "error"),
    [
        ("kafka_offset_index", b"\xff" * 8, kafkajit.CorruptIndexError),
        ("kafka_time_index", b"\xff" * 12, kafkajit.CorruptIndexError),
        ("kafka_transaction_index", b"x", kafkajit.CorruptIndexError),
        ("kafka_producer_snapshot", b"", kafkajit.CorruptSnapshotError),
        ("kafka_leader_epochs", b"1\n", kafkajit.CorruptCheckpointError),
        ("kafka_checkpoint", b"1\n", kafkajit.CorruptCheckpointError),
        ("kafka_partition_metadata", b"", kafkajit.CorruptCheckpointError),
        ("kafka_meta_properties", b"a=\\u1", kafkajit.CorruptCheckpointError),
        ("kafka_quorum_state", b"{}", kafkajit.CorruptCheckpointError),
    ],
)
def test_damage_raises_and_try_gives_null(
    name: str, damaged: bytes, error: type[kafkajit.KafkaJitError]
) -> None:
    others = [[0]] if name in ("kafka_offset_index", "kafka_time_index") else []
    with pytest.raises(error):
        evaluated(name, [damaged], *others)
    assert evaluated(f"try_{name}", [damaged], *others) == [None]


@pytest.mark.parametrize(
    ("name", "arguments", "stated"),
    [
        ("kafka_leader_epochs", (["text"],), "content must be BINARY, as binaryFile loads it"),
        ("kafka_offset_index", ([b""], ["1"]), "baseOffset must be BIGINT, not string"),
        ("kafka_offset_index", ([b""], [1.5]), "baseOffset must be BIGINT, not double"),
        ("kafka_offset_lookup", ([b""], [1], ["x"]), "targetOffset must be BIGINT, not string"),
        (
            "kafka_time_lookup",
            ([b""], [1], ["2025-01-01"]),
            "timestamp must be TIMESTAMP or BIGINT milliseconds, not string",
        ),
        (
            "kafka_time_lookup",
            ([b""], [1], pa.array([0], pa.timestamp("us"))),
            "timestamp must be TIMESTAMP or BIGINT milliseconds, not timestamp",
        ),
        ("kafka_verify_index", (["x"], [b""], [0]), "log must be BINARY"),
        ("kafka_verify_index", ([b""], ["x"], [0]), "index must be BINARY"),
        ("kafka_verify_time_index", ([b""], ["x"], [0]), "timeIndex must be BINARY"),
        ("kafka_decode_offsets", (["x"], [b""]), "key must be BINARY, as the record has it"),
        ("kafka_decode_offsets", ([b""], ["x"]), "value must be BINARY, as the record has it"),
    ],
)
def test_an_argument_of_another_type_is_a_type_error(
    name: str, arguments: tuple[Any, ...], stated: str
) -> None:
    names = (name, f"try_{name}") if f"try_{name}" in FUNCTIONS else (name,)
    for called in names:
        with pytest.raises(TypeError, match=stated):
            evaluated(called, *arguments)
