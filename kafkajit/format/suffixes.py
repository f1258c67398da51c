"""The suffixes of files with tables: the formats and codecs that export, import and sql know."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

PARQUET, ARROW, CSV, JSONL, AVRO = "parquet", "arrow", "csv", "jsonl", "avro"
TEXT = (CSV, JSONL)
_FORMATS = {
    ".parquet": PARQUET,
    ".arrow": ARROW,
    ".arrows": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".csv": CSV,
    ".jsonl": JSONL,
    ".ndjson": JSONL,
    ".json": JSONL,
    ".avro": AVRO,
}
# codec: the suffix of a compressed text, as programs that read it expect it
PACKED = {"gzip": ".gz", "zstd": ".zst"}


class FileFormat(NamedTuple):
    """The format and the codec that the name of a file asks for; None if it asks for none."""

    format: str | None = None
    codec: str | None = None


def format_in(name: str, packed: tuple[str, ...] = TEXT) -> FileFormat:
    """The format of a file by its name; `packed` has the formats that may be compressed as a whole.

    >>> format_in("orders.csv.gz")
    FileFormat(format='csv', codec='gzip')
    >>> format_in("orders.JSON").format
    'jsonl'
    >>> format_in("orders.parquet.gz")
    FileFormat(format=None, codec='gzip')
    """
    *rest, last = ["", *PurePosixPath(name.lower()).suffixes]
    codec = next((codec for codec, suffix in PACKED.items() if suffix == last), None)
    if codec is None:
        return FileFormat(_FORMATS.get(last))
    inner = _FORMATS.get(rest[-1] if rest else "")
    return FileFormat(inner if inner in packed else None, codec)
