"""Rows for people: widths, cuts, and characters that must not reach a terminal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.cli.sql.table import (
    ASCII,
    ShownRows,
    as_lines,
    as_report,
    as_table,
    escaped,
    fitted,
    width_of,
)

RECORDS = {
    "key": pa.array([b"key-0", None]),
    "value": pa.array([b"a value that is rather long, as values are", b"\x00\xff"]),
    "topic": pa.array(["orders", "orders"]),
    "partition": pa.array([0, 12], pa.int32()),
    "offset": pa.array([0, 123456789]),
    "timestamp": pa.array([1_700_000_000_000_000, None], pa.timestamp("us", "UTC")),
    "isTransactional": pa.array([True, False]),
    "producerId": pa.array([-1, 4001]),
    "magic": pa.array([2, 2], pa.int8()),
    "position": pa.array([0, 4096]),
}


def rows_of(columns: dict[str, Any], cut_at: int | None = None) -> ShownRows:
    table = pa.table(columns)
    return ShownRows(table, [str(kind) for kind in table.schema.types], cut_at)


def shown(columns: dict[str, Any], width: int | None = None) -> str:
    return "\n".join(as_table(rows_of(columns), width)[0])


def test_a_table_has_names_and_types_and_numbers_to_the_right() -> None:
    assert (
        shown({"topic": ["orders", None], "n": [1, 100], "big name": [1.5, None]})
        == """\
┌────────┬───────┬──────────┐
│ topic  │     n │ big name │
│ string │ int64 │   double │
├────────┼───────┼──────────┤
│ orders │     1 │      1.5 │
│ NULL   │   100 │     NULL │
└────────┴───────┴──────────┘"""
    )


def test_no_rows_leave_the_head() -> None:
    assert (
        shown({"n": pa.array([], pa.int64())})
        == """\
┌───────┐
│     n │
│ int64 │
└───────┘"""
    )


def test_boxes_become_dashes_if_they_cannot_be_printed() -> None:
    lines, _ = as_table(rows_of({"a": ["x" * 30]}), 20, ASCII)
    assert lines == [
        "+------------------+",
        "| a                |",
        "| string           |",
        "+------------------+",
        "| xxxxxxxxxxxxxxx~ |",
        "+------------------+",
    ]


def test_null_is_told_from_the_text_null() -> None:
    assert "│ 'NULL' │" in shown({"a": ["NULL", None]})
    assert "│ NULL   │" in shown({"a": ["NULL", None]})


def test_two_columns_may_have_one_name() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    lines, columns = as_table(ShownRows(table, ["int", "int"]))
    assert lines[1] == "│   a │   a │"
    assert columns == 2


def test_nothing_is_cut_if_everything_fits() -> None:
    whole, columns = as_table(rows_of(RECORDS))
    assert columns == len(RECORDS)
    assert "…" not in "".join(whole)
    assert as_table(rows_of(RECORDS), width_of(whole[0])) == (whole, columns)


def test_long_texts_are_cut_before_columns_are_left_out() -> None:
    whole, columns = as_table(rows_of(RECORDS))
    narrower, still = as_table(rows_of(RECORDS), width_of(whole[0]) - 20)
    assert still == columns
    assert {width_of(line) for line in narrower} == {width_of(whole[0]) - 20}
    assert "a value that is rathe…" in narrower[4]
    assert "2023-11-14T22:13:20.000Z" in narrower[4]


def test_columns_are_left_out_of_the_middle() -> None:
    lines, columns = as_table(rows_of(RECORDS), 80)
    assert lines[1].split() == [
        "│", "key", "│", "value", "│", "topic", "│", "partition", "│", "…", "│", "magic", "│",
        "position", "│",
    ]  # fmt: skip
    assert columns == 6
    assert all(width_of(line) <= 80 for line in lines)
    assert lines[4].count("…") == 2  # the value's, and of the columns


def test_a_single_column_that_is_left_out_does_not_count() -> None:
    lines, columns = as_table(rows_of({"a" * 9: [1], "b" * 9: [2], "c" * 9: [3]}), 32)
    assert lines[1].split() == ["│", "a" * 9, "│", "b" * 9, "│", "…", "│"]
    assert columns == 2


@given(
    st.lists(
        st.lists(st.none() | st.text(max_size=60), min_size=2, max_size=2), min_size=1, max_size=12
    ),
    st.integers(30, 200),
)
def test_no_line_is_wider_than_the_terminal(texts: list[list[str | None]], width: int) -> None:
    columns = {f"column {at}": pa.array(values, pa.string()) for at, values in enumerate(texts)}
    lines, _ = as_table(rows_of(columns), width)
    assert max(map(width_of, lines)) <= width
    assert len({width_of(line) for line in lines}) == 1
    assert len(lines) == 7


@pytest.mark.parametrize("width", [1, 5, 10, 20])
def test_a_terminal_too_narrow_for_anything_still_gets_a_table(width: int) -> None:
    lines, columns = as_table(rows_of(RECORDS), width)
    assert len(lines) == 7
    assert columns >= 1


def test_wide_letters_take_two_columns() -> None:
    assert (
        shown({"a": ["日本", "abcd", "e\u0301"]})
        == """\
