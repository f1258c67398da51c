"""Programs with a local session of their own, and programs that only look like Java."""

from __future__ import annotations

import os
from pathlib import Path

from corpus import REPOSITORY


def environment(**more: str) -> dict[str, str]:
    """The environment of a program that imports this checkout's kafkajit and makes no archives."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    return clean | {"PYTHONPATH": str(REPOSITORY), "KAFKAJIT_CACHE": "0"} | more


def fake_java(folder: Path, script: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java
