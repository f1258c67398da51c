"""Spoilt folders: whatever lies in a folder of logs, a report of it is made and lists the damage.

    PYTHONPATH=.:tests:tests/support python tests/support/fuzz_report.py 1 10000

takes the first seed and how many spoilt segments there are. Each round is a log.dirs folder of
partitions that real brokers wrote, groups and transactions among them, whose segments, indexes,
snapshots and checkpoints have other bytes or sizes, and whose files have other names, are folders,
links to themselves, or FIFOs. `take` and `info` must return JSON, and pages must be drawn. The
report must list each stretch of a live segment that `find_corruption` finds, and each batch that
was spoilt in place and that tests/reference.py then refuses. A round of more than a minute ends the
run.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import reference
from corpus import DATA, batch_records

import kafkajit
from kafkajit.places.locations import is_partition_name
from kafkajit.report import savings
from kafkajit.report.folder import look_at
from kafkajit.report.info import info
from kafkajit.report.page import page
from kafkajit.report.segment_info import segment_info
from kafkajit.report.take import ALL, DEPTHS, ReportOptions, take

MOST_BYTES = 30_000  # of a partition's logs
SECONDS_PER_ROUND = 60
PAGES = 0.02  # of the rounds
_LIVE = re.compile(r"\d{20}\.log")
_GOLDENS = (".out", ".err", ".exit", ".sha256")
_ODD_NAMES = (
    "00000000000000000000.log",
    "99999999999999999999.log",
    "09223372036854775807.log",
    "0.log",
    "-0000000000000000001.log",
    "00000000000000000000.log.deleted",
    "00000000000000000007.log.swap",
    "00000000000000000000.log.cleaned",
    "00000000000000000000.LOG",
    "x.log",
    ".log",
)
_ODD_FOLDERS = (
    "orders",
    "orders--1",
    "orders-99999999999",
    "-0",
    ".orders-0",
    "a\nb-0",
    "ö-1",
    "x",
)


class Spoilt(NamedTuple):
    """A segment whose bytes were changed in place, and its batches before."""

    original: bytes
    batches: list[tuple[int, int]]  # positions and sizes


class Fuzzer:
    """Rounds of spoilt folders; `counts` has how many segments, findings and batches there were."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.counts: Counter[str] = Counter()

    def run(self, segments: int) -> None:
        """Report on folders until this number of segments have been spoilt."""
        with (
            tempfile.TemporaryDirectory(prefix="kafkajit-") as temporary,
            mock.patch.object(savings, "ENCODINGS", savings.ENCODINGS[:1]),
        ):
            while self.counts["segments"] < segments:
                self._seed += 1
                root = Path(temporary) / str(self._seed)
                faulthandler.dump_traceback_later(SECONDS_PER_ROUND, exit=True)
                try:
                    self._round(root, random.Random(self._seed))
                except BaseException:
                    print(f"seed {self._seed}")  # noqa: T201 - for the report
                    raise
                finally:
                    faulthandler.cancel_dump_traceback_later()
                shutil.rmtree(root)

    def _round(self, root: Path, rng: random.Random) -> None:
        spoilt = self._spoilt_folder(root, rng)
        try:
            document = take(ReportOptions((str(root),), depth=ALL))
        except FileNotFoundError:  # a refusal is right if there is no segment
            assert not live_segments(root)
            self.counts["refused"] += 1
            return
        except OSError as error:  # a FIFO or a device is the only segment
            if not str(error).endswith(", not a file"):
                raise
            self.counts["refused"] += 1
            return
        text = json.dumps(document, allow_nan=False)
        if odds(rng, 0.3):
            depth = rng.choice(DEPTHS)
            json.dumps(take(ReportOptions((str(root),), depth=depth)), allow_nan=False)
        # A FIFO or a device in place of a segment is named.
        left_out: list[Exception] = []
        json.dumps(info([str(root)], failed=left_out.append), allow_nan=False)
        partition = rng.choice(look_at([str(root)], failed=left_out.append).partitions)
        problems = {one["problem"] for one in document["trouble"]}
        assert problems.issuperset(map(str, left_out))
        json.dumps(segment_info(rng.choice(partition)), allow_nan=False)
        if rng.random() < PAGES:
            assert page(json.loads(text)).startswith("<!DOCTYPE html>")
            self.counts["pages"] += 1
        self._check_damage(root, document, spoilt)

    def _check_damage(
        self, root: Path, document: dict[str, Any], spoilt: dict[Path, Spoilt]
    ) -> None:
        listed: dict[str, list[tuple[int, int]]] = {}
        for one in document["trouble"]:
            if one["severity"] == "damage" and one["position"] is not None:
                stretch = one["position"], one["position"] + one["length"]
                listed.setdefault(one["path"], []).append(stretch)
        self.counts["findings"] += len(document["trouble"])
        for path in live_segments(root):
            found = sorted(listed.get(str(path), []))
            for start, end in stretches(path):
                assert covers(found, start, end), (path, start, end, found)
                self.counts["stretches"] += 1
            if path in spoilt:
                for start, end in refused(path, spoilt[path]):
                    assert any(a < end and start < b for a, b in found), (path, start, end, found)
                    self.counts["batches"] += 1

    def _spoilt_folder(self, root: Path, rng: random.Random) -> dict[Path, Spoilt]:
        spoilt: dict[Path, Spoilt] = {}
        root.mkdir()
        for file in sorted((DATA / "internal" / "log-dir").iterdir()):
            if not file.name.endswith(_GOLDENS):
                content = file.read_bytes()
                (root / file.name).write_bytes(changed(content, rng) if odds(rng, 0.3) else content)
        internal = [folder for folder in SEEDS if folder.name.startswith("__")]
        for folder in [*rng.sample(SEEDS, 4), rng.choice(internal), rng.choice(internal)]:
            target = root / folder.name
            if target.exists():
                continue
            target.mkdir()
            for file in sorted(folder.iterdir()):
                if not file.name.endswith(_GOLDENS):
                    self._copy(file, target / file.name, rng, spoilt)
            if odds(rng, 0.25):
                oddities = rng.choice(ODDITIES)
                oddities(rng.choice(sorted(target.iterdir())), rng)
        if odds(rng, 0.1):
            folder = rng.choice([path for path in root.iterdir() if path.is_dir()])
            folder.rename(root / rng.choice(_ODD_FOLDERS))
        return spoilt

    def _copy(
        self, file: Path, target: Path, rng: random.Random, spoilt: dict[Path, Spoilt]
    ) -> None:
        content = file.read_bytes()
        if file.suffix != ".log":
            target.write_bytes(changed(content, rng) if odds(rng, 0.2) else content)
            return
        self.counts["segments"] += 1
        if odds(rng, 0.5):
            target.write_bytes(changed(content, rng))
            return
        bytes_ = bytearray(content)
        for _ in range(rng.choice([1, 1, 2, 5]) if content else 0):
            at = rng.randrange(len(bytes_))
            bytes_[at] ^= 1 << rng.randrange(8)
        target.write_bytes(bytes_)
        batches, _ = reference.read_batches(content)
        if all(batch.magic == 2 for batch in batches):
            spoilt[target] = Spoilt(content, [(batch.position, batch.size) for batch in batches])


