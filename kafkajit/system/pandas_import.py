"""Keeps pandas out of a command that does not need it.

pyarrow imports pandas, where it is installed, with the first array that it makes of a list: a third
of the time in which a command starts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError("kafkajit's command runs without pandas", name=fullname)
        return None


def leave_out_pandas() -> None:
    """Let this process do without pandas. pyarrow asks whether it is there, and goes on."""
    sys.meta_path.insert(0, _WithoutPandas())
