"""Files beside a log that claim to have gigabytes."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from corpus import run_python

from kafkajit.storage import source
from kafkajit.storage.source import SAMPLE_LOGS

NAMES = [
    *("leader-epoch-checkpoint", "partition.metadata", f"{27:020}.snapshot", f"{0:020}.index"),
    *("../meta.properties", "../replication-offset-checkpoint"),
]


@pytest.mark.parametrize("command", ["info", "repair"])
@pytest.mark.parametrize("name", NAMES)
def test_a_sparse_file_beside_a_log_is_an_error_or_left_unread(
    name: str, command: str, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    shutil.copytree(SAMPLE_LOGS / "orders-0", folder)
    (folder / name).touch()
    os.truncate(folder / name, 8 << 30)
    code = (
        "import contextlib, io, pathlib\n"
        "from kafkajit.cli import main\n"
        "with contextlib.redirect_stderr(io.StringIO()) as said:\n"
        f"    main([{command!r}, {str(folder)!r}])\n"
        "print(said.getvalue().strip() or 'nothing')\n"
        # ru_maxrss would begin with its parent's
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(status.split('VmHWM:')[1].split()[0])\n"
    )
    *lines, most = run_python(code).splitlines()
    assert int(most) < 1 << 20  # KiB
    named = "8,589,934,592 bytes, more than is read of such a file"
    assert lines[-1] == "nothing" or named in "\n".join(lines)


def test_a_file_that_has_nothing_to_read_yet_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of the kernel's files claim to be regular ones."""
    path = tmp_path / "a"
    path.write_bytes(b"x")

    class Waiting(io.FileIO):
        def read(self, _: int | None = -1, /) -> Any:
            return None

    monkeypatch.setattr(source, "open_file", lambda path: Waiting(path))
    with pytest.raises(OSError, match="nothing to read yet"):
        source.read_small(path)
