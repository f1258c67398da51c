from __future__ import annotations

import pytest

from kafkajit.format.text_options import boolean, is_sparks_own, one_of, suggestion


@pytest.mark.parametrize("key", ["provider", "OWNER", "option.kind", "Option.mode", "location"])
def test_properties_that_spark_adds_to_a_table_are_known_in_any_case(key: str) -> None:
    assert is_sparks_own(key)


@pytest.mark.parametrize("key", ["path", "kind", "options", "optional.kind"])
def test_an_option_of_ours_is_not_sparks(key: str) -> None:
    assert not is_sparks_own(key)


def test_a_close_name_is_suggested_and_without_one_all_are_listed() -> None:
    names = ["batch.size", "topic"]

    def without_dots(name: str) -> str:
        return name.replace(".", "").lower()

    assert suggestion("batchSise", names, without_dots) == ": did you mean 'batch.size'?"
    assert suggestion("x", names) == "; there are: batch.size, topic"


def test_a_word_is_one_of_the_choices_in_any_case() -> None:
    parse = one_of(("FAILFAST", "PERMISSIVE"))
    assert parse("failFast") == "FAILFAST"
    with pytest.raises(
        ValueError, match=r"^unknown value 'permisive' \(did you mean 'PERMISSIVE'\?\)"
    ):
        parse("permisive")
    with pytest.raises(ValueError, match=r"^unknown value 'x'; there are: FAILFAST, PERMISSIVE$"):
        parse("x")


def test_a_boolean_is_true_or_false_and_nothing_else() -> None:
    assert boolean("True")
    assert not boolean("FALSE")
    for text in ("1", "yes", ""):
        with pytest.raises(ValueError, match=f"^expected true or false, not {text!r}$"):
            boolean(text)
