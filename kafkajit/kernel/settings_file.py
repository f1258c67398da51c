"""Keeps numba from the settings in the current folder, if this process must not use that folder.

numba reads `.numba_config.yaml` when it is imported and before each compilation. The file could
name a folder of machine code, which numba loads.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kafkajit.system.current_folder import is_left_out

_YAML = "yaml"


@contextmanager
def unread() -> Iterator[None]:
    """Import numba within this block."""
    if not is_left_out():
        yield
        return
    # numba looks for the file as soon as it is imported, and ignores it with a warning without
    # the package yaml. Changing the folder would affect other threads.
    before = {name: module for name, module in sys.modules.items() if name == _YAML}
    sys.modules[_YAML] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A Numba config file is found")
            yield
    finally:
        del sys.modules[_YAML]
        sys.modules.update(before)
    from numba.core import config

    config._config_fname = os.devnull
