"""Programs with a local session of their own, and Javas that are none."""

from __future__ import annotations

import os
from pathlib import Path

from corpus import REPOSITORY


def environment(**more: str) -> dict[str, str]:
    """Of a program that imports kafkajit from this checkout, and makes no archives."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    return clean | {"PYTHONPATH": str(REPOSITORY), "KAFKAJIT_CACHE": "0"} | more


def fake_java(folder: Path, script: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java
