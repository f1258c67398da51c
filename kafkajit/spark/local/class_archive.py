"""Finds the archive of Spark's parsed classes, or has one made.

Spark loads about 16,000 classes before its first answer. Mapped from an archive (class data
sharing) they cost 3 s instead of 7. `archive_maker` makes the archive after the first session.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kafkajit.spark.local.java import Java
from kafkajit.spark.local.jvm import FLAGS, child_environment
from kafkajit.storage.cache_folder import cache_folder


def archive_name(java: Java, jars: Sequence[Path]) -> Path | None:
    """The first part of the path of the archive for this Java and these jars; None without a cache.

    The JVM ignores an archive that does not fit it. The name identifies the archive that fits, so
    kafkajit notices beforehand that a new one has to be made.
    """
    cache = cache_folder()
    if cache is None:
        return None
    maker = Path(__file__).with_name("archive_maker.py").read_bytes()
    digest = hashlib.sha256(repr((java, FLAGS, maker)).encode())
    try:
        for jar in jars:
            found = jar.stat()
            digest.update(f"{jar} {found.st_size} {found.st_mtime_ns}".encode())
    except OSError:
        return None
    return cache / f"spark-{digest.hexdigest()[:16]}"


def find_archive(name: Path) -> Path | None:
    """The archive of this name. The name ends in its size: a truncated archive crashes the JVM."""
    for archive in name.parent.glob(f"{name.name}-*.jsa"):
        with contextlib.suppress(OSError, ValueError):
            if archive.stat().st_size == int(archive.stem.rpartition("-")[2]):
                return archive
    return None


def start_maker(name: Path) -> None:
    """Start the program that makes the archive, once a session has ended, so as not to slow it."""
    if not os.access(name.parent, os.W_OK):
        return
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", "kafkajit.spark.local.archive_maker"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            cwd=name.parent,
            start_new_session=True,
        )
