"""Scripts for IndexOperations.java: random operations on an index, always the same."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

MAX_INT32 = 2**31 - 1
BASES = (0, 45, 2**31 - 5, 2**62)
SIZES = {"offset": 8, "time": 12}
WEIGHTS = {
    "append": 9,
    "truncateTo": 1,
    "lookup": 3,
    "upper": 1,
    "entry": 1,
    "sanityCheck": 1,
    "last": 1,
    "trim": 0.3,
    "resize": 0.5,
    "truncate": 0.2,
    "close open": 0.5,
}
_Script = Iterator[str]


def index_scripts(count: int, seed: int = 20251121) -> Iterator[str]:
    """The lines of `count` scripts of each kind."""
    rng = random.Random(seed)
    for _ in range(count):
        yield from _indexed(rng, "offset")
        yield from _indexed(rng, "time")
        yield from _transactions(rng)


def _indexed(rng: random.Random, kind: str) -> _Script:
    base = rng.choice(BASES)
    size = SIZES[kind]
    content, grown = "-", 0
    if rng.random() < 0.4:
        entries = _entries(rng, kind)
        if entries:
            (grown,) = struct.unpack(">i", entries[-4:] if kind == "time" else entries[-8:-4])
        content = f"x{entries.hex()}{'01' * (rng.randrange(size) if rng.random() < 0.2 else 0)}"
    most = rng.choice([size, 3 * size + 5, 10 * size, 2000 * size])
    if rng.random() < 0.04:
        most = rng.choice([-1, 0, size - 1])
    yield f"index {kind} {base} {most} {content}"
    if content == "-" and most < size:
        return
    # If only half an entry fits, Kafka writes half an entry.
    is_torn = (len(content) // 2 if content != "-" else most) % size != 0
    numbers = _Numbers(rng, kind, base, grown, overfills=not is_torn)
    for word in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=rng.randrange(4, 60)):
        if word != "upper" or kind == "offset":
            for part in word.split():
                yield f"{part} {getattr(numbers, part)()}".rstrip()
    yield "close"


def _entries(rng: random.Random, kind: str) -> bytes:
    """An index as it is found, its keys in order."""
    # Kafka looks at the last 8 KiB first.
    count = rng.choices([0, 1, 2, 5, 20, 1200], [1, 1, 1, 1, 1, 0.1])[0]
    offsets = sorted(rng.sample(range(1, 60 * count + 60), count))
    keys = sorted(rng.sample(range(1, 50 * count + 60), count))
    if kind == "offset":
        entries = zip(offsets, (2 * key for key in keys), strict=True)
        return b"".join(struct.pack(">ii", *entry) for entry in entries)
    return b"".join(struct.pack(">qi", *entry) for entry in zip(keys, offsets, strict=True))


class _Numbers:
    """What operations are given: mostly near where the index ends.

    Arguments that Kafka and kafkajit treat differently, listed in tests/index/test_index_file.py,
    are left out.
    """

    def __init__(
        self, rng: random.Random, kind: str, base: int, grown: int, *, overfills: bool
    ) -> None:
        self.rng, self.kind, self.base, self.grown = rng, kind, base, grown
        self.overfills = overfills
        self.position = 2 * grown
        self.appended: list[int] = []

    def append(self) -> str:
        if self.kind == "offset":
            self.position += 2 * self.rng.randrange(1, 500)
            return f"{self.offset()} {self.position}"
        # An overflow leaves Kafka's time index with half an entry, and all that follows is wrong.
        offset = min(max(self.offset(), self.base), self.base + MAX_INT32)
        self.appended.append(offset)
        overfills = self.overfills and self.rng.random() < 0.1
        return f"{self.timestamp() or 1} {offset} {int(overfills)}"

    def truncateTo(self) -> str:  # noqa: N802
        offset = self.offset()
        while self.appended.count(offset) > 1:
            offset -= 1
        return str(offset)

    def lookup(self) -> str:
        return str(self.offset() if self.kind == "offset" else self.timestamp())

    def upper(self) -> str:
        return f"{self.base} {self.position} {2 * self.rng.randrange(-3000, 2500) + 1}"

    def resize(self) -> str:
        return str(1300 * SIZES[self.kind] + self.rng.randrange(30))

    def entry(self) -> str:
        return str(self.rng.randrange(6))

    def nothing(self) -> str:
        return ""

    truncate = trim = last = sanityCheck = close = open = nothing  # noqa: N815

    def offset(self) -> int:
        self.grown += self.rng.randrange(3)
        near = self.base + self.grown + self.rng.randrange(-1, 3)
        far = self.base + self.rng.choice([-(2**33), -1, 0, MAX_INT32, MAX_INT32 + 1, 2**33])
        return near if self.rng.random() < 0.9 else far

    def timestamp(self) -> int:
        edges = [-(2**63), -2, -1, 0, 1, 2**31, 2**63 - 1]
        near = self.grown * 3 + self.rng.randrange(-1, 5)
        return near if self.rng.random() < 0.95 else self.rng.choice(edges)


def _transactions(rng: random.Random) -> _Script:
    yield f"index transaction {rng.choice([0, 45])} 0 -"
    last = greatest = 40
    for word in rng.choices(
        ["append", "collect", "truncateTo", "all", "sanityCheck", "close open"],
        [9, 3, 0.5, 1, 0.5, 0.5],
        k=rng.randrange(4, 30),
    ):
        last += rng.randrange(-1, 6)
        if word == "close open":  # and Kafka has forgotten what is there
            last = greatest + 40
        greatest = max(greatest, last)
        first = last - rng.randrange(20)
        arguments = {
            "append": f" {rng.randrange(-1, 5)} {first} {last} {last + rng.randrange(-3, 30)}",
            "collect": f" {first} {last + rng.randrange(20)}",
            "truncateTo": f" {last - rng.randrange(20)}",
        }
        for part in word.split():
            yield part + arguments.get(word, "")
    yield "close"
