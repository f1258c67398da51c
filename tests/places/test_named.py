"""Topics and partitions by name, and the one sentence about names without segments."""

from __future__ import annotations

import pytest

from kafkajit.places.named import ALL, Named, each_name, nothing_of

FOUND = [("orders", 0), ("orders", 1), ("payments", 0), (None, None)]


def test_a_text_is_one_name_and_not_its_letters() -> None:
    assert each_name("orders") == ("orders",)
    assert Named.of("orders", "payments-0") == Named.of(["orders"], ["payments-0"])


def test_both_lists_together_are_what_is_wanted() -> None:
    named = Named.of(["orders"], ["payments-1"])
    places = [("orders", 7), ("payments", 0), ("payments", 1), ("payments-1", 0), (None, None)]
    assert [named.has(*place) for place in places] == [True, False, True, False, False]
    assert all(ALL.has(*place) for place in places)
    assert named.wants({"topic": "payments"})
    assert not named.wants({"topic": "payments", "partition": 0})
    assert not named.wants({"topic": "pay"})
    assert named.wants({"partition": 3})


@pytest.mark.parametrize(
    ("names", "end"),
    [
        (["ordres"], ": did you mean 'orders'?"),
        (["Orders"], ": did you mean 'orders'?"),
        (["orders-2"], ": orders has the partitions 0, 1"),
        (["payments-1"], ": payments has the partition 0"),
        (["orders-01"], ": orders has the partitions 0, 1"),
        (["orders-0"], ": orders-0 is a partition, not a topic"),
        (["orders"], ": orders is a topic: name its partitions, such as orders-0"),
        (["ordres-1"], ": did you mean 'orders-1'?"),
        (["x"], "; there are: orders, payments"),
        (["x", "ordres"], ": did you mean 'orders'?"),
    ],
)
def test_an_error_names_what_may_be_meant(names: list[str], end: str) -> None:
    assert str(nothing_of(names, FOUND, ["/k", "s3://a:b@c/d?region=e"])) == (
        f"there are no segments of {', '.join(names)} at /k, s3://c/d{end}"
    )


def test_many_topics_are_not_all_listed() -> None:
    found = [(f"t{number:02}", 0) for number in range(12)]
    assert str(nothing_of(["none"], found, ["/k"])).endswith("t08, t09 and 2 more")
    assert str(nothing_of(["none"], [], ["/k"])) == "there are no segments of none at /k"


def test_a_name_that_nothing_has_is_missing() -> None:
    named = Named.of(["orders", "gone"], ["payments-0", "payments-7"])
    assert named.missing(FOUND) == ["gone", "payments-7"]
    with pytest.raises(FileNotFoundError, match="no segments of gone, payments-7 at /k"):
        named.check(FOUND, ["/k"])
    Named.of("orders").check(FOUND, ["/k"])
