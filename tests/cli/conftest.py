from __future__ import annotations

from pathlib import Path

import pytest
from dumping import Dump, Run

from kafkajit.cli import main


@pytest.fixture
def dump(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Dump:
    """Runs `kafkajit dump-log` in a folder, in this process."""

    def run(*arguments: str, folder: Path) -> Run:
        monkeypatch.chdir(folder)
        capfdbinary.readouterr()
        try:
            code = main(["dump-log", *arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capfdbinary.readouterr()
        return Run(out, err.decode(), code)

    return run
