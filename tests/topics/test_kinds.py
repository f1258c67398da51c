from __future__ import annotations

import messages_twin as twin
import pytest

from kafkajit.topics import TOPICS
from kafkajit.topics.kinds import KEY, NAME_AT, NAME_SIZE, UNKNOWN, VALUE, topic_kind


@pytest.mark.parametrize("name", TOPICS)
def test_a_kind_knows_the_types_of_the_table(name: str) -> None:
    kind, stated = topic_kind(name), twin.table()[name]
    assert kind.type_names == {number: type_.name for number, type_ in stated.items()}
    for number in range(kind.types.shape[0]):
        row = kind.types[number]
        assert (row[VALUE] != UNKNOWN) == (number in stated)
        if number in stated:
            assert (row[KEY] != UNKNOWN) == kind.has_keys
            raw = kind.programs.texts[row[NAME_AT] : row[NAME_AT] + row[NAME_SIZE]]
            assert raw.tobytes().decode() == stated[number].name


def test_a_kind_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="unknown topic 'x'; there are: offsets, transaction_"):
        topic_kind("x")
