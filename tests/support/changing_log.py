"""A log that grows, rolls, is truncated, cleaned, expired and made again, and what a stream gets.

`ChangingLog` changes the files of a partition as a broker does. `Consumer` is the twin of a stream:
it knows which batches the log has had, and so what is lost and which records are to come.
"""

from __future__ import annotations

import os
import random
import shutil
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from pathlib import Path

from partitions import log_name

import kafkajit.testing as kt
from kafkajit.state.leader_epochs import leader_epochs_text
from kafkajit.state.partition_metadata import partition_metadata_text

TIME = 1_700_000_000_000
COMMIT = 1


@dataclass(frozen=True)
class Batch:
    """A batch of a log: no two are equal, even if their bytes are."""

    base: int
    values: tuple[int, ...]  # of its records, which a marker lacks
    content: bytes
    producer: int = -1
    control_type: int | None = None
    number: int = field(default_factory=iter(range(1 << 40)).__next__)

    @property
    def end(self) -> int:
        return self.base + max(1, len(self.values))


class ChangingLog:
    """A partition's folder, changed step by step."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder = folder
        self._rng = rng
        self._values = iter(range(1 << 40))
        self.make()

    def make(self) -> None:
        """Make the topic, or delete it and make it again."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.topic_id = urlsafe_b64encode(self._rng.randbytes(16)).rstrip(b"=").decode()
        (self.folder / "partition.metadata").write_bytes(partition_metadata_text(self.topic_id))
        self.epoch = 0
        self.epochs: list[tuple[int, int]] = []
        self.segments: list[tuple[int, list[Batch]]] = [(0, [])]
        self.removed: set[int] = set()  # the numbers of batches that retention or a cleaner took
        self._truncated_to = 0
        (self.folder / log_name(0)).touch()

    @property
    def batches(self) -> list[Batch]:
        return [batch for _, inside in self.segments for batch in inside]

    @property
    def start(self) -> int:
        return self.segments[0][0]

    @property
    def end(self) -> int:
        base, inside = self.segments[-1]
        return max(self._truncated_to, inside[-1].end if inside else base)

    @property
    def stable_end(self) -> int:
        """The first offset of an open transaction, or the end."""
        opened: dict[int, int] = {}
        for batch in self.batches:
            if batch.control_type is not None:
                opened.pop(batch.producer, None)
            elif batch.producer >= 0:
                opened.setdefault(batch.producer, batch.base)
        return min(opened.values(), default=self.end)

    def records(self, *, committed: bool) -> list[tuple[int, int]]:
        """Offsets and values of the records that a consumer gets."""
        outcome: dict[int, bool] = {}
        ends: dict[int, int] = {}
        for batch in reversed(self.batches):
            if batch.control_type is not None:
                ends[batch.producer] = batch.control_type
            elif batch.producer >= 0:
                outcome[batch.number] = ends.get(batch.producer) == COMMIT
        before = self.stable_end if committed else self.end
        return [
            (batch.base + place, value)
            for batch in self.batches
            for place, value in enumerate(batch.values)
            if batch.base < before and (not committed or outcome.get(batch.number, True))
        ]

    def append(self) -> None:
        """Append a batch of records, of a transaction, or a marker."""
        producer = self._rng.choice([-1, -1, 1, 2])
        if producer >= 0 and self._is_open(producer) and self._rng.random() < 0.6:
            self.finish(producer, self._rng.choice([0, COMMIT]))
        else:
            self.grow(self._rng.randint(1, 4), producer)

    def finish(self, producer: int, control_type: int) -> None:
        """Append a marker."""
        content = kt.control_batch(control_type, producer_id=producer, **self._fields)
        self._write(Batch(self.end, (), content, producer, control_type))

    def grow(self, count: int, producer: int = -1) -> None:
        """Append a batch of records, in a producer's transaction if there is a producer."""
        fields = self._fields
        if producer >= 0:
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
            fields["is_transactional"] = True
        values = tuple(next(self._values) for _ in range(count))
        records = [kt.Record(b"k", b"%d" % value) for value in values]
        content = kt.batch(records, **fields)  # type: ignore[arg-type]
        self._write(Batch(self.end, values, content, producer))

    @property
    def _fields(self) -> dict[str, object]:
        return {
            "base_offset": self.end,
            "base_timestamp": TIME + self.end,
            "partition_leader_epoch": self.epoch,
        }

    def _write(self, batch: Batch) -> None:
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs.append((self.epoch, self.end))
            self._write_epochs()
        base, inside = self.segments[-1]
        inside.append(batch)
        with (self.folder / log_name(base)).open("ab") as log:
            log.write(batch.content)

    def _is_open(self, producer: int) -> bool:
        of = [batch for batch in self.batches if batch.producer == producer]
        return bool(of) and of[-1].control_type is None

    def roll(self) -> None:
        """Begin a segment."""
        if self.segments[-1][1]:
            self.segments.append((self.end, []))
            (self.folder / log_name(self.segments[-1][0])).touch()

    def truncate(self) -> None:
        """Truncate the log at a batch, as a follower or after a crash; a new leader comes."""
        self.epoch += 1
        # Behind a batch that a cleaner has removed, only the broker's memory has the log's end.
        ends = {self.start, *(batch.end for batch in self.batches)}
        places = [batch for batch in self.batches[-6:] if batch.base in ends]
        if places:
            self.cut(self._rng.choice(places))

    def cut(self, batch: Batch) -> None:
        """Truncate the log to the offset of a batch."""
        while self.segments[-1][0] > batch.base:
            base, _ = self.segments.pop()
            (self.folder / log_name(base)).unlink()
        base, inside = self.segments[-1]
        del inside[next(at for at, one in enumerate(inside) if one is batch) :]
        os.truncate(self.folder / log_name(base), sum(len(one.content) for one in inside))
        self._truncated_to = batch.base
        self.epochs = [one for one in self.epochs if one[1] < self.end]
        self._write_epochs()

    def elect(self) -> None:
        """Let another leader go on with the log."""
        self.epoch += 1

    def retain(self) -> None:
        """Delete the first segments, up to the last stable offset."""
        while len(self.segments) > 1 and self._rng.random() < 0.7:
            if self.segments[1][0] > self.stable_end:
                break
            base, inside = self.segments.pop(0)
            self.removed |= {batch.number for batch in inside}
            (self.folder / log_name(base)).unlink()
        gone = [epoch for epoch, first in self.epochs if first <= self.start]
        if gone:
            self.epochs = [one for one in self.epochs if one[1] > self.start]
            self.epochs.insert(0, (gone[-1], self.start))
        self._write_epochs()

    def clean(self) -> None:
        """Remove batches of a rolled segment, which another file replaces."""
        if len(self.segments) < 2:
            return
        base, inside = self._rng.choice(self.segments[:-1])
        dropped = {
            batch.number for batch in inside[:-1] if batch.producer < 0 and self._rng.random() < 0.5
        }
        self.removed |= dropped
        inside[:] = [batch for batch in inside if batch.number not in dropped]
        path = self.folder / log_name(base)
        new = path.with_name(f"{path.name}.new")
        new.write_bytes(b"".join(batch.content for batch in inside))
        new.replace(path)

    def _write_epochs(self) -> None:
        new = self.folder / "leader-epoch-checkpoint.tmp"
        new.write_bytes(leader_epochs_text(self.epochs))
        new.replace(self.folder / "leader-epoch-checkpoint")

    def change(self) -> str:
        """Change the log once, at random; return how."""
        name = self._rng.choices(
            ["append", "roll", "truncate", "elect", "retain", "clean", "make"],
            [12, 3, 3, 1, 1, 1, 1],
        )[0]
        getattr(self, name)()
        return name


