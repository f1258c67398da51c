"""A path that is gone name by name leads where the system's open goes."""

from __future__ import annotations

import os
import random
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kafkajit.system.open_path import _walked

LINKS = {
    "l1": "a",
    "a/l2": "b/g",
    "a/b/l3": "../f",
    "l5": "l6",
    "l6": "l5",
    "dangling": "none/x",
    "new link": "a/new",
    "l7": "a/b/",
}
NAMES = ["a", "b", "c", "f", "g", "l1", "l2", "l3", "l4", "l5", "l7", "dangling", "new link"]
FLAGS = [
    os.O_RDONLY,
    os.O_WRONLY,
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0),
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0),
    getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0),
    os.O_WRONLY | os.O_CREAT,
    os.O_WRONLY | os.O_CREAT | os.O_EXCL,
]


def made(top: Path) -> None:
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "a" / "f").write_text("f")
    (top / "a" / "b" / "g").write_text("g")
    for link, target in {**LINKS, "a/b/l4": str(top / "a" / "b" / "c")}.items():
        (top / link).symlink_to(target)


def outcome(open_: Callable[[], int], around: Path, known: set[str]) -> tuple[object, list[str]]:
    """What is opened, or the error, and the files that are there after it."""
    try:
        opened = open_()
    except OSError as error:
        found: object = error.errno
    else:
        status = os.fstat(opened)
        is_file = stat.S_ISREG(status.st_mode)
        found = is_file, str(Path(f"/proc/self/fd/{opened}").readlink())
        os.close(opened)
    files = sorted(map(str, around.rglob("*")))
    for path in set(files) - known:
        os.unlink(path)  # noqa: PTH108
    return found, files


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has O_PATH")
def test_a_path_that_is_gone_name_by_name_leads_where_the_system_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = random.Random(1)
    top = tmp_path / "1" / "2" / "3" / "4" / "5" / "top"
    made(top)
    known = set(map(str, tmp_path.rglob("*")))
    monkeypatch.chdir(top)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    seen: set[str] = set()
    for _ in range(3000):
        path = "/".join(drawn.choices([*NAMES, "new", ".", ".."], k=drawn.randint(1, 5)))
        if drawn.random() < 0.3:
            path = f"{top}/{path}"
        flags = drawn.choice(FLAGS)
        if path.rpartition("/")[2] in (".", ".."):
            continue  # a file in front of a last dot is opened
        real = outcome(partial(os.open, path, flags, 0o600), tmp_path, known)
        own = outcome(partial(_walked, path, flags, 0o600, None), tmp_path, known)
        assert own == real, (path, flags)
        seen.add(str(real[0]))
    assert len(seen) > 8
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
