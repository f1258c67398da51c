from __future__ import annotations

import string
from typing import Any

import pytest

import kafkajit
from kafkajit import errors
from kafkajit.errors import MESSAGES, KafkaJitError, did_you_mean, error_for

STATUSES = {
    name: value
    for name, value in vars(errors).items()
    if name.isupper() and isinstance(value, int) and value != errors.OK
}


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "bad"),
        ({"position": 4096}, "bad at position 4096"),
        ({"position": 0}, "bad at position 0"),
        ({"position": 0, "base_offset": 0}, "bad at position 0, base offset 0"),
        ({"base_offset": -1}, "bad, base offset -1"),
        ({"path": "t-0/0.log"}, "bad in t-0/0.log"),
        ({"path": "t-0/quorum-state", "line": 1}, "bad at line 1 in t-0/quorum-state"),
        ({"line": 3, "column": 9}, "bad at line 3, column 9"),
        ({"row": 0}, "row 0: bad"),
        ({"row": 5, "base_offset": 3}, "row 5: bad, base offset 3"),
        (
            {"path": "t-0/0.log", "position": 7, "base_offset": 17},
            "bad at position 7, base offset 17 in t-0/0.log",
        ),
    ],
)
def test_an_error_has_its_position(place: dict[str, Any], text: str) -> None:
    error = KafkaJitError("bad", **place)
    assert str(error) == text
    assert error.message == "bad"
    assert (error.path, error.position, error.base_offset, error.line, error.row) == (
        place.get("path"),
        place.get("position"),
        place.get("base_offset"),
        place.get("line"),
        place.get("row"),
    )


@pytest.mark.parametrize(
    "name",
    [
        "CorruptCheckpointError",
        "CorruptIndexError",
        "CorruptRecordError",
        "CorruptSnapshotError",
        "DecompressionLimitError",
        "InvalidRecordError",
        "UnsupportedCompressionTypeError",
    ],
)
def test_every_error_is_a_kafkajit_error_and_a_value_error(name: str) -> None:
    error = getattr(kafkajit, name)
    assert issubclass(error, kafkajit.KafkaJitError)
    assert issubclass(error, ValueError)


def test_every_status_has_one_message() -> None:
    assert sorted(STATUSES.values()) == sorted(MESSAGES) == list(range(1, len(STATUSES) + 1))


@pytest.mark.parametrize("name", STATUSES)
def test_a_status_becomes_its_exception_with_its_numbers(name: str) -> None:
    exception, text = MESSAGES[STATUSES[name]]
    error = error_for(STATUSES[name], 111, 222, path="x.log", position=5, base_offset=6)
    assert type(error) is exception
    fields = {field for _, field, _, _ in string.Formatter().parse(text) if field}
    assert fields <= {"a", "b"}
    assert ("111" in str(error)) == ("a" in fields)
    assert ("222" in str(error)) == ("b" in fields)
    assert str(error).endswith(" at position 5, base offset 6 in x.log")


def test_an_error_of_a_record_has_its_number() -> None:
    error = error_for(errors.PREMATURE_EOF, record=3, position=1)
    assert str(error) == (
        "Incorrect declared batch size, premature EOF reached (record 3 of the batch) at position 1"
    )


@pytest.mark.parametrize(
    ("name", "candidates", "question"),
    [
        ("FAILFASR", ["FAILFAST", "PERMISSIVE"], "did you mean 'FAILFAST'?"),
        ("offsetindexes", ["timeIndex", "offsetIndex"], "did you mean 'offsetIndex'?"),
        ("zzz", ["offset", "position"], ""),
        ("offset", [], ""),
    ],
)
def test_a_misspelt_name_is_answered_with_the_closest_one_as_it_is_spelled(
    name: str, candidates: list[str], question: str
) -> None:
    assert did_you_mean(name, candidates) == question


def test_names_are_compared_as_the_caller_spells_them() -> None:
    def dotted(name: str) -> str:
        return name.replace("_", ".")

    assert did_you_mean("cleanup_policy", ["cleanup.policy"], spelled=dotted, quoted=False) == (
        "did you mean cleanup.policy?"
    )
    assert did_you_mean("ofst", ["offset"], cutoff=0.9) == ""