class Consumer:
    """The twin of a stream that goes on after losses: what it has read, and what comes next."""

    def __init__(self, log: ChangingLog, *, committed: bool) -> None:
        self._log = log
        self._committed = committed
        self._topic_id = log.topic_id
        self._position = log.start
        self._read: list[Batch] = []  # that begin before the position

    def next(self) -> tuple[bool, list[tuple[int, int]]]:
        """Whether something is lost, and the offsets and values of the records that come next."""
        position, is_lost = self._go_on_from()
        records = self._log.records(committed=self._committed)
        return is_lost, [one for one in records if one[0] >= position]

    def pass_to(self, reached: int) -> None:
        """Note that the stream has come to an offset."""
        _, is_lost = self._go_on_from()
        is_same = (self._topic_id, self._position) == (self._log.topic_id, reached)
        if reached > self._log.end or (is_same and not is_lost):
            return  # it has read nothing, or waits until the log has other records, or these again
        self._read = [batch for batch in self._log.batches if batch.base < reached]
        self._topic_id, self._position = self._log.topic_id, reached

    def _go_on_from(self) -> tuple[int, bool]:
        """The position to go on from, and whether something is lost."""
        log = self._log
        if log.topic_id != self._topic_id:
            return log.start, bool(self._read)
        there = {batch.number for batch in log.batches} | log.removed
        gone = [batch.base for batch in self._read if batch.number not in there]
        if gone:
            return max(min(gone), log.start), True
        if self._position < log.start:
            return log.start, True
        return self._position, False
