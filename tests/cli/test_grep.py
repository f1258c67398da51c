"""kafkajit grep: the records that match, and grep's exit codes."""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanning import write_partition
from terminal import Terminal, command, environment
from typed_logs import (
    ORDER,
    ORDERS,
    confluent,
    encoded,
    schema_record,
    write_registry,
    write_values,
)

import kafkajit.scan.search
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.cli.grep_lines import Neighbours
from kafkajit.scan.search import Found

Grep = Callable[..., tuple[int, list[str], list[str]]]
TIME = 1_700_000_000_000


@pytest.fixture
def grep(capsys: pytest.CaptureFixture[str]) -> Grep:
    def run(*arguments: object) -> tuple[int, list[str], list[str]]:
        try:
            code = main(["grep", *map(str, arguments)])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err.splitlines()

    return run


def log(first: int, *values: bytes | None, **fields: Any) -> bytes:
    records = [
        kt.Record(
            b"k%d" % at,
            value,
            [(f"h{at}", b"x")] if at % 2 else [],
            timestamp=TIME + at * 1000,
        )
        for at, value in enumerate(values, first)
    ]
    return kt.batch(records, base_offset=first, base_timestamp=TIME, **fields)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_partition(
        tmp_path,
        {0: log(0, b"zero", b"one\n", None) + log(3, b"three", codec="zstd"), 4: log(4, b"four")},
    )
    write_partition(tmp_path, {0: log(0, b"zero", b"\xca\xfe\xba\xbe")}, "orders-1")
    write_partition(tmp_path, {0: log(0, b"zero")}, "__own-0")
    return tmp_path


def offsets(lines: list[str]) -> list[str]:
    return [" ".join(line.split("\t")[:2]) for line in lines]


def test_a_line_has_a_record_and_its_headers(root: Path, grep: Grep) -> None:
    assert grep("one", root) == (
        0,
        ["orders-0\t1\t2023-11-14T22:13:21.000Z\tk1\tone\\n\th1:x"],
        [],
    )
    assert grep("-v", "one", root)[1] == ["orders-0\t1\t2023-11-14T22:13:21.000Z\tk1\tone\\n"]
    (line,) = grep("k2", root)[1]
    assert line.endswith("\tk2\tnull")


