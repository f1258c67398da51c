from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest
from corpus import DATA, REPOSITORY, run_python

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.cli.dump_file import Findings

sys.path.append(str(REPOSITORY / "tests" / "broker"))
from index_damage import damaged_indexes

SEGMENT = f"{0:020}"
FOLDERS = damaged_indexes()
DUMPS = json.loads((DATA / "indexes" / "dumps.json").read_text())


@pytest.mark.parametrize(
    ("name", "suffix", "out", "err"), DUMPS, ids=[name + suffix for name, suffix, *_ in DUMPS]
)
def test_an_index_that_leads_astray_is_followed_as_kafka_follows_it(
    name: str,
    suffix: str,
    out: str,
    err: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    for beside, content in FOLDERS[name].items():
        (tmp_path / f"{SEGMENT}{beside}").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    code = main(["dump-log", "--files", f"{SEGMENT}{suffix}"])
    said, found = (text.decode() for text in capfdbinary.readouterr())
    assert said == out
    if err is None:  # Kafka throws
        assert code == 1
        assert found.startswith(f"kafkajit dump-log: {SEGMENT}{suffix}: ")
    else:
        assert (code, found.replace(f"{tmp_path}/", "")) == (0, err)


def test_every_segment_has_been_dumped_by_kafka() -> None:
    expected = {(name, suffix) for name in FOLDERS for suffix in FOLDERS[name] if suffix != ".log"}
    assert {(name, suffix) for name, suffix, *_ in DUMPS} == expected
    assert sum(err is None for *_, err in DUMPS) > 5
    assert sum(bool(err) for *_, err in DUMPS) > 5


# From scala.collection.mutable.HashMap. With two puts of each key the map grows at another time.
@pytest.mark.parametrize(
    ("pairs", "count", "order"),
    [
        (1, 11, "9 4 8 5 3 10 6 0 2 7 1"),
        (2, 11, "9 8 0 4 5 3 10 6 2 7 1"),
        (1, 12, "9 8 0 11 4 5 3 10 6 2 7 1"),
        (2, 14, "9 8 0 11 4 5 3 12 10 6 2 13 7 1"),
        (
            1,
            30,
            "23 22 0 24 21 25 20 26 11 4 3 19 10 2 1 9 16 15 8 18 17 5 12 6 27 13 7 29 28 14",
        ),
    ],
)
def test_files_are_reported_in_the_order_of_scalas_map(pairs: int, count: int, order: str) -> None:
    findings = Findings(
        index_mismatches={f"/logs/t-{n}/0.index": [(1, 2)] * pairs for n in range(count)}
    )
    said = [line for line in findings.lines() if line.startswith("Mismatches")]
    assert said == [f"Mismatches in :/logs/t-{n}/0.index" for n in order.split()]


def test_a_file_keeps_the_name_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for suffix, content in FOLDERS["offsets-out-of-order"].items():
        (tmp_path / f"{SEGMENT}{suffix}").write_bytes(content)
    (tmp_path / "7.index").write_bytes(b"")
    (tmp_path / "7.log").write_bytes(b"")
    (tmp_path / "odd.").touch()
    index = f".//./{SEGMENT}.index"
    monkeypatch.chdir(tmp_path)
    names = f"{index},{index},./7.index,./odd.,../{tmp_path.name}/"
    assert main(["dump-log", "--verify-index-only", "--files", names]) == 0
    out, err = capfd.readouterr()
    assert [line for line in out.splitlines() if line[0] in "D."][:5] == [
        f"Dumping ././{SEGMENT}.index",
        f"Dumping ././{SEGMENT}.index",
        "Dumping ./7.index",
        "./7.index is empty.",
        "Dumping ./odd.",
    ]
    assert f"Dumping ../{tmp_path.name}/7.index\n" in out
    # The findings of a file that is dumped twice are printed twice, under one heading.
    assert err.startswith("Ignoring unknown file ./odd.\n")
    assert err.count(f"Mismatches in :{tmp_path}/././{SEGMENT}.index\n") == 1


def test_a_log_is_dumped_without_arrow() -> None:
    log = DATA / "v2" / "none-0" / f"{0:020}.log"
    code = "import sys; from kafkajit.cli import main; main(sys.argv[1:]); "
    code += "print([name for name in sys.modules if name.startswith('pyarrow')])"
    assert run_python(code, "dump-log", "--files", str(log)).endswith("\n[]\n")


def test_a_folder_without_files_to_dump_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders-0").mkdir()
    assert main(["dump-log", "--files", str(tmp_path)]) == 1
    out, err = capfd.readouterr()
    assert out == f"Dumping {tmp_path}\n"
    assert err.startswith(f"kafkajit dump-log: {tmp_path}: no file of this folder can be dumped")


def test_an_empty_name_is_not_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "7.snapshot").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert main(["dump-log", "--files", ""]) == 1
    out, err = capfd.readouterr()
    assert out == "Dumping \n"
    assert "no such file" in err


# A batch whose magic is negative is for Kafka an old message with the codec in its attributes.
@pytest.mark.parametrize(
    ("attributes", "timestamp", "printed"),
    [(0, -5, -1), (8, 7000, 7000), (1, 7000, None)],
)
def test_a_negative_magic_is_read_as_kafka_reads_it_for_a_time_index(
    attributes: int,
    timestamp: int,
    printed: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    first = kt.batch([kt.Record()])
    batch = bytearray(kt.batch([kt.Record(b"k", timestamp=1)] * 3, base_offset=5))
    batch[16:18] = struct.pack(">bB", -124, attributes)
    batch[18:26] = struct.pack(">q", timestamp)
    (tmp_path / f"{0:020}.log").write_bytes(first + batch)
    (tmp_path / f"{0:020}.index").write_bytes(struct.pack(">ii", 5, len(first)))
    index = tmp_path / f"{0:020}.timeindex"
    index.write_bytes(struct.pack(">qi", 1, 5))
    monkeypatch.chdir(tmp_path)
    code = main(["dump-log", "--files", index.name])
    error = capfdbinary.readouterr().err.decode()
    if printed is None:
        assert "Invalid wrapper magic found in legacy deep record iterator -124" in error
        assert code == 1
    else:
        assert f"Index timestamp: 1, log timestamp: {printed}\n" in error
