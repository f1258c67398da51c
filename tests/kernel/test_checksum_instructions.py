from __future__ import annotations

import zlib

import pytest
from corpus import DAMAGED_LOGS, OLD_LOGS, V2_LOGS, run_python
from crc32c import crc32c

import kafkajit

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


RECORDS = """
import platform, sys
if sys.argv[1]:
    platform.machine = lambda: sys.argv[1]
import kafkajit
from kafkajit.kernel.checksum_instructions import HAS_CRC32_FOLD, HAS_CRC32C

assert not HAS_CRC32C and not HAS_CRC32_FOLD
for path in sys.argv[2:]:
    print(kafkajit.read_records(path).to_pylist())
    print(kafkajit.find_corruption(path).to_pylist())
"""


@pytest.mark.parametrize(
    ("machine", "processor"), [("", {"NUMBA_CPU_NAME": "generic"}), ("riscv64", {})]
)
def test_a_processor_without_the_instructions_reads_the_same_records(
    machine: str, processor: dict[str, str]
) -> None:
    paths = [str(log) for log in (V2_LOGS[0], OLD_LOGS[0], DAMAGED_LOGS[0])]
    expected = [
        str(table.to_pylist())
        for path in paths
        for table in (kafkajit.read_records(path), kafkajit.find_corruption(path))
    ]
    assert run_python(RECORDS, machine, *paths, **processor).splitlines() == expected


def test_a_big_endian_processor_is_refused() -> None:
    code = "import sys, numba\nsys.byteorder = 'big'\ntry:\n    import kafkajit.kernel\n"
    assert "copy the logs" in run_python(f"{code}except ImportError as error:\n    print(error)")
