"""Walk a segment from end to end: chunks of decoded batches, or headers, and gaps at damage.

This is the only module that implements the modes: all readers of a log use it. Without a mode,
dump-log treats damage as Kafka does, in its own way. Compaction, and the modules that follow
transactions, decode the batches that are framed here themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from kafkajit.errors import KafkaJitError, NotALogError
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.layout import BATCH_LENGTH_OFFSET, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD
from kafkajit.format.log_path import LogPath, parse_log_path
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.records.batches import Batches, Framing
from kafkajit.records.chunk import Chunk, without_bad_markers
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import marker_errors
from kafkajit.records.offset_order import OffsetOrder
from kafkajit.storage.source import Bytes, Mask, Source
from kafkajit.walk.borders import hidden_by_damage, offset_behind
from kafkajit.walk.damage import FAILFAST, Gap, mode_named
from kafkajit.walk.frames import frames
from kafkajit.walk.kafscale import KafscaleSegment, is_kafscale
from kafkajit.walk.resync import PrefixChecksums, goes_on, plausible, resync, zeros_at_the_end
from kafkajit.walk.selection import EVERYTHING, Selection
from kafkajit.walk.tail import length_error, split_error

# The size from which asking the prover is cheaper than checking a batch, once it is needed.
_LARGE = 64 << 10

Part = TypeVar("Part", Chunk, Batches)


class Walk:
    """One pass over a segment or a stretch of it, even if some of its batches are damaged.

    A stretch begins and ends at the bounds of batches. `is_last` is as for `frames`. With an
    `order`, a batch whose offsets do not follow those before it is damage.
    """

    def __init__(
        self,
        source: Source,
        *,
        mode: str = FAILFAST,
        selection: Selection = EVERYTHING,
        start: int = 0,
        end: int | None = None,
        is_last: bool | None = None,
        order: OffsetOrder | None = None,
    ) -> None:
        mode = mode_named(mode)
        self.position = start  # behind the last batch or gap
        self._source = source
        self._mode = mode
        self._selection = selection
        self._is_last = False if is_last is None and order and order.is_bounded else is_last
        self._end = source.content.size if end is None else min(end, source.content.size)
        self._is_cut = self._end < source.content.size  # so it does not end as a log may
        self._path = parse_log_path(source.path) if source.path else LogPath()
        self._prover: PrefixChecksums | None = None  # behind the first bad batch
        self._first_zero: int | None = None  # of the zeros at the end, once it was needed
        self._kafscale = KafscaleSegment(source) if is_kafscale(source) else None
        self._order = order if self._kafscale is None else None  # a footer has a checksum of all
        if mode != FAILFAST:
            source.skip_lost()

    def chunks(
        self,
        memory: ColumnMemory,
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        max_records: int = 2**62,
        recycle: bool = True,
        reads_markers: bool = True,
        in_slices: bool = False,
    ) -> Iterator[Chunk | Gap]:
        """Yield the selected batches with their records, in `memory`, and gaps.

        With `in_slices` a large batch may be in several chunks (`Decoder.parts`).
        """
        decoder = Decoder(
            self._source, memory, max_decompressed_bytes=max_decompressed_bytes, recycle=recycle
        )

        def read(framing: Framing) -> Generator[Chunk | Gap, None, bool]:
            return self._decode(framing, decoder, check_crcs, reads_markers, in_slices)

        self._check_footer(check_crcs)
        return self._parts(read, max_records)

    def headers(self, doubtful: Callable[[Batches], Mask] | None = None) -> Iterator[Batches | Gap]:
        """Yield the headers of selected batches, and gaps.

        Only the checksums of batches that are `doubtful` are computed.
        """
        return self._parts(lambda framing: self._headers(framing, doubtful))

    def checked(self) -> Iterator[Batches | Gap]:
        """As `headers`, with the checksums of all batches computed. No record is read."""
        self._check_footer(True)
        return self.headers(lambda batches: np.ones(len(batches), np.bool_))

    def framed(self) -> Iterator[Batches]:
        """Yield the headers of selected batches as they are found."""
        return (part for part in self.headers() if not isinstance(part, Gap))

    def _parts(
        self,
        read: Callable[[Framing], Generator[Part | Gap, None, bool]],
        max_records: int = 2**62,
    ) -> Iterator[Part | Gap]:
        """Yield the results of `read` for framed batches and, unless the mode is FAILFAST, gaps."""
        while True:
            try:
                for framing in frames(
                    self._source,
                    position=self.position,
                    end=self._end,
                    max_records=max_records,
                    is_last=self._is_last,
                    prover=self._prove,
                    kafscale=self._kafscale,
                ):
                    leaves = yield from self._in_order_of_offsets(framing, read)
                    if leaves:
                        break
                else:
                    if self._mode == FAILFAST:
                        if self._is_cut and self.position < self._end:
                            raise split_error(self._source, self.position, self._end)
                        return
                    # A stretch ends where a batch ends, so a batch that reaches over its end has a
                    # damaged length.
                    if not self._is_cut or self.position == self._end:
                        return
                    yield self._gap(length_error(self._source, self.position, self._end))
            except KafkaJitError as error:  # of the framing
                if self._mode == FAILFAST:
                    raise
                gap = self._gap(error)
                yield gap
                if not gap.length:  # a segment of KafScale's without even a head
                    return

    def _in_order_of_offsets(
        self, framing: Framing, read: Callable[[Framing], Generator[Part | Gap, None, bool]]
    ) -> Generator[Part | Gap, None, bool]:
        """Read framed batches, but those that do not follow the ones before them."""
        if self._order is None:
            return (yield from read(framing))
        content = self._source.content[: self._end]
        for part, wrong in self._order.parts(framing, content):
            if len(part.batches) and (yield from read(part)):
                return True
            self.position = part.position
            if wrong is not None:
                yield self._gap(wrong.error, wrong.end)
        return False

    def _check_footer(self, check_crcs: bool) -> None:
        if self._kafscale is not None:
            self._kafscale.checks_crc = check_crcs and self._selection.is_everything

    @cached_property
    def _bare_decoder(self) -> Decoder:
        return Decoder(self._source, ColumnMemory(Wanted()))

    def _headers(
        self, framing: Framing, doubtful: Callable[[Batches], Mask] | None
    ) -> Generator[Batches | Gap, None, bool]:
        batches = framing.batches
        bad = self._misleading(framing)
        if doubtful is not None:
            # A batch without room for a header has no checksum. The decoder reports that.
            doubts = doubtful(batches)
            doubted = batches[doubts]
            sound = self._sound(doubted, self._bare_decoder, check_crcs=True)
            bad[doubts] |= ~(sound & doubted.is_whole)
        while True:
            believed = int(np.argmax(bad)) if bad.any() else len(batches)
            is_bad = believed < len(batches)
            self.position = int(batches.position[believed]) if is_bad else framing.position
            asked = batches[:believed]
            if not self._selection.is_everything:
                asked = asked[self._selection.batches(asked)]
            if len(asked):
                yield asked
            if not is_bad:
                return False
            yield self._gap(self._unsound(batches, believed, self._bare_decoder))
            if self.position != int(batches.end[believed]):
                return True
            batches, bad = batches[believed + 1 :], bad[believed + 1 :]

    def _decode(
        self,
        framing: Framing,
        decoder: Decoder,
        check_crcs: bool,
        reads_markers: bool,
        in_slices: bool,
    ) -> Generator[Chunk | Gap, None, bool]:
        """Decode framed batches; return whether the log goes on elsewhere than behind them."""
        batches = framing.batches
        # Whether all batches are asked for, and their checksums tell all that is to be known.
        is_simple = self._mode == FAILFAST or (check_crcs and self._prover is None)
        if is_simple and self._selection.is_everything:
            while (chunk := decoder.decode_in_one_pass(batches, check_crcs=check_crcs)) is not None:
                done = len(chunk.batches)
                if reads_markers:
                    chunk = without_bad_markers(chunk)
                if len(chunk.batches):
                    self.position = int(chunk.batches.end[-1])
                    yield chunk
                batches = batches[len(chunk.batches) :]
                if len(chunk.batches) < done:
                    break
            if not len(batches):
                self.position = framing.position
                return False
        misleading = np.zeros(len(batches), dtype=np.bool_)
        errors: dict[int, KafkaJitError] = {}  # of markers
        if not self._selection.is_everything:
            misleading = self._misleading(framing, check_crcs)
            asked = self._selection.batches(batches) | misleading
            if check_crcs and self._selection.committed:
                disguised, errors = self._disguised(batches, asked, decoder)
                asked |= disguised
            if check_crcs and self._selection.judges_rows:
                asked |= self._hidden(framing, asked, decoder)
            batches, misleading = batches[asked], misleading[asked]
        sound = self._sound(batches, decoder, check_crcs) & ~misleading
        sound &= ~np.isin(batches.position, [*errors])
        window = len(batches)  # how many to decode at once
        while len(batches):
            self.position = int(batches.position[0])
            error: KafkaJitError | None = None
            good = int(np.argmin(sound)) if not sound.all() else len(batches)
            if good == 0:
                error = errors.get(self.position) or self._unsound(batches, 0, decoder)
            else:
                done = 0
                for chunk in decoder.parts(batches[: min(good, window)], in_slices):
                    if reads_markers:
                        chunk = without_bad_markers(chunk)
                    error = chunk.error
                    if len(chunk.batches):
                        if not chunk.is_part:
                            done += len(chunk.batches)
                            self.position = int(chunk.batches.end[-1])
                        yield chunk
                    if error is not None:
                        break
                window = 2 * max(window, 1)
                batches, sound = batches[done:], sound[done:]
            if error is None:
                continue
            self.position = int(batches.position[0])
            # If the checksum is right, so is the length: nothing inside is a batch of this log.
            is_right = good > 0 or self.position in errors
            is_sure = check_crcs and is_right and bool(batches.is_whole[0])
            yield self._gap(error, int(batches.end[0]) if is_sure else None)
            if self.position != int(batches.end[0]):
                return True
            # Batches decoded behind a bad one are dropped: go on in small steps after it.
            batches, sound, window = batches[1:], sound[1:], 1
        self.position = framing.position
        return False

    def _disguised(
        self, batches: Batches, asked: Mask, decoder: Decoder
    ) -> tuple[Mask, dict[int, KafkaJitError]]:
        """Find damaged batches that look like markers, or like those of aborted transactions.

        Markers with right checksums that cannot be read come with their errors, by position.
        """
        found: Mask = replace(self._selection, committed=False).batches(batches) & ~asked
        hidden = batches[found]
        sound = self._sound(hidden, decoder, check_crcs=True)
        errors = marker_errors(self._source, hidden[sound & hidden.is_control])
        found[found] = ~sound | np.isin(hidden.position, [*errors])
        return found, errors

    def _hidden(self, framing: Framing, asked: Mask, decoder: Decoder) -> Mask:
        """Find damaged batches that are left out by what their headers say."""
        content = self._source.content[: self._end]
        bound = None if self._order is None else self._order.behind
        behind = offset_behind(content, framing.position, bound)

        def sound(batches: Batches) -> Mask:
            return self._sound(batches, decoder, check_crcs=True)

        return hidden_by_damage(self._selection, framing.batches, asked, behind, sound)

    def _sound(self, batches: Batches, decoder: Decoder, check_crcs: bool) -> Mask:
        """Find the batches of a known format and, if asked for, with the right checksum."""
        if not check_crcs:
            lost = self._source.has_lost(batches.position, batches.end)
            return decoder.sound(batches, check_crcs=False) & ~lost
        if self._prover is None or not self._prover.is_needed:
            return decoder.sound(batches, check_crcs=True)
        known = decoder.sound(batches, check_crcs=False)
        return known & (self._is_valid(batches) | ~batches.is_whole)

    def _is_valid(self, batches: Batches) -> Mask:
        """As Batches.is_valid, but the prover checks large batches if it is needed."""
        content, prover = self._source.content[: self._end], self._prover
        is_large = batches.size_in_bytes > _LARGE
        if prover is None or not prover.is_needed or not is_large.any():
            return batches.is_valid(content)
        valid = np.empty(len(batches), dtype=np.bool_)
        valid[~is_large] = batches[~is_large].is_valid(content)
        large = batches[is_large]
        places = zip(large.position.tolist(), large.end.tolist(), strict=True)
        computed = np.array([prover.checksum(*place) for place in places])
        valid[is_large] = computed == large.field("crc")
        return valid

    def _prove(self) -> PrefixChecksums:
        """The one prover for all gaps: its budget of wasted bytes is for the whole log."""
        if self._prover is None:
            self._prover = PrefixChecksums(self._rest(), self._source.data_end)
        return self._prover

    def _unsound(self, batches: Batches, row: int, decoder: Decoder) -> KafkaJitError:
        computed = None
        if self._mode != FAILFAST:
            start, end = int(batches.position[row]), int(batches.end[row])
            prover = self._prove()
            prover.waste(end - start)
            if prover.is_needed and batches.is_whole[row]:
                computed = prover.checksum(start, end)
        return decoder.unsound(batches, row, computed)

    def _misleading(self, framing: Framing, check_crcs: bool = True) -> Mask:
        """Bad batches behind which no other batch begins, unless the mode is FAILFAST.

        Their lengths may be damaged, and may hide selected batches, so the length in a header is
        not enough to step over them.
        """
        batches = framing.batches
        misleading = np.zeros(len(batches), dtype=np.bool_)
        if self._mode != FAILFAST:
            self._source.load(min(framing.position + RECORD_BATCH_OVERHEAD, self._end))
            content = self._source.content[: self._end]
            misleading[-1] = not goes_on(
                content, framing.position, is_cut=self._is_cut, zeros=self._zeros(framing.position)
            )
            misleading[:-1] = ~plausible(content, batches.position[1:])
            doubted = batches[misleading]
            misleading[misleading] = ~(self._is_valid(doubted) if check_crcs else doubted.is_whole)
            headers = np.minimum(batches.position + RECORD_BATCH_OVERHEAD, batches.end)
            misleading |= self._source.has_lost(batches.position, headers)
        return misleading

    def _zeros(self, position: int) -> int | None:
        """The position of a preallocated file's zeros, if there may be some from here on."""
        if self._is_cut or self._source.content[position : position + LOG_OVERHEAD].any():
            return None
        if self._first_zero is None:
            self._first_zero = zeros_at_the_end(self._rest()[: self._source.data_end])
        return self._first_zero

    def _gap(self, error: KafkaJitError, end: int | None = None) -> Gap:
        """Step over the bad bytes at the present position: to `end` if it is known, else search."""
        if self._mode == FAILFAST:
            raise error
        start = self.position
        if self._kafscale is not None:
            self._kafscale.is_damaged = True
        if isinstance(error, NotALogError):
            end = self._end
        if end is None:
            content = self._rest()
            behind = start + LOG_OVERHEAD
            if behind <= self._end:
                behind += int(read_int32(content, start + BATCH_LENGTH_OFFSET))
            zeros = self._zeros(behind) if start < behind <= self._end else None
            end = resync(content, start, is_cut=self._is_cut, zeros=zeros, prover=self._prove())
        self.position = end
        reason = f"{type(error).__name__}: {error.message}"
        return Gap(self._source.path, start, end - start, reason)

    def _rest(self) -> Bytes:
        """The bytes of the stretch: a search does not leave the stretch."""
        self._source.load(self._end)
        return self._source.content[: self._end]
