"""The options of a stream: those of a batch, and where and in which steps it reads.

A stream has no end, so it refuses the options that end a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.text_options import Option, boolean
from kafkajit.places.named import Place
from kafkajit.scan.options import (
    EARLIEST,
    LATEST,
    Offsets,
    ScanOptions,
    number_of_bytes,
    offsets_in_json,
)
from kafkajit.state.text_lines import parse_number

KINDS = ("records", "batches")

_STARTING = "startingOffsets"
_REFUSED = {
    "endingOffsets": "a stream has no end; trigger(availableNow=True) reads up to now",
    "endingTimestamp": "a stream has no end; trigger(availableNow=True) reads up to now",
    "layout": "a stream tells brokers' folders from tiered storage by their names; narrow the path "
    "instead",
    "oneTaskPerPartition": "a stream plans the tasks of each micro-batch by their bytes",
    "overlaps": "a stream reads each offset once, as a broker serves it",
    "pathGlobFilter": "a stream follows the segments of a partition; narrow the path instead",
}


class Starting(NamedTuple):
    """The offsets at which partitions begin, and EARLIEST or LATEST for those without one."""

    offsets: Offsets
    otherwise: int = EARLIEST

    def of(self, topic: str, partition: int) -> int:
        """The offset for a partition, EARLIEST or LATEST."""
        return self.offsets.get(topic, {}).get(partition, self.otherwise)


class Limits(NamedTuple):
    """The most that a micro-batch may read."""

    records: int | None = None
    bytes: int | None = None
    files: int | None = None


_FROM_EARLIEST = Starting({})
_UNLIMITED = Limits()


@dataclass(frozen=True)
class StreamOptions:
    """The options of one stream of logs."""

    scan: ScanOptions
    starting: Starting = _FROM_EARLIEST
    limits: Limits = _UNLIMITED
    fail_on_data_loss: bool = True
    topics: tuple[str, ...] = ()  # the only ones that are looked at; all if empty
    waits_for_copies: bool = True  # whether offsets may come that a folder lacks now

    def begins_early(self, place: Place) -> bool:
        """Whether a new query begins to read a partition where its log begins."""
        return self.scan.starting_timestamp is None and self.starting.of(*place) == EARLIEST

    def begins_late(self, place: Place) -> bool:
        """Whether a new query begins behind the first record of a partition."""
        is_timed = self.scan.starting_timestamp is not None
        return is_timed or self.starting.of(*place) != EARLIEST

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> StreamOptions:
        """Parse options as Spark passes them.

        >>> StreamOptions.parse({"path": "/logs", "maxrecordspertrigger": "500"}).limits.records
        500
        >>> StreamOptions.parse({"path": "/logs", "endingOffsets": "latest"})
        Traceback (most recent call last):
        ValueError: option endingOffsets: a stream has no end; trigger(availableNow=True) reads up \
to now
        """
        own: dict[str, Any] = {}
        spelled = {name.lower(): name for name in STREAM_OPTIONS}
        refused = {name.lower(): name for name in _REFUSED}
        for key, text in given.items():
            name = refused.get(key.lower())
            if name is not None:
                raise ValueError(f"option {name}: {_REFUSED[name]}")
            name = spelled.get(key.lower())
            if name is not None:
                option = STREAM_OPTIONS[name]
                try:
                    parsed = option.parse(text)
                except ValueError as error:
                    raise ValueError(f"option {name}: {error}") from None
                if option.attribute == "records" and own.get("records") is not None:
                    parsed = min(parsed, own["records"])
                own[option.attribute] = parsed
        others = {key: text for key, text in given.items() if key.lower() not in spelled}
        scan = ScanOptions.parse(others, STREAM_OPTIONS)
        if scan.kind not in KINDS:
            raise ValueError(
                f"option kind: a stream reads records or batches, not {scan.kind}; read that kind "
                "with spark.read"
            )
        return cls(
            scan,
            own.get("starting", _FROM_EARLIEST),
            Limits(own.get("records"), own.get("bytes"), own.get("files")),
            own.get("fail_on_data_loss", True),
        )


def without_stream_options(given: Mapping[str, str]) -> dict[str, str]:
    """The options that a batch has too: a table's columns do not depend on the others."""
    names = {name.lower() for name in STREAM_OPTIONS} - {_STARTING.lower()}
    kept = {key: text for key, text in given.items() if key.lower() not in names}
    return {
        key: text
        for key, text in kept.items()
        if key.lower() != _STARTING.lower() or not _is_for_streams(text)
    }


def refuse_stream_options(given: Mapping[str, str]) -> None:
    """Raise an error for an option, or a value of one, that a batch does not have.

    >>> refuse_stream_options({"failOnDataLoss": "false"})
    Traceback (most recent call last):
    ValueError: option failOnDataLoss: only spark.readStream has it
    """
    kept = without_stream_options(given)
    names = {name.lower(): name for name in STREAM_OPTIONS}
    for key, text in given.items():
        if key not in kept:
            name = names[key.lower()]
            what = f"begins at {text}" if name == _STARTING else "has it"
            raise ValueError(f"option {name}: only spark.readStream {what}")


def _is_for_streams(text: str) -> bool:
    """Whether startingOffsets begins at the latest offset of a partition."""
    try:
        starting = _starting(text)
    except ValueError:
        return False
    numbers = [number for partitions in starting.offsets.values() for number in partitions.values()]
    return LATEST in (starting.otherwise, *numbers)


def _starting(text: str) -> Starting:
    words = {"earliest": EARLIEST, "latest": LATEST}
    word = text.strip().lower()
    if word in words:
        return Starting({}, words[word])
    form = 'earliest, latest or JSON such as {"orders": {"0": 42, "1": -1}}'
    return Starting(offsets_in_json(text, f"expected {form}, not {text!r}"))


def _count(of: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isascii() or not text.strip().isdigit():
            raise ValueError(f"expected a number of {of}, such as 1000, not {text!r}")
        number = parse_number(text.strip(), 64)
        if not number:
            raise ValueError(f"expected a number of {of} from 1 to {MAX_INT64}, not {text!r}")
        return number

    return parse


STREAM_OPTIONS: dict[str, Option] = {
    _STARTING: Option(
        "starting",
        _starting,
        "earliest, the default, latest, or the first offset to read, by topic and partition, with "
        '-2 for earliest and -1 for latest: {"orders": {"0": 42, "1": -1}}; only a new query looks '
        "at it",
    ),
    "maxRecordsPerTrigger": Option(
        "records", _count("records"), "the most records that a micro-batch reads"
    ),
    "maxOffsetsPerTrigger": Option(
        "records", _count("records"), "the same, as Spark's Kafka source names it"
    ),
    "maxBytesPerTrigger": Option(
        "bytes",
        number_of_bytes(1, MAX_INT64),
        "the most bytes of log that a micro-batch reads, but at least one batch",
    ),
    "maxFilesPerTrigger": Option(
        "files", _count("files"), "the most segments that a micro-batch reads"
    ),
    "failOnDataLoss": Option(
        "fail_on_data_loss",
        boolean,
        "whether the query fails if offsets are gone before it has read them; true by default, "
        "false warns and goes on",
    ),
}
