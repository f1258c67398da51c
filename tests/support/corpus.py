"""The corpus, and the records that tests/reference.py reads, in the forms that tests compare."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import reference
from data import unpacked

TESTS = Path(__file__).parent.parent
REPOSITORY = TESTS.parent
DATA = unpacked()
NO_JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
# Megabytes of records take interpreted kernels minutes. Other logs test the same promises.
_LARGE = ("large-value-gzip-0", "large-value-zstd-0", "blocks-")


def _logs(*folders: str) -> list[Path]:
    names = ("*.log", "*.log.deleted", "*.checkpoint")
    found = [path for folder in folders for name in names for path in (DATA / folder).rglob(name)]
    return sorted(path for path in found if not (NO_JIT and path.parent.name.startswith(_LARGE)))


V2_LOGS = _logs("v2", "internal", "tiered")
OLD_LOGS = _logs("old")  # v0, v1, and both with v2 in one log
SOUND_LOGS = V2_LOGS + OLD_LOGS
DAMAGED_LOGS = _logs("damaged")
LOGS = SOUND_LOGS + DAMAGED_LOGS


def log_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem.lstrip('0') or '0'}{path.suffix}"


by_log = pytest.mark.parametrize("path", LOGS, ids=log_id)
by_sound_log = pytest.mark.parametrize("path", SOUND_LOGS, ids=log_id)
by_v2_log = pytest.mark.parametrize("path", V2_LOGS, ids=log_id)


def log_of(topic_partition: str, base_offset: int = 0, folder: str = "v2") -> bytes:
    return (DATA / folder / topic_partition / f"{base_offset:020}.log").read_bytes()


def split(log: bytes) -> list[bytes]:
    """The bytes of each whole batch."""
    batches, _ = reference.read_batches(log)
    return [log[batch.position : batch.position + batch.size] for batch in batches]


def rows_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows with timestamps in milliseconds: Python's datetime ends where Kafka's goes on."""
    names = table.schema.names
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=names).to_pylist()


Decompress = Callable[[int, bytes], bytes]


def batch_rows(
    log: bytes, batch: reference.Batch, *, check_crcs: bool = True
) -> list[dict[str, Any]]:
    """The rows that the reference reads in one batch; Invalid if a reader must refuse it."""
    batch_records(batch, check_crcs=check_crcs)
    whole = log[batch.position : batch.position + batch.size]
    return [row | {"position": batch.position} for row in reference.rows(whole)]


def batch_records(batch: reference.Batch, *, check_crcs: bool = True) -> list[reference.Record]:
    """As `batch_rows`, as the reference's records."""
    if batch.magic not in (0, 1, 2) or (batch.magic == 2 and batch.size < 61):
        raise reference.Invalid("no batch and no message")
    if check_crcs and not batch.is_valid:
        raise reference.Invalid("not as it was written")
    if batch.codec > 4:  # even without records: Java's compressionType() throws
        raise reference.Invalid("unknown codec")
    records = reference.read_records(batch)
    if batch.is_control:
        for record in records:
            _check_control(record)
    return records


def _check_control(record: reference.Record) -> None:
    key, value = record.key or b"", record.value or b""
    if len(key) < 4 or key[0] >= 0x80:
        raise reference.Invalid("control key")
    if struct.unpack_from(">h", key, 2)[0] in (0, 1) and (len(value) < 6 or value[0] >= 0x80):
        raise reference.Invalid("marker value")


def expected_rows(
    log: bytes, *, check_crcs: bool = True, is_beginning: bool = True
) -> tuple[list[dict[str, Any]], reference.Invalid | None]:
    """The rows of the whole batches before the first bad one, and the error in that one."""
    batches, _, error = reference.framed(log, is_beginning=is_beginning)
    rows: list[dict[str, Any]] = []
    for batch in batches:
        try:
            rows += batch_rows(log, batch, check_crcs=check_crcs)
        except reference.Invalid as invalid:
            return rows, invalid
    return rows, error


def without_gaps(log: bytes, gaps: list[dict[str, Any]]) -> bytes:
    """The bytes of a log around the gaps that PERMISSIVE reading found, in order and apart."""
    kept, position = b"", 0
    for gap in gaps:
        assert position <= gap["position"] < gap["position"] + gap["length"] <= len(log)
        kept += log[position : gap["position"]]
        position = gap["position"] + gap["length"]
    return kept + log[position:]


def plain_twin(log: bytes) -> bytes:
    """The same log of v2 with every batch's records as the reference decompresses them."""
    twin = b""
    for batch in reference.read_batches(log)[0]:
        payload = reference.decompress(batch.codec, batch.payload)
        plain = replace(batch, attributes=batch.attributes & ~7, payload=payload)
        twin += encode(plain)
    return twin


def encode(batch: reference.Batch) -> bytes:
    """The batch's bytes, with the right length and checksum."""
    import kafkajit.testing as kt

    fields = struct.pack(
        ">hiqqqhii",
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.records_count,
    )
    length = 49 + len(batch.payload)
    head = struct.pack(
        ">qiibI", batch.base_offset, length, batch.partition_leader_epoch, batch.magic, 0
    )
    return kt.repair_crc(head + fields + batch.payload)


def run_python(
    code: str, *arguments: str, package_parent: Path = REPOSITORY, **environment: str
) -> str:
    """Standard output of a fresh process that can import kafkajit and the tests' own modules."""
    paths = [str(package_parent), str(TESTS), str(TESTS / "support")]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=package_parent,  # Python looks there first
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
