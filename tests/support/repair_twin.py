"""The slow twin of `repair --salvage`: which batches stay, batch by batch, without shared code.

In: the files of a partition's folder. Out: the records that stay, by offset, and those that do not.
It answers to the rules in docs/repair.md: a consumer that reads from the start, offset by offset.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crc32c import crc32c
from reference import Batch, framed, read_records

FAR = 2**63 - 1


@dataclass
class Found:
    """A sound batch in a file."""

    file: Path
    position: int
    content: bytes = field(repr=False)
    first: int
    last: int
    is_control: bool

    @property
    def key(self) -> tuple[int, bytes]:
        """Equal for equal batches; the leader's epoch does not count."""
        return self.first, self.content[:12] + self.content[16:]

    @property
    def head(self) -> Batch:
        """The header as the reference reads it."""
        return framed(self.content)[0][0]

    @property
    def records(self) -> dict[int, object]:
        """The records by offset, or the type of a marker."""
        found: dict[int, object] = {}
        for record in read_records(self.head):
            if self.is_control:
                assert record.key is not None
                found[record.offset] = "ABORT" if record.key[3] == 0 else "COMMIT"
            else:
                found[record.offset] = (record.key, record.value)
        return found


def sound_batches(file: Path) -> list[Found]:
    """Every batch of v2 with a right checksum, from the first byte on."""
    content = file.read_bytes()
    found, position = [], 0
    while position + 61 <= len(content):
        (length,) = struct.unpack_from(">i", content, position + 8)
        end = position + 12 + length
        if content[position + 16] == 2 and length >= 49 and end <= len(content):
            (crc,) = struct.unpack_from(">I", content, position + 17)
            if crc32c(content[position + 21 : end]) == crc:
                (base,) = struct.unpack_from(">q", content, position)
                (delta,) = struct.unpack_from(">i", content, position + 23)
                is_control = bool(content[position + 22] & 0x20)
                whole = content[position:end]
                found.append(Found(file, position, whole, base, base + delta, is_control))
                position = end
                continue
        position += 1
    return found


@dataclass
class Log:
    """A log's file under its name."""

    base: int
    file: Path
    batches: list[Found]
    size: int
    body: list[Found] = field(default_factory=list)
    begin: int = 0

    @property
    def has_damage(self) -> bool:
        """Whether some bytes are in no sound batch."""
        return sum(len(one.content) for one in self.batches) < self.size


@dataclass
class Twin:
    """The outcome for a folder."""

    kept: dict[int, object]  # the record of each offset, or a marker's type
    kept_batches: list[Found]
    lost: list[tuple[Found, list[int]]]  # batches, and the offsets of theirs that do not stay
    batches: list[Found]  # all sound ones

    @property
    def records(self) -> int:
        """The number of records that stay."""
        return sum(not isinstance(record, str) for record in self.kept.values())


def salvage(folder: Path, known: int, *, was_cleaned: bool) -> Twin:
    """What stays of a partition.

    Args:
        folder: its folder.
        known: the greatest offset that another file knows.
        was_cleaned: whether it is known that the log was compacted.
    """
    return _Salvage(_logs_in(folder), known, was_cleaned=was_cleaned).done()


def _logs_in(folder: Path) -> list[Log]:
    """The logs as a broker sees them, each file once."""
    names = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name[:20].isdecimal():
            suffix = path.name[20:]
            if suffix == ".log":
                names[int(path.name[:20])] = path
    swaps = {int(path.name[:20]): path for path in folder.glob("*.log.swap")}
    cleaned = [int(path.name[:20]) for path in folder.glob("*.cleaned")]
    swaps = {base: path for base, path in swaps.items() if not cleaned or base < min(cleaned)}
    if swaps and not _is_spoilt(swaps, names):
        ends = [found[-1].last + 1 for path in swaps.values() if (found := sound_batches(path))]
        behind = max([*ends, *swaps])
        names = {base: path for base, path in names.items() if not min(swaps) <= base < behind}
        names |= swaps
    by_inode: dict[tuple[int, int], list[int]] = {}
    for base, path in names.items():
        status = path.stat()
        by_inode.setdefault((status.st_dev, status.st_ino), []).append(base)
    for bases in by_inode.values():
        real = [base for base in bases if not names[base].is_symlink()] or bases
        batches = sound_batches(names[real[0]])
        begin = batches[0].first if batches and batches[0].position == 0 else 0
        own = max((base for base in real if base <= begin), default=min(real))
        for base in bases:
            if base != own:
                del names[base]
    logs = []
    for base, path in sorted(names.items()):
        logs.append(Log(base, path, sound_batches(path), path.stat().st_size))
    return logs


