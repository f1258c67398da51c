from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import kafkajit.testing as kt
from kafkajit.cli import main

TIME = 1_700_000_000


class Run(NamedTuple):
    code: int
    out: list[str]
    err: str


class Compact:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Run:
        code = main(["compact", *map(str, words)])
        captured = self._capsys.readouterr()
        return Run(code, captured.out.splitlines(), captured.err)


@pytest.fixture
def compact(capsys: pytest.CaptureFixture[str]) -> Compact:
    return Compact(capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log that a broker has compacted before."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    log = b"".join(kt.batch([kt.Record(b"k", b"v")], base_offset=offset) for offset in range(3))
    for base, content in ((0, log), (3, b"")):
        path = folder / f"{base:020d}.log"
        path.write_bytes(content)
        os.utime(path, (TIME, TIME))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    return folder


def sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in sorted(folder.glob("*.log"))]


def test_without_apply_it_is_said_what_would_stay_and_nothing_goes(
    compact: Compact, folder: Path
) -> None:
    run = compact(folder)
    assert run.code == 2
    assert run.out == [
        "orders-0: dirty from offset 0 to 2, 100% of 210 bytes",
        "  00000000000000000000.log: 1 of 3 records, 70 of 210 bytes",
        "  cleaner-offset-checkpoint: 0 becomes 3",
        f"Nothing was changed. To do it: kafkajit compact --apply {folder}",
    ]
    assert run.err == ""
    assert sizes(folder) == [210, 0]


def test_with_apply_it_is_done_and_said_what_is_kept_where(compact: Compact, folder: Path) -> None:
    run = compact(folder, "--apply")
    (kept,) = (path for path in folder.iterdir() if path.is_dir())
    assert run.code == 0
    assert run.out[3:] == [
        f"  done; the old files are kept in {kept}",
        "the kept files still use 210 bytes: remove them, or pass --no-keep",
    ]
    assert sizes(folder) == [70, 0]
    assert sizes(kept / "orders-0") == [210]
    assert compact(folder) == Run(
        0, ["orders-0: nothing to compact before offset 3: the active segment begins there"], ""
    )


def test_what_is_replaced_is_not_kept_where_nobody_wants_it(compact: Compact, folder: Path) -> None:
    run = compact("--apply", "--no-keep", folder)
    assert run.out[-1] == "  done"
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_a_topic_that_nothing_says_is_compacted_is_refused_where_it_is_named(
    compact: Compact, folder: Path
) -> None:
    (folder.parent / "cleaner-offset-checkpoint").unlink()
    run = compact("--apply", folder)
    assert (run.code, run.out) == (1, [])
    assert run.err == (
        "kafkajit compact: nothing says that the topic is compacted, and records would be lost "
        "if it is not; if it is, pass --config cleanup.policy=compact for this partition in "
        f"{folder}\n"
    )
    left_alone = "1 partition left alone: nothing says that the topic is compacted"
    assert compact("--apply", folder.parent) == Run(0, [left_alone], "")
    assert sizes(folder) == [210, 0]
    assert compact("--apply", "--config", "cleanup.policy=compact", folder).code == 0
    assert sizes(folder) == [70, 0]


def test_what_is_compacted_is_not_to_be_done_again_where_no_checkpoint_says_so(
    compact: Compact, folder: Path
) -> None:
    (folder.parent / "cleaner-offset-checkpoint").unlink()
    words = ("--config", "cleanup.policy=compact", folder)
    assert compact("--apply", *words).code == 0
    after = [path.name for path in folder.iterdir()]
    for more in ([], ["--apply"]):
        why = "orders-0: nothing to compact before offset 3: the active segment begins there"
        assert compact(*words, *more) == Run(0, [why], "")
    assert [path.name for path in folder.iterdir()] == after
    # A checkpoint that is behind the log leaves something to do.
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n0\n")
    assert compact(*words).code == 2
    assert compact("--apply", *words).code == 0
    assert compact(*words).code == 0


def test_configs_are_the_topics(compact: Compact, folder: Path) -> None:
    lag = ("--config", "min.compaction.lag.ms=60000")
    run = compact(*lag, "--now", "2023-11-14T22:14:00Z", folder)
    why = "the records behind it are younger than min.compaction.lag.ms"
    assert run == Run(0, [f"orders-0: nothing to compact before offset 0: {why}"], "")
    assert compact(*lag, "--now", (TIME + 60) * 1000, folder).code == 2


def test_a_policy_of_deleting_is_refused(compact: Compact, folder: Path) -> None:
    run = compact("--config", "cleanup.policy=delete", folder)
    assert run.code == 1
    assert "with cleanup.policy=delete nothing is compacted" in run.err


def test_a_log_dirs_folder_is_summed_up(compact: Compact, folder: Path) -> None:
    root = folder.parent
    shutil.copytree(folder, root / "orders-1")
    shutil.copytree(folder, root / "__consumer_offsets-7")
    run = compact("--apply", "--no-keep", root)
    assert run.code == 0
    assert run.out[-2:] == [
        "1 partition left alone: nothing says that the topic is compacted",
        "3 partitions, 2 compacted from 420 to 140 bytes",
    ]
    assert [sizes(root / name)[0] for name in ("orders-0", "orders-1")] == [70, 210]
    assert (root / "cleaner-offset-checkpoint").read_text() == (
        "0\n2\norders 0 3\n__consumer_offsets 7 3\n"
    )
    assert compact(root).out[-1] == "3 partitions, none to compact"


def test_with_little_memory_for_keys_it_is_the_same(compact: Compact, folder: Path) -> None:
    assert (
        compact("--dedupe-buffer-size", 400, folder)
        .out[1]
        .startswith("  00000000000000000000.log: 1 of 3 records")
    )
    assert compact("--dedupe-buffer-size", 40, folder).code == 1


def test_a_damaged_log_is_an_error_and_stays(compact: Compact, folder: Path) -> None:
    path = folder / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    run = compact("--apply", folder)
    assert run.code == 1
    assert run.err.startswith("kafkajit compact: CorruptRecordError: Record is corrupt (stored crc")
    assert run.err.endswith(
        f": run `kafkajit repair` on the folder first, at position 140, base offset 2 in {path}\n"
    )
    assert sizes(folder) == [210, 0]
