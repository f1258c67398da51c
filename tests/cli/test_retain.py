from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from retaining import SIZE, TIME, bases_in, checkpoint, files_in, log_name, make_log

from kafkajit.cli import main


class Run(NamedTuple):
    code: int
    out: list[str]
    err: str


@pytest.fixture
def retain(capsys: pytest.CaptureFixture[str]) -> Retain:
    return Retain(capsys)


class Retain:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Run:
        code = main(["retain", *map(str, words)])
        captured = self._capsys.readouterr()
        return Run(code, captured.out.splitlines(), captured.err)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_log(tmp_path / "orders-0", [TIME + 1000 * at for at in range(4)])


def test_without_apply_segments_are_listed_and_none_is_deleted(
    retain: Retain, folder: Path
) -> None:
    before = files_in(folder)
    words = ("--config", "retention.ms=1500", "--now", "2023-11-14T22:13:23Z", folder)
    run = retain(*words)
    assert run.code == 2
    assert run.out == [
        "orders-0: 2 of 4 segments to delete, 354 of 708 bytes",
        "  due to log retention time 1500ms breach:",
        "    00000000000000000000.log         177  2023-11-14T22:13:20.000Z",
        "    00000000000000000002.log         177  2023-11-14T22:13:21.000Z",
        "  log start offset 0 becomes 4",
        "Nothing was changed. To do it: kafkajit retain --apply "
        f"--config retention.ms=1500 --now 2023-11-14T22:13:23Z {folder}",
    ]
    assert run.err == ""
    assert files_in(folder) == before
    assert not (folder.parent / ".lock").exists()


def test_with_apply_segments_are_deleted_and_the_kept_files_are_named(
    retain: Retain, folder: Path
) -> None:
    run = retain("--config", f"retention.bytes={SIZE}", "--apply", folder)
    (kept,) = (path for path in folder.iterdir() if path.is_dir())
    assert run.code == 0
    assert run.out[-2:] == [
        f"  done; the old files are kept in {kept}",
        "the kept files still use 531 bytes: remove them, or pass --no-keep",
    ]
    assert bases_in(folder) == [6]
    assert bases_in(kept / "orders-0") == [0, 2, 4]


def test_a_log_lacks_nothing_after_its_retention(retain: Retain, folder: Path) -> None:
    assert main(["repair", "--apply", "--no-keep", str(folder)]) == 0
    assert main(["info", str(folder)]) == 0
    run = retain("--config", f"retention.bytes={2 * SIZE}", "--apply", "--no-keep", folder)
    assert (run.code, bases_in(folder)) == (0, [4, 6])
    assert (folder / f"{4:020d}.snapshot").exists()
    assert main(["info", str(folder)]) == 0
    assert main(["repair", str(folder)]) == 0


def test_with_no_keep_deleted_files_are_not_kept(retain: Retain, folder: Path) -> None:
    run = retain("--config", "retention.bytes=0", "--apply", "--no-keep", folder)
    assert (run.code, run.out[-1]) == (0, "  done")
    assert bases_in(folder) == [8]
    assert all(path.is_file() for path in folder.iterdir())


def test_a_start_offset_is_kafkas_delete_records(retain: Retain, folder: Path) -> None:
    run = retain("--log-start-offset", 5, folder, "--apply")
    assert run.out[1:5] == [
        "  due to log start offset 5 breach:",
        "    00000000000000000000.log         177  2023-11-14T22:13:20.000Z",
        "    00000000000000000002.log         177  2023-11-14T22:13:21.000Z",
        "  log start offset 0 becomes 5",
    ]
    assert retain("--log-start-offset", "-1", folder).out[-2] == ("  log start offset 5 becomes 8")
    assert retain("--log-start-offset", 9, folder).err == (
        "kafkajit retain: OffsetOutOfRangeError: Cannot increment the log start offset to 9 since "
        f"it is larger than the high watermark 8 in {folder}\n"
    )


def test_without_anything_to_do_the_exit_code_is_0(retain: Retain, folder: Path) -> None:
    for words in ([], ["--apply"]):
        run = retain("--config", "retention.ms=-1", folder, *words)
        assert run == Run(0, ["orders-0: none of 4 segments to delete, 0 of 708 bytes"], "")


