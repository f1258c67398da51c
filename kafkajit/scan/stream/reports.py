"""The words of a stream about offsets that are gone: an error, or a warning once."""

from __future__ import annotations

import logging

from kafkajit.errors import KafkaJitError, LeftOutError, OffsetOutOfRangeError
from kafkajit.log.footing import Footing
from kafkajit.places.named import Place
from kafkajit.scan.stream.folders import places_of
from kafkajit.scan.stream.histories import Parting
from kafkajit.scan.stream.options import StreamOptions
from kafkajit.scan.stream.partition import Partition

logger = logging.getLogger("kafkajit")

ON_LOSS = "with failOnDataLoss=false the query goes on with the records that are left"


class Reports:
    """The losses and the waits of a stream."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._said: set[str] = set()

    def loss(self, what: str, path: str, advice: str = ON_LOSS) -> None:
        """Raise an error for a loss, or warn of it if the query goes on.

        Raises:
            OffsetOutOfRangeError: the query is to fail on a loss.
        """
        if self._options.fail_on_data_loss:
            raise OffsetOutOfRangeError(what, path=path, advice=advice)
        self.warn(f"{path}: {what}")

    def parting(self, place: Place, read: int, parting: Parting, partition: Partition) -> None:
        """Report that a log is not the one that was read up to an offset."""
        if not parting.is_loss:
            if parting.offset is None:
                gone = "was not read, and the records that it had are gone"
                logger.warning("%s %s: %s", place, gone, parting.why)
            return
        what = f"{place} was read up to offset {read}, but {parting.why}"
        if parting.is_short:
            goes_on = "as soon as the log has other records, or these again"
        else:
            at = partition.start_offset if parting.offset is None else parting.offset
            goes_on = f"from offset {at} of this log on"
        if not self._options.fail_on_data_loss:
            what += f": the query goes on {goes_on}"
        advice = f"with failOnDataLoss=false the query goes on {goes_on}"
        self.loss(what, partition.listing.folder, advice)

    def gone(self, place: Place, first: int) -> None:
        """Report a partition that is gone, and that was not read to its end."""
        what = f"partition {place} is gone, and with it its offsets from {first} on"
        self.loss(what, places_of(self._options.scan))

    def expired(self, place: Place, first: int, partition: Partition) -> None:
        """Report the offsets from the first unread one on that retention has removed."""
        start = partition.start_offset
        self.loss(
            f"offsets {first} to {start - 1} of {place} are gone: its log now begins at {start}",
            partition.listing.folder,
        )

    def early(self, place: Place, first: int, stood_on: Footing, partition: Partition) -> None:
        """Report offsets before a position that the log lacked when the position was taken."""
        start = partition.start_offset
        if stood_on.log_start is None or start >= min(first, stood_on.log_start):
            return
        self.loss(
            f"offsets {start} to {min(first, stood_on.log_start) - 1} of {place} are in its log, "
            f"which began at offset {stood_on.log_start} when the query read it: they are not read",
            partition.listing.folder,
            "a new query reads them; with failOnDataLoss=false this one goes on without them",
        )

    def hidden(self, place: Place, first: int, last: int, folder: str) -> None:
        """Report offsets that a plan has and that may not be read now, as with other options."""
        self.loss(
            f"offsets {first} to {last} of {place} were planned, and cannot be read now: their "
            "transactions are open, or damage hides them",
            folder,
        )

    def wait(self, what: str) -> None:
        """Raise an error for a partition that cannot be read now, or warn that the query waits.

        Raises:
            LeftOutError: the query is to fail on a loss.
        """
        if self._options.fail_on_data_loss:
            raise LeftOutError(what)
        self.warn(f"{what}; the query waits")

    def warn(self, text: str) -> None:
        """Say something once."""
        if text in self._said:
            return
        self._said.add(text)
        failed = self._options.scan.failed
        if failed is None:
            logger.warning("%s", text)
        else:
            failed(KafkaJitError(text))
