"""Digests of the files that Kafka leaves when it recovers the logs of tests/support/damages.py.

In: a JVM that LogOperations drives. Out: by seed, what is there when the log has been recovered as
often as changes anything.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from log_operations import LogOperations

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

from appends import TIME, digests, files_of
from damages import damage, damaged_seeds

LOGS = 120
_LOADED = {"now": TIME, "producerIdExpirationMs": 2**31 - 1}


def repair_goldens(kafka: LogOperations, work: Path) -> str:
    """Digests by seed and by kind of file, as JSON."""
    goldens: dict[str, dict[str, str]] = {}
    for seed, log in damaged_seeds(LOGS).items():
        config = {
            "segment.bytes" if name == "internal.segment.bytes" else name: value
            for name, value in log.config.items()
        }
        folder = work / str(seed) / "orders-0"
        folder.parent.mkdir(parents=True)
        opened = kafka.open(folder, config, logStartOffset=log.start, **_LOADED)
        opened.append(b"".join(log.batches))
        opened.do("close")
        damage(seed, folder)
        before = None
        while before != (before := files_of(folder)):
            opened = kafka.open(
                folder, config, clean=False, logStartOffset=log.start, recoveryPoint=0, **_LOADED
            )
            opened.do("close")
        goldens[str(seed)] = digests(files_of(folder), log.start)
        shutil.rmtree(folder.parent)
    return json.dumps(goldens, indent=1) + "\n"
