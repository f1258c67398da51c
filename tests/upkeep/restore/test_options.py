from __future__ import annotations

from typing import Any

import pytest

from kafkajit.upkeep.restore.options import RestoreOptions


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"starting_offset": -1}, "starting offset must not be negative, not -1"),
        ({"ending_timestamp": -5}, "ending timestamp must not be negative, not -5"),
        ({"starting_offset": 7, "ending_offset": 7}, "ending offset 7 is not behind the starting"),
        ({"starting_timestamp": 7, "ending_timestamp": 6}, "ending timestamp 6 is not behind"),
        ({"leader_epoch": -1}, "leader_epoch must be 0 to 2147483647, not -1"),
        ({"topics": ["a/b"]}, "Topic name is invalid"),
        ({"topic_ids": {"orders": "A" * 22}}, "is not the id of a topic"),
        ({"topic_ids": {"..": "x" * 21 + "A"}}, "Topic name is invalid"),
        ({"into_existing_topics": True, "topic_ids": None}, "an existing topic has an id"),
        ({"topics": "__transaction_state", "leader_epoch": 0}, "ids of producers, .* leader_epoch"),
        (
            {"partitions": "__transaction_state-3", "into_existing_topics": True},
            "leave the topic out, or restore without into_existing_topics",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        RestoreOptions.of(**options)
