"""Programs that a test needs besides Python's packages.

A machine without one of them skips the test and names what to install. CI sets KAFKAJIT_REQUIRE=1:
with it, a missing program is a failure.
"""

from __future__ import annotations

import os
import shutil

import pytest

INSTALL = {
    "java": "Java 17 or newer",
    "mvn": "Apache Maven",
    "chromium": "Debian's chromium",
    "chromedriver": "Debian's chromium-driver",
}


def need(program: str) -> None:
    """Skip the calling test, or fail it in CI, unless a program is on the PATH."""
    if shutil.which(program):
        return
    reason = f"needs `{program}`: install {INSTALL[program]}"
    if os.environ.get("KAFKAJIT_REQUIRE", "0") not in ("", "0"):
        pytest.fail(reason)
    pytest.skip(reason)
