"""Patterns: texts, expressions and bytes, and what every match of one contains."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkajit.scan.patterns import Pattern

TEXTS = st.lists(st.one_of(st.none(), st.text("abAB.1-é\n", max_size=8)), max_size=12)
# Expressions that RE2 and re read in the same way.
LETTERS = st.sampled_from(["a", "b", "ab", "A", "1", "é", r"\.", r"\-", "-", "{", "]", "}"])
SIMPLE = st.one_of(LETTERS, st.sampled_from([".", "[ab]", "[^a]", "[]a]", r"\d", "^", r"\Aa"]))


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeated = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{1,2}", "{0,1}", "{0}"])
    one = st.one_of(LETTERS, st.tuples(parts.map(lambda text: f"({text})"), repeated).map("".join))
    more = st.one_of(parts, one, st.tuples(LETTERS.filter(_is_one), repeated).map("".join))
    run = st.lists(more, min_size=1, max_size=4).map("".join)
    return st.one_of(run, st.tuples(run, run).map("|".join))


def _is_one(text: str) -> bool:
    return len(text.removeprefix("\\")) == 1 and text != "{"


REGEXES = st.recursive(SIMPLE, _joined, max_leaves=6)


def rows(pattern: Pattern, texts: list[str | None] | list[bytes | None]) -> list[bool]:
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    found = pattern.rows(pa.array(raw, pa.binary())).tolist()
    # A slice of larger bytes has other buffers.
    assert pattern.rows(pa.array([b"a1b", *raw], pa.large_binary())[1:]).tolist() == found
    return found  # type: ignore[no-any-return]


@given(TEXTS, REGEXES, st.booleans())
@example(["ab"], "a{2}|ab", False)
@example(["b"], "a{0}b", False)
@example(["a"], "(a|b)", False)
@example(["1"], "a?1", False)
def test_an_expression_finds_the_values_that_have_it(
    texts: list[str | None], regex: str, ignores_case: bool
) -> None:
    compiled = re.compile(regex, re.IGNORECASE if ignores_case else 0)
    expected = [text is not None and compiled.search(text) is not None for text in texts]
    pattern = Pattern.of_regex(regex, ignores_case=ignores_case)
    assert rows(pattern, texts) == expected
    if pattern.needle is not None:
        has_needle = rows(Pattern(pattern.needle, None), texts)
        assert all(may or not does for may, does in zip(has_needle, expected, strict=True))


@given(TEXTS, st.text("abAB.1-é(", max_size=4), st.booleans())
def test_a_text_is_found_as_it_is(texts: list[str | None], wanted: str, ignores_case: bool) -> None:
    def folded(text: str) -> str:
        return text.lower() if ignores_case else text

    expected = [text is not None and folded(wanted) in folded(text) for text in texts]
    assert rows(Pattern.of_text(wanted, ignores_case=ignores_case), texts) == expected


@pytest.mark.parametrize(
    ("regex", "needle"),
    [
        ("timeout", b"timeout"),
        (r"orders\.created", b"orders.created"),
        ('{"id":5}', b'{"id":5}'),
        (r'"id":\d+,"total":1', b',"total":1'),
        ("abc+d", b"abc"),
        ("(one|two)three", b"three"),
        ("(?P<name>x)yz[0-9]{4}", b"yz"),
        ("[[:alpha:]]+@example", b"@example"),
        ("[]x]y]", b"y]"),
        (r"[\]x]y", b"y"),
        ("one|two", None),
        ("a?", None),
        ("(?i)text", None),
        (r"\x41bc", None),
        (r"\Qa.c\E", None),
    ],
)
def test_the_longest_text_of_every_match_is_searched_first(
    regex: str, needle: bytes | None
) -> None:
    found = Pattern.of_regex(regex).needle
    assert (found and found.bytes_.tobytes()) == needle


def test_letters_with_three_cases_are_left_to_re2() -> None:
    kelvin = Pattern.of_regex("[a]k", ignores_case=True)
    assert rows(kelvin, ["ak", "AK", "a\u212a"]) == [True, True, True]
    assert rows(Pattern.of_text("ÉK", ignores_case=True), ["ék", "e"]) == [True, False]


def test_bytes_that_are_not_text_stand_in_nobodys_way() -> None:
    values = [b"\xff\xfeabc", b"a\xff", None, b""]
    assert rows(Pattern.of_regex("^.?abc"), values) == [False, False, False, False]
    assert rows(Pattern.of_regex("[a]bc$"), values) == [True, False, False, False]
    assert rows(Pattern.of_hex("FF fe61"), values) == [True, False, False, False]
    assert rows(Pattern.of_text("\udcff"), values) == [True, True, False, False]
    assert rows(Pattern.of_regex("$"), values) == [True, True, False, True]
    assert rows(Pattern.of_text(""), values) == [True, True, False, True]


def test_a_match_ends_with_its_value() -> None:
    assert rows(Pattern.of_regex("a.?b"), ["a", "b", "ab"]) == [False, False, True]
    assert rows(Pattern.of_regex("^b|a$"), ["ab", "ba", "xax"]) == [False, True, False]


@pytest.mark.parametrize(
    ("pattern", "value", "spans"),
    [
        (Pattern.of_text("ab"), b"abxab", [(0, 2), (3, 5)]),
        (Pattern.of_text("aB", ignores_case=True), b"Ab", [(0, 2)]),
        (Pattern.of_regex("b+"), b"\x01bb\x01\x02b", [(1, 3), (5, 6)]),
        (Pattern.of_regex("x+", ignores_case=True), "éXx".encode(), [(2, 4)]),
        (Pattern.of_regex("a.?b"), b"\xffaxb\xff", [(1, 4)]),
        (Pattern.of_regex("[b]"), b"", []),
        (Pattern.of_regex(r"b|\Qa.b"), b"a.baxb", [(0, 3), (5, 6)]),
    ],
)
def test_the_places_of_matches_are_known(
    pattern: Pattern, value: bytes, spans: list[tuple[int, int]]
) -> None:
    assert pattern.spans(value) == spans


@pytest.mark.parametrize(
    ("make", "text", "error"),
    [
        (Pattern.of_regex, "a(", r"the regular expression 'a\(' is wrong: missing \): a\(; -F"),
        (Pattern.of_regex, "(?<=a)b", "invalid perl operator"),
        (Pattern.of_regex, "[a]\udcff", "is not UTF-8: pass bytes with --hex"),
        (Pattern.of_hex, "cafeb", "expected bytes in hex such as cafebabe, not 'cafeb'"),
    ],
)
def test_a_wrong_pattern_is_refused(make: type[Pattern], text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        make(text)
