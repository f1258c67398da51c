from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
import reference
from corpus import NO_JIT
from exporting import records_in
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

import kafkajit
from kafkajit.produce.inputs import text_blocks
from kafkajit.produce.inputs.csv_rows import csv_rows
from kafkajit.produce.inputs.rows import BadInputError
from kafkajit.produce.inputs.text_blocks import text_of

Found = list[tuple[str, list[str | None]]]


def records(path: Path) -> Found:
    """The place of each record, and its fields."""
    found: Found = []
    with text_of(LocalFileSystem(), str(path), None) as text:
        for rows in csv_rows(text, ["a", "b", "value"]):
            columns = [rows.columns[name].to_pylist() for name in rows.names]
            found += [
                (rows.place(row), list(cells))
                for row, cells in enumerate(zip(*columns, strict=True))
            ]
    return found


def expected(content: bytes) -> Found:
    """The same by the slow twin."""
    every = reference.csv_records(content)
    names = every[0][1] if every else []
    if names == [None]:
        raise reference.Invalid("no names")
    kept = [pair for pair in every[1:] if len(names) == 1 or pair[1] != [None]]
    if any(len(fields) != len(names) for _, fields in kept):
        raise reference.Invalid("the number of fields")
    return [(f"line {line}", fields) for line, fields in kept]


FIELDS = st.text('",\n\r aé😀', max_size=5)
QUOTED = FIELDS.map(lambda text: '"' + text.replace('"', '""') + '"')
ROWS = st.lists(
    st.lists(FIELDS | QUOTED | QUOTED, min_size=1, max_size=3).map(",".join), max_size=6
)


@given(
    st.sampled_from(["value", "a,b", '"a","b",value']),
    ROWS,
    st.sampled_from(["\n", "\r\n"]),
    st.binary(max_size=1),
)
def test_records_are_those_of_the_slow_twin(
    tmp_path_factory: pytest.TempPathFactory, names: str, rows: list[str], end: str, noise: bytes
) -> None:
    content = end.join([names, *rows]).encode() + noise
    path = tmp_path_factory.getbasetemp() / "twin.csv"
    path.write_bytes(content)
    try:
        wanted = expected(content)
    except reference.Invalid:
        with pytest.raises(BadInputError):
            records(path)
    else:
        assert records(path) == wanted


def test_records_may_be_cut_anywhere_by_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b"])
        writer.writerows([["é" * (n % 7), '"\r\n,' * (n % 5)] for n in range(60)])
    wanted = expected(path.read_bytes())
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(text_blocks, "_BLOCK", size)
        assert records(path) == wanted


def imported(folder: Path, content: bytes, name: str = "rows.csv") -> list[bytes | None]:
    """The values of an import."""
    (folder / name).write_bytes(content)
    plan = kafkajit.import_files(folder / name, folder / "logs", topic="t", partitions=1)
    plan.apply()
    return [row["value"] for row in records_in(folder / "logs").get("t-0", [])]


def test_null_and_empty_text_in_a_file_of_one_column(tmp_path: Path) -> None:
    assert imported(tmp_path, b'value\n\na\n""\n\n') == [None, b"a", b"", None]


@pytest.mark.parametrize("content", [b"", b"value", b"value\r\n", b"\xef\xbb\xbfvalue\n"])
def test_a_file_without_records_is_imported_beside_another(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "part-0.csv").write_bytes(content)
    (tmp_path / "part-1.csv").write_bytes(b"value\nv\n")
    plan = kafkajit.import_files(tmp_path, tmp_path / "logs", topic="t", partitions=1)
    assert str(plan) == "t-0: 1 record, offset 0"


def test_excels_files_are_read_or_the_error_has_the_remedy(tmp_path: Path) -> None:
    rows = b'\xef\xbb\xbf"key","value"\r\n"a","b ""c"" \r\nd"\r\n'
    assert imported(tmp_path, rows) == [b'b "c" \r\nd']
    for content, words in [
        (b"key;value\r\n1;2\r\n", "semicolons between its fields: write it with commas"),
        (b"key\tvalue\r\n1\t2\r\n", "tabs between its fields"),
        (b"sep=;\r\nkey;value\r\n", "remove the first line, which is for Excel alone"),
        ("key,value\r\n1,2".encode("utf-16"), "the text is UTF-16: convert it to UTF-8"),
        ("key,value\r\n1,é".encode("latin-1"), "line 2: the text is not UTF-8"),
    ]:
        with pytest.raises(ValueError, match=r"excel\.csv") as caught:
            imported(tmp_path, content, "excel.csv")
        assert words in str(caught.value)


# Lines below the names, and the error that names the second one.
WRONG_LINES = [
    (b"1", "the record has 1 field, and the line of names 2"),
    (b"1,2,3", "the record has 3 fields, and the line of names 2"),
    (b'1,a"b', "a field has a quote inside, and is not quoted itself"),
    (b'1,"a"b', "text follows the closing quote of a field"),
    (b'1,"a\n\n', "the quote of a field is not closed"),
    (b"1,a\rb", "a carriage return has no newline behind it"),
    (b"1,\xff", "the text is not UTF-8"),
]


@pytest.mark.parametrize(("line", "words"), WRONG_LINES)
def test_an_error_names_the_file_and_the_line(line: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows\.csv, line 4") as caught:
        imported(tmp_path, b'key,value\n1,"a\nb"\n' + line + b"\n")
    assert words in str(caught.value)


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows\.csv: there are several columns 'value'"):
        imported(tmp_path, b"value,value\n1,2\n")


@pytest.mark.skipif(NO_JIT, reason="large")
def test_records_and_names_may_be_longer_than_a_block(tmp_path: Path) -> None:
    value = b'"\n' * (6 << 20)
    names = b"n" * (9 << 20) + b",value"
    (tmp_path / "a.csv").write_bytes(names + b'\n,"' + value.replace(b'"', b'""') + b'"\n')
    options = {"topic": "t", "partitions": 1, "max.message.bytes": 1 << 30}
    kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs", **options).apply()
    assert records_in(tmp_path / "logs")["t-0"][0]["value"] == value


@pytest.mark.skipif(NO_JIT, reason="large")
def test_a_record_beyond_the_limit_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_blocks, "MOST_RECORD", 16 << 20)
    content = gzip.compress(b'value\na\n"' + bytes(17 << 20), 1)
    with pytest.raises(ValueError, match=r"a\.csv\.gz, line 3: a record has more than 16 MiB"):
        imported(tmp_path, content, "a.csv.gz")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv", "a.txt"])
def test_compression_is_recognized_by_the_content(name: str, tmp_path: Path) -> None:
    content = gzip.compress(b"value\na\n") + gzip.compress(b"b\n")
    (tmp_path / name).write_bytes(content)
    plan = kafkajit.import_files(
        tmp_path / name, tmp_path / "logs", format="csv", topic="t", partitions=1
    )
    assert [part.records for part in plan.partitions] == [2]


@pytest.mark.skipif(NO_JIT, reason="large")
def test_a_compressed_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    content = gzip.compress(b"value\n" + b"abc\n" * 100_000)
    for size in (len(content) - 1, len(content) // 2, 12):
        with pytest.raises(ValueError, match=r"a\.csv\.gz cannot be read as csv"):
            imported(tmp_path, content[:size], "a.csv.gz")
