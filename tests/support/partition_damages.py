"""Random partitions, and kinds of damage to their folders, each by a name."""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import kafkajit
import kafkajit.testing as kt

CONFIG = kafkajit.LogConfig(index_interval_bytes=300)
TIME = 1_700_000_000_000
CODECS = [None, None, None, "gzip", "zstd", "lz4"]


@dataclass
class Partition:
    """A whole partition's folder, as a stopped broker leaves it, and what it holds."""

    folder: Path
    batches: dict[int, list[bytes]]  # by segment
    end: int
    is_compacted: bool
    # Each transaction: the producer, the offsets of its records, and how it ended.
    transactions: list[tuple[int, list[int], str]] = field(default_factory=list)


def name_of(base: int, suffix: str = ".log") -> str:
    return f"{base:020d}{suffix}"


def make_partition(seed: int, folder: Path) -> Partition:
    """A random partition: data, transactions of several producers, some compacted."""
    rng = random.Random(f"partition {seed}")
    batches: dict[int, list[bytes]] = {}
    offset, epoch = rng.choice([0, 0, 0, 40]), 0
    is_compacted = seed % 4 == 3
    sequences: dict[int, int] = {}
    opened: dict[int, list[int]] = {}
    transactions: list[tuple[int, list[int], str]] = []
    for _ in range(rng.randint(2, 5)):
        segment: list[bytes] = []
        base = offset
        for _ in range(rng.randint(3, 9)):
            if is_compacted and segment and rng.random() < 0.2:
                offset += rng.randint(1, 4)
            epoch = min(1, epoch + (rng.random() < 0.05))
            fields = {
                "base_offset": offset,
                "base_timestamp": TIME + 1000 * offset,
                "partition_leader_epoch": epoch,
            }
            choice = rng.random()
            if opened and choice < 0.25:
                producer = rng.choice(sorted(opened))
                kind = rng.randrange(2)
                segment.append(kt.control_batch(kind, producer_id=producer, **fields))
                ends = ("aborted", "committed")
                transactions.append((producer, opened.pop(producer), ends[kind]))
                offset += 1
                continue
            count = rng.randint(1, 3)
            records = [
                kt.Record(b"k%d" % rng.randrange(9), b"%d %d" % (seed, offset + place))
                for place in range(count)
            ]
            if choice < 0.6:
                producer = rng.randint(5, 8)
                sequence = sequences.get(producer, 0)
                fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
                fields["is_transactional"] = True
                sequences[producer] = sequence + count
                opened.setdefault(producer, []).extend(range(offset, offset + count))
            codec = rng.choice(CODECS)
            if codec is not None:
                fields["attributes"] = 0
            segment.append(_batch(records, codec, fields))
            offset += count
        batches[base] = segment
    transactions += [(producer, offsets, "open") for producer, offsets in opened.items()]
    folder.mkdir(parents=True)
    for base, segment in batches.items():
        (folder / name_of(base)).write_bytes(b"".join(segment))
    kafkajit.repair(folder, config=CONFIG).apply(keep=False)
    (folder.parent / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {offset}\n")
    (folder.parent / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {offset}\n")
    if is_compacted:
        last = max(batches)
        (folder.parent / "cleaner-offset-checkpoint").write_text(f"0\n1\norders 0 {last}\n")
    return Partition(folder, batches, offset, is_compacted, transactions)


def _batch(records: list[kt.Record], codec: str | None, fields: dict[str, object]) -> bytes:
    fields.pop("attributes", None)
    if codec is not None:
        fields["codec"] = codec
    return kt.batch(records, **fields)  # type: ignore[arg-type]


Damage = Callable[[random.Random, Partition, Path], None]
KINDS: dict[str, Damage] = {}


def kind(damage: Damage) -> Damage:
    KINDS[damage.__name__.strip("_")] = damage
    return damage


def logs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def some_log(rng: random.Random, folder: Path) -> Path:
    return rng.choice([path for path in logs_in(folder) if path.stat().st_size])


def starts_of(content: bytes) -> list[int]:
    """Where batches begin, and the end; a batch whose length lies reaches up to there."""
    starts = [0]
    while starts[-1] + 12 <= len(content):
        (length,) = struct.unpack_from(">i", content, starts[-1] + 8)
        end = starts[-1] + 12 + length
        starts.append(end if starts[-1] < end <= len(content) else len(content))
    return starts


def edited(path: Path, edit: Callable[[bytearray, list[int]], bytes | bytearray | None]) -> None:
    content = bytearray(path.read_bytes())
    new = edit(content, starts_of(bytes(content)))
    path.write_bytes(content if new is None else new)


def flip(content: bytearray, position: int, bit: int) -> None:
    content[position] ^= 1 << bit


def _flip_in(
    rng: random.Random, path: Path, first: int, behind: int | None, place: int = -2
) -> None:
    def edit(content: bytearray, starts: list[int]) -> None:
        if len(starts) < 2:
            return  # other damage has emptied it
        batch = rng.randrange(len(starts) - 1) if place == -2 else place % (len(starts) - 1)
        start, end = starts[batch], starts[batch + 1]
        last = end if behind is None else start + behind
        flip(content, rng.randrange(start + first, last), rng.randrange(8))

    edited(path, edit)


@kind
def bit_in_payload(rng: random.Random, _: Partition, folder: Path) -> None:
    _flip_in(rng, some_log(rng, folder), 61, None)


@kind
def bit_in_header(rng: random.Random, _: Partition, folder: Path) -> None:
    _flip_in(rng, some_log(rng, folder), 16, 61)


@kind
def bit_in_length(rng: random.Random, _: Partition, folder: Path) -> None:
    _flip_in(rng, some_log(rng, folder), 8, 12)


@kind
def bit_in_leader_epoch(rng: random.Random, _: Partition, folder: Path) -> None:
    _flip_in(rng, some_log(rng, folder), 12, 16)


@kind
def bit_in_base_offset(rng: random.Random, _: Partition, folder: Path) -> None:
    _flip_in(rng, some_log(rng, folder), 0, 8)


@kind
def bit_in_last_base_offset(rng: random.Random, _: Partition, folder: Path) -> None:
    _flip_in(rng, logs_in(folder)[-1], 0, 8, -1)


@kind
def bit_in_first_base_offset(rng: random.Random, _: Partition, folder: Path) -> None:
    _flip_in(rng, some_log(rng, folder), 0, 8, 0)


@kind
def base_offset_far_ahead(rng: random.Random, _: Partition, folder: Path) -> None:
    def edit(content: bytearray, starts: list[int]) -> None:
        (base,) = struct.unpack_from(">q", content, starts[-2])
        struct.pack_into(">q", content, starts[-2], base + 2 ** rng.randint(8, 50))

    edited(some_log(rng, folder), edit)


@kind
def zeros_inside(rng: random.Random, _: Partition, folder: Path) -> None:
    def edit(content: bytearray, _: list[int]) -> None:
        start = rng.randrange(len(content))
        end = min(len(content), start + rng.randint(1, 300))
        content[start:end] = bytes(end - start)

    edited(some_log(rng, folder), edit)


@kind
def zeros_over_batches(rng: random.Random, _: Partition, folder: Path) -> None:
    def edit(content: bytearray, starts: list[int]) -> None:
        first = rng.randrange(len(starts) - 1)
        behind = min(first + rng.randint(1, 3), len(starts) - 1)
        content[starts[first] : starts[behind]] = bytes(starts[behind] - starts[first])

    edited(some_log(rng, folder), edit)


@kind
def noise_inside(rng: random.Random, _: Partition, folder: Path) -> None:
    def edit(content: bytearray, _: list[int]) -> None:
        start = rng.randrange(len(content))
        end = min(len(content), start + rng.randint(1, 200))
        content[start:end] = rng.randbytes(end - start)

    edited(some_log(rng, folder), edit)


@kind
def cut_at_the_end(rng: random.Random, _: Partition, folder: Path) -> None:
    log = logs_in(folder)[-1]
    os.truncate(log, rng.randrange(1, log.stat().st_size))


@kind
def cut_anywhere(rng: random.Random, _: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    os.truncate(log, rng.randrange(1, log.stat().st_size))


@kind
def zeros_behind(rng: random.Random, _: Partition, folder: Path) -> None:
    with some_log(rng, folder).open("ab") as log:
        log.write(bytes(rng.randint(1, 5000)))


@kind
def noise_behind(rng: random.Random, _: Partition, folder: Path) -> None:
    with some_log(rng, folder).open("ab") as log:
        log.write(rng.randbytes(rng.randint(1, 300)))


def _two_logs(rng: random.Random, folder: Path) -> tuple[Path, Path]:
    one, two = rng.sample(logs_in(folder), 2)
    return one, two


@kind
def exchanged_names(rng: random.Random, _: Partition, folder: Path) -> None:
    one, two = _two_logs(rng, folder)
    aside = folder / "aside"
    one.rename(aside)
    two.rename(one)
    aside.rename(two)


@kind
def exchanged_names_and_a_flipped_bit(
    rng: random.Random, partition: Partition, folder: Path
) -> None:
    exchanged_names(rng, partition, folder)
    _flip_in(rng, some_log(rng, folder), 61, None, rng.choice([0, -2]))


@kind
def wrong_name(rng: random.Random, partition: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    base = int(log.stem)
    new = folder / name_of(rng.choice([base + rng.randint(1, 9), partition.end + 9]))
    if not new.exists():
        log.rename(new)


@kind
def missing_segment(rng: random.Random, _: Partition, folder: Path) -> None:
    for path in folder.glob(f"{some_log(rng, folder).stem}.*"):
        path.unlink()


@kind
def missing_log(rng: random.Random, _: Partition, folder: Path) -> None:
    some_log(rng, folder).unlink()


@kind
def empty_log(rng: random.Random, _: Partition, folder: Path) -> None:
    some_log(rng, folder).write_bytes(b"")


@kind
def copy_under_a_name_inside(rng: random.Random, partition: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    new = folder / name_of(int(log.stem) + rng.randint(1, 12))
    if not new.exists():
        shutil.copy(log, new)


@kind
def copy_of_a_damaged_log(rng: random.Random, partition: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    copy = folder / name_of(partition.end + rng.randint(0, 9))
    if not copy.exists():
        shutil.copy(log, copy)
    _flip_in(rng, log, 61, None)
    if rng.random() < 0.5:
        _flip_in(rng, copy, 61, None)


@kind
def symbolic_link(rng: random.Random, partition: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    new = folder / name_of(int(log.stem) + rng.randint(1, 12))
    if not new.exists():
        new.symlink_to(rng.choice([log, Path(log.name)]))


@kind
def hard_link(rng: random.Random, partition: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    new = folder / name_of(int(log.stem) + rng.randint(1, 12))
    if not new.exists():
        new.hardlink_to(log)


@kind
def batches_out_of_order(rng: random.Random, _: Partition, folder: Path) -> None:
    def edit(content: bytearray, starts: list[int]) -> bytes:
        parts = [bytes(content[a:b]) for a, b in pairwise(starts)]
        for _ in range(rng.randint(1, 3)):
            one, two = rng.randrange(len(parts)), rng.randrange(len(parts))
            parts[one], parts[two] = parts[two], parts[one]
        return b"".join(parts)

    edited(some_log(rng, folder), edit)


@kind
def batch_twice(rng: random.Random, _: Partition, folder: Path) -> None:
    def edit(content: bytearray, starts: list[int]) -> bytes:
        parts = [bytes(content[a:b]) for a, b in pairwise(starts)]
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(parts))
        return b"".join(parts)

    edited(some_log(rng, folder), edit)


@kind
def batch_in_another_segment(rng: random.Random, _: Partition, folder: Path) -> None:
    one, two = _two_logs(rng, folder)
    content, other = one.read_bytes(), two.read_bytes()
    starts, places = starts_of(content), starts_of(other)
    batch, place = rng.randrange(len(starts) - 1), rng.choice(places)
    moved = content[starts[batch] : starts[batch + 1]]
    one.write_bytes(content[: starts[batch]] + content[starts[batch + 1] :])
    two.write_bytes(other[:place] + moved + other[place:])


@kind
def overlapping_segments(rng: random.Random, partition: Partition, folder: Path) -> None:
    """Another history of some offsets, as two replicas' files in one folder have it."""
    log = some_log(rng, folder)
    base = int(log.stem) + rng.randint(0, 5)
    offset, batches = base, []
    while offset < base + rng.randint(3, 25):
        count = rng.randint(1, 3)
        records = [kt.Record(b"other", b"other %d" % (offset + place)) for place in range(count)]
        time = TIME + 1000 * offset
        batches.append(kt.batch(records, base_offset=offset, base_timestamp=time))
        offset += count
    new = folder / name_of(base)
    if new.exists():
        new = folder / name_of(base + 1)
        batches = batches[1:]
    if not new.exists() and batches:
        (first,) = struct.unpack_from(">q", batches[0])
        if first >= int(new.stem):
            new.write_bytes(b"".join(batches))


@kind
def deleted_files(rng: random.Random, _: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    shutil.copy(log, f"{log}.deleted")


@kind
def cleaned_files(rng: random.Random, _: Partition, folder: Path) -> None:
    log = some_log(rng, folder)
    shutil.copy(log, f"{log}.cleaned")
    if rng.random() < 0.5:
        shutil.copy(log, f"{log}.swap")


@kind
def swapped_files(rng: random.Random, _: Partition, folder: Path) -> None:
    logs = logs_in(folder)
    place = rng.randrange(len(logs) - 1)
    content = b"".join(path.read_bytes() for path in logs[place : place + 2])
    Path(f"{logs[place]}.swap").write_bytes(content)
    for path in logs[place : place + 2]:
        if rng.random() < 0.5:
            path.unlink()


@kind
def spoilt_swaps(rng: random.Random, _: Partition, folder: Path) -> None:
    logs = logs_in(folder)
    place = rng.randrange(len(logs) - 1)
    content = b"".join(path.read_bytes() for path in logs[place : place + 2])
    spoilt = bytearray(content)
    start, end = rng.choice(list(pairwise(starts_of(content))))
    flip(spoilt, rng.randrange(start + 21, end), rng.randrange(8))
    spoilt = rng.choice([b"", content[: rng.randrange(len(content))], spoilt])
    Path(f"{logs[place]}.swap").write_bytes(spoilt)


@kind
def lost_indexes(rng: random.Random, _: Partition, folder: Path) -> None:
    for path in sorted(folder.glob("*index")):
        if rng.random() < 0.6:
            path.unlink()


@kind
def spoilt_indexes(rng: random.Random, _: Partition, folder: Path) -> None:
    for path in sorted(folder.glob("*index")):
        if rng.random() < 0.6:
            path.write_bytes(rng.choice([b"", bytes(96), rng.randbytes(48), b"x" * 5]))


@kind
def lost_snapshots_and_epochs(rng: random.Random, _: Partition, folder: Path) -> None:
    for path in [*sorted(folder.glob("*.snapshot")), folder / "leader-epoch-checkpoint"]:
        if rng.random() < 0.6:
            path.unlink()


@kind
def spoilt_snapshots(rng: random.Random, _: Partition, folder: Path) -> None:
    for path in sorted(folder.glob("*.snapshot")):
        content = bytearray(path.read_bytes())
        flip(content, rng.randrange(len(content)), rng.randrange(8))
        path.write_bytes(content)


def _markers(content: bytes) -> list[int]:
    starts = starts_of(content)
    return [place for place, start in enumerate(starts[:-1]) if content[start + 22] & 0x20]


def _marker_damage(rng: random.Random, folder: Path, *, is_flip: bool) -> None:
    logs = [log for log in logs_in(folder) if _markers(log.read_bytes())]
    if not logs:
        return
    log = rng.choice(logs)
    for place in rng.sample(_markers(log.read_bytes()), 1):
        if is_flip:
            _flip_in(rng, log, 16, None, place)
            continue

        def edit(content: bytearray, starts: list[int], place: int = place) -> None:
            start, end = starts[place], starts[place + 1]
            content[start:end] = rng.choice([bytes(end - start), rng.randbytes(end - start)])

        edited(log, edit)
    if not is_flip and rng.random() < 0.5:
        log.with_suffix(".txnindex").unlink(missing_ok=True)


@kind
def flipped_marker(rng: random.Random, _: Partition, folder: Path) -> None:
    _marker_damage(rng, folder, is_flip=True)


@kind
def lost_marker(rng: random.Random, _: Partition, folder: Path) -> None:
    _marker_damage(rng, folder, is_flip=False)


@kind
def several(rng: random.Random, partition: Partition, folder: Path) -> None:
    """Two or three damages of any kind."""
    # A repair refuses a spoilt swap of segments that lack something, too.
    names = sorted(set(KINDS) - {"several", "spoilt_swaps"})
    for name in rng.sample(names, rng.randint(2, 3)):
        try:
            KINDS[name](rng, partition, folder)
        except (IndexError, OSError, ValueError, struct.error):
            continue  # the first has left nothing for it, or a link to itself
