"""Frame a log from a position to its end, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkajit.format.kafscale import FOOTER, HEAD
from kafkajit.format.layout import BATCH_LENGTH_OFFSET, LOG_OVERHEAD
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.records.batches import Framing, frame, framing_error
from kafkajit.records.decode import CHUNK_BYTES
from kafkajit.storage.source import Source
from kafkajit.walk.kafscale import KafscaleSegment, is_kafscale
from kafkajit.walk.resync import PrefixChecksums
from kafkajit.walk.tail import begin_error, tail_error


def frames(
    source: Source,
    *,
    position: int = 0,
    end: int | None = None,
    max_records: int = 2**62,
    is_last: bool | None = None,
    prover: Callable[[], PrefixChecksums] | None = None,
    kafscale: KafscaleSegment | None = None,
) -> Iterator[Framing]:
    """Yield runs of batches of about a chunk each, to the end of the log.

    A log may end with a batch that was never finished, or with the zeros of a preallocated file, if
    a broker may have left them there (kafkajit/walk/tail.py). Anything else that is not a batch is
    an error. `is_last` is True for a partition's last segment; if it is None and the log does not
    end with a batch, the folder decides. The head and the footer of a KafScale segment are stepped
    over; `kafscale` is what the walk knows of it.
    """
    content = source.content
    end = content.size if end is None else end
    is_whole = end == content.size
    if kafscale is None and is_kafscale(source):
        kafscale = KafscaleSegment(source)
    if kafscale is not None and position == 0:
        if (error := kafscale.head_error()) is not None:
            raise error
        position = HEAD.size
    while True:
        loaded = source.load(min(position + CHUNK_BYTES, end))
        framing = frame(
            content, position, end=min(loaded, end), max_bytes=CHUNK_BYTES, max_records=max_records
        )
        if len(framing.batches):
            if position == 0 and is_whole and (error := begin_error(source)) is not None:
                raise error
            if kafscale is not None:
                kafscale.add(framing)
            yield framing
            position = framing.position
            continue
        error = framing_error(source, framing)
        if error is None and loaded < end:
            # The batch is not all loaded, but its length is: a chunk is larger than a header.
            length = read_int32(content, position + BATCH_LENGTH_OFFSET)
            source.load(min(position + LOG_OVERHEAD + max(int(length), CHUNK_BYTES), end))
            continue
        if is_whole:  # a stretch of a log ends where a batch begins
            is_footer = kafscale is not None and content.size - framing.position == FOOTER.size
            if not is_footer:
                error = tail_error(source, framing.position, error, is_last=is_last, prover=prover)
            if kafscale is not None and (is_footer or error is None):
                error = kafscale.end_error(framing.position)
        if error is not None:
            raise error
        return
