"""Measure reading objects of tiered storage on one core, against the bare codec and cipher.

    python -m asv_bench.peers.tiered                  objects of 1 GiB in chunks of 4 MiB
    python -m asv_bench.peers.tiered --scale 0.25     of 256 MiB

The same segment lies in a broker's folder and in objects of Aiven's plugin: plain, compressed,
encrypted, and both. In each round, each form is read three times: by the bare library, chunk after
chunk; as bytes of the segment, chunk after chunk; and as records, offset and value. The figures
are seconds of one processor, and medians of the ratios within a round.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import kafkajit
from asv_bench.benchmarks.segments import Segment, cache_folder
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, Options, key_pair, write_segment
from asv_bench.peers.folders import unfinished
from asv_bench.peers.options import parser_of
from kafkajit.places.locations import stored_file
from kafkajit.places.manifest import Manifest
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.storage.source import Source
from kafkajit.storage.stored_file import StoredFile

_CHUNK = 4 << 20
_RECORD = 115  # bytes, with its part of a batch's header
_FILE = "a broker's file"
_FORMS = {
    "plain": (False, False),
    "zstd": (True, False),
    "AES-GCM": (False, True),
    "zstd and AES-GCM": (True, True),
}


def stored(records: int) -> Path:
    """The folder that has the segment in all forms, and the private key."""
    folder = cache_folder() / f"tiered-objects-{records}"
    if folder.exists():
        return folder
    log = Segment(records).path().read_bytes()
    with unfinished(folder / "whole") as whole:
        root = whole.parent
        pair = key_pair(root, "key1")
        local = root / _FILE / "orders-0"
        local.mkdir(parents=True)
        (local / f"{0:020}.log").write_bytes(log)
        for form, (compresses, is_encrypted) in _FORMS.items():
            options = Options(_CHUNK, compresses, pair if is_encrypted else None)
            write_segment(root / form / f"orders-{TOPIC_ID}" / "0", 0, log, options)
    return folder


class Subject:
    """A form of the segment, and the ways to read it."""

    def __init__(self, root: Path, keys: dict[str, str]) -> None:
        (log,) = root.glob("*/**/*.log")
        self._path, self._keys = log, keys
        self._file: StoredFile = stored_file(str(log), PrivateKeys.of(keys))
        self._manifest: Manifest | None = getattr(self._file, "manifest", None)

    def bare(self) -> None:
        """Decrypt and decompress each chunk by the libraries alone, each time into new memory."""
        manifest = self._manifest
        if manifest is None or manifest.is_plain:
            return
        key = manifest.data_key
        unwrapped = None if key is None else PrivateKeys.of(self._keys).unwrap(key, "")
        cipher = None if unwrapped is None else AESGCM(unwrapped)
        unpacker = zstandard.ZstdDecompressor() if manifest.is_compressed else None
        for chunk in self._chunks(manifest):
            content: bytes | memoryview = chunk
            if cipher is not None and key is not None:
                content = cipher.decrypt(chunk[:12], chunk[12:], key.aad)
            if unpacker is not None:
                unpacker.decompress(content)

    def _chunks(self, manifest: Manifest) -> Iterator[memoryview]:
        whole = memoryview(Source(str(self._path)).content.data)
        places = manifest.chunks.places()
        for chunk in range(places.chunks):
            yield whole[places.start(chunk) : places.start(chunk + 1)]

    def chunks(self) -> None:
        """Read the bytes of the segment in windows, into the same memory again and again."""
        opened = self._file.filesystem
        if opened is None or self._manifest is None:
            return
        file = opened.open_input_file(self._file.key)
        memory, position = memoryview(bytearray(2 * _CHUNK)), 0
        while position < self._file.size:
            position += file.read_into(memory, position)  # type: ignore[union-attr]

    def records(self) -> None:
        columns = ["offset", "value"]
        for _ in kafkajit.iter_records(self._path, columns=columns, private_keys=self._keys):
            pass


def seconds(action: Callable[[], None]) -> float:
    """The processor's time of all threads."""
    start = time.process_time()
    action()
    return time.process_time() - start


def main() -> None:
    """Print a table of medians."""
    parser = parser_of("tiered", __doc__)
    parser.add_argument("--scale", type=float, default=1, help="of a GiB (default: 1)")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    folder = stored(int(given.scale * (1 << 30)) // _RECORD)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    keys = {"key1": str(folder / "key1.pem")}
    subjects = {form: Subject(folder / form, keys) for form in (_FILE, *_FORMS)}
    for subject in subjects.values():
        subject.records()
    rounds = [
        {
            form: (seconds(subject.bare), seconds(subject.chunks), seconds(subject.records))
            for form, subject in subjects.items()
        }
        for _ in range(given.rounds)
    ]
    print("| | bare | chunks | of bare | records | of the file and bare |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for form in subjects:
        bare, chunks, records = (
            statistics.median(one[form][at] for one in rounds) for at in range(3)
        )
        of_bare = statistics.median(one[form][1] / (one[form][0] or 1) for one in rounds)
        of_both = statistics.median(one[form][2] / (one[_FILE][2] + one[form][0]) for one in rounds)
        texts = (f"{bare:.2f}", f"{chunks:.2f}", f"{of_bare:.2f}") if bare > 0.01 else ("", "", "")
        print(f"| {form} | {' | '.join(texts)} | {records:.2f} | {of_both:.2f} |")


if __name__ == "__main__":
    main()
