"""Cases that tests/broker/dump_differential.py found, a few of each class, as Kafka dumps them.

Messages whose sizes do not fit, and odd formats in a set; indexes without what they are compared
with.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA

from kafkajit.cli import main

CASES = json.loads((DATA / "messages" / "dumps.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[str(number) for number in range(len(CASES))])
def test_a_mutated_file_is_dumped_as_kafka_dumps_it(
    case: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    for name, content in case["files"].items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes.fromhex(content))
    monkeypatch.chdir(tmp_path)
    code = main(["dump-log", *case["arguments"]])
    out, err = (text.decode() for text in capfdbinary.readouterr())
    assert out == case["out"]
    if case["err"] is None:  # Kafka throws
        assert code == 1
        assert err.startswith("kafkajit dump-log: ")
    else:
        assert (code, err.replace(f"{tmp_path}/", "")) == (0, case["err"])


def test_there_are_cases_that_kafka_dumps_to_their_ends_and_others() -> None:
    ends = [case["err"] is None for case in CASES]
    assert len(ends) > 10
    assert 3 < sum(ends) < len(ends) - 3
