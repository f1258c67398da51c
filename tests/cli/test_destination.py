"""The files that commands write: complete or not at all, and none of somebody else's."""

from __future__ import annotations

import argparse
import gzip
import os
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from kafkajit.cli import main
from kafkajit.cli.destination import destination, packed
from kafkajit.cli.sql import _format


def test_a_file_of_results_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with suppress(ValueError), destination(str(path), force=False) as out:
        out.write(b"half")
        raise ValueError
    assert list(tmp_path.iterdir()) == []
    with destination(str(path), force=False) as out:
        out.write(b"new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_what_exists_stays_unless_it_is_to_be_replaced(kind: str, tmp_path: Path) -> None:
    path, target = tmp_path / "rows.csv", tmp_path / "target"
    (path if kind == "file" else target).write_text("old")
    if kind != "file":
        path.symlink_to(target)
    if kind == "dangling link":
        target.unlink()
    with (
        pytest.raises(FileExistsError, match=f"{path} exists: pass --force to replace it"),
        destination(str(path), force=False),
    ):
        raise AssertionError
    with suppress(ValueError), destination(str(path), force=True) as out:
        out.write(b"half")
        raise ValueError
    assert path.is_symlink() is (kind != "file")
    with destination(str(path), force=True) as out:
        out.write(b"new")
    assert path.read_text() == "new"
    assert not path.is_symlink()
    assert kind != "link" or target.read_text() == "old"


def test_pipes_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe.csv", tmp_path / "null.csv"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        with destination(str(pipe), force=False) as out:
            out.write(b"rows")
        assert reader.read() == "rows"
    with destination(str(link), force=False) as out:
        out.write(b"rows")
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_a_missing_folder_and_a_folder_are_named(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "no" / "a.csv", f"there is no folder {tmp_path}/no"),
        (tmp_path, "name a file in this folder"),
    ):
        with pytest.raises(OSError, match=words), destination(str(path), force=False):
            raise AssertionError


def test_a_suffix_of_compressed_text_compresses_it(tmp_path: Path) -> None:
    for name, unpack in (
        ("a.csv.gz", gzip.decompress),
        ("a.csv.zst", lambda content: zstandard.ZstdDecompressor().stream_reader(content).read()),
    ):
        _, codec = _format(options(output=name), is_prompt=False)
        with destination(str(tmp_path / name), force=False) as file, packed(file, codec) as out:
            for _ in range(1000):
                out.write(b"rows,")
            out.flush()
        assert unpack((tmp_path / name).read_bytes()) == b"rows," * 1000


def options(**given: str | bool | None) -> argparse.Namespace:
    own = {"format": None, "output": None, "no_header": False, **given}
    return argparse.Namespace(rows=40, **own)


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("a.csv", None, ("csv", None)),
        ("a.CSV", None, ("csv", None)),
        ("a", None, ("csv", None)),
        ("a.json", None, ("json", None)),
        ("a.ndjson", None, ("json", None)),
        ("a.jsonl.gz", None, ("json", "gzip")),
        ("a.feather", None, ("arrow", None)),
        ("a.parquet", None, ("parquet", None)),
        ("a.txt", "csv", ("csv", None)),
    ],
)
def test_the_suffix_decides_the_format_of_results(
    name: str, given: str | None, wanted: tuple[str, str | None]
) -> None:
    assert _format(options(output=name, format=given), is_prompt=False) == wanted


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("a.xlsx", None, r"the format of a\.xlsx is not known: pass --format, or a name"),
        ("a.parquet.gz", None, "is not known"),
        ("a.avro", None, "sql does not write avro: kafkajit export does"),
        ("a.csv.gz", "parquet", r"a\.csv\.gz is not a name for parquet"),
    ],
)
def test_a_suffix_of_another_format_is_refused(name: str, given: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _format(options(output=name, format=given), is_prompt=False)


@pytest.mark.parametrize(
    ("name", "given", "is_prompt"),
    [
        ("a.json", None, False),
        (None, "table", False),
        ("a.csv", "parquet", False),
        (None, "csv", True),
    ],
)
def test_only_csv_can_do_without_a_header(
    name: str | None, given: str | None, is_prompt: bool
) -> None:
    with pytest.raises(ValueError, match=r"^--no-header is for csv"):
        _format(options(output=name, format=given, no_header=True), is_prompt=is_prompt)
    assert _format(options(format="csv", no_header=True), is_prompt=False) == ("csv", None)


def test_a_query_refuses_to_write_over_a_file_before_it_starts_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tmp_path / "keep.csv"
    keep.write_text("mine")
    monkeypatch.setattr("kafkajit.cli.sql._start", lambda _: pytest.fail("Spark was started"))
    assert main(["sql", "--path", "sample:", "-o", str(keep), "SELECT 1"]) == 1
    assert capsys.readouterr().err == (
        f"kafkajit sql: {keep} exists: pass --force to replace it, or name another file\n"
    )
    assert keep.read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="has no /dev/fd")
@pytest.mark.parametrize("words", [[], ["--force"]])
def test_an_open_file_is_written_to_and_not_replaced(words: list[str], tmp_path: Path) -> None:
    with (tmp_path / "a.html").open("wb") as file:
        place = f"/dev/fd/{file.fileno()}"
        assert main(["report", "sample:", "-o", place, *words]) == 0
    assert (tmp_path / "a.html").stat().st_size > 1000
