"""Runs the command as `python -m kafkajit.cli`, without its installed script."""

from __future__ import annotations

import sys

from kafkajit.cli import main

sys.exit(main())
