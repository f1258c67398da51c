"""kafkajit.records: finding batches, and the records in them, before anything becomes Arrow."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import numpy as np

from kafkajit.format.layout import BATCH_HEADER
from kafkajit.records.batches import frame
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.records.search import Needle, holders
from kafkajit.storage.source import Source, as_bytes
from kafkajit.testing import Record, batch
from kafkajit.walk.frames import frames
from kafkajit.walk.resync import PrefixChecksums

from . import segments

WANTED = Wanted(offset=True, timestamp=True, key=True, value=True)


class Framing:
    """Finding batches and parsing their headers in 16 MiB, by the size of a batch."""

    params = [100, 1000, 16_000]
    param_names = ["batch_bytes"]

    def setup(self, batch_bytes: int) -> None:
        one = batch([Record(value=bytes(batch_bytes - 70))])
        self.content = Source(one * (segments.SMALL // len(one))).content
        self.time_frame(batch_bytes)

    def time_frame(self, batch_bytes: int) -> None:
        position = 0
        while position < self.content.size:
            position = int(frame(self.content, position).batches.end[-1])


class Batches:
    """A whole segment's batches."""

    params = segments.VALUE_SIZES
    param_names = ["value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, value_size: int) -> None:
        self.source = Source(segments.small(value_size).path().read_bytes())
        self.framings = list(frames(self.source))
        self.decoder = Decoder(self.source, ColumnMemory(WANTED))
        self.time_check(value_size)
        self.time_decode(value_size)
        self.time_decode_in_one_pass(value_size)

    def time_frames(self, value_size: int) -> None:
        """Headers only."""
        for _ in frames(self.source):
            pass

    def time_check(self, value_size: int) -> None:
        """Magic and checksum."""
        for framing in self.framings:
            self.decoder.sound(framing.batches, check_crcs=True)

    def time_decode(self, value_size: int) -> None:
        """Find every record's fields, and check them as Kafka does."""
        for framing in self.framings:
            batches = framing.batches
            while len(batches):
                batches = batches[len(self.decoder.decode(batches).batches) :]

    def time_decode_in_one_pass(self, value_size: int) -> None:
        """Checksums and records, a few batches at a time."""
        for framing in self.framings:
            batches = framing.batches
            while len(batches):
                chunk = self.decoder.decode_in_one_pass(batches, check_crcs=True)
                batches = batches[len((chunk or self.decoder.decode(batches)).batches) :]


class OnePass:
    """Compressed batches checked, decompressed and read a few at a time, or step by step."""

    params = [segments.CODECS[1:], ["one pass", "steps"]]
    param_names = ["codec", "how"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, codec: str, how: str) -> None:
        self.source = Source(segments.small(codec=codec).path().read_bytes())
        self.framings = list(frames(self.source))
        self.decoder = Decoder(self.source, ColumnMemory(WANTED))
        self.time_decode(codec, how)

    def time_decode(self, codec: str, how: str) -> None:
        for framing in self.framings:
            batches = framing.batches
            while len(batches):
                chunk = None
                if how == "one pass":
                    chunk = self.decoder.decode_in_one_pass(batches, check_crcs=True)
                if chunk is None:
                    assert self.decoder.sound(batches, check_crcs=True).all()
                    chunk = self.decoder.decode(batches)
                batches = batches[len(chunk.batches) :]


class Damage:
    """Finding the sound batch behind 64 MiB without one."""

    params = ["noise", "zeros", "headers"]
    param_names = ["damage"]

    def setup(self, damage: str) -> None:
        size = 64 << 20
        sound = batch([Record(value=b"v" * 1000)])
        bad = np.zeros(size, dtype=np.uint8)
        if damage == "noise":
            bad = np.random.default_rng(segments.SEED).integers(0, 256, size, dtype=np.uint8)
        elif damage == "headers":  # each header claims all bytes behind it
            header = np.frombuffer(sound[:61], dtype=BATCH_HEADER)
            headers = np.repeat(header, size // header.itemsize)
            headers["batchLength"] = size - 12 - np.arange(headers.size) * header.itemsize
            headers["crc"] ^= 1
            bad[: headers.nbytes] = headers.view(np.uint8)
        self.content = as_bytes(bad.tobytes() + sound)
        self.time_next_sound_batch(damage)

    def time_next_sound_batch(self, damage: str) -> None:
        PrefixChecksums(self.content).next_sound_batch(0)


class Needles:
    """A search for bytes in 16 MiB of batches' records, none of which has them."""

    params = ["rare", "common", "ignoring case"]
    param_names = ["needle"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, needle: str) -> None:
        self.source = Source(segments.small().path().read_bytes())
        self.batches = [framing.batches for framing in frames(self.source)]
        content = b'"id":7."' if needle == "common" else b"nosuchZ"
        self.needle = Needle.of(content, ignores_case=needle == "ignoring case")
        self.time_search(needle)

    def time_search(self, needle: str) -> None:
        for batches in self.batches:
            holders(self.source.content, batches.position, batches.end, self.needle)