def test_json_has_the_fields_of_tail(
    root: Path, grep: Grep, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tail", "-n", "all", "--format", "json", str(root / "orders-0")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert grep("--format", "json", "", root / "orders-0")[1] == lines
    assert grep("--format", "json", "^three$", root)[1] == [lines[3]]


def test_a_pattern_is_an_expression_a_text_or_bytes(root: Path, grep: Grep) -> None:
    assert offsets(grep("^.o[ur]*$", root)[1]) == ["orders-0 4"]
    assert offsets(grep("^(zero|four)$", root)[1]) == ["orders-0 0", "orders-0 4", "orders-1 0"]
    assert grep("-F", "^zero", root)[:2] == (1, [])
    assert offsets(grep("--hex", "FEBA", root)[1]) == ["orders-1 1"]
    assert offsets(grep("-i", "THREE", root)[1]) == ["orders-0 3"]
    assert offsets(grep("-e", "one", "-e", "four", root)[1]) == ["orders-0 1", "orders-0 4"]
    assert offsets(grep("-e=three", "--regexp=x{2}", root)[1]) == ["orders-0 3"]
    assert offsets(grep("--", "-", root / "orders-1")[1]) == []


def test_keys_values_and_headers_are_chosen(root: Path, grep: Grep) -> None:
    assert offsets(grep("-k", "1", root)[1]) == ["orders-0 1", "orders-1 1"]
    assert offsets(grep("-H", "h3|^x$", root)[1]) == ["orders-0 1", "orders-0 3", "orders-1 1"]
    assert grep("-k", "-H", "three", root)[0] == 1
    inverted = ("orders-0 0", "orders-0 2", "orders-0 3", "orders-0 4")
    assert offsets(grep("--invert-match", "one", root / "orders-0")[1]) == list(inverted)


def test_counts_are_by_partition(root: Path, grep: Grep) -> None:
    assert grep("-c", "one", root) == (0, ["orders-0\t1", "orders-1\t0"], [])
    assert grep("-c", "-m", 1, "o", root)[1] == ["orders-0\t1", "orders-1\t1"]
    counts = [json.loads(line) for line in grep("-c", "--format", "json", "k", root)[1]]
    assert counts == [
        {"topic": "orders", "partition": 0, "count": 5},
        {"topic": "orders", "partition": 1, "count": 2},
    ]
    assert grep("-c", "nothing", root) == (1, ["orders-0\t0", "orders-1\t0"], [])


@pytest.mark.parametrize("threads", [1, 2])
def test_partitions_of_one_name_in_several_folders_are_told_apart(
    threads: int, root: Path, tmp_path: Path, grep: Grep
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root / "orders-1", copy / "orders-1")
    words = ("--threads", threads)
    counts = grep("-c", *words, "k", root, copy)[1]
    assert sorted(counts) == sorted(["orders-0\t5", f"{copy}/orders-1\t2", f"{root}/orders-1\t2"])
    lines = [line.split("\t")[0] for line in grep(*words, "k", root, copy)[1]]
    assert sorted(f"{place}\t{count}" for place, count in Counter(lines).items()) == sorted(counts)
    for options in (["-c"], []):
        rows = map(json.loads, grep(*options, "--format", "json", *words, "k", root, copy)[1])
        assert {row.get("path") for row in rows} == {
            None,
            *map(str, copy.iterdir()),
            f"{root}/orders-1",
        }
    assert len(grep("-m", 1, *words, "k", root, copy)[1]) == 3


def test_paths_are_those_of_segments(root: Path, grep: Grep) -> None:
    paths = [str(root / f"orders-{place}" / f"{0:020}.log") for place in (0, 1)]
    assert grep("-l", "zero", root) == (0, paths, [])
    assert grep("-l", "-c", "--format", "json", "one", root)[1] == [json.dumps({"path": paths[0]})]


def test_a_segment_may_have_any_name(tmp_path: Path, grep: Grep) -> None:
    path = tmp_path / "copy"
    path.write_bytes(log(7, b"seven"))
    code, (line,), _ = grep("seven", path)
    assert (code, line.split("\t")[1]) == (0, "7")
    assert grep("-c", "--format", "json", "seven", path)[1] == [
        json.dumps({"path": str(path), "count": 1})
    ]


def test_a_partition_is_read_up_to_the_limit(root: Path, grep: Grep) -> None:
    assert offsets(grep("-m", 2, "k", root)[1]) == [
        "orders-0 0",
        "orders-0 1",
        "orders-1 0",
        "orders-1 1",
    ]
    (root / "orders-0" / f"{4:020}.log").write_bytes(b"\xff" * 4 + kt.broken("wrong crc"))
    assert grep("-m", 2, "k", root / "orders-0")[2] == []
    assert grep("-m", 0, "k", root) == (1, [], [])


def test_records_around_a_match_are_printed(root: Path, grep: Grep) -> None:
    folder = root / "orders-0"
    assert offsets(grep("-A", 1, "zero|three", folder)[1]) == [
        "orders-0 0",
        "orders-0 1",
        "--",
        "orders-0 3",
        "orders-0 4",
    ]
    assert offsets(grep("-B", 2, "-v", "three", folder)[1])[0] == "orders-0 1"
    assert offsets(grep("-C", 1, "-m", 1, "zero", root)[1]) == [
        "orders-0 0",
        "orders-0 1",
        "--",
        "orders-1 0",
        "orders-1 1",
    ]
    assert "--" not in grep("-C", 1, "-m", 1, "--format", "json", "zero", root)[1]
    assert offsets(grep("-C", 9, "-A", 0, "four", folder)[1]) == [
        f"orders-0 {at}" for at in range(5)
    ]


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=5), max_size=5),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_neighbours_are_those_of_a_plain_loop(
    chunks: list[list[bool]], before: int, after: int
) -> None:
    matches = [is_match for chunk in chunks for is_match in chunk]
    expected = [any(matches[max(at - after, 0) : at + before + 1]) for at in range(len(matches))]
    neighbours = Neighbours(before, after)
    shown: list[int] = []
    first = 0
    for chunk in chunks:
        records = pa.record_batch({"at": pa.array(range(first, first + len(chunk)))})
        first += len(chunk)
        for run, is_next in neighbours.around(Found(records, pa.array(chunk).to_numpy(False))):
            rows = run["at"].to_pylist()
            assert is_next == (rows[0] - 1 in shown)
            shown += rows
    assert shown == [at for at, is_shown in enumerate(expected) if is_shown]
    if not any(matches[-after:] if after else ()):
        assert neighbours.is_complete


VALUES = st.lists(st.lists(st.sampled_from([b"yes", b"no"]), min_size=1, max_size=4), max_size=4)
FLAGS = st.tuples(
    st.sampled_from([(), ("-c",), ("-l",), ("--invert-match",), ("--format", "json")]),
    st.sampled_from([(), ("-A", 1), ("-B", 2), ("-C", 3)]),
    st.sampled_from([(), ("-m", 1), ("-m", 3)]),
)


