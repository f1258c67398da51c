"""Make kafkajit/sample again: a small topic that shows what a log can hold.

    python tests/make_sample.py

Orders in five batches, one of each codec, with headers; a transaction that commits and one that
aborts; a tombstone. Written by kafkajit.testing; nothing in it is random.
"""

from __future__ import annotations

import json
from pathlib import Path

import kafkajit.testing as kt

SAMPLE = Path(__file__).parent.parent / "kafkajit" / "sample"
LOG = SAMPLE / "orders-0" / "00000000000000000000.log"

_START = 1_762_300_800_000  # 2025-11-05 00:00:00 UTC
_CUSTOMERS = ["Ada", "Grace", "Zoë", "Linus", "Søren"]


def sample_log() -> bytes:
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


if __name__ == "__main__":
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_bytes(sample_log())
    print(f"{LOG.stat().st_size} bytes in {LOG}")
