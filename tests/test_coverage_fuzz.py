"""Inputs that tests/support/coverage_fuzz.py found: each is read as its target promises.

Each reached lines of kafkajit that the target's seeds and smaller inputs do not reach.
"""

from __future__ import annotations

import json

import pytest
from fuzz_corpus import ARCHIVE, kept
from fuzz_targets import JSON_TARGETS, TARGETS
from json_mutations import mutated_json

import kafkajit
from kafkajit import testing as kt

MOST_BYTES, MOST_INPUTS = 300_000, 1000


@pytest.mark.whole
@pytest.mark.parametrize("name", TARGETS)
def test_what_was_found_once_is_read_or_refused(name: str) -> None:
    check, _ = TARGETS[name]
    for content in kept(name):
        try:
            check(content)
        except BaseException:
            print(f"{name}: {content.hex()}")  # noqa: T201 - for the report
            raise


def test_the_inputs_are_few_and_small() -> None:
    assert ARCHIVE.stat().st_size < MOST_BYTES
    assert sum(len(kept(name)) for name in TARGETS) < MOST_INPUTS
    assert sum(bool(kept(name)) for name in TARGETS) > len(TARGETS) // 2


def test_a_target_refuses_another_error_than_kafkajits(monkeypatch: pytest.MonkeyPatch) -> None:
    check, _ = TARGETS["segment"]
    sound = b"\0" + kt.batch([kt.Record(b"k", b"v")])
    check(sound)

    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(kafkajit, "find_corruption", broken)
    with pytest.raises(KeyError, match="a bug"):
        check(sound)


def test_a_target_refuses_other_rows_than_the_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    read = kafkajit.iter_records
    check, _ = TARGETS["segment"]
    sound = b"\0" + kt.batch([kt.Record(b"k", b"v")] * 2)
    monkeypatch.setattr(
        kafkajit, "iter_records", lambda *args, **options: (b[:1] for b in read(*args, **options))
    )
    with pytest.raises(AssertionError):
        check(sound)


def test_a_mutation_of_json_is_other_json() -> None:
    content = b'{"a": [1, {"b": null}], "c": "x"}'
    found = {mutated_json(content, seed, 4096) for seed in range(200)}
    assert len(found) > 50
    for one in found - {None}:
        json.loads(one or b"")
    assert mutated_json(b"no JSON", 0, 4096) is None
    assert mutated_json(content, 0, 5) is None


def test_targets_of_json_are_targets() -> None:
    assert {*JSON_TARGETS} < {*TARGETS}
