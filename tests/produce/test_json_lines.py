from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import reference
from corpus import NO_JIT
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

import kafkajit
from kafkajit.produce.inputs import text_blocks
from kafkajit.produce.inputs.json_rows import json_rows
from kafkajit.produce.inputs.rows import BadInputError
from kafkajit.produce.inputs.text_blocks import text_of

WANTED = ["key", "value", "b\\", "é"]
Found = list[tuple[str, dict[str, tuple[str, bytes]]]]


def members(path: Path, wanted: list[str]) -> Found:
    """The place of each line, and the members that are wanted."""
    found: Found = []
    with text_of(LocalFileSystem(), str(path), None) as text:
        for rows in json_rows(text, wanted):
            for row in range(rows.count):
                cells = {
                    name: (chr(cells.letters[row]), cells.texts[row].as_py() or b"")
                    for name, cells in rows.columns.items()
                    if cells.letters[row]
                }
                found.append((rows.place(row), cells))
    return found


def expected(content: bytes, wanted: list[str]) -> Found:
    """The same by the slow twin."""
    found: Found = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip(b" \t\r"):
            cells = {
                name: (letter, b"" if letter == "n" else text)
                for name, (letter, text) in reference.json_members(line, wanted).items()
            }
            found.append((f"line {number}", cells))
    return found


def imported(folder: Path, content: bytes, **options: Any) -> list[dict[str, Any]]:
    """The keys and values of an import."""
    (folder / "rows.jsonl").write_bytes(content)
    given_options = {"topic": "t", "partitions": 1} | options
    kafkajit.import_files(folder / "rows.jsonl", folder / "logs", **given_options).apply()
    log = folder / "logs" / "t-0" / f"{0:020}.log"
    return kafkajit.read_records(log, columns=["key", "value"]).to_pylist()


TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
NUMBERS = st.sampled_from(
    ["0", "-0", "1.0", "1e5", "-1.50E+07", "12345678901234567890", "0.1000000000000000055511151231"]
)
SCALARS = st.one_of(NUMBERS, TEXT.map(json.dumps), st.sampled_from(["null", "true", "false"]))
SPACE = st.sampled_from(["", "", " ", "\t", " \r "])


def joined(parts: st.SearchStrategy[str], brackets: str) -> st.SearchStrategy[str]:
    return st.tuples(st.lists(parts, max_size=4), SPACE).map(
        lambda pair: brackets[0] + pair[1] + f",{pair[1]}".join(pair[0]) + brackets[1]
    )


def member(value: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(names, SPACE, SPACE, value, SPACE).map(
        lambda parts: f"{parts[0]}{parts[1]}:{parts[2]}{parts[3]}{parts[4]}"
    )


VALUES = st.recursive(
    SCALARS,
    lambda inside: joined(inside, "[]") | joined(member(inside, TEXT.map(json.dumps)), "{}"),
    max_leaves=6,
)
NAMES = st.sampled_from([*map(json.dumps, WANTED), '"k\\u0065y"', '"é"', '"other"', '""'])
LINES = st.one_of(joined(member(VALUES, NAMES), "{}"), st.sampled_from(["", " ", "[]", "{", "1"]))


@given(
    st.lists(LINES, max_size=6),
    st.integers(0, 400),
    st.binary(max_size=2),
    st.sampled_from(["\n", "\r\n"]),
)
def test_the_members_of_lines_are_those_of_the_slow_twin(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], at: int, noise: bytes, end: str
) -> None:
    content = end.join(lines).encode("utf-8", "surrogatepass")
    at = at % (len(content) + 1) if noise else 0
    content = content[:at] + noise + content[at + len(noise) :]
    marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
    if content.startswith(marks) or 0 in content[:2]:
        return
    path = tmp_path_factory.getbasetemp() / "twin.jsonl"
    path.write_bytes(content)
    try:
        wanted = expected(content, WANTED)
    except reference.Invalid:
        with pytest.raises(BadInputError):
            members(path, WANTED)
    else:
        assert members(path, WANTED) == wanted


def test_lines_and_names_may_be_cut_anywhere_by_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"é" * (n % 9): n, "key": "x" * n, "value": [n, {"é": "\n"}]} for n in range(80)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\r\n".join(map(json.dumps, rows)))
    wanted = expected(path.read_bytes(), WANTED)
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(text_blocks, "_BLOCK", size)
        assert members(path, WANTED) == wanted


# A line of JSON, and the value of its record.
AS_THEY_STAND = [
    ('{"value":{"id":12345678901234567}}', b'{"id":12345678901234567}'),
    ('{"value":{"id":0.5,"x":1}}', b'{"id":0.5,"x":1}'),
    ('{"value":{"b":2, "a" : 1.0,"b":3}}', b'{"b":2, "a" : 1.0,"b":3}'),
    ('{"value":12345678901234567890}', b"12345678901234567890"),
    ('{"value":1.0}', b"1.0"),
    ('{"value":-0}', b"-0"),
    ('{"value":1E400}', b"1E400"),
    ('{"value":true}', b"true"),
    ('{"value":[ ]}', b"[ ]"),
    ('{"value":"2024-01-01 00:00:00"}', b"2024-01-01 00:00:00"),
    ('{"value":"a\\n\\u00e9\\ud83d\\ude00\\/"}', "a\né😀/".encode()),
    ('{"value":""}', b""),
    ('{"value":null}', None),
    ('{"other":1}', None),
    ('{"\\u0076alue":1}', b"1"),
]


def test_values_are_the_bytes_of_their_lines(tmp_path: Path) -> None:
    lines = "\n\n \r\n".join(line for line, _ in AS_THEY_STAND)
    rows = imported(tmp_path, b"\xef\xbb\xbf" + lines.encode())
    assert [row["value"] for row in rows] == [value for _, value in AS_THEY_STAND]


