"""Files are written as files, whatever has taken their places."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkajit.system import disk

WRITERS: dict[str, Callable[[Path], object]] = {
    "create": disk.create,
    "write": lambda path: disk.write(path, bytes(1 << 20)),
    "extend": disk.extend,
    "open_to_change": disk.open_to_change,
    "open_to_copy": disk.open_to_copy,
    "open_to_lock": disk.open_to_lock,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_fifo_in_a_files_place_is_not_waited_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    os.mkfifo(path)
    with pytest.raises(OSError, match="it is not a file"):
        WRITERS[name](path)
