"""The advice at the end of errors about damage that `kafkajit repair` can mend."""

from __future__ import annotations

from typing import TypeVar

from kafkajit.errors import KafkaJitError

REPAIR_FIRST = "run `kafkajit repair` on the folder first"

_Error = TypeVar("_Error", bound=KafkaJitError)


def advise_repair(error: _Error) -> _Error:
    """Add the advice to an error that does not have it yet, and return the error."""
    if REPAIR_FIRST not in error.message:
        # A position follows the message without a comma.
        error.message += f": {REPAIR_FIRST}" + ("," if error.position is not None else "")
    return error
