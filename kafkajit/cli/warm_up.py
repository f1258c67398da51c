"""Compile the kernels now, so that commands, sessions and workers start at once.

Machine code is kept in the installation if that is writable, else in ~/.cache/numba or
NUMBA_CACHE_DIR. Run it once after an installation, or while an image or an environment for Spark's
executors is built. It takes about a minute, or a few seconds if everything is compiled already.
"""

from __future__ import annotations

import argparse
import sys
import time

EXAMPLE = """\
Machine code is kept in the installation if that is writable, else in
~/.cache/numba or NUMBA_CACHE_DIR. Run this once after an installation, or while
an image or an environment for Spark's executors is built.

example:
  kafkajit warm-up
"""


def add_arguments(_: argparse.ArgumentParser) -> None:
    """It has no arguments of its own."""


def run(_: argparse.Namespace) -> int:
    """Compile the kernels that are not compiled yet."""
    from kafkajit.spark.warm_up import warm_up

    begun = time.monotonic()
    warm_up()
    print(f"kernels are ready ({time.monotonic() - begun:.1f} s)", file=sys.stderr)
    return 0
