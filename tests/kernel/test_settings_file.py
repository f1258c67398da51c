"""numba's settings in the current folder, `.numba_config.yaml`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpus import REPOSITORY

SETTINGS = """
import sys
if "--without-yaml" in sys.argv:
    sys.modules["yaml"] = None
from kafkajit.kernel import numba
from numba.core import config
config.reload_config()  # as before each compilation
print(numba.config.CACHE_DIR, "yaml" in sys.modules)
"""


def cache_dir(folder: Path, *arguments: str, **environment: str) -> str:
    """numba's setting in a program that imports kafkajit in a folder with such a file."""
    (folder / ".numba_config.yaml").write_text("cache_dir: /planted\n")
    given = ("NUMBA_CACHE_DIR", "PYTHONSAFEPATH")
    inherited = {name: value for name, value in os.environ.items() if name not in given}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SETTINGS, *arguments],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(REPOSITORY)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_a_process_without_the_current_folder_reads_no_settings_there(tmp_path: Path) -> None:
    assert cache_dir(tmp_path, PYTHONSAFEPATH="1") == " False\n"
    assert cache_dir(tmp_path, "--without-yaml", PYTHONSAFEPATH="1") == " True\n"


def test_a_users_own_program_keeps_its_settings(tmp_path: Path) -> None:
    pytest.importorskip("yaml")  # without it, numba has no such file
    assert cache_dir(tmp_path) == "/planted True\n"
