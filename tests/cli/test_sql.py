"""`kafkajit sql` as far as it goes without Spark: arguments, early errors, the prompt's manners."""

from __future__ import annotations

import io
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal, command, environment

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.cli.sql.commands import Commands
from kafkajit.cli.sql.completion import Completer
from kafkajit.cli.sql.query import Engine
from kafkajit.cli.sql.shell import Shell
from kafkajit.cli.sql.views import Logs

LOGS = kt.SAMPLE
PROMPT = "kafkajit> "


def run(
    *arguments: str, text: str | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run `kafkajit sql` on a machine without Java, which its early errors do not need."""
    return subprocess.run(
        command("sql", *arguments),
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        env=environment(PATH="/nonexistent", JAVA_HOME="/nonexistent", **changes),
        capture_output=True,
        text=True,
        check=False,
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line on stderr."""
    try:
        code: object = main(["sql", *arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.rstrip("\n")


def test_help_fits_a_terminal_and_names_the_views() -> None:
    shown = run("--help", COLUMNS="80").stdout
    assert max(map(len, shown.splitlines()[:40])) <= 80
    for word in ("--path", "--isolation-level", "binaryFile", "SELECT explode(kafka_records"):
        assert word in shown


MODES = "FAILFAST, DROPMALFORMED, PERMISSIVE"
FORMATS = "table, line, csv, json, arrow, parquet"
SEE = "; see kafkajit sql --help"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--path /no/such", "there is nothing at /no/such"),
        ("--path /no/*.such", "there is nothing at /no"),
        (
            f"--path {LOGS} --mode FAILFASR",
            "argument --mode: unknown value 'FAILFASR' (did you mean 'FAILFAST'?); there are: "
            f"{MODES}{SEE}",
        ),
        (
            f"--path {LOGS} --isolation-level committed",
            "argument --isolation-level: unknown value 'committed' (did you mean "
            f"'read_committed'?); there are: read_uncommitted, read_committed{SEE}",
        ),
        (
            f"--path {LOGS} --option starting=1",
            "unknown option 'starting': did you mean 'startingOffsets'?",
        ),
        (
            f"--path {LOGS} --option nothing",
            f"argument --option: expected NAME=VALUE, not 'nothing'{SEE}",
        ),
        (
            f"--path {LOGS} --format xml",
            f"argument --format: unknown value 'xml'; there are: {FORMATS}{SEE}",
        ),
        (f"--path {LOGS} --rows 0", "--rows must be at least 1, not 0"),
        ("--mode FAILFAST", "mode needs --path: name the logs to read"),
        ("--file x.sql", "statements are given twice: as an argument and with --file"),
    ],
)
def test_errors_are_reported_at_once_in_one_line(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, *arguments.split(), "SELECT 1") == f"kafkajit sql: {message}"


def test_a_file_of_statements_has_to_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "--file", "/no/such.sql")
    assert line == "kafkajit sql: No such file or directory: /no/such.sql"


def test_a_folder_for_results_has_to_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "--output", "/no/such/rows.csv", "SELECT 1")
    assert line == "kafkajit sql: there is no folder /no/such: make it, or name another"


def test_a_folder_without_segments_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").touch()
    line = refused(capsys, "--path", str(tmp_path), "SELECT 1")
    assert line.startswith(
        f"kafkajit sql: no segments (20 digits and .log) at {tmp_path}: a path is"
    )


def test_an_option_may_make_segments_of_other_names(tmp_path: Path) -> None:
    log = tmp_path / "copy.bin"
    log.write_bytes(kt.batch([kt.Record()]))
    for logs in (Logs([str(tmp_path)], {"pathGlobFilter": "*.bin"}), Logs([str(log)], {})):
        assert [segment.path for segment in logs.find_segments()] == [str(log)]