@given(st.lists(VALUES, min_size=1, max_size=3), FLAGS, st.sets(st.integers(0, 9)))
def test_threads_print_what_one_prints(
    tmp_path_factory: pytest.TempPathFactory,
    partitions: list[list[list[bytes]]],
    flags: tuple[tuple[object, ...], ...],
    damaged: set[int],
) -> None:
    root = tmp_path_factory.mktemp("logs")
    number = 0
    for partition, segments in enumerate(partitions):
        first, logs = 0, {0: b""}
        for values in segments:
            logs[first] = log(first, *values)
            first += len(values)
            if number in damaged:
                logs[first - len(values)] += kt.broken("wrong crc", base_offset=first)
                first += 3
            number += 1
        write_partition(root, logs, f"orders-{partition}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafkajit.scan.search, "small_segments", lambda _: [])  # a thread for each
        words = ["grep", *map(str, itertools.chain(*flags)), "yes", str(root)]
        assert printed(*words, "--threads", "3") == printed(*words, "--threads", "1")


def printed(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words])
    return code, out.getvalue(), err.getvalue()


def test_threads_begin_with_one(grep: Grep) -> None:
    code, _, (error,) = grep("--threads", 0, "a", ".")
    assert code == 2
    assert "argument --threads: expected a number from 1 on, not '0'" in error


def test_topics_partitions_offsets_and_times_limit_the_search(root: Path, grep: Grep) -> None:
    assert offsets(grep("zero", "--topic", "__own", root)[1]) == ["__own-0 0"]
    assert offsets(grep("zero", "--partition", "orders-1", root)[1]) == ["orders-1 0"]
    assert offsets(grep("zero", root / "__own-0")[1]) == ["__own-0 0"]
    bounds = ("--starting-offset", 1, "--ending-offset", 3)
    assert offsets(grep(*bounds, "k", root / "orders-0")[1]) == ["orders-0 1", "orders-0 2"]
    times = ("--starting-timestamp", TIME + 3000, "--ending-timestamp", "2023-11-14T22:13:24Z")
    assert offsets(grep(*times, "k", root / "orders-0")[1]) == ["orders-0 3"]


def test_aborted_transactions_are_left_out_on_request(tmp_path: Path, grep: Grep) -> None:
    producer = {"producer_id": 5, "producer_epoch": 0}
    content = log(0, b"gone", is_transactional=True, base_sequence=0, **producer)
    content += kt.control_batch(0, base_offset=1, **producer) + log(2, b"there")
    folder = write_partition(tmp_path, {0: content})
    assert offsets(grep("e", folder)[1]) == ["orders-0 0", "orders-0 2"]
    assert offsets(grep("e", "--isolation-level", "read_committed", folder)[1]) == ["orders-0 2"]


class TestExitCodes:
    """As grep has them."""

    def test_a_match_and_none(self, root: Path, grep: Grep) -> None:
        assert grep("zero", root)[0] == 0
        assert grep("nothing", root) == (1, [], [])
        assert grep("-q", "zero", root) == (0, [], [])
        assert grep("-q", "nothing", root) == (1, [], [])

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            (("a(", "."), "kafkajit grep: the regular expression 'a(' is wrong"),
            (("a", "/nonexistent"), "kafkajit grep: there is nothing at /nonexistent"),
            (("a",), "kafkajit grep: pass a PATH behind the pattern"),
            (
                ("--hex", "xx", "."),
                "kafkajit grep: expected bytes in hex such as cafebabe, not 'xx'",
            ),
            (("--hex", "-i", "ca", "."), "kafkajit grep: pass --hex or --ignore-case, not both"),
            (("--field", "a", "b", "."), "kafkajit grep: --field needs --value-decoder"),
            (("-m", "many", "a", "."), "kafkajit grep: argument -m/--max-count: expected a number"),
            (("-x", "a", "."), "kafkajit grep: unknown option -x"),
        ],
    )
    def test_an_error(self, grep: Grep, arguments: tuple[str, ...], error: str) -> None:
        code, out, (line,) = grep(*arguments)
        assert (code, out) == (2, [])
        assert line.startswith(error)

    def test_damage_is_reported_and_hides_no_match_behind_it(self, root: Path, grep: Grep) -> None:
        path = root / "orders-1" / f"{0:020}.log"
        path.write_bytes(log(0, b"zero") + kt.broken("wrong crc", base_offset=1) + log(4, b"end"))
        code, lines, (error,) = grep("zero|end", root)
        assert code == 2
        assert offsets(lines) == ["orders-0 0", "orders-1 0", "orders-1 4"]
        begin, end = error.split("computed crc = ")
        assert begin == (
            f"kafkajit grep: {path}: CorruptRecordError: Record is corrupt (stored crc = 1, "
        )
        size = len(kt.broken("wrong crc", base_offset=1))
        assert end.partition(") ")[2] == (
            f"at position {len(log(0, b'zero'))}: {size} bytes are damaged and were not searched"
        )
        assert grep("nothing", root)[0] == 2
        assert grep("-q", "end", root)[0] == 0
        assert grep("-q", "nothing", root)[0] == 2
        assert grep("--no-check-crcs", "value", root)[0] == 0

    def test_a_name_that_nothing_has(self, root: Path, grep: Grep) -> None:
        code, lines, (error,) = grep("zero", "--topic", "orders", "--partition", "other-0", root)
        assert (code, lines) == (2, [])
        assert f"there are no segments of other-0 at {root}: did you mean 'orders-0'?" in error

    def test_a_file_of_something_else(self, root: Path, grep: Grep) -> None:
        (root / "orders-0" / f"{4:020}.log").write_bytes(b'{"json": true}' * 9)
        code, lines, errors = grep("zero", root)
        assert (code, len(lines), len(errors)) == (2, 2, 1)
        assert "JSON" in errors[0]


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    record = schema_record("orders-value", 1, 7, json.dumps(ORDER))
    write_registry(tmp_path / "_schemas-0", [record])
    write_values(tmp_path / "orders-0", [*confluent(7, encoded(ORDER, *ORDERS)), b"bare", None])
    return tmp_path


