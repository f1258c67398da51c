"""Damage random partitions, salvage them, and compare with the slow twin.

    PYTHONPATH=.:tests:tests/support python tests/support/repair_differential.py --cases 10000

In: seeds and kinds of damage. Each case is one damaged copy of a partition. It must be so that

- the records that stay are those of the twin, in order;
- the list of losses has every batch that does not stay, and text and JSON have the same list;
- the counts add up;
- a transaction is in the plan if its outcome is no longer that of the undamaged log, and becomes
  what the plan announces;
- a second run has nothing to do, with salvage or without;
- without salvage, nothing else stays, and the list has every batch that does not.

With --keep DIR, some repaired folders of each kind are kept there for a broker to load:
tests/broker/repairs_back.py.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from partition_damages import CONFIG, KINDS, Partition, make_partition
from repair_twin import Twin, salvage, sound_batches

import kafkajit
from kafkajit.upkeep.repair.plan import PartitionRepair

PARTITIONS = 60


class Case:
    """One damaged copy of a partition."""

    def __init__(self, partition: Partition, kind: str, seed: int, work: Path) -> None:
        self.partition, self.kind = partition, kind
        root = work / "kafka"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(partition.folder.parent, root, symlinks=True)
        self.folder = root / partition.folder.name
        KINDS[kind](random.Random(f"{kind} {seed}"), partition, self.folder)
        self.known = known_offset(self.folder)
        self.counts: Counter[str] = Counter()

    def check(self, work: Path) -> PartitionRepair:
        """Salvage the partition; raise an AssertionError if anything is not as it must be."""
        twin = salvage(self.folder, self.known, was_cleaned=self.partition.is_compacted)
        plain = work / "plain"
        shutil.rmtree(plain, ignore_errors=True)
        shutil.copytree(self.folder.parent, plain, symlinks=True)
        for path in (plain / self.folder.name).iterdir():
            if path.is_symlink() and path.readlink().is_absolute():
                target = path.readlink()  # in the folder that is salvaged
                path.unlink()
                path.symlink_to(plain / target.relative_to(self.folder.parent))
        (plan,) = kafkajit.repair(self.folder, config=CONFIG, salvage=True).partitions
        before = list(plan.lines)
        self._check_losses(plan, twin, before)
        plan.apply(keep=False)
        kept = read(self.folder)
        assert kept == sorted(twin.kept.items()), "other records stay"
        assert plan.records.kept == twin.records, "the count of records that stay"
        self._check_transactions(plan)
        for salvages in (True, False):
            (again,) = kafkajit.repair(self.folder, config=CONFIG, salvage=salvages).partitions
            assert not again.is_needed, f"a second run: {list(again.lines)}"
        self._check_plain(plain / self.folder.name, kept, twin)
        self.counts["records"] += twin.records
        self.counts["sound records lost"] += sum(
            len(gone) for batch, gone in twin.lost if not batch.is_control
        )
        return plan

    def _check_losses(self, plan: PartitionRepair, twin: Twin, lines: list[str]) -> None:
        for batch, _ in twin.lost:
            assert any(
                loss.path == str(batch.file)
                and loss.position <= batch.position
                and batch.position + len(batch.content) <= loss.position + loss.length
                for loss in plan.gaps
            ), f"{batch} is not listed"
        document = plan.document()
        assert len(document["damage"]) == len(plan.gaps)
        for loss, listed in zip(plan.gaps, document["damage"], strict=True):
            size = Path(loss.path).stat().st_size
            whole = f"{loss.offsets_text}, with its indexes and snapshot: {loss.reason_text}"
            assert any(loss.text(size) in line or whole in line for line in lines), loss
            assert (listed["position"], listed["length"]) == (loss.position, loss.length)
        listed_lines = [line for line in lines if "  cut o" in line or "  remove, " in line]
        several = sum(
            "none of its batches stays" in line or "it has no batches" in line
            for line in listed_lines
        )
        empty = sum("remove, 0 bytes" in line for line in listed_lines)
        assert len(listed_lines) - several - empty <= len(plan.gaps), "text has more than JSON"
        records = document["records"]
        assert records["there"] == records["kept"] + records["lost"]
        own = sum(loss.records for loss in plan.gaps if loss.first_offset is not None)
        lost = self._lost_once(twin)
        assert own <= lost, "more sound records are counted as lost than there are"
        assert records["lost"] >= lost - self._lies(plan), "fewer are counted than are lost"

    @staticmethod
    def _lost_once(twin: Twin) -> int:
        """The sound records that do not stay, in whatever files they are."""
        return sum(len(gone) for batch, gone in twin.lost if not batch.is_control)

    @staticmethod
    def _lies(plan: PartitionRepair) -> int:
        """Records of batches whose base offset lies are counted by the offsets that they leave."""
        return sum(loss.records for loss in plan.gaps if "no checksum" in loss.reason) + 3 * len(
            [loss for loss in plan.gaps if "no checksum" in loss.reason]
        )

    def _check_transactions(self, plan: PartitionRepair) -> None:
        if self.partition.is_compacted and plan.missing and not plan.has_trouble:
            return  # compaction may have left the gap
        if any("the cleaner has removed them, or they are lost" in note for note in plan.notes):
            return
        after = outcomes(self.folder)
        told = {
            (end.transaction.producer_id, offset): end
            for end in plan.transactions
            for offset in range(end.transaction.first_offset, end.transaction.last_offset + 1)
        }
        for producer, offsets, was in self.partition.transactions:
            stays = [offset for offset in offsets if (producer, offset) in after]
            changed = [offset for offset in stays if after[producer, offset] != was]
            for offset in changed:
                end = told.get((producer, offset))
                assert end is not None, (
                    f"producer {producer} at {offset}: was {was}, is {after[producer, offset]}"
                )
                words = {0: "aborted", 1: "committed", None: "open"}
                assert words[end.becomes] == after[producer, offset], "it becomes something else"
                if end.was is not None:
                    assert words[end.was] == was, f"it was {was}, not {words[end.was]}"
            self.counts["transactions"] += bool(stays)
            self.counts["outcomes changed, and told"] += bool(changed)

    def _check_plain(self, folder: Path, salvaged: list[tuple[int, object]], twin: Twin) -> None:
        """Without salvage, less of that stays, and the rest is listed."""
        is_swapping = any(folder.glob("*.log.swap"))  # a note counts what a swap does not have
        (plan,) = kafkajit.repair(folder, config=CONFIG).partitions
        plan.apply(keep=False)
        (again,) = kafkajit.repair(folder, config=CONFIG).partitions
        assert not again.is_needed, f"a second run without salvage: {list(again.lines)}"
        kept = read(folder)
        offsets = [offset for offset, _ in kept]
        assert offsets == sorted(set(offsets)), "offsets go back"
        assert plan.records.kept == sum(not isinstance(one, str) for _, one in kept)
        theirs = dict(salvaged)
        assert all(theirs.get(offset) == record for offset, record in kept), (
            "it keeps what salvage does not"
        )
        ours = dict(kept)
        for batch in twin.batches:
            gone = [at for at, record in batch.records.items() if ours.get(at) != record]
            assert (
                not gone
                or is_swapping
                or any(
                    Path(loss.path).name == batch.file.name
                    and loss.position <= batch.position
                    and batch.position + len(batch.content) <= loss.position + loss.length
                    for loss in plan.gaps
                )
            ), f"{batch} is not listed without salvage"


def read(folder: Path) -> list[tuple[int, object]]:
    """The records of a repaired folder by the reference: each key and value, or a marker's type."""
    found: list[tuple[int, object]] = []
    for log in sorted(folder.glob("*.log")):
        batches = sound_batches(log)
        assert sum(len(one.content) for one in batches) == log.stat().st_size, f"{log} is damaged"
        assert all(int(log.stem) <= one.first for one in batches), f"{log} has a wrong name"
        for batch in batches:
            found += sorted(batch.records.items())
    offsets = [offset for offset, _ in found]
    assert offsets == sorted(set(offsets)), "offsets go back"
    return found


