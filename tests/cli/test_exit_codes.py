"""One rule for exits: docs/commands.md has the codes, and commands are tried in all situations."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from scanning import write_partition
from terminal import command

import kafkajit
import kafkajit.testing as kt
from kafkajit.change.journal import DONE as CARRIED_OUT
from kafkajit.change.journal import READY, STAGED
from kafkajit.cli import main
from kafkajit.log.missing_offsets import Evidence
from kafkajit.log.missing_segments import MissingSegments
from kafkajit.log.segment import Segment
from kafkajit.storage.source import open_file

pytestmark = pytest.mark.whole  # a few seconds for all

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
LOG = kt.batch([kt.Record(key=b"k", value=b"v")] * 3)
DAMAGED = LOG[:-1] + b"\xff" + kt.batch([kt.Record(value=b"v")], base_offset=3)
DONE, PART, WRONG = range(3)  # the columns of the page's table

# The words of a command for some paths and an output, by its name in the table.
COMMANDS: dict[str, Callable[[list[str], str], list[str]]] = {
    "info": lambda paths, _: ["info", *paths],
    "report": lambda paths, _: ["report", "--format", "json", "--deep", *paths],
    "tail": lambda paths, _: ["tail", "-n", "all", *paths],
    "export": lambda paths, out: ["export", *paths, "-o", out, "--to", "csv"],
    "export --mode DROPMALFORMED": lambda paths, out: [
        *("export", "--mode", "DROPMALFORMED", *paths, "-o", out, "--to", "csv")
    ],
    "grep": lambda paths, _: ["grep", "-c", "v", *paths],
    "restore": lambda paths, out: ["restore", *paths, out],
}


def code_on_the_page(name: str, column: int) -> int:
    """The first number in a cell of the table."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) == 4 and f"`{name}`" in cells[0]:
            found = re.search(r"\d", cells[1 + column])
            assert found is not None
            return int(found[0])
    raise AssertionError(f"the page has no row of {name}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "kafka"
    for name in ("orders-0", "orders-1", "payments-0"):
        write_partition(root, {0: LOG}, name)
    return root


def ran(words: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """The exit code and the lines on stderr."""
    capfd.readouterr()
    try:
        code = main(words)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    return code, capfd.readouterr().err.splitlines()


by_command = pytest.mark.parametrize("name", COMMANDS)


@by_command
def test_everything_is_done(
    name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    expected = 2 if name == "restore" else code_on_the_page(name, DONE)
    assert (code, lines) == (expected, [])


@by_command
@pytest.mark.parametrize("wrong", ["path", "second path", "topic", "partition", "option"])
def test_nothing_is_done_if_a_path_or_a_name_is_wrong(
    name: str, wrong: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gone, out = str(tmp_path / "gone"), tmp_path / "out"
    paths, more = {
        "path": ([gone], []),
        "second path": ([str(root), gone], []),
        "topic": ([str(root)], ["--topic", "ordres"]),
        "partition": ([str(root)], ["--partition", "orders-2"]),
        "option": ([str(root)], ["--tpoic", "orders"]),
    }[wrong]
    if wrong == "partition" and name in ("info", "report"):
        pytest.skip("it has no --partition")
    code, lines = ran([*COMMANDS[name](paths, str(out)), *more], capfd)
    assert (code, len(lines)) == (code_on_the_page(name, WRONG), 1)
    words = {
        "topic": "no segments of ordres at .*did you mean 'orders'",
        "partition": "no segments of orders-2 at .*: orders has the partitions 0, 1",
        "option": "unknown option",
    }
    assert re.search(words.get(wrong, f"there is nothing at {gone}"), lines[0])
    assert not out.exists()


def test_a_part_that_cannot_be_read_is_named_and_the_rest_is_done(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for number, (name, words) in enumerate(COMMANDS.items()):
        if name == "restore":  # nothing is restored without a part of a source
            continue
        link = root / "gone-0"
        for situation in ("a path without segments", "a link to nothing", "a damaged batch"):
            paths = [str(root)]
            named = "orders-1"
            if situation == "a path without segments":
                paths, named = [str(empty), str(root)], str(empty)
            elif situation == "a link to nothing":
                link.symlink_to(root / "nowhere")
                named = str(link)
            elif name == "info":
                continue  # it does not check the last batches of sound size
            else:
                (root / "orders-1" / f"{0:020}.log").write_bytes(DAMAGED)
            out = tmp_path / f"out-{number}-{situation[:6]}"
            code, lines = ran(words(paths, str(out)), capfd)
            expected = code_on_the_page(name, PART)
            if name.startswith("export --mode") and situation != "a damaged batch":
                expected = 1
            assert code == expected, (name, situation)
            assert len(lines) == 1, (name, situation, lines)
            assert named in lines[0], (name, situation)
            if name.startswith("export"):
                assert len([*out.glob("payments-0-*.csv")]) == 1
            link.unlink(missing_ok=True)
            (root / "orders-1" / f"{0:020}.log").write_bytes(LOG)


ODD = ("-0", "a b-0", "backup", "o-1.bak")


def with_odd_folders(root: Path) -> str:
    """Make folders of segments that are not partitions', and return the names in an error."""
    for name in ODD:
        write_partition(root, {0: LOG}, name)
    return f"{', '.join(f'{root}/{name}' for name in ODD[:3])} and 1 more: not read, "


@by_command
def test_folders_of_segments_with_other_names_are_named_once(
    name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    named = with_odd_folders(root)
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    assert code == (1 if name.startswith("export") else code_on_the_page(name, PART))
    assert len(lines) == 1
    assert named in lines[0]
    if name.startswith("export"):
        assert len([*(tmp_path / "out").glob("payments-0-*.csv")]) == 1


@by_command
def test_folders_of_other_names_do_not_matter_if_a_topic_is_named(
    name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with_odd_folders(root)
    words = [*COMMANDS[name]([str(root)], str(tmp_path / "out")), "--topic", "orders"]
    code, lines = ran(words, capfd)
    assert (code, lines) == (2 if name == "restore" else code_on_the_page(name, DONE), [])


@by_command
def test_an_error_names_folders_of_other_names_if_there_are_no_others(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    named = with_odd_folders(tmp_path / "root")
    code, lines = ran(COMMANDS[name]([str(tmp_path / "root")], str(tmp_path / "out")), capfd)
    assert (code, len(lines)) == (code_on_the_page(name, WRONG), 1)
    assert named in lines[0]
    with pytest.raises(FileNotFoundError, match=r"a b-0.* and 1 more: not read"):
        kafkajit.dataset(str(tmp_path / "root")).to_table()


@by_command
def test_folders_that_a_broker_ignores_do_no_harm(
    name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for folder in (".kafkajit-repair-x", ".hidden", "lost+found"):
        write_partition(root, {0: LOG}, folder)
    (root / "remote-log-index-cache").mkdir()
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    assert (code, lines) == (2 if name == "restore" else code_on_the_page(name, DONE), [])


@pytest.mark.parametrize("kind", ["delete", "future", "stray"])
@pytest.mark.parametrize("name", ["export", "grep", "tail"])
def test_partitions_that_no_broker_serves_are_named(
    name: str, kind: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    waiting = write_partition(root, {0: LOG}, f"orders-4.{'0123456789abcdef' * 2}-{kind}")
    words = COMMANDS[name]([str(root)], str(tmp_path / "out"))
    text = f"left out: {waiting}: brokers delete, move or no longer have such partitions"
    code, lines = ran(words, capfd)
    assert (code, len(lines)) == (0, 1)
    assert f"kafkajit {name}: {text} (-delete, -future, -stray); a path that names" in lines[0]
    assert ran([*words, "--topic", "payments"], capfd) == (0, [])
    code, lines = ran([*words, "--partition", "orders-4"], capfd)
    assert (code, len(lines)) == (code_on_the_page(name, WRONG), 1)
    assert f"no segments of orders-4 at {root}: orders has the partitions 0, 1; {text}" in lines[0]
    assert ran(COMMANDS[name]([str(waiting)], str(tmp_path / "other")), capfd) == (0, [])


@by_command
def test_a_missing_segment_is_named_and_the_rest_is_done(
    name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_partition(root, {0: LOG, 5: kt.batch([kt.Record(value=b"v")], base_offset=5)}, "orders-1")
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    assert (code, len(lines)) == (
        1 if name.startswith("export") else code_on_the_page(name, PART),
        1,
    )
    assert "offsets 3 to 4 are missing between" in lines[0]
    words = COMMANDS[name]([str(root)], str(tmp_path / "other"))
    others = 2 if name == "restore" else code_on_the_page(name, DONE)
    assert ran([*words, "--topic", "payments"], capfd)[0] == others


@by_command
@pytest.mark.parametrize("where", ["start", "end"])
def test_offsets_that_files_beside_a_log_know_of_are_named(
    where: str, name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if where == "start":
        (root / "orders-1" / f"{0:020}.log").unlink()
        write_partition(root, {3: kt.batch([kt.Record(value=b"v")], base_offset=3)}, "orders-1")
        (root / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        text = "offsets 0 to 2 are missing before 00000000000000000003.log"
    else:
        (root / "replication-offset-checkpoint").write_text("0\n2\norders 0 3\norders 1 5\n")
        text = "offsets 3 to 4 are missing at the log's end: replication-offset-checkpoint has"
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    expected = 1 if name.startswith("export") else code_on_the_page(name, PART)
    assert (code, len(lines)) == (expected, 1)
    assert text in lines[0]
    words = COMMANDS[name]([str(root)], str(tmp_path / "other"))
    others = 2 if name == "restore" else code_on_the_page(name, DONE)
    assert ran([*words, "--topic", "payments"], capfd)[0] == others


@by_command
def test_records_that_a_broker_appends_meanwhile_are_not_missing(
    name: str,
    root: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A checkpoint may be newer than what was seen of a log."""
    for other in ("orders-0", "payments-0"):
        shutil.rmtree(root / other)
    checkpoint = root / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 1 3\n")
    look = MissingSegments._evidence
    ends = iter(range(4, 1000))

    def grown(self: MissingSegments, first: Segment) -> Evidence:
        end = next(ends)
        with (root / "orders-1" / f"{0:020}.log").open("ab") as log:
            log.write(kt.batch([kt.Record(value=b"v")], base_offset=end - 1))
        checkpoint.write_text(f"0\n1\norders 1 {end}\n")
        return look(self, first)

    monkeypatch.setattr(MissingSegments, "_evidence", grown)
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    expected = 2 if name == "restore" else code_on_the_page(name, DONE)
    assert (code, lines) == (expected, [])
    assert next(ends) > 4  # it has grown


def test_grep_names_a_last_batch_whose_offset_may_be_wrong(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (root / "orders-1" / f"{0:020}.log").open("ab") as log:
        log.write(kt.batch([kt.Record(value=b"w")], base_offset=3 + 4096))
    code, lines = ran(["grep", "-c", "w", str(root)], capfd)
    assert (code, len(lines)) == (2, 1)
    assert "begins at offset 4099, the one before it ends at 2" in lines[0]
    assert ran(["grep", "-c", "v", "--ending-offset", "3", str(root)], capfd) == (0, [])


def test_an_export_of_one_segment_lacks_none(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_partition(root, {3: kt.batch([kt.Record()], base_offset=3)}, "orders-1")
    (root / "replication-offset-checkpoint").write_text("0\n1\norders 1 4\n")
    words = ["export", str(folder / f"{0:020}.log"), "-o", str(tmp_path / "out"), "--to", "csv"]
    assert ran(words, capfd) == (0, [])


def test_offsets_that_were_missing_at_the_end_are_exported_once_they_are_there(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "replication-offset-checkpoint").write_text("0\n1\norders 1 5\n")
    words = ["export", str(root), "-o", str(tmp_path / "out"), "--to", "csv"]
    assert ran(words, capfd)[0] == 1
    with (root / "orders-1" / f"{0:020}.log").open("ab") as log:
        log.write(kt.batch([kt.Record(value=b"v")] * 2, base_offset=3))
    assert ran(words, capfd) == (0, [])


@pytest.mark.parametrize(
    ("words", "is_named"),
    [
        ([], True),
        (["--starting-offset", "3", "--ending-offset", "4"], True),  # none of these is there
        (["--ending-offset", "3"], False),
        (["--starting-offset", "5"], False),
        (["--starting-timestamp", "2s"], True),
        (["--ending-timestamp", "1500ms"], True),
        (["--starting-timestamp", "3s"], False),
        (["--partition", "orders-0"], False),
    ],
)
def test_grep_names_missing_offsets_that_it_was_to_search(
    words: list[str], is_named: bool, root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    batches = {
        base: kt.batch([kt.Record(value=b"v")] * 3, base_offset=base, base_timestamp=time)
        for base, time in ((0, 1000), (5, 2000), (8, 3000))
    }
    write_partition(root, batches, "orders-1")
    code, lines = ran(["grep", "-c", "v", *words, str(root)], capfd)
    assert ["are missing" in line for line in lines] == [True] * is_named
    assert code == (2 if is_named else 0)


@by_command
def test_a_change_that_is_not_finished_is_named(
    name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "orders-1" / READY).mkdir()
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    assert code == (1 if name.startswith("export") else code_on_the_page(name, PART))
    assert len(lines) == 1
    unfinished = "a change of the log is not finished"
    state = "segments are being swapped" if name == "tail" else unfinished
    assert f"{root}/orders-1: {state}" in lines[0]
    assert "`kafkajit repair --apply`" in lines[0]


@by_command
def test_a_change_that_was_not_committed_or_is_carried_out_does_no_harm(
    name: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for left in (STAGED, CARRIED_OUT):
        (root / "orders-1" / left).mkdir()
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    assert (code, lines) == (2 if name == "restore" else code_on_the_page(name, DONE), [])


def test_a_restoration_is_refused_if_a_source_has_no_segments(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    empty, out = tmp_path / "empty", tmp_path / "out"
    empty.mkdir()
    words = ["restore", "--apply", str(root / "orders-0"), str(empty), str(out)]
    code, lines = ran(words, capfd)
    assert (code, len(lines)) == (1, 1)
    assert not [*out.glob("*")]


def test_damage_that_the_mode_leaves_out_does_not_hide_what_cannot_be_read(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "gone-0").symlink_to(root / "nowhere")
    (root / "orders-1" / f"{0:020}.log").write_bytes(DAMAGED)
    words = COMMANDS["export --mode DROPMALFORMED"]([str(root)], str(tmp_path / "out"))
    code, lines = ran(words, capfd)
    assert (code, len(lines)) == (1, 2)


def test_grep_with_q_ends_with_0_at_a_match_whatever_else_is_wrong(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "gone-0").symlink_to(root / "nowhere")
    assert ran(["grep", "-q", "v", str(root)], capfd)[0] == 0
    assert ran(["grep", "-q", "nothing", str(root)], capfd)[0] == 2
    (root / "gone-0").unlink()
    assert ran(["grep", "nothing", str(root)], capfd)[0] == 1


@pytest.mark.parametrize("name", ["info", "report", "tail", "grep", "dump-log"])
def test_a_closed_standard_output_is_an_error(name: str, root: Path) -> None:
    place = str(root / "orders-0")
    words = ["dump-log", place] if name == "dump-log" else COMMANDS[name]([place], "")
    run = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command(*words)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert run.returncode == code_on_the_page(name, WRONG)
    assert len(run.stderr.splitlines()) == 1


def test_dump_log_goes_on_as_kafkas_tool_does(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for other in (empty, tmp_path / "gone"):
        code, lines = ran(["dump-log", str(other), str(root / "orders-0")], capfd)
        assert (code, len(lines)) == (code_on_the_page("dump-log", PART), 1)
    (root / "orders-1" / f"{0:020}.log").write_bytes(DAMAGED)
    assert ran(["dump-log", str(root / "orders-1")], capfd) == (0, [])
    assert ran(["dump-log", "--mode", "FAILFAST", str(root / "orders-1")], capfd)[0] == 1


@pytest.mark.parametrize("name", ["repair", "retain", "compact", "import"])
def test_commands_that_change_logs_refuse_a_wrong_path(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gone = str(tmp_path / "gone")
    words = {
        "retain": ["retain", "--config", "retention.ms=1", gone],
        "import": ["import", gone, str(tmp_path / "out")],
    }.get(name, [name, gone])
    code, lines = ran(words, capfd)
    assert (code, len(lines)) == (code_on_the_page(name, WRONG), 1)


def _link_to_nothing(root: Path) -> str:
    (root / "payments-1").symlink_to("/no/such/folder")
    return f"{root}/payments-1: not read, it is a link to a file or folder that does not exist"


def _loop(root: Path) -> str:
    (root / "payments-1").symlink_to("payments-1")
    return f"{root}/payments-1: not read, it is a link to a file or folder that does not exist"


def _backup(root: Path) -> str:
    return f"{write_partition(root, {0: LOG}, 'backup')}: not read, partitions are looked for only"


def _bak(root: Path) -> str:
    return f"{write_partition(root, {0: LOG}, 'orders-7.bak')}: not read, partitions are"


def _number(root: Path) -> str:
    return f"{write_partition(root, {0: LOG}, 'orders-2147483648')}: not read, partitions are"


ODDITIES = {
    "link": _link_to_nothing,
    "loop": _loop,
    "backup": _backup,
    "bak": _bak,
    "number": _number,
}
UPKEEP = {
    "repair": ["repair"],
    "compact": ["compact", "--config", "cleanup.policy=compact"],
    "retain": ["retain", "--config", "retention.ms=0"],
    "restore": ["restore"],
}


@pytest.mark.parametrize("odd", ODDITIES)
@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize("name", UPKEEP)
def test_upkeep_names_what_it_leaves_out_and_does_the_rest(
    name: str,
    *,
    apply: bool,
    odd: str,
    root: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    named = ODDITIES[odd](root)
    words = [*UPKEEP[name], *(["--apply"] if apply else []), str(root)]
    code, lines = ran([*words, *([str(tmp_path / "out")] if name == "restore" else [])], capfd)
    assert (code, len(lines)) == (code_on_the_page(name, PART), 1)
    assert lines[0].startswith(f"kafkajit {name}: {named}")
    if apply and name == "retain":
        assert [path.name for path in root.glob("*/*.log")].count(f"{3:020}.log") == 3
    if apply and name == "restore":
        assert {path.name for path in (tmp_path / "out").glob("*-*")} == {
            "orders-0",
            "orders-1",
            "payments-0",
        }


@pytest.mark.parametrize("name", ["grep", "tail", "export", "info"])
@pytest.mark.parametrize("odd", ["loop", "number"])
def test_what_is_no_partition_is_named_and_the_rest_is_done(
    name: str, odd: str, root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    named = ODDITIES[odd](root)
    code, lines = ran(COMMANDS[name]([str(root)], str(tmp_path / "out")), capfd)
    assert (code, len(lines)) == (code_on_the_page(name, PART), 1)
    assert named in lines[0]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", ["repair", "compact", "retain"])
def test_one_of_several_folders_may_be_unreadable(
    name: str,
    *,
    first: bool,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    listdir = os.listdir

    def refusing(path: Any) -> list[Any]:
        if str(path) == f"{root}/orders-1":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refusing)
    folders = [f"{root}/orders-1", f"{root}/orders-0"]
    code, lines = ran([*UPKEEP[name], *(folders if first else folders[::-1])], capfd)
    assert (code, lines) == (1, [f"kafkajit {name}: Permission denied: {root}/orders-1"])
    code, lines = ran([*UPKEEP[name], *folders[1:], str(root / "gone")], capfd)
    assert (code, len(lines)) == (1, 1)


def test_a_partition_that_lacks_a_file_is_not_restored(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "orders-1" / f"{3:020}.log").symlink_to("/no/such/file")
    out = tmp_path / "out"
    code, lines = ran(["restore", "--apply", str(root), str(out)], capfd)
    link = f"{root}/orders-1/{3:020}.log"
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith(f"kafkajit restore: {link}: not read, it is a link")
    assert {path.name for path in out.glob("*-*")} == {"orders-0", "payments-0"}
    named = ["--partition", "payments-0", str(root), str(tmp_path / "other")]
    assert ran(["restore", "--apply", *named], capfd) == (0, [])


def test_a_segment_without_permission_stops_only_its_partition(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log = str(root / "orders-1" / f"{0:020}.log")
    opened = open_file

    def refusing(path: Path) -> BinaryIO:
        if str(path) == log:
            raise PermissionError(errno.EACCES, "Permission denied", log)
        return opened(path)

    monkeypatch.setattr("kafkajit.storage.source.open_file", refusing)
    code, lines = ran(["restore", "--apply", str(root), str(tmp_path / "out")], capfd)
    assert (code, lines) == (1, [f"kafkajit restore: Permission denied: {log}"])
    assert {path.name for path in (tmp_path / "out").glob("*-*")} == {"orders-0", "payments-0"}