def changed(content: bytes, rng: random.Random) -> bytes:
    """Other bytes, more of them, or fewer."""
    result = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(result) + 1)
        match rng.randrange(8):
            case 0:
                result[at : at + 1] = rng.randbytes(1)
            case 1:
                del result[at : at + rng.randrange(1, 200)]
            case 2:
                result[at:at] = rng.randbytes(rng.randrange(1, 200))
            case 3:
                result[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7])
            case 4:
                del result[at:]
            case 5:
                result += bytes(rng.choice([1, 100, 5000]))
            case 6:
                result += result[at:]
            case 7:
                result[at:] = bytes(len(result) - at)
    return b"" if odds(rng, 0.03) else bytes(result)


def _renamed(path: Path, rng: random.Random) -> None:
    path.rename(path.with_name(rng.choice(_ODD_NAMES)))


def _a_folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()
    if odds(rng, 0.5):
        (path / f"{0:020}.log").write_bytes(b"inside")


def _a_link(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(rng.choice([path.name, path.name, "/no/such/file", "/dev/zero", ".", ".."]))


def _a_fifo(path: Path, _: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _unreadable(path: Path, _: random.Random) -> None:
    path.chmod(0)  # root reads it all the same


def _foreign(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice([b"PAR1", b"\x1f\x8b\x08", b"{}", b"<html>"]) + rng.randbytes(99))


ODDITIES: tuple[Callable[[Path, random.Random], None], ...] = (
    _renamed,
    _a_folder,
    _a_link,
    _a_fifo,
    _unreadable,
    _foreign,
)


def odds(rng: random.Random, chance: float) -> bool:
    return rng.random() < chance


def partitions() -> list[Path]:
    """The folders of small partitions that brokers wrote."""
    folders = {path.parent for name in ("v2", "internal", "old") for path in logs_in(DATA / name)}
    return sorted(
        folder
        for folder in folders
        if sum(log.stat().st_size for log in folder.glob("*.log")) <= MOST_BYTES
    )


def logs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.log"))


SEEDS = partitions()


def live_segments(root: Path) -> list[Path]:
    """The segments that a report has to read: a broker's own names in a partition's folder."""
    folders = [folder for folder in root.iterdir() if is_partition_name(folder.name)]
    return [
        path
        for folder in folders
        for path in sorted(folder.iterdir())
        if _LIVE.fullmatch(path.name) and path.is_file()
    ]


def stretches(path: Path) -> list[tuple[int, int]]:
    """The damaged stretches of a segment, as find_corruption finds them."""
    try:
        rows = kafkajit.find_corruption(path).select(["position", "length"]).to_pylist()
    except kafkajit.KafkaJitError:
        return [(0, path.stat().st_size)]
    return [(row["position"], row["position"] + row["length"]) for row in rows]


def covers(listed: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether sorted stretches leave out nothing from start to end."""
    for first, last in listed:
        if first <= start < last:
            start = last
    return start >= end


def refused(path: Path, spoilt: Spoilt) -> list[tuple[int, int]]:
    """The batches that were changed in place, and that the reference now refuses.

    Behind the last readable one they may look like a torn tail, which is not damage.
    """
    content = path.read_bytes()
    if len(content) != len(spoilt.original):
        return []
    places = [(position, position + size) for position, size in spoilt.batches]
    unread = [place for place in places if not is_readable(content[slice(*place)])]
    last = max((place for place in places if place not in unread), default=(0, 0))
    return [
        place
        for place in unread
        if place < last and content[slice(*place)] != spoilt.original[slice(*place)]
    ]


def is_readable(whole: bytes) -> bool:
    """Whether bytes are one batch, with records that can be read."""
    try:
        batches, size = reference.read_batches(whole)
        if len(batches) != 1 or size != len(whole):
            return False
        batch_records(batches[0])
    except reference.Invalid:
        return False
    return True


def main(seed: int, segments: int) -> None:
    """Print how many segments were spoilt, and what became of them."""
    logging.getLogger("kafkajit").setLevel(logging.CRITICAL)
    fuzzer = Fuzzer(seed)
    fuzzer.run(segments)
    print(dict(fuzzer.counts))  # noqa: T201 - for whoever runs it


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