def outcomes(folder: Path) -> dict[tuple[int, int], str]:
    """How the transaction of each record ends, by producer and offset."""
    found: dict[tuple[int, int], str] = {}
    waiting: dict[int, list[int]] = {}
    for log in sorted(folder.glob("*.log")):
        for batch in sound_batches(log):
            head = batch.head
            if not head.is_transactional:
                continue
            if batch.is_control:
                (kind,) = batch.records.values()
                word = "aborted" if kind == "ABORT" else "committed"
                for offset in waiting.pop(head.producer_id, []):
                    found[head.producer_id, offset] = word
            else:
                waiting.setdefault(head.producer_id, []).extend(batch.records)
    for producer, offsets in waiting.items():
        found |= {(producer, offset): "open" for offset in offsets}
    return found


def known_offset(folder: Path) -> int:
    """The greatest offset that a file beside the logs knows."""
    names = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
    known = [int((folder.parent / name).read_text().split()[-1]) - 1 for name in names]
    for path in folder.iterdir():
        if path.suffix == ".snapshot" and path.stem.isdecimal():
            known.append(int(path.stem) - 1)
        for suffix, size, at in ((".index", 8, 0), (".timeindex", 12, 8)):
            if path.suffix == suffix and path.stem.isdecimal():
                content = path.read_bytes()
                for start in range(0, len(content) // size * size, size):
                    relative = int.from_bytes(content[start + at : start + at + 4], signed=True)
                    if relative > 0:
                        known.append(int(path.stem) + relative)
    return max(known)


def run(cases: int, first: int, keep: Path | None, kinds: list[str]) -> Counter[str]:
    """Run this number of cases; raise an AssertionError that lists those that fail."""
    counts: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        partitions: dict[int, Partition] = {}
        for seed in range(first, first + cases):
            kind = kinds[seed % len(kinds)]
            number = random.Random(seed).randrange(PARTITIONS)
            if number not in partitions:
                folder = work / "partitions" / str(number) / "orders-0"
                partitions[number] = make_partition(number, folder)
            try:
                case = Case(partitions[number], kind, seed, work)
                plan = case.check(work)
            except kafkajit.NotALogError:
                counts["refused: a file that is not a log"] += 1
                continue
            except kafkajit.CorruptRecordError as error:
                if "move the .swap files away" not in str(error):
                    failures.append(f"{kind}, seed {seed}: {error}")
                counts["refused: a damaged swap with offsets of its own"] += 1
                continue
            except FileNotFoundError as error:
                if "which does not exist: remove the link" not in str(error):
                    failures.append(f"{kind}, seed {seed}: {error}")
                counts["refused: a link to nothing"] += 1
                continue
            except Exception as error:
                failures.append(f"{kind}, seed {seed}: {type(error).__name__}: {error}")
                continue
            counts[kind] += 1
            counts += case.counts
            counts["repaired"] += plan.is_needed
            counts["losses"] += len(plan.gaps)
            counts["missing segments"] += plan.has_trouble
            if keep is not None and kept[kind] < 4 and plan.is_needed:
                kept[kind] += 1
                shutil.copytree(case.folder.parent, keep / f"{kind}-{seed}")
    assert not failures, "\n".join(failures)
    return counts


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args(words)
    os.fsync = lambda _: None  # type: ignore[assignment]
    begun = time.monotonic()
    counts: dict[str, Any] = run(
        options.cases, options.first, options.keep, options.kind or sorted(KINDS)
    )
    lines = [f"{count:8,}  {name}" for name, count in counts.items()]
    lines.append(f"{options.cases:,} cases in {time.monotonic() - begun:.0f} s")
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
