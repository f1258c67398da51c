from __future__ import annotations

import pytest

from kafkajit.format.topic import check_topic


@pytest.mark.parametrize("name", ["orders", "a", "A.b_c-9", "...", "__consumer_offsets", "x" * 249])
def test_what_kafka_accepts_is_a_name(name: str) -> None:
    assert check_topic(name) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics"),
        ("a b", "contains one or more characters"),
        ("a\n", "contains one or more characters"),
        ("übung", "contains one or more characters"),
        ("a\0", "contains one or more characters"),
    ],
)
def test_what_kafka_refuses_is_none(name: str, message: str) -> None:
    with pytest.raises(ValueError, match="Topic name is invalid: ") as raised:
        check_topic(name)
    assert message in str(raised.value)