def test_a_log_dirs_folder_is_summed_up_by_topic(retain: Retain, tmp_path: Path) -> None:
    make_log(tmp_path / "orders-0", [TIME] * 4)
    make_log(tmp_path / "orders-1", [TIME] * 2)
    make_log(tmp_path / "keyed-0", [TIME] * 4)
    checkpoint(tmp_path, "cleaner-offset-checkpoint", "keyed-0", 2)
    for partition in range(3):
        make_log(tmp_path / f"__consumer_offsets-{partition}", [TIME] * 4)
    words = ("--config", f"retention.bytes={2 * SIZE}", tmp_path)
    run = retain(*words)
    summary = [
        "__consumer_offsets: 3 partitions left alone: an internal topic, whose records brokers "
        "need",
        "keyed: 1 partition left alone: a compacted topic according to cleaner-offset-checkpoint",
    ]
    assert run.code == 2
    assert run.out[0] == "orders-0: 2 of 4 segments to delete, 354 of 708 bytes"
    assert run.out[-4:-1] == [
        *summary,
        "6 partitions, 2 of 6 segments to delete, 354 of 1,062 bytes",
    ]
    run = retain("--apply", *words)
    assert run.code == 0
    assert run.out[-4:-1] == [*summary, "6 partitions, 2 of 6 segments deleted, 354 of 1,062 bytes"]
    assert bases_in(tmp_path / "orders-0") == [4, 6]
    assert bases_in(tmp_path / "orders-1") == [0, 2]
    assert bases_in(tmp_path / "keyed-0") == [0, 2, 4, 6]
    assert retain(*words).code == 0


def test_damage_in_one_log_does_not_stop_the_others(retain: Retain, tmp_path: Path) -> None:
    for partition in range(3):
        make_log(tmp_path / f"orders-{partition}", [TIME] * 3)
    log = tmp_path / "orders-1" / log_name(4)
    log.write_bytes(log.read_bytes()[:-1])
    run = retain("--config", "retention.bytes=0", "--apply", tmp_path)
    assert run.code == 1
    assert run.err.startswith("kafkajit retain: CorruptRecordError: the log does not end in a whol")
    assert run.err.endswith(f"run `kafkajit repair` on the folder first, at position 0 in {log}\n")
    assert run.err.count("\n") == 1
    assert [bases_in(tmp_path / f"orders-{partition}")[0] for partition in range(3)] == [6, 0, 6]


REFUSED = [
    (
        ["{folder}"],
        "no limit was given: pass --config retention.ms=…, --config retention.bytes=… or ",
    ),
    (["{folder}", "--config", "segment.ms=1"], "no limit was given: "),
    (["{folder}", "--config", "retention.hours=1"], "unknown topic config name"),
    (["{folder}", "--config", "cleanup.policy=compact"], "retention does not delete"),
    (["{folder}", "--config", "remote.storage.enable=true"], "remote.storage.enable="),
    (["{folder}/..", "--log-start-offset", "3"], "--log-start-offset is for one log"),
    (["{folder}/nothing", "--config", "retention.ms=1"], "there is no folder "),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_contradictory_options_are_refused_in_one_line(
    retain: Retain, folder: Path, words: list[str], message: str
) -> None:
    make_log(folder.parent / "orders-1", [TIME])
    for more in ([], ["--apply"]):
        run = retain(*(word.format(folder=folder) for word in words), *more)
        assert (run.code, run.out) == (1, [])
        assert run.err.startswith(f"kafkajit retain: {message}")
        assert run.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--config", "retention.ms", "/"],
            "argument --config: expected NAME=VALUE, not 'retention",
        ),
        (["--now", "yesterday", "/"], "argument --now: 'yesterday' is neither ISO 8601"),
        (["--log-start-offset", "x", "/"], "argument --log-start-offset: invalid int value: 'x'"),
        ([], "the following arguments are required: DIR"),
    ],
)
def test_malformed_arguments_are_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["retain", *words])
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith(f"kafkajit retain: {message}")
    assert error.endswith("; see kafkajit retain --help\n")


@pytest.mark.parametrize(
    "now",
    [
        "1700000002000",
        "2023-11-14T22:13:22Z",
        "2023-11-14T22:13:22.0009",
        "2023-11-15T00:13:22+02:00",
        "2023-11-14 22:13:22",
    ],
)
def test_the_time_is_that_of_the_option_now(retain: Retain, folder: Path, now: str) -> None:
    def expired(retention_ms: int) -> int:
        out = retain("--config", f"retention.ms={retention_ms}", "--now", now, folder).out
        return sum(".log  " in line for line in out)

    assert (expired(999), expired(1000), expired(1999), expired(2000)) == (2, 1, 1, 0)


def test_its_help_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["retain", "--help"])
    out = capsys.readouterr().out
    assert "exit code:" in out
    assert "kafkajit retain --config retention.ms=604800000" in out
    assert max(map(len, out.splitlines())) <= 80
