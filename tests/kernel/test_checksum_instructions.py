from __future__ import annotations

import zlib

from corpus import run_python
from crc32c import crc32c

SUMS = """
import numpy as np
from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.message_checksum import message_checksums
from kafkajit.kernel.checksum_instructions import HAS_CRC32_FOLD, HAS_CRC32C
from kafkajit.storage.source import as_bytes

content = as_bytes(b"any byte of a log" * 1000)
whole = np.array([0]), np.array([content.size])
print(HAS_CRC32C, HAS_CRC32_FOLD)
print(*batch_checksums(content, *whole), *message_checksums(content, *whole))
"""


def test_a_processor_without_the_instructions_gets_the_same_sums() -> None:
    output = run_python(SUMS, NUMBA_CPU_NAME="generic", KAFKAJIT_CACHE="0").split()
    content = b"any byte of a log" * 1000
    expected = [crc32c(content[21:]), zlib.crc32(content[16:])]
    assert output == ["False", "False", *map(str, expected)]
