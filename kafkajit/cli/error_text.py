"""An exception → the line that a terminal shows for it.

The message alone is enough for most errors. The exception's name precedes it if the name adds
something: the kind of damage, or that the error is unforeseen.
"""

from __future__ import annotations

from kafkajit.errors import KafkaJitError, LeftOutError

# These classes only, without their subclasses.
_NAMELESS = (ValueError, KafkaJitError, LeftOutError)


def reason(error: BaseException) -> str:
    """The text of an error.

    >>> reason(ValueError("no limit was given"))
    'no limit was given'
    >>> reason(KeyError("topic"))
    "KeyError: 'topic'"
    """
    if isinstance(error, OSError):
        return of_system(error)
    return str(error) if type(error) in _NAMELESS else f"{type(error).__name__}: {error}"


def of_system(error: OSError) -> str:
    """The operating system's message, and the file that it is about.

    >>> of_system(PermissionError(13, "Permission denied", "/x"))
    'Permission denied: /x'
    """
    return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
