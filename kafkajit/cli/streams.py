"""The standard streams of a process: closed ones, and pipes whose reader has gone."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2


def open_closed_streams() -> None:
    """Give a process that was started with closed streams some that are open.

    Otherwise the next file that it opens would get the number of one of them. Whatever is written
    to a closed standard output is an error, and not lost.
    """
    for number in (_INPUT, _OUTPUT, _ERRORS):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            _open(number, os.O_WRONLY if number == _ERRORS else os.O_RDONLY)
    sys.stdin = sys.stdin or _stream(_INPUT, "r")
    sys.stdout = sys.stdout or _stream(_OUTPUT, "w")
    sys.stderr = sys.stderr or _stream(_ERRORS, "w")


def forget_output() -> None:
    """Drop what is left to be written to standard output, which has failed before."""
    _open(_OUTPUT, os.O_WRONLY)


def flush_or_forget() -> None:
    """Write what is left to be written to standard output, or drop it if that fails."""
    try:
        sys.stdout.flush()
    except OSError:
        forget_output()


def is_closed(error: BaseException) -> bool:
    """Whether this is the error of a write to a closed standard output."""
    if not isinstance(error, OSError) or error.errno != errno.EBADF:
        return False
    return os.fstat(_OUTPUT).st_rdev == Path(os.devnull).stat().st_rdev


def _open(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


def _stream(number: int, mode: str) -> Any:
    return open(number, mode, closefd=False)
