from __future__ import annotations

import messages_twin as twin
import numpy as np
import pytest

from kafkajit.topics.message import version_row
from kafkajit.topics.programs import (
    ARRAY,
    CODE,
    END,
    LOOK_AHEAD,
    STRUCT,
    TAGGED,
    TEXT,
    TEXT_SIZE,
    A,
    C,
    Programs,
    programs,
    written_program,
)

ALL = programs(*twin.table())


def program(compiled: Programs, message: str, version: int) -> np.ndarray:
    first = version_row(compiled.rows, compiled.messages[message], version)
    end = first + int(np.argmax(compiled.rows[first:, CODE] == END))
    return compiled.rows[first : end + 1]


def texts(compiled: Programs, rows: np.ndarray) -> list[str]:
    raw = compiled.texts.tobytes()
    return [raw[row[TEXT] : row[TEXT] + row[TEXT_SIZE]].decode() for row in rows]


def test_each_version_names_the_fields_that_it_has() -> None:
    assert ',"leaderEpoch":' not in texts(ALL, program(ALL, "OffsetCommitValue", 2))
    assert ',"leaderEpoch":' in texts(ALL, program(ALL, "OffsetCommitValue", 3))
    assert ',"topicId":' not in texts(ALL, program(ALL, "OffsetCommitValue", 3))
    assert ',"topicId":' in texts(ALL, program(ALL, "OffsetCommitValue", 4))


def test_older_versions_are_the_oldest_and_all_newer_ones_are_one() -> None:
    message = ALL.messages["PartitionRecord"]
    assert version_row(ALL.rows, message, -7) == version_row(ALL.rows, message, 0)
    newer = {int(version_row(ALL.rows, message, version)) for version in (3, 4, 32767)}
    assert len(newer) == 1
    assert newer != {int(version_row(ALL.rows, message, 2))}


def test_only_a_struct_with_a_tag_before_another_field_is_read_twice() -> None:
    assert program(ALL, "PartitionRecord", 2)[0, A] == LOOK_AHEAD
    assert program(ALL, "OffsetCommitValue", 4)[0, A] != LOOK_AHEAD
    assert program(ALL, "TransactionLogValue", 0)[0, A] != LOOK_AHEAD


@pytest.mark.parametrize("code", [ARRAY, STRUCT])
def test_a_row_to_go_on_at_lies_ahead(code: int) -> None:
    (rows,) = np.nonzero(ALL.rows[:, CODE] == code)
    assert rows.size > 50
    assert (ALL.rows[rows, C] > rows).all()


def test_every_tag_has_a_slot() -> None:
    tagged = ALL.rows[ALL.rows[:, CODE] == TAGGED]
    assert tagged.shape[0] > 20
    assert tagged[:, A].max() == ALL.slots - 1


def test_a_program_for_writing_another_version_has_what_is_missing_as_a_constant() -> None:
    compiled = written_program("control_record", 2, 1)
    text = ',"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"'
    assert texts(compiled, program(compiled, "LeaderChangeMessage", 0)).count(text) == 2
    plain = written_program("control_record", 2, 0)
    assert text not in texts(plain, program(plain, "LeaderChangeMessage", 0))
