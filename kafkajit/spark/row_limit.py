"""The size at which one of Spark's rows endangers the JVM.

A segment and its records share a row. Spark doubles a row's buffer while it writes the row
(BufferHolder), and copies the row several times. A JVM that runs out of heap ends the session with
all of its queries, so a row that needs more heap than the JVM has is refused beforehand.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

# ByteArrayMethods.MAX_ROUNDED_ARRAY_LENGTH in Spark: no row is larger, whatever the heap.
MAX_ROW_BYTES = 2**31 - 1 - 15

# Bytes of heap for each byte of content and of records, measured with Spark 4.3. MiB of content and
# of records that succeeded / failed: with 1 GiB of heap 42 and 105 / 65 and 65, with 2 GiB
# 84 and 211 / 151 and 151, with 4 GiB 201 and 201 / 302 and 302.
_HEAP_FOR_CONTENT = 12
_HEAP_FOR_RECORDS = 4

_DEFAULT_HEAP = "1g"
_UNITS = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


class Heap(NamedTuple):
    """The heap of the JVM that receives a task's rows (None if unknown), and its setting."""

    size: int | None = None
    setting: str = ""

    def problem_with(self, content: int, records: int) -> str | None:
        """Why a row with this many bytes of content and records is too large; None if it fits."""
        if content + records > MAX_ROW_BYTES:
            return f"Spark's rows end at {MAX_ROW_BYTES:,} bytes"
        needed = content * _HEAP_FOR_CONTENT + records * _HEAP_FOR_RECORDS
        if self.size is None or needed <= self.size:
            return None
        return f"Spark needs {_gib(needed)} of heap for it, and {self.setting} is {_gib(self.size)}"


def _gib(size: int) -> str:
    """The size in GiB, rounded up."""
    return f"{-(-size * 10 // 2**30) / 10} GiB"


def task_heap() -> Heap:
    """The heap of the JVM that this task sends its rows to; unknown outside of a task."""
    pyspark = sys.modules.get("pyspark.taskcontext")  # loaded, if there is a task
    context = pyspark and pyspark.TaskContext.get()
    master = context and context.getLocalProperty("spark.master")
    if not context or not master:
        return Heap()
    side = "driver" if re.match(r"local(?!-cluster)", master) else "executor"
    setting = f"spark.{side}.memory"
    return Heap(_bytes(context.getLocalProperty(setting) or _DEFAULT_HEAP), setting)


def _bytes(text: str) -> int | None:
    """A size as Spark's settings spell it; a number without a unit counts MiB.

    >>> _bytes("512m"), _bytes("2gb"), _bytes("1024"), _bytes("much")
    (536870912, 2147483648, 1073741824, None)
    """
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", text.strip().lower())
    return None if found is None else int(found[1]) << _UNITS[found[2]]
