"""Runs dump-log in this process, with the flags that its goldens were made with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from corpus import DATA

PACKAGE = "org.apache.kafka.tools.api"
LOG = "00000000000000000000.log"

# Kinds of goldens, and the flags for Kafka's tool (tests/broker/make_corpus.py).
KINDS: dict[str, list[str]] = {
    "batches": [],
    "deep": ["--deep-iteration"],
    "data": ["--print-data-log"],
    "skip": ["--print-data-log", "--skip-record-metadata"],
    "deep-skip": ["--deep-iteration", "--skip-record-metadata"],
    "deep-max-bytes-5000": ["--deep-iteration", "--max-bytes", "5000"],
    "max-bytes-0": ["--max-bytes", "0"],
    "max-bytes-60": ["--max-bytes", "60"],
    "max-bytes-5000": ["--max-bytes", "5000"],
    "max-bytes-999999": ["--max-bytes", "999999"],
    "key-long": [f"--key-decoder-class={PACKAGE}.LongDecoder"],
    "value-long": [f"--value-decoder-class={PACKAGE}.LongDecoder"],
    "dump": [],
    "verify": ["--verify-index-only"],
    "sanity": ["--index-sanity-check"],
}
for name in ("Long", "Integer", "String"):
    KINDS[name.lower()] = [
        f"--{side}-decoder-class={PACKAGE}.{name}Decoder" for side in ("key", "value")
    ]


# The flags of the goldens of internal topics.
TOPIC_DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__remote_log_metadata": "--remote-log-metadata-decoder",
}
DECODED = {"decoded": [], "decoded-skip": ["--skip-record-metadata"]}


def flags_of(path: Path, kind: str) -> list[str]:
    """The flags of a golden."""
    if kind not in DECODED:
        return KINDS[kind]
    topic = path.parent.name.rpartition("-")[0]
    decoder = TOPIC_DECODERS["__cluster_metadata" if path.suffix == ".checkpoint" else topic]
    return [decoder, *DECODED[kind]]


class Run(NamedTuple):
    out: bytes
    err: str
    code: int


Dump = Callable[..., Run]


SEGMENTS = DATA / "v2" / "segments-0"


def copied_segment(to: Path, **changed: bytes) -> Path:
    """Copy the first segment of segments-0 with its indexes; replace the bytes of some files."""
    for suffix in ("log", "index", "timeindex"):
        content = changed.get(suffix, (SEGMENTS / LOG).with_suffix(f".{suffix}").read_bytes())
        (to / LOG).with_suffix(f".{suffix}").write_bytes(content)
    return to
