"""Kills a run at a change of a file."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

CHANGES = {f"os.{name}" for name in ("rename", "remove", "mkdir", "rmdir", "link", "utime")}


def killed_at(call: int, run: Callable[[], Any], *, also: str = "") -> bool:
    """Run in a process that dies after `call` changes of files; whether it died.

    An audit event that is called `also` counts as a change.
    """
    process = os.fork()
    if process == 0:
        numbers = count()

        def die(event: str, arguments: tuple[Any, ...]) -> None:
            writes = event == "open" and (
                "w" in arguments[1]
                if isinstance(arguments[1], str)
                else bool(arguments[2] & os.O_CREAT)
            )
            if (writes or event == also or event in CHANGES) and next(numbers) == call:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        try:
            run()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])