class TestDecoded:
    """Values with a schema are searched as they are printed."""

    def test_the_text_is_searched(self, typed: Path, grep: Grep) -> None:
        flags = ("--value-decoder", "avro", typed)
        _, (line,), _ = grep('"sku":"bé"', *flags)
        assert json.loads(line.split("\t")[4])["sku"] == "bé"
        assert grep('"id":', typed)[0] == 1
        assert offsets(grep("null", *flags)[1]) == ["orders-0 0"]
        (row,) = grep("--format", "json", '"sku":"bé"', *flags)[1]
        assert json.loads(row)["value"]["note"] == "n"

    def test_a_malformed_value_is_searched_as_bytes(self, typed: Path, grep: Grep) -> None:
        code, (line,), (note,) = grep("^bare$", "--value-decoder", "avro", typed)
        assert code == 0
        assert "RecordDeserializationError: the value does not begin with a schema id" in line
        assert note.endswith("of the keys and values, 1 was malformed and searched as bytes")

    def test_a_field_is_searched(self, typed: Path, grep: Grep) -> None:
        def found(pattern: str, field: str) -> list[str]:
            _, lines, (note,) = grep(pattern, "--value-decoder", "avro", "--field", field, typed)
            assert "1 was malformed" in note
            return [line.split("\t")[1] for line in lines if "RecordDes" not in line]

        assert found("^a$", "sku") == ["0"]
        assert found("a", "note") == []
        assert found("^[27]$", "lines") == ["0", "2"]
        assert found("-1099511627776", "id") == ["1"]

    def test_a_field_that_no_value_has_is_an_error(self, typed: Path, grep: Grep) -> None:
        code, _, errors = grep("a", "--value-decoder", "avro", "--field", "item.sku", typed)
        assert code == 2
        assert errors[-1].endswith("none of 3 values has a field item.sku: check --field")


def in_terminal(*arguments: str, **changes: str) -> tuple[int, str]:
    with Terminal(command("grep", *arguments), environment(**changes)) as terminal:
        return terminal.wait(60)


def test_matches_are_in_colour_on_a_terminal_only(root: Path) -> None:
    folder = str(root / "orders-0")
    code, shown = in_terminal("-k", "-H", "k1|k3|h", "-C", "0", folder, NO_COLOR="")
    assert code == 0
    assert "\x1b[1;31mk1\x1b[0m\tone\\n\t\x1b[1;31mh\x1b[0m1:x" in shown
    assert "\x1b" not in in_terminal("k1", folder, NO_COLOR="1")[1]
    assert "\x1b[35morders-0\x1b[0m\t\x1b[32m1\x1b[0m\t" in shown
    assert "\x1b[1;31m" not in in_terminal("--invert-match", "k1", folder, NO_COLOR="")[1]
    assert "\x1b" not in in_terminal("--color", "never", "k1", folder, NO_COLOR="")[1]
    run = subprocess.run(command("grep", "k1", folder), capture_output=True, text=True, check=True)
    assert "\x1b" not in run.stdout
    words = command("grep", "--color", "always", "k1", folder)
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "\x1b[1;31mk1\x1b[0m" in run.stdout


def test_help_fits_80_columns(root: Path) -> None:
    run = subprocess.run(
        command("grep", "--help"),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    usage, _, rest = run.stdout.partition("\n\n")
    rest = rest.partition("\n\n")[2]  # behind the summary
    assert all(len(line) <= 80 for line in [*usage.splitlines(), *rest.splitlines()])
    assert "kafkajit grep --hex -c cafebabe" in rest


def test_the_reader_of_a_pipe_may_leave(root: Path) -> None:
    run = subprocess.run(
        f"{' '.join(command('grep', 'o', str(root)))} | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith("orders-0\t0\t")
    assert run.stderr == ""
