from __future__ import annotations

import base64
import re
from pathlib import Path

import data
import pytest
import tiered_twin as twin
from cryptography.exceptions import InvalidTag

OBJECTS = data.objects()
LOCAL_STORAGE = OBJECTS / "local-storage"
AIVEN = sorted(path.name for path in OBJECTS.glob("aiven-*"))
MIXED = OBJECTS / "aiven-mixed"
KEYS = twin.read_keys(OBJECTS / "keys")
OBJECT = re.compile(r"(\d{20})-([\w-]{22})\.log")
FOLDER = re.compile(r"(.+)-([\w-]{22})")


def logs(archive: str) -> list[Path]:
    return sorted((OBJECTS / archive / "remote").rglob("*.log"), key=lambda path: path.name)


def original(path: Path) -> Path:
    """The log file that an object is a copy of."""
    name = OBJECT.fullmatch(path.name)
    assert name
    if path.is_relative_to(LOCAL_STORAGE):
        folder = FOLDER.fullmatch(path.parent.name)
        assert folder
        return LOCAL_STORAGE / "original" / folder[1] / f"{name[1]}.log"
    manifest = twin.read_manifest(path)
    assert manifest
    partition = manifest["remoteLogSegmentMetadata"]["remoteLogSegmentId"]["topicIdPartition"]
    topic, number = partition["topicPartition"]["topic"], partition["topicPartition"]["partition"]
    assert path.parent.name == str(number)
    assert path.parent.parent.name.endswith(f"{topic}-{partition['topicId']}")
    archive = path.relative_to(OBJECTS).parts[0]
    return OBJECTS / archive / "logs" / f"{topic}-{number}" / f"{name[1]}.log"


@pytest.mark.parametrize("archive", ["local-storage", *AIVEN])
def test_the_twin_restores_segments_and_indexes_byte_for_byte(archive: str) -> None:
    paths = logs(archive)
    aborted = 0
    for path in paths:
        log = original(path)
        assert twin.segment_bytes(path, KEYS) == log.read_bytes(), path
        for index, suffix in (("offset", ".index"), ("timestamp", ".timeindex")):
            assert twin.index_bytes(path, index, KEYS) == log.with_suffix(suffix).read_bytes()
        transactions = log.with_suffix(".txnindex")
        expected = transactions.read_bytes() if transactions.exists() else None
        assert twin.index_bytes(path, "transaction", KEYS) == expected
        aborted += expected is not None
        following = min(
            other for other in log.parent.glob("*.log") if other.name > log.name
        ).with_suffix(".snapshot")
        assert twin.index_bytes(path, "producerSnapshot", KEYS) == following.read_bytes()
        epochs = twin.index_bytes(path, "leaderEpoch", KEYS)
        assert epochs
        whole = (log.parent / "leader-epoch-checkpoint").read_text().splitlines()[2:]
        lines = epochs.decode().splitlines()
        assert lines[0] == "0"
        assert int(lines[1]) == len(lines) - 2
        assert lines[2:] == whole[: len(lines) - 2]
    assert len(paths) > 4
    assert aborted


def test_remote_and_local_segments_overlap_and_together_are_the_whole_log() -> None:
    for folder in sorted((LOCAL_STORAGE / "original").iterdir()):
        whole = {path.stem for path in folder.glob("*.log")}
        local = {path.stem for path in (LOCAL_STORAGE / "logs" / folder.name).glob("*.log")}
        copied = (original(path) for path in logs("local-storage"))
        remote = {path.stem for path in copied if path.parent == folder}
        assert local | remote == whole
        assert local & remote
        assert local - remote == {max(whole)}


def test_one_folder_of_aivens_plugin_mixes_settings_and_keys() -> None:
    seen = set()
    for path in logs("aiven-mixed"):
        manifest = twin.read_manifest(path)
        assert manifest
        index = manifest["chunkIndex"]
        key = manifest.get("encryption", {}).get("dataKey", "none").split(":")[0]
        seen.add((index["originalChunkSize"], manifest["compression"], key))
    assert seen == {
        (700, True, "none"),
        (700, False, "none"),  # compressed already
        (1000, False, "first"),
        (50000, True, "second"),
    }


def test_chunks_are_bound_to_the_key_and_the_data_of_their_segment() -> None:
    first, second = logs("aiven-encrypted")[:2]
    manifest, other = twin.read_manifest(first), twin.read_manifest(second)
    assert manifest
    assert other
    stored = first.read_bytes()[: manifest["chunkIndex"]["transformedChunkSize"]]
    assert original(first).read_bytes().startswith(twin.decrypted(stored, manifest, KEYS))
    for name in ("dataKey", "aad"):
        swapped = manifest["encryption"] | {name: other["encryption"][name]}
        with pytest.raises(InvalidTag):
            twin.decrypted(stored, manifest | {"encryption": swapped}, KEYS)
    data_key = base64.b64decode(manifest["encryption"]["dataKey"].split(":")[1])
    with pytest.raises(AssertionError):
        twin.unwrapped(data_key, KEYS["second"])


@pytest.mark.parametrize(
    ("coded", "sizes"),
    [
        ("00000000", []),
        ("00000001 00000005", [5]),
        ("00000003 00000007 01 00 00 00000002", [7, 7, 2]),
        ("00000003 00000100 02 0000 0101 00000001", [256, 513, 1]),
        ("00000003 00000001 04 7ffffffe 00000000 00000000", [2**31 - 1, 1, 0]),
    ],
)
def test_sizes_of_chunks_are_coded_in_as_few_bytes_as_differ(coded: str, sizes: list[int]) -> None:
    assert twin.chunk_sizes(bytes.fromhex(coded)) == sizes
