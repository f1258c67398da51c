from __future__ import annotations

import copy

from report_documents import document

from kafkajit.report.changes import changes_since


def test_a_document_has_not_changed_since_itself() -> None:
    same = document(3)
    changes = changes_since(same, same)
    lists = ("newTopics", "goneTopics", "topics", "newTrouble", "goneTrouble")
    assert [changes[name] for name in lists] == [[]] * 5
    assert changes["madeAt"] == same["madeAt"]


def test_topics_that_came_went_and_grew() -> None:
    earlier = document(3)
    later = copy.deepcopy(earlier)
    gone = later["topics"].pop(0)
    later["topics"][0]["bytes"] += 1_000
    later["topics"][0]["records"] -= 7
    later["topics"].append({**gone, "topic": "new"})
    changes = changes_since(earlier, later)
    assert changes["newTopics"] == ["new"]
    assert changes["goneTopics"] == [gone["topic"]]
    (grown,) = changes["topics"]
    assert grown["topic"] == later["topics"][0]["topic"]
    assert (grown["bytesChange"], grown["recordsChange"]) == (1_000, -7)
    assert grown["bytes"] == later["topics"][0]["bytes"]


def test_trouble_that_came_and_went_even_if_its_position_moved() -> None:
    earlier = document(3)
    later = copy.deepcopy(earlier)
    gone = later["trouble"].pop(0)
    later["trouble"][0]["position"] += 90
    later["trouble"].append(new := {**gone, "kind": "overlap"})
    changes = changes_since(earlier, later)
    assert changes["newTrouble"] == [new]
    assert changes["goneTrouble"] == [gone]
