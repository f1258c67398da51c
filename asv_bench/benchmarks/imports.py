"""The time until a short program has its first record, in a fresh interpreter each time."""

from __future__ import annotations

from kafkajit import read_records
from kafkajit.testing import Record, batch

_LOG = batch([Record(key=b"key", value=b"value")])
_READ = f"kafkajit.read_records(bytes.fromhex('{_LOG.hex()}'))"


def timeraw_import() -> str:
    """The package alone: it loads nothing before it is needed."""
    return "import kafkajit"


def timeraw_import_pyarrow() -> str:
    """The import that every reader into Arrow needs."""
    return "import pyarrow"


def timeraw_import_reader() -> str:
    """The reader with numba, numpy and pyarrow, no kernel loaded yet."""
    return "import kafkajit.reader"


class FirstCall:
    """The first records, with kernels compiled earlier and loaded from disk."""

    def setup(self) -> None:
        read_records(_LOG)

    def timeraw_read_records(self) -> tuple[str, str]:
        return _READ, "import kafkajit, kafkajit.reader"

    def timeraw_import_and_read_records(self) -> str:
        return f"import kafkajit; {_READ}"


class FirstCallEver:
    """The first records when no kernel has been compiled yet, which takes seconds."""

    timeout = 120
    number = 1
    repeat = 2
    rounds = 1

    def timeraw_read_records(self) -> tuple[str, str]:
        uncached = "import os; os.environ['KAFKAJIT_CACHE'] = '0'"
        return _READ, f"{uncached}; import kafkajit, kafkajit.reader"
