"""An exception → the line that a terminal shows of it.

Mostly the sentence says all. A name stands before it where it tells what kind of damage it is, or
that nobody has foreseen it.
"""

from __future__ import annotations

from kafkajit.errors import KafkaJitError

# Themselves, not what is derived from them.
_NAMELESS = (ValueError, KafkaJitError)


def reason(error: BaseException) -> str:
    """What is wrong.

    >>> reason(ValueError("no limit was given"))
    'no limit was given'
    >>> reason(KeyError("topic"))
    "KeyError: 'topic'"
    """
    if isinstance(error, OSError):
        return of_system(error)
    return str(error) if type(error) in _NAMELESS else f"{type(error).__name__}: {error}"


def of_system(error: OSError) -> str:
    """What the system refused, and of which file.

    >>> of_system(PermissionError(13, "Permission denied", "/x"))
    'Permission denied: /x'
    """
    return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
