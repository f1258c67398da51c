"""Make kafkajit/sample again: two small topics that show what a log can hold.

    python tests/support/make_sample.py

orders: five batches, one of each codec, with headers; a transaction that commits and one that
aborts; a tombstone.

payments: problems that operators look for. Partition 0 was compacted, and one of its segments is
missing. It has a transaction that commits, one that aborts and one that never ended. Partition 1
has a batch that its producer sent twice, and timestamps from wrong clocks. Its last index is wrong
too.

damaged: a separate folder for what a disk or a copy may do. refunds-0 has a batch with a flipped
bit, and half of a batch at its end. Offsets of refunds-1 are in two segments.

internal: a separate folder for a broker's internal topics: commits of groups that consume these
topics, and the coordinator's states of the transactions in payments-0.

kafkajit.testing writes everything; nothing is random. The folder `typed` is not made here: a real
broker wrote it for tests/broker/make_typed_sample.py.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import kafkajit.testing as kt

SAMPLE = Path(__file__).parents[2] / "kafkajit" / "sample"

_START = 1_762_300_800_000  # 2025-11-05 00:00:00 UTC
_MINUTE = 60_000
_CUSTOMERS = ["Ada", "Grace", "Zoë", "Linus", "Søren"]


def orders() -> bytes:
    """The segment's bytes."""
    log = b""
    offset = 0
    for codec in kt.CODECS:
        log += kt.batch(
            [_order(offset + i) for i in range(4)],
            base_offset=offset,
            base_timestamp=_START + 1000 * offset,
            codec=codec,
        )
        offset += 4
    for control_type, producer_epoch in ((1, 0), (0, 1)):  # COMMIT, then ABORT
        producer = {"producer_id": 4711, "producer_epoch": producer_epoch}
        log += kt.batch(
            [_order(offset), _order(offset + 1)],
            base_offset=offset,
            base_timestamp=_START + 1000 * offset,
            base_sequence=0,
            is_transactional=True,
            **producer,
        )
        log += kt.control_batch(
            control_type,
            base_offset=offset + 2,
            base_timestamp=_START + 1000 * (offset + 2),
            **producer,
        )
        offset += 3
    tombstone = kt.Record(key=b"order-3", value=None)
    return log + kt.batch(
        [tombstone], base_offset=offset, base_timestamp=_START + 1000 * offset, codec="lz4"
    )


def _order(number: int) -> kt.Record:
    customer = _CUSTOMERS[number % len(_CUSTOMERS)]
    value = {"customer": customer, "items": 1 + number % 3, "total": 9.5 + number}
    return kt.Record(
        key=f"order-{number}".encode(),
        value=json.dumps(value, ensure_ascii=False).encode(),
        headers=[("trace", f"{number:08x}".encode())] if number % 2 else [],
        timestamp=_START + 1000 * number,
    )


