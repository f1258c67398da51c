from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

import pytest
from corpus import run_python

from kafkajit.cli import main, new_parser, repair


@pytest.mark.parametrize("command", ["compact", "repair", "retain"])
def test_what_a_command_does_not_know_is_told_with_its_own_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, unknown in [
        (["--dry-run"], "option --dry-run"),
        (["/k", "--m", "--n"], "options --m, --n"),
        (["/k", "-x"], "option -x"),
        (["--aply", "/k"], "option --aply: did you mean --apply?"),
    ]:
        with pytest.raises(SystemExit) as exit_:
            main([command, *words])
        assert exit_.value.code == 1
        name = f"kafkajit {command}"
        error = capsys.readouterr().err
        assert error == f"{name}: unknown {unknown}; see {name} --help\n"


def test_a_command_that_there_is_not_is_told_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["repir", "/k"])
    assert exit_.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "'repair'" in error
    assert error.endswith("see kafkajit --help\n")


def test_an_option_that_dump_log_lacks_is_named_although_no_file_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["dump-log", "--filess", "x"])
    assert exit_.value.code == 1
    assert capsys.readouterr().err == (
        "kafkajit dump-log: unknown option --filess: did you mean --files?; "
        "see kafkajit dump-log --help\n"
    )


def test_dump_log_without_files_says_how_to_name_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log"]) == 1
    assert capsys.readouterr().err.startswith(
        "kafkajit dump-log: no files to dump: name them, as in "
    )


@pytest.mark.parametrize("name", sorted(new_parser()[1]))
def test_help_fits_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    usage, _, text = new_parser()[1][name].format_help().partition("\n\n")
    assert [line for line in text.splitlines() if len(line) > 80] == []
    # argparse does not break options that exclude each other.
    assert [line for line in usage.splitlines() if len(line) > 80 and " | " not in line] == []


@pytest.mark.parametrize("words", [["--help"], ["grep", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\n"
        "from kafkajit.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('numpy', 'pyarrow', 'numba') if name in sys.modules])"
    )
    assert run_python(code, *words).splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words",
    [["tail"], ["grep", "a"], ["report", "--format", "json"], ["export", "--to", "csv", "-o"]],
    ids=lambda words: words[0],
)
def test_a_command_without_spark_does_not_import_pandas(words: list[str], tmp_path: Path) -> None:
    """pyarrow would, if it is installed."""
    code = "import sys\nfrom kafkajit.cli import main\nmain()\nprint('pandas' in sys.modules)"
    out = [str(tmp_path / "out")] if words[-1] == "-o" else []
    assert run_python(code, *words, *out, "sample:").splitlines()[-1] == "False"


def test_the_version_is_printed_for_scripts_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr() == (f"kafkajit {version('kafkajit')}\n", "")


def test_ctrl_c_tells_how_to_go_on_if_logs_are_being_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(repair, "run", interrupted)
    assert main(["repair", "/k"]) == 130
    assert capsys.readouterr().err == ""
    assert main(["repair", "--apply", "/k"]) == 130
    assert capsys.readouterr().err.startswith("kafkajit repair: interrupted: each partition is")
