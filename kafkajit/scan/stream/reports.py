"""The words of a stream about offsets that are gone: an error, or a warning once."""

from __future__ import annotations

import logging

from kafkajit.errors import KafkaJitError, OffsetOutOfRangeError
from kafkajit.scan.stream.options import StreamOptions

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
