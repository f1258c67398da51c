"""Digests of the files that Kafka leaves for the logs of tests/support/appends.py.

In: a JVM that LogOperations drives. Out: for each seed the files of a log that was appended to from
its beginning to its end, and of one that was closed, opened, rolled and gone on with.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from log_operations import LogOperations

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

from appends import TIME, append, digests, files_of

LOGS = 150
# No producer expires: this is Java's largest int, and the clock is earlier.
_LOADED = {"now": TIME, "producerIdExpirationMs": 2**31 - 1}


def append_goldens(kafka: LogOperations, work: Path) -> str:
    """Digests by seed, by way and by kind of file, as JSON."""
    goldens: dict[str, dict[str, dict[str, str]]] = {}
    for seed in range(LOGS):
        log = append(seed)
        config = {
            "segment.bytes" if name == "internal.segment.bytes" else name: value
            for name, value in log.config.items()
        }
        goldens[str(seed)] = {}
        for way, parts in {"once": [b"".join(log.batches)], "twice": log.parts}.items():
            folder = work / f"{seed}-{way}" / "orders-0"
            folder.parent.mkdir(parents=True)
            for place, part in enumerate(parts):
                opened = kafka.open(folder, config, logStartOffset=log.start, **_LOADED)
                if place:
                    opened.do("roll")
                opened.append(part)
                opened.do("close")
            goldens[str(seed)][way] = digests(files_of(folder), log.start)
            shutil.rmtree(folder.parent)
    return json.dumps(goldens, indent=1) + "\n"