def _is_spoilt(swaps: dict[int, Path], names: dict[int, Path]) -> bool:
    """Whether swaps lack offsets that the segments have, and the cleaner is not the reason.

    The segments have all that is in such swaps: a repair refuses others.
    """
    ends = [found[-1].last + 1 for path in swaps.values() if (found := sound_batches(path))]
    behind = max([*ends, *swaps])
    replaced = [
        path for base, path in names.items() if base in swaps or min(swaps) <= base < behind
    ]
    given, there = _offsets_in(swaps.values()), _offsets_in(replaced)
    if there <= given:
        return False
    return any(
        not (found := sound_batches(path))
        or sum(len(one.content) for one in found) < len(path.read_bytes().rstrip(b"\0"))
        or min((one.first for one in found if one.first > max(there)), default=0) > max(there) + 1
        for path in swaps.values()
    )


def _offsets_in(paths: Iterable[Path]) -> set[int]:
    batches = (one for path in paths for one in sound_batches(path))
    return {offset for one in batches for offset in range(one.first, one.last + 1)}


def _was_compacted(log: Log) -> bool:
    """Whether offsets are missing in a batch, or more than twice between two without damage."""
    pairs = zip(log.batches, log.batches[1:], strict=False)
    holes = [
        one
        for one, other in pairs
        if other.first > one.last + 1 and other.position == one.position + len(one.content)
    ]
    return len(holes) > 2 or any(
        len(one.records) < one.last - one.first + 1 for one in log.batches if one.last >= one.first
    )


