from __future__ import annotations

import re
from pathlib import Path

import data
import pytest

LOCAL_STORAGE = data.objects() / "local-storage"
OBJECT = re.compile(r"(\d{20})-([\w-]{22})(\.[a-z_]+)")
FOLDER = re.compile(r"(.+)-([\w-]{22})")
REMOTE = sorted((LOCAL_STORAGE / "remote" / "kafka-tiered-storage").rglob("*.*"))


def original(path: Path) -> Path:
    """The file of the log directory that an object is a copy of."""
    folder, name = FOLDER.fullmatch(path.parent.name), OBJECT.fullmatch(path.name)
    assert folder
    assert name
    return LOCAL_STORAGE / "original" / folder[1] / f"{name[1]}{name[3]}"


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_local_tiered_storage_keeps_segments_and_indexes_as_they_are(suffix: str) -> None:
    paths = [path for path in REMOTE if path.suffix == suffix]
    assert len(paths) >= 4
    for path in paths:
        assert path.read_bytes() == original(path).read_bytes(), path


def test_remote_and_local_segments_overlap_and_together_are_the_whole_log() -> None:
    for folder in sorted((LOCAL_STORAGE / "original").iterdir()):
        whole = {path.stem for path in folder.glob("*.log")}
        local = {path.stem for path in (LOCAL_STORAGE / "logs" / folder.name).glob("*.log")}
        remote = {
            original(path).stem
            for path in REMOTE
            if path.suffix == ".log" and original(path).parent == folder
        }
        assert local | remote == whole
        assert local & remote
        assert local - remote == {max(whole)}
