"""kafkajit tail: the last records of logs, and new ones as they come."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
import pytest
from partitions import data as batch_of_two
from partitions import marker, transactional
from scanning import write_partition
from streaming import append, finish
from terminal import command, environment
from typed_logs import (
    ORDER,
    ORDERS,
    confluent,
    encoded,
    schema_record,
    write_registry,
    write_values,
)

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.scan.stream.log_stream import LogStream
from kafkajit.scan.stream.offsets import StreamOffsets

Tail = Callable[..., list[str]]


@pytest.fixture
def tail(capsys: pytest.CaptureFixture[str]) -> Tail:
    def run(*arguments: object) -> list[str]:
        assert main(["tail", *map(str, arguments)]) == 0
        return capsys.readouterr().out.splitlines()

    return run


def log(first: int, *values: bytes | None, **fields: Any) -> bytes:
    return kt.batch(
        [kt.Record(key=b"k%d" % at, value=value) for at, value in enumerate(values, first)],
        base_offset=first,
        base_timestamp=1_700_000_000_000,
        **fields,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_partition(tmp_path, {0: log(0, *(b"%d" % at for at in range(30)))}, "orders-0")
    write_partition(tmp_path, {5: log(5, b"a\tb\n", None, b"\xff")}, "payments-1")
    write_partition(tmp_path, {0: log(0, b"own")}, "__own-0")
    return tmp_path


def test_the_last_records_of_each_partition_are_printed(root: Path, tail: Tail) -> None:
    time = "2023-11-14T22:13:20.000Z"
    assert tail("-n", 2, root) == [
        f"orders-0\t28\t{time}\tk28\t28",
        f"orders-0\t29\t{time}\tk29\t29",
        f"payments-1\t6\t{time}\tk6\tnull",
        f"payments-1\t7\t{time}\tk7\t\\xff",
    ]
    assert len(tail(root)) == 10 + 3
    assert len(tail("-n", "all", root)) == 30 + 3
    assert tail("-n", 0, root) == []
    assert tail("-n", "all", root / "payments-1")[0].endswith("\tk5\ta\\tb\\n")


def test_a_partition_may_be_chosen(root: Path, tail: Tail) -> None:
    write_partition(root, {0: log(0, b"other")}, "orders-1")
    places = [line.split("\t")[0] for line in tail("--partition", "orders-1", root)]
    assert places == ["orders-1"]
    both = tail("--partition", "orders-1", "--topic", "payments", "-n", 1, root)
    assert [line.split("\t")[0] for line in both] == ["orders-1", "payments-1"]


def test_encrypted_segments_need_their_key(tail: Tail, capsys: pytest.CaptureFixture[str]) -> None:
    encrypted = data.objects() / "aiven-encrypted" / "remote"
    assert main(["tail", str(encrypted)]) == 1
    assert "--private-key" in capsys.readouterr().err
    key = data.objects() / "keys" / "first.private.pem"
    assert tail("--private-key", f"first={key}", "-n", 1, encrypted)


def test_a_topic_may_be_one_of_the_brokers_own(root: Path, tail: Tail) -> None:
    assert [line.split("\t")[4] for line in tail("--topic", "__own", root)] == ["own"]
    lines = tail("--topic", "payments", "--topic", "__own", "-n", 1, root)
    assert [line.split("\t")[0] for line in lines] == ["__own-0", "payments-1"]


def test_a_topic_with_a_name_like_the_registrys_is_printed(tmp_path: Path, tail: Tail) -> None:
    write_partition(tmp_path, {0: log(0, b"{}")}, "_schemas-0")
    write_partition(tmp_path, {0: log(0, b"copy")}, "_schemas_old-0")
    assert [line.split("\t")[0] for line in tail(tmp_path)] == ["_schemas_old-0"]


def test_a_partition_may_come_at_any_moment(
    root: Path, tail: Tail, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = LogStream.initial_offsets

    def begun(stream: LogStream) -> StreamOffsets:
        offsets = begin(stream)
        write_partition(root, {0: log(0, b"new", b"newer")}, "others-0")
        return offsets

    monkeypatch.setattr(LogStream, "initial_offsets", begun)
    values = [line.split("\t")[4] for line in tail("-n", 1, root)]
    assert values == ["29", "new", "newer", "\\xff"]


def test_the_last_records_do_not_need_the_first_segments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "orders-0"
    for base in (0, 9, 11):
        append(folder, batch_of_two(base), base)
    assert main(["tail", "-n", "2", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["tail", "-n", "all", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 6
    assert "offsets 2 to 8 are missing between" in err
    assert str(folder) in err


def test_a_time_may_be_behind_pythons_last_year(tmp_path: Path, tail: Tail) -> None:
    late = kt.batch([kt.Record(value=b"late")], base_timestamp=400_000_000_000_000)
    write_partition(tmp_path, {0: late}, "orders-0")
    (line,) = tail(tmp_path)
    assert line.split("\t")[2].startswith("+14645-06-30T")


def test_json_has_an_object_for_each_record(tmp_path: Path, tail: Tail) -> None:
    records = [
        kt.Record(key=None, value=b"\xff", headers=[("h", b"1"), ("e", None)]),
        kt.Record(key="é".encode(), value=b'"'),
    ]
    write_partition(tmp_path, {0: kt.batch(records, base_timestamp=1000)}, "orders-3")
    rows = [json.loads(line) for line in tail("--format", "json", tmp_path)]
    assert rows == [
        {
            "topic": "orders",
            "partition": 3,
            "offset": 0,
            "timestamp": "1970-01-01T00:00:01.000Z",
            "key": None,
            "value": {"base64": "/w=="},
            "headers": [{"key": "h", "value": "1"}, {"key": "e", "value": None}],
        },
        {
            "topic": "orders",
            "partition": 3,
            "offset": 1,
            "timestamp": "1970-01-01T00:00:01.000Z",
            "key": "é",
            "value": '"',
            "headers": [],
        },
    ]


def test_values_are_decoded_by_the_registry_beside_them(tmp_path: Path, tail: Tail) -> None:
    write_registry(
        tmp_path / "_schemas-0", [schema_record("orders-value", 1, 7, json.dumps(ORDER))]
    )
    values = [*confluent(7, encoded(ORDER, *ORDERS)), b"bare", None]
    write_values(tmp_path / "orders-0", values)
    flags = ("--value-decoder", "avro", tmp_path)
    lines = [line.split("\t")[4] for line in tail(*flags)]
    assert json.loads(lines[0])["id"] == ORDERS[0]["id"]
    assert lines[-2].startswith(
        "RecordDeserializationError: the value does not begin with a schema id"
    )
    assert lines[-1] == "null"
    rows = [json.loads(line)["value"] for line in tail("--format", "json", *flags)]
    assert rows[0]["id"] == ORDERS[0]["id"]
    assert rows[-2]["error"].startswith("RecordDeserializationError: ")
    assert rows[-1] is None


def test_markers_and_aborted_records_are_left_out(tmp_path: Path, tail: Tail) -> None:
    sent = {"is_transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    content = (
        log(0, b"aborted", **sent)
        + kt.control_batch(0, producer_id=7, base_offset=1)
        + log(2, b"plain")
    )
    write_partition(tmp_path, {0: content}, "orders-0")
    assert [line.split("\t")[4] for line in tail(tmp_path)] == ["aborted", "plain"]
    committed = tail("--isolation-level", "read_committed", tmp_path)
    assert [line.split("\t")[4] for line in committed] == ["plain"]


def test_a_time_may_be_the_beginning(root: Path, tail: Tail) -> None:
    later = kt.batch([kt.Record(value=b"later")], base_offset=30, base_timestamp=1_800_000_000_000)
    with (root / "orders-0" / f"{0:020}.log").open("ab") as file:
        file.write(later)
    (line,) = tail("--starting-timestamp", "2026-01-01", "--topic", "orders", root)
    assert line.endswith("\tlater")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--topic", "nope"), "there are no segments of nope at "),
        (("--partition", "orders-9"), "there are no segments of orders-9 at "),
        (("-n", "some"), "expected a number of records or all, not 'some'"),
        (("--schemas", "x"), "--schemas needs --value-decoder or --key-decoder"),
        (
            ("--starting-timestamp", "soon"),
            "argument --starting-timestamp: 'soon' is neither ISO 8601",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error(
    arguments: tuple[str, ...], words: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: Any = main(["tail", *arguments, str(root)])
    except SystemExit as exit_:
        code = exit_.code
    assert code == 1
    assert words in capsys.readouterr().err


def test_damage_names_a_way_that_this_command_has(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = next((root / "orders-0").glob("*.log"))
    damaged = segment.read_bytes()[:-1] + b"\xff"
    segment.write_bytes(damaged + log(20, b"v"))
    assert main(["tail", "-n", "all", str(root)]) == 1
    out, error = capsys.readouterr()
    assert error.endswith(": its later records are not printed: see `kafkajit repair`\n")
    assert error.count("\n") == 1
    assert "payments-1\t" in out


def test_bytes_at_a_logs_end_that_are_no_sound_batch_are_told(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = next((root / "orders-0").glob("*.log"))
    whole = segment.read_bytes()
    for behind, count in ((whole[:70], 70), (whole[:-1] + b"\xff", len(whole)), (bytes(70), 0)):
        segment.write_bytes(whole + behind)
        assert main(["tail", str(root)]) == bool(count)
        words = f"{segment}: {count:,} bytes from position {len(whole)} on are not a sound batch"
        assert (words in capsys.readouterr().err) == bool(count)
    segment.write_bytes(whole[:70])
    assert main(["tail", "--topic", "payments", str(root)]) == 0
    assert capsys.readouterr().err == ""


def test_a_batch_that_a_broker_is_writing_is_no_damage(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = next((root / "orders-0").glob("*.log"))
    batch = log(30, b"new")
    whole = segment.read_bytes()
    segment.write_bytes(whole + batch[:40])
    monkeypatch.setattr("kafkajit.cli.tail.sleep", lambda _: segment.write_bytes(whole + batch))
    assert main(["tail", str(root)]) == 0
    assert capsys.readouterr().err == ""


def test_a_partition_that_cannot_be_opened_does_not_stop_the_others(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(root, {0: b""}, "fifos-0")
    fifo = root / "fifos-0" / f"{0:020}.log"
    fifo.unlink()
    os.mkfifo(fifo)
    write_partition(root, {0: b'{"json": true}' * 9}, "others-0")
    (root / "gone-0").symlink_to(root / "nowhere")
    assert main(["tail", str(root)]) == 1
    out, err = capsys.readouterr()
    assert {line.split("\t")[0] for line in out.splitlines()} == {"orders-0", "payments-1"}
    lines = sorted(err.splitlines())
    assert [next(w for w in ("fifos-0", "gone-0", "others-0") if w in line) for line in lines] == [
        "fifos-0",
        "gone-0",
        "others-0",
    ]


def test_one_of_several_paths_without_segments_is_named(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for paths in ([root, empty], [empty, root]):
        assert main(["tail", *map(str, paths)]) == 1
        out, err = capsys.readouterr()
        assert "orders-0\t" in out
        assert err.startswith(f"kafkajit tail: no segments (20 digits and .log) at {empty}: ")
        assert err.count("\n") == 1
    assert main(["tail", str(empty)]) == 1
    assert "no segments (20 digits and .log) at" in capsys.readouterr().err


def test_new_records_are_printed_as_they_come(root: Path) -> None:
    """Also those of a torn tail once it is whole, and of a partition that is new."""
    with subprocess.Popen(
        command("tail", "-f", "-n", "1", str(root)),
        env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            found = [process.stdout.readline() for _ in range(2)]
            assert [line.split("\t")[:2] for line in found] == [
                ["orders-0", "29"],
                ["payments-1", "7"],
            ]
            batch = log(30, b"new")
            with (root / "orders-0" / f"{0:020}.log").open("ab", buffering=0) as file:
                file.write(batch[:40])
                write_partition(root, {0: log(0, b"first")}, "others-0")
                assert process.stdout.readline().split("\t")[0] == "others-0"
                file.write(batch[40:])
            assert process.stdout.readline().split("\t")[1:2] == ["30"]
        finally:
            process.terminate()


def test_missing_markers_of_records_that_it_prints_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log ends for read_committed before them, at another open transaction."""
    folder = tmp_path / "orders-0"
    append(folder, transactional(0, 3) + batch_of_two(2) + transactional(4, 1))
    append(folder, transactional(10, 3, 2) + marker(12, 3), base_offset=10)
    finish(folder)
    committed = ["--isolation-level", "read_committed"]
    assert main(["tail", "-n", "all", *committed, str(folder)]) == 1
    assert "a transaction is open in front of them" in capsys.readouterr().err
    append(folder, marker(6, 3) + batch_of_two(7, 3), base_offset=6)
    assert main(["tail", "-n", "all", *committed, str(folder)]) == 0
    assert capsys.readouterr().err == ""