class _Salvage:
    def __init__(self, logs: list[Log], known: int, *, was_cleaned: bool) -> None:
        self.logs = logs
        self.known = known
        self.was_cleaned = was_cleaned or any(map(_was_compacted, logs))
        self.kept: list[tuple[int, int, Found]] = []
        self.strays: list[Found] = []
        self.lies: list[Found] = []
        self.every = [one for log in logs for one in log.batches]

    def done(self) -> Twin:
        for place in reversed(range(len(self.logs))):
            self._find_body(place)
        self._find_begins()
        self._consume()
        self._fill()
        kept: dict[int, object] = {}
        for first, last, batch in sorted(self.kept, key=lambda one: one[0]):
            kept |= {at: one for at, one in batch.records.items() if first <= at <= last}
        lost = []
        equal: dict[tuple[int, bytes], set[int]] = {}
        for first, last, batch in self.kept:
            equal.setdefault(batch.key, set()).update(range(first, last + 1))
        for batch in self.every:
            stays = equal.get(batch.key, set())
            gone = [at for at in batch.records if at not in stays]
            if gone:
                lost.append((batch, gone))
        return Twin(kept, [batch for _, _, batch in self.kept], lost, self.every)

    def _find_body(self, place: int) -> None:
        log = self.logs[place]
        following = self.logs[place + 1].base if place + 1 < len(self.logs) else None
        rest = []
        for row, batch in enumerate(log.batches):
            before = log.batches[row - 1].last + 1 if row else log.base
            behind = log.batches[row + 1].first if row + 1 < len(log.batches) else following
            span = batch.last - batch.first + 1
            is_lie = batch.first != before and before + span == behind
            is_odd = batch.first < 0 or batch.last < batch.first
            if is_odd or (is_lie and not self._is_explained(batch, before, before + span - 1)):
                self.lies.append(batch)
            else:
                rest.append(batch)
        log.body = self._without_leap(log.base, rest, _longest(rest))
        begin = min([log.base, *(one.first for one in log.body[:1])])
        early = [batch for batch in log.body if batch.first < log.base]
        own = log.body[len(early) :]
        is_hole = bool(early and own) and early[-1].last + 1 < own[0].first
        if is_hole and self._before_leap(place, own, begin):
            log.body = own  # the first ones lie
        log.body = self._before_leap(place, log.body, begin)
        self.strays += [batch for batch in rest if batch not in log.body]

    def _without_leap(self, base: int, rest: list[Found], chain: list[Found]) -> list[Found]:
        """The chain, but not with a last batch beyond what is known if another fits there."""
        if not chain or self.known < 0 or chain[-1].last <= self.known:
            return chain
        least = chain[-2].last + 1 if len(chain) > 1 else base
        for batch in rest[rest.index(chain[-1]) + 1 :]:
            if least <= batch.first and batch.last < chain[-1].first and batch.last <= self.known:
                return [*chain[:-1], batch]
        return chain

    def _is_explained(self, batch: Found, first: int, last: int) -> bool:
        """Whether another batch has the hole's offsets, or is equal to this one."""
        for other in self.every:
            if other is batch:
                continue
            if other.first <= last and other.last >= first:
                return True
            if other.file != batch.file and other.key == batch.key:
                return True
        return False

    def _before_leap(self, place: int, body: list[Found], begin: int) -> list[Found]:
        """The batches of a log before those that leap over others, or beyond all that is known."""
        base = self.logs[place].base
        later = [log for log in self.logs[place + 1 :] if log.body]
        right = [log.body[0].first for log in later if log.body[0].first >= log.base]
        known_end = max([self.known, *(log.body[-1].last for log in later)])
        while body:
            left = body[-2].last + 1 if len(body) > 1 else base
            is_far = body[-1].last - min(begin, body[0].first) > 2**31 - 1
            ends = [one.position + len(one.content) for one in self.logs[place].batches]
            before = max((end for end in ends if end <= body[-1].position), default=0)
            is_hidden = body[-1].first - left <= body[-1].position - before  # by damaged bytes
            is_odd = self.known >= 0 and not self.was_cleaned and not is_hidden
            is_beyond = known_end < body[-1].first and (is_far or is_odd)
            is_over = bool(right) and left <= right[0] < body[-1].first
            is_over |= bool(right) and len(body) == 1 and right[0] < body[0].first
            if left >= body[-1].first or not (is_over or is_beyond):
                break
            body = body[:-1]
        return body

    def _find_begins(self) -> None:
        for log in self.logs:
            if not log.body:
                continue
            log.begin = log.body[0].first
            if log.base < log.begin and not any(
                log.base <= offset < log.begin
                for other in self.logs
                for one in other.body
                for offset in (max(one.first, log.base),)
                if one.last >= log.base
            ):
                log.begin = log.base

    def _consume(self) -> None:
        """Read as a consumer does: whole segments, the right one for each offset."""
        bodies = [log for log in self.logs if log.body]
        bodies.sort(key=lambda log: (log.begin, log.base <= log.begin, log.base))
        offset = min((log.begin for log in bodies), default=0)
        while True:
            place = 0
            for row, log in enumerate(bodies):
                if log.begin <= offset:
                    place = row
            while place < len(bodies) and bodies[place].body[-1].last < offset:
                place += 1
            if place == len(bodies):
                return
            for batch in bodies[place].body:
                if batch.last >= offset:
                    self.kept.append((max(offset, batch.first), batch.last, batch))
                    offset = batch.last + 1

    def _fill(self) -> None:
        """Add the batches that a consumer does not get, if their offsets are free."""
        served = {id(batch) for _, _, batch in self.kept}
        hidden = [
            (False, batch.first, place, batch.position, batch)
            for place, log in enumerate(self.logs)
            for batch in log.body
            if id(batch) not in served
        ]
        order = {log.file: place for place, log in enumerate(self.logs)}
        strays = [(True, one.first, order[one.file], one.position, one) for one in self.strays]
        served_end = end = max((last for _, last, _ in self.kept), default=-1)
        whole = {batch.key: first for first, _, batch in self.kept if first == batch.first}
        for is_stray, first, _, _, batch in sorted(hidden + strays, key=lambda one: one[:4]):
            if batch.key in whole:
                continue
            free = self._free(batch)
            if is_stray and free and first > end + 1 and batch.last > self.known:
                continue
            if not is_stray and self.was_cleaned:
                free = [one for one in free if one[0] > served_end or self._is_in_damage(*one)]
            for one in free:
                self.kept.append((*one, batch))
                end = max(end, one[1])

    def _free(self, batch: Found) -> list[tuple[int, int]]:
        ranges: list[tuple[int, int]] = []
        at = batch.first
        taken = sorted((first, last) for first, last, _ in self.kept)
        for first, last in taken:
            if last < at or first > batch.last:
                continue
            if at < first:
                ranges.append((at, first - 1))
            at = max(at, last + 1)
        if at <= batch.last:
            ranges.append((at, batch.last))
        return ranges

    def _is_in_damage(self, first: int, last: int) -> bool:
        for log in self.logs:
            if not log.has_damage:
                continue
            position, before, is_damage = 0, log.begin - 1, False
            places = [(one.position, len(one.content), one) for one in log.batches]
            for start, size, batch in [*places, (log.size, 0, None)]:
                is_damage |= start > position
                position = start + size
                if batch is not None and batch not in log.body:
                    continue  # its offset tells nothing about the damage before it
                behind = FAR if batch is None else batch.first
                if is_damage and before < first and last < behind:
                    return True
                is_damage = False
                before = before if batch is None else batch.last
        return False


def _longest(batches: list[Found]) -> list[Found]:
    """The longest chain of batches in order; of several the first."""
    if not batches:
        return []
    lengths = [1] * len(batches)  # of the longest chain that begins here
    for one in range(len(batches) - 1, -1, -1):
        for two in range(one + 1, len(batches)):
            if batches[one].last < batches[two].first:
                lengths[one] = max(lengths[one], 1 + lengths[two])
    chain: list[Found] = []
    left = max(lengths)
    for batch, length in zip(batches, lengths, strict=True):
        if length == left and (not chain or chain[-1].last < batch.first):
            chain.append(batch)
            left -= 1
    return chain
