"""Find the one wrong bit of a batch by its checksum.

CRC-32C is linear: a wrong bit changes the checksum by a number that depends only on the bit and on
the number of bytes behind it. So that number tells which bit is wrong, if it is only one.
"""

from __future__ import annotations

from crc32c import crc32c

from kafkajit.format.layout import ATTRIBUTES_OFFSET, CRC_OFFSET

_POLYNOMIAL = 0x82F63B78
_MOST_BYTES = 64 << 10


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def without_wrong_bit(content: bytes) -> tuple[bytes, int | None]:
    """A whole batch with at most one bit changed so that its checksum is right, and the number.

    The number is None if more bits are wrong: the content stays as it is then.

    >>> import kafkajit.testing as kt
    >>> batch = kt.batch([kt.Record(b"key")])
    >>> spoilt = batch[:50] + bytes([batch[50] ^ 4]) + batch[51:]
    >>> without_wrong_bit(spoilt) == (batch, 1), without_wrong_bit(batch)[1]
    (True, 0)
    """
    stored = int.from_bytes(content[CRC_OFFSET:ATTRIBUTES_OFFSET])
    checked = content[ATTRIBUTES_OFFSET:]
    wrong = stored ^ crc32c(checked)
    if wrong.bit_count() <= 1:  # the checksum itself is damaged, or bytes that it does not cover
        return content, wrong.bit_count()
    if len(checked) > _MOST_BYTES:
        return content, None
    changes = [_TABLE[1 << bit] for bit in range(8)]  # of the last byte's bits
    for place in range(len(checked) - 1, -1, -1):
        if wrong in changes:
            right = bytearray(content)
            right[ATTRIBUTES_OFFSET + place] ^= 1 << changes.index(wrong)
            return bytes(right), 1
        changes = [_TABLE[change & 0xFF] ^ change >> 8 for change in changes]
    return content, None
