"""`kafkajit sql` as a person meets it: with a Java and a Spark of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from terminal import Terminal, command, environment, processes
from waiting import eventually

import kafkajit.testing as kt

PROMPT = "kafkajit> "
# It never ends by itself.
ENDLESS = "SELECT max(hash(id)) FROM range(100000000000000)"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log.dirs root of two partitions, 20 records and 7; one of them is odd."""
    root = tmp_path_factory.mktemp("logs")
    for partition, count in ((0, 20), (1, 7)):
        folder = root / f"orders-{partition}"
        folder.mkdir()
        records = [
            kt.Record(b"k%d" % n, b"value \x1b[31m" if n == 6 else b"v" * 50) for n in range(count)
        ]
        (folder / f"{0:020}.log").write_bytes(kt.batch(records))
    return root


def none_left(environment: dict[str, str]) -> None:
    """Nothing that was started is there any more."""
    assert eventually(lambda: not processes(environment), 15), processes(environment)


@pytest.fixture(scope="module")
def terminal(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    around = environment(XDG_STATE_HOME=str(tmp_path_factory.mktemp("state")))
    with Terminal(command("sql", "--path", str(logs)), around) as opened:
        opened.read_until(PROMPT)
        yield opened
        opened.type("\x04")
        assert opened.wait()[0] == 0
    none_left(around)


def answer(terminal: Terminal, statement: str) -> list[str]:
    """What a prompt says to a statement of one line."""
    terminal.type(f"{statement}\r")
    _, *lines, prompt = terminal.read_until(PROMPT).split("\n")
    assert prompt == PROMPT
    return lines


class TestPrompt:
    """One session, at 80 columns."""

    def test_a_statement_of_several_lines_has_a_table(self, terminal: Terminal) -> None:
        terminal.type("SELECT topic, partition, -- two;\r")
        terminal.read_until("     ...> ")
        terminal.type("count(*) AS n FROM records GROUP BY ALL ORDER BY n;\r")
        _, *lines, _ = terminal.read_until(PROMPT).split("\n")
        assert lines == [
            "┌────────┬───────────┬────────┐",
            "│ topic  │ partition │      n │",
            "│ string │       int │ bigint │",
            "├────────┼───────────┼────────┤",
            "│ orders │         1 │      7 │",
            "│ orders │         0 │     20 │",
            "└────────┴───────────┴────────┘",
            "2 rows",
        ]

    def test_a_wide_table_fits_the_terminal(self, terminal: Terminal) -> None:
        lines = answer(terminal, "SELECT * FROM records WHERE partition = 1;")
        assert {len(line) for line in lines[:-1]} == {len(lines[0])}
        assert len(lines[0]) <= 80
        assert lines[-1] == "7 rows; 7 of 18 columns, all with .format line"

    def test_what_is_in_the_log_does_not_colour_the_terminal(self, terminal: Terminal) -> None:
        (line,) = answer(terminal, "SELECT value FROM records WHERE offset = 6 AND partition = 1;")[
            4:5
        ]
        assert line == "│ X'76616C7565201B5B33316D' │"

    def test_the_literal_query_has_structs(self, terminal: Terminal) -> None:
        lines = answer(terminal, "SELECT explode(kafka_records(content)) FROM binaryFile;")
        assert lines[4].startswith("│ {key: k0, value: vvv")
        assert len(lines[4]) == 80
        assert lines[-1] == "27 rows"

    def test_more_rows_than_are_shown(self, terminal: Terminal) -> None:
        answer(terminal, ".rows 3")
        lines = answer(terminal, "SELECT offset FROM records ORDER BY offset DESC, 1;")
        answer(terminal, ".rows 40")
        assert len(lines) == 4 + 3 + 2
        assert lines[-1] == "the first 3 rows, more with .rows N"

    def test_an_error_points_at_its_place(self, terminal: Terminal) -> None:
        assert answer(terminal, "SELECT ofset FROM records;") == [
            "there is no column ofset, did you mean offset?",
            "  SELECT ofset FROM records",
            "         ^^^^^",
        ]

    def test_ctrl_c_cancels_the_query_and_not_the_prompt(self, terminal: Terminal) -> None:
        terminal.type(f"{ENDLESS};\r")
        terminal.read_until(" tasks, ")
        begun = time.monotonic()
        terminal.type("\x03")
        shown = terminal.read_until(PROMPT)
        assert time.monotonic() - begun < 10
        assert shown.split("\n")[-2:] == ["cancelled", PROMPT]
        assert answer(terminal, "SELECT 1 AS one;")[4] == "│   1 │"

    def test_a_plan_has_its_lines(self, terminal: Terminal) -> None:
        first, *others = answer(terminal, "EXPLAIN SELECT sum(offset) FROM records;")
        assert first == "== Physical Plan =="
        # It is the plan of what would be run: with the columns that are needed.
        assert any("BatchScan kafkaLog[offset#" in line for line in others)

    def test_a_plan_shows_no_secret(self, terminal: Terminal) -> None:
        sql = "EXPLAIN SELECT offset FROM kafka_log('s3://AKIA:SE9CRET@bucket/k');"
        plan = "\n".join(answer(terminal, sql)[1:])
        assert "kafka_log(*********(redacted)bucket/k)" in plan
        assert "SE9CRET" not in plan

    def test_formats_can_be_changed(self, terminal: Terminal) -> None:
        sql = "SELECT key, offset FROM records WHERE partition = 1 AND offset < 2 ORDER BY offset;"
        answers = {}
        for name in ("csv", "json", "line"):
            answer(terminal, f".format {name}")
            answers[name] = answer(terminal, sql)
        answer(terminal, ".format table")
        assert answers == {
            "csv": ["key,offset", "k0,0", "k1,1"],
            "json": ['{"key":"k0","offset":0}', '{"key":"k1","offset":1}'],
            "line": ["   key = k0", "offset = 0", "", "   key = k1", "offset = 1", "2 rows"],
        }

    def test_timing_says_how_long_it_took(self, terminal: Terminal) -> None:
        answer(terminal, ".timing on")
        lines = answer(terminal, "SELECT 1;")
        answer(terminal, ".timing off")
        assert lines[-1].startswith("1 row in 0.") or lines[-1].startswith("1 row in ")

    def test_views_of_ones_own_are_listed(self, terminal: Terminal) -> None:
        assert answer(terminal, "CREATE TEMP VIEW mine AS SELECT * FROM records;") == []
        assert answer(terminal, ".tables")[-1] == f"{'mine':20}of yours"
        assert answer(terminal, "SELECT max(offset) AS m FROM mine;")[4] == "│     19 │"

    def test_schema_says_what_columns_mean(self, terminal: Terminal) -> None:
        lines = answer(terminal, ".schema records")
        assert "offset                bigint     the record's offset in its partition" in lines
        assert max(map(len, lines)) <= 80
        assert "files:" in answer(terminal, ".schema")

    def test_functions_are_told_with_what_they_take(self, terminal: Terminal) -> None:
        lines = answer(terminal, ".functions")
        assert "kafka_records(content [, columns [, mode]])" in lines
        assert "kafka_offset_lookup(content, baseOffset, targetOffset)" in lines
        assert max(map(len, lines)) <= 80

    def test_tab_completes_functions_of_sparks(self, terminal: Terminal) -> None:
        terminal.type("SELECT kafka_record_b\t")
        terminal.read_until("kafka_record_batches(")
        terminal.clear_line(PROMPT)

    def test_several_statements_on_a_line(self, terminal: Terminal) -> None:
        lines = answer(terminal, "SELECT 1 AS a; SELECT 2 AS b;")
        assert [lines[1], lines[4], lines[7], lines[10]] == [
            "│   a │", "│   1 │", "│   b │", "│   2 │",
        ]  # fmt: skip


@pytest.mark.thorough
def test_a_script_in_a_pipe_is_csv_and_stops_at_an_error(logs: Path) -> None:
    script = """
        -- how many?
        SELECT partition, count(*) AS n FROM records GROUP BY ALL ORDER BY 1;
        SET spark.app.name; SET spark.sql.session.timeZone;
        SELECT key, value FROM records WHERE offset = 6 ORDER BY partition;
        SELECT path, length FROM binaryFile WHERE path LIKE '%/orders-1/%';
        SELECT id FROM range(200000);
        SELECT nothing FROM records;
        SELECT 'not reached';
    """
    around = environment()
    done = subprocess.run(
        command("sql", "--path", str(logs), "-f", "-", "--conf", "spark.app.name=a = b"),
        input=script, env=around, capture_output=True, text=True, check=False,
    )  # fmt: skip
    size = (logs / "orders-1" / f"{0:020}.log").stat().st_size
    assert done.stdout == (
        "partition,n\n0,20\n1,7\n"
        "key,value\nspark.app.name,a = b\nkey,value\nspark.sql.session.timeZone,UTC\n"
        f"key,value\nk6,X'76616C7565201B5B33316D'\nk6,X'76616C7565201B5B33316D'\n"
        f"path,length\n{logs}/orders-1/{0:020}.log,{size}\n"
        "id\n" + "".join(f"{n}\n" for n in range(200_000))
    )
    assert done.stderr.splitlines() == [
        "kafkajit sql: -, line 8: there is no column nothing; there are: "
        + done.stderr.splitlines()[0].partition("there are: ")[2],
        "  SELECT nothing FROM records",
        "         ^^^^^^^",
    ]
    assert done.returncode == 1
    none_left(around)


def test_a_file_of_parquet_holds_all_records(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    sql = "SELECT * FROM records ORDER BY partition, offset"
    arguments = command("sql", "--path", str(logs), "-o", str(path), sql)
    # From another folder, with a python on the PATH that is not ours.
    around = environment(PYSPARK_PYTHON="/bin/false", PYSPARK_DRIVER_PYTHON="/bin/false")
    done = subprocess.run(
        arguments, env=around, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    table = pq.read_table(path)
    assert table["offset"].to_pylist() == [*range(20), *range(7)]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.thorough
def test_ctrl_c_ends_a_single_query_and_all_that_it_started(logs: Path) -> None:
    around = environment()
    with Terminal(command("sql", "--path", str(logs), ENDLESS), around) as terminal:
        terminal.read_until(" tasks, ")
        begun = time.monotonic()
        terminal.type("\x03")
        code, shown = terminal.wait()
    assert code == 130
    assert time.monotonic() - begun < 10
    assert "Traceback" not in shown
    assert shown.strip() in ("", "^C")
    none_left(around)


@pytest.mark.thorough
def test_sigterm_ends_a_single_query_and_leaves_no_half_file(logs: Path, tmp_path: Path) -> None:
    around = environment()
    path = tmp_path / "rows.json"
    process = subprocess.Popen(
        command("sql", "-o", str(path), "SELECT id FROM range(0, 1000000000000, 1, 4)"),
        env=around, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not any(part.stat().st_size > 1 << 20 for part in tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=15)
    assert (process.returncode, said) == (143, "")
    assert list(tmp_path.iterdir()) == []
    none_left(around)


@pytest.mark.thorough
def test_whoever_reads_a_pipe_may_stop(logs: Path) -> None:
    around = environment()
    sql = (
        "SELECT id, topic FROM range(0, 1000000000000, 1, 4) "
        "CROSS JOIN (SELECT DISTINCT topic FROM records)"
    )
    process = subprocess.Popen(
        command("sql", "--path", str(logs), "--format", "json", sql),
        env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline()) == {"id": 0, "topic": "orders"}
        process.stdout.close()
        assert process.wait(20) == 1
        assert process.stderr.read() == b""
    none_left(around)


@pytest.mark.thorough
@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.5])
def test_ctrl_c_while_spark_starts_leaves_nothing(logs: Path, seconds: float) -> None:
    around = environment()
    with Terminal(command("sql", "--path", str(logs), "SELECT 1"), around) as terminal:
        time.sleep(seconds)
        terminal.type("\x03")
        code, shown = terminal.wait()
    assert code in (130, -signal.SIGINT)  # Python itself may still have been starting
    assert "Traceback" not in shown
    none_left(around)


def test_no_java_is_said_in_one_line(logs: Path) -> None:
    around = environment(PATH=str(Path(sys.executable).parent), JAVA_HOME="")
    for arguments in (["SELECT 1"], []):
        with Terminal(command("sql", "--path", str(logs), *arguments), around) as terminal:
            code, shown = terminal.wait()
        assert code == 1
        (line,) = shown.strip().splitlines()
        assert line.startswith("kafkajit sql: ")
        assert "Java" in line
        assert "17" in line