def test_the_traceback_is_there_with_debug() -> None:
    done = run("--path", "/no/such", "--debug", "SELECT 1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_file_is_not_read_from_a_terminal_and_binary_not_written_to_one() -> None:
    arguments = command("sql", "--path", LOGS, "--format", "arrow", "SELECT 1")
    with Terminal(arguments, environment(PATH="/nonexistent")) as terminal:
        code, shown = terminal.wait()
    assert code == 1
    assert shown.strip() == (
        "kafkajit sql: arrow cannot be shown on a terminal: write it to a file with --output"
    )


def test_without_a_statement_nothing_is_run() -> None:
    done = run("--path", LOGS, text=" -- nothing\n;;")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# A prompt whose Spark never finishes starting.
WITHOUT_SPARK = """
import sys, time
import kafkajit.cli, kafkajit.cli.sql
kafkajit.cli.sql._start = lambda options: time.sleep(1000)
sys.exit(kafkajit.cli.main(sys.argv[1:]))
"""


class TestPrompt:
    """The prompt's behaviour in a terminal."""

    @pytest.fixture
    def around(self, tmp_path: Path) -> dict[str, str]:
        return environment(XDG_STATE_HOME=str(tmp_path))

    @pytest.fixture
    def terminal(self, around: dict[str, str]) -> Iterator[Terminal]:
        with Terminal(
            [*command()[:1], "-c", WITHOUT_SPARK, "sql", "--path", LOGS], around
        ) as opened:
            opened.greeting = opened.read_until(PROMPT)  # type: ignore[attr-defined]
            yield opened

    def test_it_greets_with_the_number_and_size_of_segments(self, terminal: Terminal) -> None:
        first, second, _ = terminal.greeting.split("\n")  # type: ignore[attr-defined]
        assert first.endswith(f" kB: {LOGS}")
        assert " segments in " in first
        assert second == "Statements end with a semicolon; .help lists the commands."

    def test_errors_are_red(self, around: dict[str, str]) -> None:
        words = [*command()[:1], "-c", WITHOUT_SPARK, "sql", "--path", LOGS]
        with Terminal(words, around | {"NO_COLOR": ""}) as terminal:
            terminal.read_until(PROMPT)
            terminal.type(".xyz\r")
            shown = terminal.read_until(PROMPT)
            assert "\x1b[1;31mthere is no command .xyz; .help lists them\x1b[0m" in shown

    def test_help_teaches_within_80_columns(self, terminal: Terminal) -> None:
        terminal.type(".help\r")
        shown = terminal.read_until(PROMPT)
        assert max(map(len, shown.splitlines())) <= 80
        for name in (".tables", ".schema", ".functions", ".format", ".timing", ".quit", "SELECT"):
            assert name in shown
        terminal.type("help\r")
        assert terminal.read_until(PROMPT).splitlines()[1:] == shown.splitlines()[1:]

    def test_a_statement_goes_on_until_its_semicolon(self, terminal: Terminal) -> None:
        for line in ("SELECT 1, -- one;", "  ';', /* and;", " */ `;`"):
            terminal.type(f"{line}\r")
            terminal.read_until("     ...> ")
        terminal.clear_line(PROMPT)

    def test_ctrl_c_clears_the_line_and_ctrl_d_leaves(self, terminal: Terminal) -> None:
        terminal.type("SELECT half")
        terminal.read_until("half")
        terminal.clear_line(PROMPT)
        terminal.type("\x04")
        assert terminal.wait()[0] == 0

    def test_quit_leaves(self, terminal: Terminal) -> None:
        terminal.type(".quit\r")
        assert terminal.wait()[0] == 0

    def test_sigterm_ends_it(self, terminal: Terminal) -> None:
        code, shown = terminal.terminate()
        assert code == 143
        assert "Traceback" not in shown

    def test_ctrl_c_while_spark_starts_is_the_statements_end(self, terminal: Terminal) -> None:
        terminal.type("SELECT 1;\r")
        terminal.read_until("starting Spark")
        terminal.type("\x03")
        assert "cancelled" in terminal.read_until(PROMPT)

    def test_commands_check_their_arguments(self, terminal: Terminal) -> None:
        for line, answer in (
            (".formt", "there is no command .formt, did you mean .format?"),
            (".xyz", "there is no command .xyz; .help lists them"),
            (".format", "table"),
            (".format xml", "there is no format xml; there are: table, line, csv, json"),
            (".format arrow", "arrow is for files: kafkajit sql --format arrow -o FILE SQL"),
            (".rows 7", ""),
            (".rows", "7"),
            (".rows x", "expected a number of at least 1, not x"),
            (".timing", "off"),
            (".timing on", ""),
            (".timing", "on"),
            (".timing of", "expected on or off, not of"),
            (".schema recrds", "there is no view recrds, did you mean records?"),
        ):
            terminal.type(f"{line}\r")
            shown = terminal.read_until(PROMPT).split("\n")[1:-1]
            assert "\n".join(shown) == answer, line

    def test_it_remembers_no_secret(self, around: dict[str, str]) -> None:
        arguments = [*command()[:1], "-c", WITHOUT_SPARK, "sql", "--path", LOGS]
        with Terminal(arguments, around) as terminal:
            terminal.read_until(PROMPT)
            for line in (".rows s3://AKIA:SE9CRET@bucket", ".rows 5"):
                terminal.type(f"{line}\r")
                terminal.read_until(PROMPT)
        history = Path(around["XDG_STATE_HOME"]) / "kafkajit" / "history"
        assert history.read_text().splitlines() == [".rows 5"]

    def test_it_remembers_over_sessions(self, around: dict[str, str]) -> None:
        arguments = [*command()[:1], "-c", WITHOUT_SPARK, "sql", "--path", LOGS]
        with Terminal(arguments, around) as terminal:
            terminal.read_until(PROMPT)
            terminal.type(".rows 5\r")
            terminal.read_until(PROMPT)
            terminal.type("SELECT 'a;',\r  2 -- two\r;\r")
            terminal.read_until("starting Spark")
            # The process is killed, but typed lines are kept.
        history = Path(around["XDG_STATE_HOME"]) / "kafkajit" / "history"
        assert history.read_text().splitlines() == [".rows 5", "SELECT 'a;', 2 ;"]
        assert stat.S_IMODE(history.stat().st_mode) == 0o600
        with Terminal(arguments, around) as terminal:
            terminal.read_until(PROMPT)
            terminal.type("\x1b[A")
            terminal.read_until("SELECT 'a;', 2 ;")
            terminal.type("\x1b[A")
            terminal.read_until(".rows 5")

    def test_tab_completes(self, terminal: Terminal) -> None:
        terminal.type("SELECT isTr\t")
        terminal.read_until("isTransactional")
        terminal.clear_line(PROMPT)
        terminal.type(".fo\t")
        terminal.read_until(".format")

    def test_without_a_home_it_forgets(self, around: dict[str, str]) -> None:
        arguments = [*command()[:1], "-c", WITHOUT_SPARK, "sql"]
        with Terminal(arguments, {**around, "XDG_STATE_HOME": "/proc/nobody"}) as terminal:
            terminal.read_until(PROMPT)
            terminal.type(".tables\r")
            shown = terminal.read_until(PROMPT)
            assert "There are no views: name the logs with kafkajit sql --path." in shown


def test_topics_are_listed_and_have_the_columns_of_records() -> None:
    engine = Engine(Logs([kt.SAMPLE], {}), lambda: pytest.fail("Spark is not needed"))
    commands = Commands(Shell(engine, io.BytesIO(), "table", 10), Logs([kt.SAMPLE], {}))
    assert f"{'orders':20}the records of the topic" in commands._tables([]).splitlines()
    assert commands._schema(["orders"]) == commands._schema(["records"])


class TestCompletion:
    """Candidates for what has been typed."""

    @pytest.fixture
    def completer(self) -> Completer:
        engine = Engine(None, lambda: pytest.fail("Spark is not needed"))
        return Completer(Logs([LOGS], {}), engine, [".help", ".format", ".functions"])

    @pytest.mark.parametrize(
        ("before", "word", "expected"),
        [
            ("SELECT * FROM ", "records", ["records", "recordsCount"]),
            ("", "sel", ["select"]),
            ("", "SEL", ["SELECT"]),
            ("SELECT ", "r.off", ["r.offset", "r.offsetDelta"]),
            ("SELECT ", "OFF", ["offset_index", "offset", "offsetDelta", "OFFSET"]),
            ("", ".f", [".format", ".functions"]),
            (".format ", "", ["table", "line", "csv", "json"]),
            (".schema ", "ba", ["batches"]),
            (".timing ", "o", ["on", "off"]),
            ("SELECT ", "", []),
            ("SELECT ", "zzz", []),
        ],
    )
    def test_views_columns_keywords_and_commands(
        self, completer: Completer, before: str, word: str, expected: list[str]
    ) -> None:
        completer._functions = ["max"]
        assert completer.candidates(before, word) == expected

    def test_functions_open_their_parenthesis(self, completer: Completer) -> None:
        completer._functions = ["kafka_records", "max"]
        assert completer.candidates("SELECT ", "kafka_r") == ["kafka_records("]


def test_a_path_without_segments_is_left_out_and_named(tmp_path: Path) -> None:
    empty, beside = tmp_path / "empty", tmp_path / "beside"
    empty.mkdir()
    beside.mkdir()
    (beside / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    named: list[Exception] = []
    logs = Logs([str(empty), kt.SAMPLE, str(beside)], {})
    logs.leave_out_empty(named.append)
    assert logs.paths == [kt.SAMPLE, str(beside)]
    (error,) = named
    assert str(error).startswith(f"no segments (20 digits and .log) at {empty}: ")
    for paths, words in (
        ([str(empty), str(empty)], f"no segments .* at {empty}: "),
        ([kt.SAMPLE, f"{tmp_path}/gone"], f"there is nothing at {tmp_path}/gone"),
    ):
        with pytest.raises(FileNotFoundError, match=words):
            Logs(paths, {}).leave_out_empty(named.append)


def test_a_path_with_checkpoints_only_does_not_hide_the_segments_of_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    logs = Logs([kt.SAMPLE, str(tmp_path)], {})
    assert len(logs.find_segments()) == 5
    assert logs.topics() == ["orders", "payments"]
    assert logs._paths_for("records") == [kt.SAMPLE]
    assert logs._paths_for("checkpoints") == [kt.SAMPLE, str(tmp_path)]
