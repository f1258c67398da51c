from __future__ import annotations

import pytest

import kafkajit
from kafkajit.cli.error_text import reason


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("--rows is a number"), "--rows is a number"),
        (kafkajit.KafkaJitError("left alone", path="/k/a-0"), "left alone in /k/a-0"),
        (FileNotFoundError("there is nothing at /nope"), "there is nothing at /nope"),
        (PermissionError(13, "Permission denied", "/x"), "Permission denied: /x"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_a_sentence_stands_alone(error: Exception, said: str) -> None:
    assert reason(error) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (kafkajit.CorruptRecordError("bad", position=5), "CorruptRecordError: bad at position 5"),
        (kafkajit.LockedError("stop the broker first"), "LockedError: stop the broker first"),
        (TypeError("no int"), "TypeError: no int"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "UnicodeDecodeError: 'utf-8' codec"),
        (RuntimeError("boom"), "RuntimeError: boom"),
    ],
)
def test_damage_and_unforeseen_errors_are_named(error: Exception, said: str) -> None:
    assert reason(error).startswith(said)
