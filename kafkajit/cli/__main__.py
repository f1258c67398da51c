"""`python -m kafkajit.cli`: the command without its installation."""

from __future__ import annotations

import sys

from kafkajit.cli import main

sys.exit(main())
