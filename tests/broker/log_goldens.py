"""Goldens of Kafka's own log on random logs: the folder and Kafka's answers after each step.

In: a JVM that LogOperations drives. Out: for each kind of operation an archive of logs and of what
was done to them, as tests/data/README.md describes it.
"""

from __future__ import annotations

import io
import json
import random
import struct
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from log_operations import LogOperations
from log_scripts import DAY, TIME, Shape, date_segments, files_of, random_config, random_log

LOGS_OF_A_KIND = 6
CLEANINGS = 4
SMALL = Shape(batches=24, records=5, value_size=60, keys=8)
NEVER = 2**31 - 1  # the expiration of producers, in milliseconds
_Command = dict[str, Any]


def log_goldens(kafka: LogOperations, work: Path) -> Mapping[str, Mapping[str, bytes]]:
    """Archives by the kind of operation: name in the archive → content."""
    goldens = {}
    for kind, live in LIVES.items():
        contents = {}
        for place in range(LOGS_OF_A_KIND):
            folder = work / kind / str(place) / "orders-0"
            log = History(kafka, folder, place, SHAPES.get(kind, SMALL))
            live(log)
            contents |= {f"{place}/{name}": content for name, content in log.written().items()}
        goldens[kind] = contents
    return goldens


def write_tar(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write an archive that is the same every time; repeated contents cost no space."""
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


class History:
    """A log and its steps: each opens it, does something, closes it, and keeps what is changed."""

    def __init__(self, kafka: LogOperations, folder: Path, place: int, shape: Shape) -> None:
        self.kafka, self.folder, self.place = kafka, folder, place
        seed = f"{folder.parent.parent.name} {place}"
        self.rng = random.Random(seed)
        shape = replace(
            shape,
            start_offset=self.rng.choice([0, 0, 45, 2**31 - 20]),
            wide_gaps=self.rng.choice([0, 0.05]),
            codecs=self.rng.choice([("none",), ("none", "gzip", "snappy", "lz4", "zstd")]),
        )
        self.batches = random_log(seed, shape)
        self.at_once = 1 if shape.wide_gaps else 3
        self.config = random_config(seed, self.batches, self.at_once)
        self.opening: dict[str, Any] = {"now": TIME, "producerIdExpirationMs": NEVER}
        self.steps: list[dict[str, Any]] = []
        self.contents: dict[str, bytes] = {}
        self.files: dict[str, bytes] = {}

    def some_offset(self) -> int:
        """An offset of a batch, or near it."""
        batch = self.rng.choice(self.batches)
        (base_offset,) = struct.unpack_from(">q", batch)
        return max(base_offset + self.rng.randrange(-1, 4), 0)

    def append(self, batches: Sequence[bytes], *, ends: str = "close") -> None:
        """Append as a follower."""
        name = f"{len(self.steps)}.batches"
        self.contents[name] = b"".join(batches)
        path = self.kafka.work / name
        path.write_bytes(self.contents[name])
        self.step({"do": "append", "file": path, "batchesAtOnce": self.at_once}, ends=ends)

    def step(self, *commands: _Command, ends: str = "close", **opening: Any) -> None:
        """Open, run the commands, close or crash, and keep Kafka's answers."""
        opening = self.opening | opening
        log = self.kafka.open(self.folder, self.config, **opening)
        step: dict[str, Any] = {"config": dict(self.config), "open": opening, "opened": log.opened}
        step["commands"] = []
        for command in commands:
            arguments = dict(command)
            answer = log.do(arguments.pop("do"), **arguments)
            answer.pop("seconds", None)
            answer.get("stats", {}).pop("elapsedIndexSecs", None)
            step["commands"].append(
                command
                | ({"file": command["file"].name} if "file" in command else {})
                | {"answer": answer}
            )
        step["state"] = log.do("state")
        step["ends"] = ends
        log.do(ends)
        self.keep(step)

    def keep(self, step: dict[str, Any]) -> None:
        """Keep the changed files, and the names of all files."""
        files = files_of(self.folder)
        for name, content in files.items():
            if self.files.get(name) != content:
                self.contents[f"{len(self.steps)}/{name}"] = content
        self.files = files
        self.steps.append(step | {"files": list(files)})

    def written(self) -> dict[str, bytes]:
        """The files of the whole history, with `steps.json`."""
        return {"steps.json": json.dumps(self.steps).encode()} | self.contents


def append(log: History) -> None:
    """Append twice; the log is opened again in between."""
    half = log.rng.randrange(1, len(log.batches))
    log.append(log.batches[:half])
    log.append(log.batches[half:])
    log.step({"do": "roll"})


def recover(log: History) -> None:
    """Crash or close, damage files, and recover from the recovery point on."""
    log.config["segment.index.bytes"] = 1200
    log.append(log.batches, ends=log.rng.choice(["crash", "close"]))
    bases = sorted(int(path.stem) for path in log.folder.glob("*.log"))
    damage = list(DAMAGES)[log.place % len(DAMAGES)]
    DAMAGES[damage](log.rng, log.folder)
    log.keep({"damage": damage})
    recovery_point = log.rng.choice([0, bases[len(bases) // 2]])
    log.step(clean=False, recoveryPoint=recovery_point)


def truncate(log: History) -> None:
    """Truncate to an offset anywhere, and once more."""
    log.append(log.batches)
    offsets = sorted({log.some_offset() for _ in range(3)}, reverse=True)
    for offset in offsets[1:]:
        log.step({"do": "truncateTo", "offset": offset})


def retain(log: History) -> None:
    """Delete segments before a start offset, then beyond a size, then beyond an age."""
    log.config["segment.bytes"] = min(log.config["segment.bytes"], 3000)
    log.append(log.batches)
    start = min(log.some_offset(), log.some_offset())
    delete = {"do": "deleteOldSegments"}
    log.step({"do": "deleteRecords", "offset": start}, delete)
    log.config["retention.bytes"] = log.steps[-1]["state"]["size"] // 2
    log.step(delete, logStartOffset=start)
    log.config |= {"retention.bytes": -1, "retention.ms": log.rng.choice([60_000, DAY])}
    now = TIME + log.rng.choice([200_000, DAY + 150_000])
    log.step(delete, logStartOffset=start, now=now)


def compact(log: History) -> None:
    """Compact, write more, and compact again once tombstones may be removed."""
    log.config |= {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": 0.01,
        "delete.retention.ms": DAY,
        "segment.bytes": max(map(len, log.batches)) * 2,
        "segment.index.bytes": 10 << 20,
    }
    log.at_once = 1
    log.opening["producerIdExpirationMs"] = log.rng.choice([NEVER, DAY])
    # A tombstone goes two cleanings after it came, the marker of what is all gone in the third.
    size = 1 + len(log.batches) // CLEANINGS
    for place in range(CLEANINGS):
        log.append(log.batches[place * size : (place + 1) * size])
        date_segments(log.folder, TIME, 1000)
        log.step({"do": "roll"}, {"do": "clean"}, now=TIME + (1 + 2 * place) * DAY)


# The cleaner stops before the first open transaction.
SHAPES = {"compact": replace(SMALL, batches=44, ends=0.9, stays_open=0)}
LIVES: dict[str, Callable[[History], None]] = {
    "append": append,
    "recover": recover,
    "truncate": truncate,
    "retain": retain,
    "compact": compact,
}


def _files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"*{suffix}"))


def _without_indexes(_rng: random.Random, folder: Path) -> None:
    for suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
        for path in _files(folder, suffix):
            path.unlink()


def _without_an_index(rng: random.Random, folder: Path) -> None:
    rng.choice(_files(folder, rng.choice([".index", ".timeindex"]))).unlink()


def _torn(rng: random.Random, folder: Path) -> None:
    path = [path for path in _files(folder, ".log") if path.stat().st_size][-1]
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content) // 2, len(content))])


def _followed_by_zeros(_rng: random.Random, folder: Path) -> None:
    path = _files(folder, ".log")[-1]
    path.write_bytes(path.read_bytes() + bytes(500))


def _with_a_flipped_bit(rng: random.Random, folder: Path) -> None:
    path = rng.choice([path for path in _files(folder, ".log") if path.stat().st_size])
    content = bytearray(path.read_bytes())
    content[rng.randrange(21, len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _with_half_an_entry(rng: random.Random, folder: Path) -> None:
    path = rng.choice(_files(folder, rng.choice([".index", ".timeindex"])))
    path.write_bytes(path.read_bytes() + b"\x01\x02\x03")


DAMAGES: dict[str, Callable[[random.Random, Path], None]] = {
    "no indexes, no snapshots": _without_indexes,
    "no index of a segment": _without_an_index,
    "torn": _torn,
    "followed by zeros": _followed_by_zeros,
    "a bit flipped": _with_a_flipped_bit,
    "half an entry": _with_half_an_entry,
}
