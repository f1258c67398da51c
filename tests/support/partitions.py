"""A partition's folder for tests that damage it: batches, with all the files of a broker."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import kafkajit
import kafkajit.testing as kt

# With these configs even small logs have index entries.
CONFIG = kafkajit.LogConfig(index_interval_bytes=100)


def data(offset: int, count: int = 2, **fields: object) -> bytes:
    """A batch of records from an offset on, later than those before it."""
    records = [kt.Record(b"k", b"%08d" % (offset + place)) for place in range(count)]
    time = 1_700_000_000_000 + 1000 * offset
    return kt.batch(records, base_offset=offset, **{"base_timestamp": time} | fields)  # type: ignore[arg-type]


def moved(batch: bytes, base_offset: int) -> bytes:
    """A batch with another base offset, which no checksum covers."""
    return struct.pack(">q", base_offset) + batch[8:]


def transactional(offset: int, producer_id: int, sequence: int = 0, count: int = 2) -> bytes:
    """A batch of a transaction."""
    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
    return data(offset, count, is_transactional=True, **fields)


def marker(offset: int, producer_id: int, control_type: int = 0) -> bytes:
    """A transaction's marker: 0 is ABORT, 1 is COMMIT."""
    time = 1_700_000_000_000 + 1000 * offset
    return kt.control_batch(
        control_type, producer_id=producer_id, base_offset=offset, base_timestamp=time
    )


def log_name(base_offset: int, suffix: str = ".log") -> str:
    return f"{base_offset:020d}{suffix}"


def make_partition(folder: Path, segments: Mapping[int, Iterable[bytes]]) -> Path:
    """A folder with these segments, by base offsets, as a stopped broker leaves it."""
    folder.mkdir(parents=True)
    for base_offset, batches in segments.items():
        (folder / log_name(base_offset)).write_bytes(b"".join(batches))
    kafkajit.repair(folder, config=CONFIG).apply()
    drop_kept(folder)
    return folder


def flipped(batch: bytes, *bits: int) -> bytes:
    """A batch with these bits wrong; by default one of its last byte but one."""
    content = bytearray(batch)
    for bit in bits or (8 * (len(batch) - 2),):
        content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


def damaged(
    work: Path, sound: Mapping[int, Iterable[bytes]], damage: Mapping[int, list[bytes]]
) -> Path:
    """A partition of sound segments, of which some get other batches, and some go."""
    folder = make_partition(work / "kafka" / "orders-0", sound)
    for base, batches in damage.items():
        log = folder / log_name(base)
        log.write_bytes(b"".join(batches)) if batches else log.unlink()
    for path in [*folder.glob("*.txnindex"), *folder.glob("*.snapshot")]:
        path.unlink()
    return folder


def drop_kept(folder: Path) -> None:
    """Remove the files that repairs have kept."""
    for kept in folder.glob(".kafkajit-*"):
        shutil.rmtree(kept)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def offsets_in(folder: Path) -> list[int]:
    """The offsets of all records, in the order in which they are read."""
    log = kafkajit.Log(folder)
    offsets: list[int] = log.read(log.start_offset, 1 << 20, columns=["offset"])[
        "offset"
    ].to_pylist()
    return offsets


def to_do(plan: kafkajit.RepairPlan) -> list[str]:
    """The plan's action for each file."""
    return [f"{name}: {what}" for partition in plan.partitions for name, what in partition.changes]


def check_soundness(folder: Path) -> None:
    """Check that no file in the folder contradicts another."""
    plan = kafkajit.repair(folder, config=CONFIG)
    assert to_do(plan) == []
    assert not plan.is_needed
    for path in folder.glob("*.log"):
        for verify, suffix in (
            (kafkajit.index.verify_offset_index, ".index"),
            (kafkajit.index.verify_time_index, ".timeindex"),
        ):
            assert verify(str(path), str(path.with_suffix(suffix))).num_rows == 0
    offsets = offsets_in(folder)
    assert offsets == sorted(set(offsets))