def payments() -> dict[str, bytes]:
    """Segments by name."""
    idempotent = {"producer_id": 9001, "producer_epoch": 0}
    ends = {"producer_id": 9002, "is_transactional": True}
    hangs = {"producer_id": 9003, "producer_epoch": 4, "is_transactional": True}
    cleaned = (
        _batch(0, [_payment(0, "Ada"), _payment(2, "Zoë", delta=2)], base_sequence=0, **idempotent)
        # The cleaner took all records of this batch, and kept it for its producer's sequence.
        + kt.batch(
            [],
            base_offset=3,
            base_timestamp=-1,
            max_timestamp=_START + 3 * _MINUTE,
            last_offset_delta=1,
            producer_id=9000,
            producer_epoch=0,
            base_sequence=40,
        )
        + _batch(
            5,
            [_payment(5, "Grace"), kt.Record(key="Søren".encode(), timestamp=_START + 6 * _MINUTE)],
            delete_horizon_ms=_START + 86_400_000,
            max_timestamp=_START + 6 * _MINUTE,
            base_sequence=3,
            **idempotent,
        )
        + _batch(
            7,
            [_payment(7, "Ada"), _payment(8, "Linus")],
            codec="zstd",
            producer_epoch=0,
            base_sequence=0,
            **ends,
        )
        + _marker(1, 9, producer_epoch=0, **ends)
    )
    active = (
        _batch(20, [_payment(20, "Ada"), _payment(21, "Ada")], base_sequence=0, **hangs)
        + _batch(22, [_payment(22, "Grace")], base_sequence=9, **idempotent)
        + _batch(
            23,
            [_payment(23, "Zoë"), _payment(24, "Zoë"), _payment(25, "Ada")],
            codec="zstd",
            producer_epoch=1,
            base_sequence=0,
            **ends,
        )
        + _marker(0, 26, producer_epoch=1, **ends)
    )
    sent_twice = [_payment(2, None), _payment(3, "Ada")]
    ahead = _START + 10_957 * 86_400_000  # thirty years
    first = (
        _batch(0, [_payment(0, "Grace"), _payment(1, "Ada")], codec="lz4")
        + _batch(2, sent_twice, codec="lz4")
        + _batch(4, sent_twice, codec="lz4")
        # Seconds where milliseconds belong, and a clock that is fast.
        + _batch(6, [_payment(6, "Zoë", timestamp=_START // 1000)])
        + _batch(7, [_payment(7, "Ada", timestamp=ahead)])
    )
    second = _batch(8, [_payment(8, "Linus")]) + _batch(9, [_payment(5, "Ada")])
    return {
        "logs/payments-0/00000000000000000000.log": cleaned,
        "logs/payments-0/00000000000000000020.log": active,
        "logs/payments-1/00000000000000000000.log": first,
        "logs/payments-1/00000000000000000008.log": second,
    }


def _payment(
    number: int, payer: str | None, delta: int | None = None, timestamp: int | None = None
) -> kt.Record:
    return kt.Record(
        key=None if payer is None else payer.encode(),
        value=json.dumps({"payment": number, "amount": 9.5 + number}).encode(),
        timestamp=_START + number * _MINUTE if timestamp is None else timestamp,
        offset_delta=delta,
    )


def _batch(base_offset: int, records: list[kt.Record], **fields: object) -> bytes:
    return kt.batch(records, base_offset=base_offset, base_timestamp=records[0].timestamp, **fields)


def _marker(control_type: int, offset: int, **producer: object) -> bytes:
    return kt.control_batch(
        control_type, base_offset=offset, base_timestamp=_START + offset * _MINUTE, **producer
    )


def damaged() -> dict[str, bytes]:
    """Segments with damage, by name."""
    ends = {"producer_id": 9005, "producer_epoch": 0, "is_transactional": True}
    parts = [
        _batch(0, [_payment(0, "Grace"), _payment(1, "Ada")]),
        _batch(2, [_payment(2, "Zoë"), _payment(3, "Ada")], base_sequence=0, **ends),
        bytearray(_batch(4, [_payment(4, "Linus"), _payment(5, "Linus")])),
        _marker(1, 6, **ends),
        _batch(7, [_payment(7, "Ada")], codec="zstd"),
        _batch(8, [_payment(8, "Grace"), _payment(9, "Zoë")])[:100],
    ]
    parts[2][-5] ^= 1
    first = (
        _batch(0, [_payment(0, "Grace"), _payment(1, "Ada")])
        + _batch(2, [_payment(2, "Zoë"), _payment(3, "Ada")])
        + _batch(4, [_payment(4, "Linus"), _payment(5, "Linus")])
    )
    second = _batch(4, [_payment(4, "Linus"), _payment(5, "Linus")]) + _batch(
        6, [_payment(6, "Zoë"), _payment(7, "Ada")]
    )
    return {
        "damaged/refunds-0/00000000000000000000.log": b"".join(parts),
        "damaged/refunds-1/00000000000000000000.log": first,
        "damaged/refunds-1/00000000000000000004.log": second,
    }


def internal() -> dict[str, bytes]:
    """Segments of __consumer_offsets and __transaction_state, by name."""
    commits = [
        ("billing", "orders", 0, 12, 1),
        ("billing", "payments", 0, 20, 1),
        ("billing", "payments", 1, 4, 2),
        ("billing", "orders", 0, 26, 9),
        ("reports", "orders", 0, 27, 10),
        ("reports", "refunds", 0, 3, 10),
        ("trial", "orders", 0, 5, 11),
        ("trial", "orders", 0, None, 30),  # its offsets were deleted
    ]
    states = [
        ("checkout", 9002, 0, 1, 7, 7),
        ("checkout", 9002, 0, 5, 9, 7),
        ("ledger", 9003, 4, 1, 20, 20),
        ("checkout", 9002, 1, 1, 23, 23),
        ("checkout", 9002, 1, 4, 26, 23),
        # The coordinator considers it ended, but payments-0 has no marker.
        ("ledger", 9003, 4, 5, 27, 20),
        ("refunder", 9004, 0, 1, 28, 28),
    ]
    offsets = b"".join(_batch(at, [_commit(*row)]) for at, row in enumerate(commits))
    transactions = b"".join(_batch(at, [_state(*row)]) for at, row in enumerate(states))
    return {
        "internal/__consumer_offsets-0/00000000000000000000.log": offsets,
        "internal/__transaction_state-0/00000000000000000000.log": transactions,
    }


def _commit(group: str, topic: str, partition: int, offset: int | None, minute: int) -> kt.Record:
    """OffsetCommitKey and OffsetCommitValue, of versions 1 and 3."""
    timestamp = _START + minute * _MINUTE
    key = struct.pack(">h", 1) + _string(group) + _string(topic) + struct.pack(">i", partition)
    value = None
    if offset is not None:
        value = struct.pack(">hqi", 3, offset, 0) + _string("") + struct.pack(">q", timestamp)
    return kt.Record(key=key, value=value, timestamp=timestamp)


def _state(name: str, producer: int, epoch: int, status: int, minute: int, start: int) -> kt.Record:
    """TransactionLogKey and TransactionLogValue, of version 0."""
    times = [_START + at * _MINUTE for at in (minute, start)]
    is_ongoing = status == 1
    parts = struct.pack(">i", 1) + _string("payments") + struct.pack(">ii", 1, 0)
    value = struct.pack(">hqhib", 0, producer, epoch, 60_000, status)
    value += (parts if is_ongoing else struct.pack(">i", 0)) + struct.pack(">qq", *times)
    key = struct.pack(">h", 0) + _string(name)
    return kt.Record(key=key, value=value, timestamp=times[0])


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def indexes(logs: dict[str, bytes]) -> dict[str, bytes]:
    """Indexes by name, with an entry for each batch of a segment except the first.

    The last entry is wrong: it leads to its batch's end instead of its beginning.
    """
    found = {}
    for name, log in logs.items():
        base_offset = int(Path(name).stem)
        positions, times, latest = [], [], -1
        at = 0
        while at < len(log):
            offset, size = struct.unpack_from(">qi", log, at)
            last_offset = offset + struct.unpack_from(">i", log, at + 23)[0] - base_offset
            max_timestamp = struct.unpack_from(">q", log, at + 35)[0]
            if at:
                positions.append((last_offset, at))
            if max_timestamp > latest:
                latest = max_timestamp
                times.append((latest, last_offset))
            at += 12 + size
        stem = name.removesuffix(".log")
        found[f"{stem}.timeindex"] = kt.time_index(times)
        found[f"{stem}.index"] = kt.offset_index(positions)
    relative, _ = positions.pop()
    found[f"{stem}.index"] = kt.offset_index([*positions, (relative, len(log))])
    return found


if __name__ == "__main__":
    logs = {"logs/orders-0/00000000000000000000.log": orders(), **payments()}
    for name, log in {**logs, **indexes(payments()), **internal(), **damaged()}.items():
        (SAMPLE / name).parent.mkdir(parents=True, exist_ok=True)
        (SAMPLE / name).write_bytes(log)
        print(f"{len(log)} bytes in {name}")
