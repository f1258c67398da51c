"""Random but reproducible damage to partition folders, from which a broker recovers.

In: a seed, and the folder of a log of tests/support/appends.py, as a stopped broker leaves it.
The result of Kafka's recovery is in tests/data/logs/repairs.json.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

from appends import Append, append

_HEADER_UP_TO_CRC = 21  # no checksum covers these, except for the length
_Damage = Callable[[random.Random, Path], None]


def damaged_seeds(count: int) -> dict[int, Append]:
    """The first logs without v0 and v1, which make brokers forget leader epochs."""
    found: dict[int, Append] = {}
    seed = 0
    while len(found) < count:
        log = append(seed)
        if all(batch[16] == 2 for batch in log.batches):
            found[seed] = log
        seed += 1
    return found


def damage(seed: int, folder: Path) -> None:
    """Damage the log of this seed, or a file beside it."""
    rng = random.Random(f"damage {seed}")
    what = rng.choice(["log", "log", "sides", "epochs", "log and epochs"])
    if "log" in what:
        logs = [path for path in sorted(folder.glob("*.log")) if path.stat().st_size]
        rng.choice(_OF_LOGS)(rng, rng.choice(logs))
    if "epochs" in what:
        (folder / "leader-epoch-checkpoint").unlink()
    if what == "sides":
        for _ in range(rng.randint(1, 4)):
            rng.choice(_OF_SIDES)(rng, folder)


def _torn(rng: random.Random, log: Path) -> None:
    log.write_bytes(log.read_bytes()[: rng.randrange(log.stat().st_size)])


def _flipped(rng: random.Random, log: Path) -> None:
    content = bytearray(log.read_bytes())
    starts = [0]
    while starts[-1] < len(content):
        (length,) = struct.unpack_from(">i", content, starts[-1] + 8)
        starts.append(starts[-1] + 12 + length)
    place = rng.randrange(len(starts) - 1)
    at = rng.randrange(starts[place] + _HEADER_UP_TO_CRC, starts[place + 1])
    content[at] ^= 1 << rng.randrange(8)
    log.write_bytes(content)


def _followed(rng: random.Random, log: Path) -> None:
    size = rng.randrange(1, 300)
    log.write_bytes(log.read_bytes() + rng.choice([bytes(size), rng.randbytes(size)]))


def _with_a_wrong_length(rng: random.Random, log: Path) -> None:
    content = bytearray(log.read_bytes())
    struct.pack_into(">i", content, 8, rng.choice([-1, 0, 13, 14, 100, 2**31 - 1]))
    log.write_bytes(content)


_OF_LOGS: list[_Damage] = [_torn, _torn, _flipped, _flipped, _followed, _with_a_wrong_length]


def _any_of(rng: random.Random, folder: Path, names: str) -> list[Path]:
    """One of these files, if there is one."""
    paths = sorted(folder.glob(names))
    return [rng.choice(paths)] if paths else []


def _index(rng: random.Random, folder: Path) -> None:
    for path in _any_of(rng, folder, "*index"):
        content = path.read_bytes()
        other = [b"", rng.randbytes(50), content + content + b"\1", content + bytes(480)]
        path.write_bytes(rng.choice(other))


def _no_index(rng: random.Random, folder: Path) -> None:
    for path in _any_of(rng, folder, "*index"):
        path.unlink()


def _snapshot(rng: random.Random, folder: Path) -> None:
    for path in _any_of(rng, folder, "*.snapshot"):
        content = path.read_bytes()
        path.write_bytes(content[: rng.randrange(len(content))])


def _no_snapshot(rng: random.Random, folder: Path) -> None:
    for path in _any_of(rng, folder, "*.snapshot"):
        path.unlink()


def _stray(rng: random.Random, folder: Path) -> None:
    names = ["index", "timeindex", "txnindex", "snapshot", "log.deleted", "index.cleaned"]
    path = folder / f"{2**41 + rng.randrange(100):020}.{rng.choice(names)}"
    path.write_bytes(rng.randbytes(10))


_OF_SIDES: list[_Damage] = [_index, _no_index, _snapshot, _no_snapshot, _stray]
