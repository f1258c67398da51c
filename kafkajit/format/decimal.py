"""Numbers → decimal digits, as text in an array of bytes."""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import kernel

_DIGITS = np.frombuffer(b"".join(b"%02d" % i for i in range(100)), dtype=np.uint8)
_MINUS = ord("-")


@kernel
def write_decimal(out, w, value):
    """Write an int64, at most 20 bytes; where `out` goes on."""
    if value < 0:
        out[w] = _MINUS
        w += 1
    # The magnitude of -2**63 is only there unsigned.
    rest = np.uint64(-value) if value < 0 else np.uint64(value)
    digits = 1
    bound = np.uint64(10)
    while digits < 20 and rest >= bound:
        digits += 1
        bound *= np.uint64(10)
    end = w + digits
    p = end
    while rest >= np.uint64(100):
        pair = np.int64(rest % np.uint64(100))
        rest //= np.uint64(100)
        p -= 2
        out[p] = _DIGITS[2 * pair]
        out[p + 1] = _DIGITS[2 * pair + 1]
    last = np.int64(rest)
    if last >= 10:
        out[p - 2] = _DIGITS[2 * last]
        out[p - 1] = _DIGITS[2 * last + 1]
    else:
        out[p - 1] = _DIGITS[2 * last + 1]
    return end
