from __future__ import annotations

import pytest

from kafkajit.errors import CorruptRecordError
from kafkajit.log.repair_advice import REPAIR_FIRST, advise_repair


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (None, "torn: run `kafkajit repair` on the folder first in a.log"),
        (7, "torn: run `kafkajit repair` on the folder first, at position 7 in a.log"),
    ],
)
def test_the_advice_follows_the_message_once(position: int | None, text: str) -> None:
    error = CorruptRecordError("torn", path="a.log", position=position)
    assert str(advise_repair(advise_repair(error))) == text
    assert error.message.count(REPAIR_FIRST) == 1