┌────────┐
│ a      │
│ string │
├────────┤
│ 日本   │
│ abcd   │
│ e\u0301      │
└────────┘"""
    )


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abc", 5, "abc  "),
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 4, "日… "),
        ("日本語", 5, "日本…"),
        ("ab", 1, "…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    ],
)
def test_text_is_fitted_to_a_width(text: str, width: int, expected: str) -> None:
    assert fitted(text, width) == expected
    assert width_of(fitted(text, width)) == width


def test_of_a_path_the_end_is_kept() -> None:
    path = "/var/lib/kafka/orders-0/00000000000000000000.log"
    lines, _ = as_table(rows_of({"path": [path], "n": [1]}), 50)
    assert lines[1].startswith("│ path  ")
    assert lines[4] == f"│ …{path[-37:]} │     1 │"


def test_numbers_are_filled_up_on_the_left() -> None:
    assert fitted("12", 4, to_the_right=True) == "  12"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ünïcode", "plain ünïcode"),
        ("two\nlines\tand\r", r"two\nlines\tand\r"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\u202eright to left", r"\u202eright to left"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_what_would_move_the_cursor_or_hide_is_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected
    for printed in (shown({"a": [text]}), shown({text: ["a"]}), *as_lines(rows_of({"a": [text]}))):
        assert all(letter.isprintable() or letter == "\n" for letter in printed)


def test_bytes_that_were_cut_within_a_letter_are_still_text() -> None:
    value = "€€€€".encode()
    for size, kept in ((3, "€"), (4, "€"), (5, "€"), (6, "€€")):
        (cell,) = as_table(rows_of({"a": [value[:size]]}, cut_at=size))[0][4:5]
        assert cell.split()[1] == kept
    (cell,) = as_table(rows_of({"a": [b"\xff" * 4]}, cut_at=4))[0][4:5]
    assert cell.split()[1] == "X'FFFFFFFF'"
    (cell,) = as_table(rows_of({"a": [b"abc"]}, cut_at=4))[0][4:5]
    assert cell.split()[1] == "abc"


def test_a_report_is_a_single_text_of_several_lines() -> None:
    assert as_report(rows_of({"plan": ["a\n +- b\x1b[31m\n"]})) == ["a", r" +- b\x1b[31m"]
    assert as_report(rows_of({"plan": ["one line"]})) is None
    assert as_report(rows_of({"plan": ["a\nb", "c"]})) is None
    assert as_report(rows_of({"plan": [b"a\nb"]})) is None
    assert as_report(rows_of({"a": ["a\nb"], "b": ["a\nb"]})) is None


def test_lines_have_a_value_each_and_nothing_cut() -> None:
    columns = {"key": pa.array([b"k", None]), "offset": [1, 2], "value": ["x" * 200, ""]}
    assert as_lines(rows_of(columns)) == [
        "   key = k",
        "offset = 1",
        f" value = {'x' * 200}",
        "",
        "   key = NULL",
        "offset = 2",
        " value =",
    ]