# Lines, and the error that names the second one.
WRONG_LINES = [
    (b'{"value":1,"value":1}', "the member 'value' comes twice"),
    (b'{"value":1,"v\\u0061lue":1}', "comes twice"),
    (b'{"value":"\\ud800"}', "column 'value': a string has half a surrogate pair"),
    (b'{"\\ud800":1}', "a name has half a surrogate pair"),
    (b'{"value":"\xff"}', "the text is not valid UTF-8, byte 10"),
    (b'{"value":NaN}', "expected a value, found NaN"),
    (b'{"value":01}', "byte 10"),
    (b'{"value":"\t"}', "control character"),
    (b"[1]", "the line is not a JSON object: put each record on a line, as jq -c"),
    (b"{", "each line must be a JSON object, as jq -c writes it"),
    (b'{"value":1}{"value":2}', "expected the end of the value"),
    (b'{"value":1', "the end of the value"),
    (b'{"value":' + b"[" * 501 + b"]" * 501 + b"}", "nested deeper than 500 levels"),
    (b'{"value":1,"timestamp":true}', "column 'timestamp': true is not a time"),
    (b'{"value":1,"timestamp":1.5}', "'1.5' is neither a time in ISO 8601"),
    (b'{"value":1,"headers":1}', "column 'headers': headers must be an array"),
    (b'{"value":1,"headers":[{"key":"a","value":1}]}', "the value of a header must be a string"),
    (b'{"value":1,"headers":[{"key":null,"value":"1"}]}', "the key of a header must be a string"),
    (b'{"value":1,"headers":[{"key":"a","value":"1","x":2}]}', "a header must be an object with"),
    (b'{"value":1,"headers":[{"key":"a","value":"\\udfff"}]}', "half a surrogate pair"),
    (b'{"value":1,"headers":[{"key":"\\udfff","value":"a"}]}', "half a surrogate pair"),
    (b'{"value":1,"headers":{"\\udfff":"a"}}', "half a surrogate pair"),
]


@pytest.mark.whole
@pytest.mark.parametrize(("line", "words"), WRONG_LINES)
def test_an_error_names_the_file_and_the_line(line: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2") as caught:
        imported(tmp_path, b'{"value":1}\n' + line + b"\n")
    assert words in str(caught.value)
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_named(encoding: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows\.jsonl: the text (is|seems to be) UTF-"):
        imported(tmp_path, '{"value":1}'.encode(encoding))


def test_integers_are_exact_however_they_are_written(tmp_path: Path) -> None:
    lines = [
        '"partition":"1","offset":7',
        '"partition":1.0,"offset":8e0',
        '"partition":1,"offset":"9"',
        '"partition":10e-1,"offset":9007199254740993',
        '"partition":1,"offset":9223372036854775806',
    ]
    text = "\n".join(f'{{"topic":"t","value":"",{line}}}' for line in lines)
    (tmp_path / "rows.jsonl").write_text(text)
    plan = kafkajit.import_files(tmp_path / "rows.jsonl", tmp_path / "logs")
    assert str(plan) == "t-1: 5 records, offsets 7 to 9223372036854775806"


@pytest.mark.whole
@pytest.mark.parametrize(
    "offset",
    ["5.5", "1e99", "9223372036854775808", "-1", '"x"', "true", "[]", '" 5"', '"0x10"', '""'],
)
def test_an_offset_that_is_not_an_integer_is_an_error(offset: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"topic":"t","partition":0,"value":"","offset":{offset}}}')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1: column 'offset': "):
        kafkajit.import_files(tmp_path / "a.jsonl", tmp_path / "logs").apply()


def test_a_number_is_not_a_topic(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"topic":5,"partition":0,"value":""}')
    with pytest.raises(ValueError, match=r"line 1: column 'topic': '5' is not a string"):
        kafkajit.import_files(tmp_path / "a.jsonl", tmp_path / "logs").apply()


def test_a_file_without_the_column_of_values_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows\.jsonl: there is no column 'value'"):
        imported(tmp_path, b'{"key":1}\n')


@pytest.mark.skipif(NO_JIT, reason="large")
def test_members_that_are_not_imported_are_named_wherever_they_come(tmp_path: Path) -> None:
    lines = [*['{"value":1}'] * 70_000, '{"value":1,"vaule":2}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    plan = kafkajit.import_files(tmp_path / "a.jsonl", tmp_path / "l", topic="t", partitions=1)
    assert [part.records for part in plan.partitions] == [70_001]
    assert plan.left_out.columns == {"vaule"}


@pytest.mark.skipif(NO_JIT, reason="large")
def test_more_names_than_are_remembered_are_an_error(tmp_path: Path) -> None:
    line = ",".join(f'"n{n}":1' for n in range(10_001))
    with pytest.raises(ValueError, match=r"line 1: there are more than 10,000 names"):
        imported(tmp_path, f'{{"value":1,{line}}}'.encode())


@pytest.mark.skipif(NO_JIT, reason="large")
def test_a_line_beyond_the_limit_is_an_error_and_one_within_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "MOST_RECORD", 16 << 20)
    config = {"max.message.bytes": 1 << 30}
    value = "x" * (12 << 20)
    rows = imported(tmp_path, f'{{"value":"{value}"}}'.encode(), **config)
    assert rows[0]["value"] == value.encode()
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2: a record has more than 16 MiB"):
        imported(tmp_path / "logs", f'{{"value":1}}\n{{"value":"{value * 2}"}}'.encode(), **config)
