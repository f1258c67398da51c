"""Large keys, values and headers, which are printed piece by piece."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit import testing as kt
from kafkajit.cli import main, pieces, tail_lines
from kafkajit.cli.pieces import content_of, header_pieces, json_pieces, shown_pieces
from kafkajit.cli.tail_lines import shown
from kafkajit.values.arrow_text import text_of

ODD = b'a\n\x00\xff\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x80\xa8\xed\xa0\x80\t"\\'
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@given(st.lists(st.sampled_from([*(ODD[at : at + 1] for at in range(len(ODD))), b"ab"])))
def test_pieces_together_are_the_text_of_the_whole(parts: list[bytes]) -> None:
    content = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_STEP", 3)
        assert "".join(shown_pieces(memoryview(content))) == shown(content)
        (text,) = text_of(pa.array([content], pa.binary()), as_json=True).to_pylist()
        assert "".join(json_pieces(memoryview(content))) == text


@pytest.mark.parametrize("large", [0, 1 << 20])
def test_pieces_of_headers_are_those_of_the_whole(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "LARGE", large)
    monkeypatch.setattr(pieces, "_HEADERS", 2)
    for headers in (
        [],
        [{"key": "a", "value": b"\xff"}, {"key": 'é"', "value": None}, {"key": "", "value": b""}],
    ):
        array = pa.array([None, headers], HEADERS).slice(1)
        (text,) = text_of(array, as_json=True).to_pylist()
        assert "".join(header_pieces(array.flatten())) == text


def test_the_content_of_a_slice_is_its_own() -> None:
    column = pa.array([b"a", None, b"", b"bcd"], pa.binary())
    assert bytes(content_of(column.slice(2), 0)) == b""
    assert bytes(content_of(column.slice(2), 1)) == b"bcd"


def _log(folder: Path) -> Path:
    partition = folder / "orders-0"
    partition.mkdir()
    headers = [("h\n", b"\xff"), ("i", None)]
    records = [
        kt.Record(b"k", b"small", headers),
        kt.Record(ODD * 3, ODD * 5, headers),
        kt.Record(None, b"plain" * 9, headers),
        kt.Record(b"k" * 50, None, ()),
    ]
    log = kt.batch(records) + kt.control_batch(1, base_offset=4)
    (partition / f"{0:020}.log").write_bytes(log)
    return partition


@pytest.mark.parametrize("command", ["tail", "grep"])
@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize("is_decoded", [False, True], ids=["bytes", "decoded"])
def test_large_records_are_printed_as_small_ones(
    command: str,
    format_: str,
    is_decoded: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = tmp_path / "key.avsc"
    schema.write_text('"string"')
    words = [command, *([""] if command == "grep" else []), str(_log(tmp_path))]
    words += ["--format", format_]
    if is_decoded:
        words += ["--key-decoder", "avro", "--key-schema", str(schema)]
    main(words)
    expected = capsys.readouterr()
    monkeypatch.setattr(tail_lines, "_AT_ONCE", 0)
    monkeypatch.setattr(tail_lines, "LARGE", 10)
    monkeypatch.setattr(pieces, "_STEP", 3)
    main(words)
    assert capsys.readouterr() == expected
    assert expected.out.count("\n") == 4


def test_a_large_value_in_json_can_be_parsed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    value = bytes(20_000_000) + b"\xff"
    log = kt.batch([kt.Record(b"k", value)], codec="zstd")
    (partition / f"{0:020}.log").write_bytes(log)
    main(["tail", "--format", "json", str(partition)])
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["value"] == {"base64": b64encode(value).decode()}
