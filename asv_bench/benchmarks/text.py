"""kafkajit.text: a segment → the lines of kafka-dump-log.sh, in memory."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

from kafkajit.storage.source import Source
from kafkajit.text.log_dump import LogDump, Style

from . import segments
from .reader import exhaust

STYLES = {
    "batches": Style(),
    "--deep-iteration": Style(records=True),
    "--print-data-log": Style(records=True, contents=True),
}


class Text:
    """The whole text of a segment, by what is printed and size of value."""

    params = [list(STYLES), segments.VALUE_SIZES]
    param_names = ["style", "value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, style: str, value_size: int) -> None:
        self.path = segments.small(value_size).path()
        self.time_log_dump(style, value_size)

    def time_log_dump(self, style: str, value_size: int) -> None:
        exhaust(LogDump(Source(self.path), STYLES[style]).text())
