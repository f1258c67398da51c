"""Where the data of sparse files ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from corpus import run_python

from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.source import SAMPLE_LOGS, Source
from kafkajit.system.holes import data_end

pytestmark = pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="the system does not tell")
NAME = f"{0:020}.log"
LOG = (SAMPLE_LOGS / "orders-0" / NAME).read_bytes()
SIZE = 1 << 40


def _end(path: Path, size: int | None = None) -> int:
    with path.open("rb") as file:
        return data_end(file.fileno(), os.fstat(file.fileno()).st_size if size is None else size)


def _sparse(folder: Path, content: bytes, size: int = SIZE) -> Path:
    folder.mkdir()
    path = folder / NAME
    path.write_bytes(content)
    os.truncate(path, size)
    return path


def test_the_data_of_a_sparse_file_ends_with_its_last_block(tmp_path: Path) -> None:
    path = _sparse(tmp_path / "a-0", LOG)
    assert len(LOG) <= _end(path) < len(LOG) + (1 << 20)
    with path.open("r+b") as file:
        file.seek(SIZE - 1)
        file.write(b"x")
    assert _end(path) == SIZE
    assert len(LOG) <= _end(path, SIZE - (1 << 30)) < len(LOG) + (1 << 20)


def test_a_file_without_holes_ends_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / NAME
    for content in (b"", LOG, bytes(1 << 20), LOG + bytes(1 << 20)):
        path.write_bytes(content)
        assert _end(path) == len(content)


def test_the_system_is_not_asked_about_a_file_of_a_segments_size(tmp_path: Path) -> None:
    assert _end(_sparse(tmp_path / "a-0", LOG, 2 << 30)) == 2 << 30


def test_a_file_without_data_is_all_zeros(tmp_path: Path) -> None:
    assert _end(_sparse(tmp_path / "a-0", b"")) == 0


def test_zeros_in_a_hole_are_not_read(tmp_path: Path) -> None:
    path = _sparse(tmp_path / "a-0", LOG)
    for source in (LiveFile.at(str(path)).open(), Source(path)):
        assert source.load(SIZE) == source.content.size == SIZE
        assert source.data_end < len(LOG) + (1 << 20)
        assert source.content[: len(LOG)].tobytes() == LOG
        assert not source.content[-100:].any()


_DAMAGE = LOG[:1000] + b"damage" + LOG[1006:]
COMMANDS = {
    "tail": ["tail", "-n", "all", "{}"],
    "info": ["info", "{}"],
    "report": ["report", "{}", "--force", "-o", "{}.json"],
    "export": ["export", "{}", "--to", "jsonl", "--output", "{}.rows", "--mode", "permissive"],
    "grep": ["grep", "order", "{}"],
    "repair": ["repair", "{}"],
}


@pytest.mark.parametrize("content", [LOG, _DAMAGE], ids=["sound", "damaged"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_sparse_log_of_a_terabyte_is_read_as_one_of_a_megabyte(
    command: str, content: bytes, tmp_path: Path
) -> None:
    outputs = []
    for size in (1 << 20, SIZE):
        folder = tmp_path / f"of-{size}"
        folder.mkdir()
        _sparse(folder / "orders-0", content, size)
        code = (
            "import faulthandler, sys\n"
            "from kafkajit.cli import main\n"
            "faulthandler.dump_traceback_later(60, exit=True)\n"
            "sys.stderr = sys.stdout\n"
            f"main({[each.format(folder) for each in COMMANDS[command]]!r})\n"
        )
        output = run_python(code)
        outputs.append(output.replace(str(folder), "").splitlines())
    few, many = outputs
    assert len(few) == len(many) > 0
    if command in ("tail", "grep"):  # the others print the size
        assert few == many


def test_zeros_at_the_end_of_a_remote_log_are_read_through_one_open_file() -> None:
    from pyarrow import BufferReader

    from kafkajit.log.positions import only_zeros
    from kafkajit.storage.stored_file import StoredFile

    class Store:
        opened = 0

        def open_input_file(self, _key: str) -> BufferReader:
            self.opened += 1
            return BufferReader(content)

    for end, expected in ((b"", True), (b"x", False)):
        content = LOG + bytes(30 << 20) + end
        store = Store()
        log = StoredFile("s3://b/a-0/" + NAME, len(content), None, NAME, store)  # type: ignore[arg-type]
        assert only_zeros(log, len(LOG)) == expected
        assert store.opened == 1
