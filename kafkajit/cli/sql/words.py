"""Names that the command, its help and its prompt share; importing them costs nothing."""

from __future__ import annotations

BINARY = ("arrow", "parquet")
TEXT = ("table", "line", "csv", "json")
FORMATS = (*TEXT, *BINARY)

BINARY_FILE = "binaryFile"
# view: what a row of it is
VIEW_DOCS = {
    "records": "the records of all segments",
    "batches": "the headers of their record batches",
    "files": "the files of the folders, indexes and snapshots too",
    "corruption": "what is damaged: where, how much, and why",
    BINARY_FILE: "the segments as they are, for functions of content",
}
