"""Why a message is malformed, in Java's words and in ours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.topics.message import FIELD, LIMIT, NUMBER, REASON
from kafkajit.topics.primitives import (
    BYTES_SIZE,
    COUNT,
    DEPTH,
    NEGATIVE_SIZE,
    NEWER,
    NULL,
    STRING_SIZE,
    UNDERFLOW,
    VARINT,
    WRONG_TAG,
)
from kafkajit.topics.programs import Programs

# The messages of Java's exceptions.
_JAVA_TEXTS = {
    UNDERFLOW: "null",  # a BufferUnderflowException has no message
    VARINT: "Varint is too long, the most significant bit in the 5th byte is set, "
    "converted value: {number:x}",
    NULL: "non-nullable field {field} was serialized as null",
    STRING_SIZE: "string field {field} had invalid length {number}",
    BYTES_SIZE: "Error reading byte array of {number} byte(s): only {limit} byte(s) available",
    COUNT: "Tried to allocate a collection of size {number}, but there are only {limit} "
    "bytes remaining.",
    NEGATIVE_SIZE: "{number}",
    WRONG_TAG: "Tag {number} is not valid for version {version}",
    NEWER: "Can't read version {version} of {field}",
    DEPTH: "too deep",
}
# Our own, where Java's message is of little help.
_TEXTS = _JAVA_TEXTS | {
    UNDERFLOW: "the payload ends too early",
    NEGATIVE_SIZE: "a tagged field has a negative size: {number}",
    NEWER: "field {field} is of a newer version: {version}",
}


def java_complaint(programs: Programs, scratch: npt.NDArray[np.int64], version: int) -> str:
    """The message of Java's exception for a malformed message."""
    return _complaint(_JAVA_TEXTS, programs, scratch, version)


def complaint(programs: Programs, scratch: npt.NDArray[np.int64], version: int) -> str:
    """Our own reason for a malformed message."""
    return _complaint(_TEXTS, programs, scratch, version)


def _complaint(
    texts: dict[int, str], programs: Programs, scratch: npt.NDArray[np.int64], version: int
) -> str:
    return texts[int(scratch[REASON])].format(
        field=programs.names[int(scratch[FIELD])],
        number=int(scratch[NUMBER]),
        limit=int(scratch[LIMIT]),
        version=version,
    )
