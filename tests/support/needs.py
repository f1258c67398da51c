"""Programs that a test needs besides Python's packages.

A machine without one of them skips the test and names what to install. A program that is listed in
KAFKAJIT_REQUIRE, as CI lists them, is a failure if it is missing.
"""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

INSTALL = {
    "java": "Java 17 or newer",
    "mvn": "Apache Maven",
    "groff": "GNU groff",
    "chromium": "Debian's chromium",
    "chromedriver": "Debian's chromium-driver",
}


def need(program: str) -> None:
    """Skip the calling test, or fail it in CI, unless a program is on the PATH."""
    if not shutil.which(program):
        give_up(program, f"needs `{program}`: install {INSTALL[program]}")


def need_root() -> None:
    """Skip the calling test, or fail it in CI, unless root runs it: it needs a second user."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        give_up("root", "needs a second user: run the tests as root, in a container perhaps")


def give_up(program: str, reason: str) -> NoReturn:
    """Skip the calling test, or fail it in CI if CI lists what the test lacks."""
    if program in os.environ.get("KAFKAJIT_REQUIRE", "").split():
        pytest.fail(reason)
    pytest.skip(reason)
