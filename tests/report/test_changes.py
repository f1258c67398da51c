from __future__ import annotations

import copy

from report_documents import document

from kafkajit.report.changes import changes_since


def test_a_document_has_not_changed_since_itself() -> None:
    same = document(3)
    changes = changes_since(same, same)
    lists = (
        "newTopics",
        "goneTopics",
        "topics",
        "newTrouble",
        "goneTrouble",
        "unknownTrouble",
        "unlike",
    )
    assert [changes[name] for name in lists] == [[]] * 7
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
    earlier = document(3, depth="all")
    later = copy.deepcopy(earlier)
    gone = later["trouble"].pop(0)
    later["trouble"][0]["position"] += 90
    later["trouble"].append(new := {**gone, "kind": "overlap"})
    changes = changes_since(earlier, later)
    assert changes["newTrouble"] == [new]
    assert changes["goneTrouble"] == [gone]


def test_trouble_that_only_records_show_is_not_gone_if_they_were_not_read() -> None:
    later = copy.deepcopy(earlier := document(3))
    earlier["trouble"][0]["kind"] = "corruption"
    later["trouble"] = []
    later["takenFrom"]["sample"] = None
    changes = changes_since(earlier, later)
    assert earlier["trouble"][0] in changes["unknownTrouble"]
    assert earlier["trouble"][0] not in changes["goneTrouble"]
    assert changes["unlike"] == [
        "The earlier report has read all records, this one headers."
        if earlier["depth"] == "all"
        else "The earlier report has read a sample of records, this one headers."
    ]


def test_topics_that_were_not_asked_for_are_not_gone() -> None:
    later = copy.deepcopy(earlier := document(3))
    kept = later["topics"][0]["topic"]
    later |= {"asked": [kept], "topics": later["topics"][:1], "trouble": []}
    changes = changes_since(earlier, later)
    assert changes["goneTopics"] == []
    assert {row["topic"] for row in changes["goneTrouble"]} <= {kept, None}
    assert changes["unlike"] == [f"The earlier report is of all topics, this one of {kept}."]


def test_nothing_is_gone_at_a_path_that_is_not_looked_at() -> None:
    later = copy.deepcopy(earlier := document(3))
    later |= {"paths": ["/elsewhere"], "topics": [], "trouble": []}
    changes = changes_since(earlier, later)
    assert changes["goneTopics"] == changes["goneTrouble"] == []
    assert len(changes["unknownTrouble"]) == len(earlier["trouble"])
    assert "does not look at" in changes["unlike"][0]


def test_an_index_is_not_gone_if_not_all_were_checked() -> None:
    later = copy.deepcopy(earlier := document(3))
    earlier["trouble"] = [{**earlier["trouble"][0], "kind": "index"}]
    later["trouble"] = []
    later["takenFrom"]["indexes"] = {"checked": 1000, "of": 1100}
    assert changes_since(earlier, later)["unknownTrouble"] == earlier["trouble"]
    later["takenFrom"]["indexes"] = {"checked": 1100, "of": 1100}
    assert changes_since(earlier, later)["goneTrouble"] == earlier["trouble"]


def test_a_slash_at_the_end_of_a_path_is_no_difference() -> None:
    later = copy.deepcopy(earlier := document(3))
    later["paths"] = [f"{path}/" for path in earlier["paths"]]
    del earlier["asked"]
    assert changes_since(earlier, later)["unlike"] == []
