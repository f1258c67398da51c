"""Files in a partition's folder that a broker takes for files of segments, because of their ends.

Answers to LogLoader.load, LogFileUtils.offsetFromFile and ProducerStateManager.listSnapshotFiles of
Kafka 4.4.0: the ends of names decide, and what is in front of the first dot has to be an offset as
Long.parseLong reads it. Nobody knows what such files are, so a repair leaves them where they are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from kafkajit.format.limits import MAX_INT64, MIN_INT64

_LOGS = (".log", ".log.swap")
_INDEXES = (".index", ".timeindex", ".txnindex")
_ENDS = (".log", *_INDEXES, ".snapshot", ".cleaned", ".swap")
_OWN = re.compile(r"\d{20}\.[a-z.]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+")  # of any script, as in Java


class BrokerNames(NamedTuple):
    """Names of files that a broker misunderstands."""

    obstacles: list[str]  # it does not load the log, or changes it
    notes: list[str]  # it removes the file


def broker_names(folder: Path) -> BrokerNames:
    """Look at the names of all files in a partition's folder that are not those of segments."""
    found = BrokerNames([], [])
    with os.scandir(folder) as entries:
        names = [one.name for one in entries if one.name.endswith(_ENDS) and one.is_file()]
    for name in sorted(names):
        stem = name.partition(".")[0]
        offset = int(stem) if _NUMBER.fullmatch(stem) else None
        if _OWN.fullmatch(name):
            continue
        if offset is None or not MIN_INT64 <= offset <= MAX_INT64:
            found.obstacles.append(
                f"{name}: a broker takes it for a file of a segment, and cannot load the log, "
                "because its name does not begin with an offset: move it away"
            )
        elif name.endswith(_LOGS) and not (folder / f"{offset:020}.log").exists():
            found.obstacles.append(
                f"{name}: a broker takes it for a segment, and makes an empty one at offset "
                f"{offset}: move it away"
            )
        elif name.endswith(_INDEXES) and not (folder / f"{offset:020}.log").exists():
            found.notes.append(f"{name}: a broker removes it when it loads the log")
    return found
