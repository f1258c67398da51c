"""Which folders may hold wanted partitions: never fewer than those that do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from data import objects

from kafkajit.format.log_path import parse_log_path
from kafkajit.places.locations import find_files
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.places.wanted import may_hold, of_topics

ID = "MWJ6FHTfRYy67jzwZdeqSQ"
HEX = "0f4c" * 8


@pytest.mark.parametrize(
    ("folder", "is_kept"),
    [
        ("orders-0", True),
        ("orders-12", True),
        ("orders", False),
        ("payments-0", False),
        ("old-orders-0", False),  # without an id, the name is that of the topic
        (f"orders-0.{HEX}-delete", True),
        (f"orders-0-{ID}", True),
        (f"orders-{ID}", True),
        (f"tier/a-b_orders-{ID}".rpartition("/")[2], True),  # a prefix of keys
        (f"payments-{ID}", False),
        (f"orders2-{ID}", False),
        ("7", True),  # a partition in a folder of the topic
    ],
)
def test_a_folder_is_kept_if_its_name_may_be_that_of_the_topic(folder: str, is_kept: bool) -> None:
    assert may_hold(folder, of_topics(["orders"])) is is_kept
    assert may_hold(folder, None)


def test_a_folder_is_kept_by_its_partition() -> None:
    def first_two(place: dict[str, Any]) -> bool:
        return place.get("partition", 0) in (0, 1)

    # The last may be the folder of a topic called orders-2.
    kept = ["orders-1", "1", f"orders-1-{ID}", f"orders-{ID}", f"orders-2-{ID}"]
    assert all(may_hold(name, first_two) for name in kept)
    assert not any(may_hold(name, first_two) for name in ("orders-2", "2", "orders"))


def test_the_folders_of_every_plugin_are_kept() -> None:
    found = 0
    for remote in sorted(objects().glob("*/remote")):
        for log in find_files(str(remote), PrivateKeys.of(None)) if is_open(remote) else ():
            place = parse_log_path(log.path)
            assert place.topic is not None
            files = find_files(str(remote), wanted=of_topics([place.topic]))
            assert log in files
            found += 1
    assert found > 10


def is_open(remote: Path) -> bool:
    """Whether its objects are read without a key."""
    return "encrypted" not in remote.parent.name and "mixed" not in remote.parent.name
