"""Damaged logs become, file by file, what Kafka's own recovery makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from appends import digests, files_of
from corpus import DATA, NO_JIT, split
from damages import damage, damaged_seeds

import kafkajit

KAFKAS = json.loads((DATA / "logs" / "repairs.json").read_text())
SEEDS = damaged_seeds(len(KAFKAS))


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def test_there_are_goldens_of_many_logs() -> None:
    assert list(KAFKAS) == list(map(str, SEEDS))
    assert len(KAFKAS) >= 100


@pytest.mark.parametrize("seed", list(SEEDS)[:: 10 if NO_JIT else 1])
def test_a_damaged_log_becomes_what_kafka_makes_of_it(seed: int, tmp_path: Path) -> None:
    log = SEEDS[seed]
    folder = tmp_path / "orders-0"
    config = kafkajit.LogConfig.of(log.config)
    with kafkajit.LogWriter(folder, config=config, start_offset=log.start) as writer:
        writer.append(b"".join(log.batches))
        writer.commit()
    (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {log.start}\n")
    assert not kafkajit.repair(folder, config=config).is_needed
    damage(seed, folder)
    plan = kafkajit.repair(folder, config=config)
    plan.apply()
    (folder / "leader-epoch-checkpoint").touch()  # Kafka creates it when it reads it
    assert digests(files_of(folder), log.start) == KAFKAS[str(seed)], str(plan)
    assert not kafkajit.repair(folder, config=config).is_needed


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_salvage_keeps_the_bytes_of_sound_batches_as_other_compressors_wrote_them(
    codec: str, tmp_path: Path
) -> None:
    name = "00000000000000000000.log"
    batches = split((DATA / "v2" / f"{codec}-0" / name).read_bytes())
    spoilt = [batches[0], batches[1][:-1] + b"~", *batches[2:]]
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / name).write_bytes(b"".join(spoilt))
    kafkajit.repair(folder, salvage=True).apply()
    assert (folder / name).read_bytes() == b"".join([batches[0], *batches[2:]])
