"""The options of encode_batches: how records become batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Literal

from kafkajit.format.codecs import COMPRESSION_IDS
from kafkajit.format.compressor import check_level
from kafkajit.format.limits import MAX_INT32, MAX_INT64, MIN_INT64
from kafkajit.records.control_records import CONTROL_TYPES

# Columns that identify the batch that a record comes from.
BATCH_NAMES = ("baseOffset", "position")

CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]
ControlType = Literal[
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
]

_RANGES = {
    "compression_level": (-MAX_INT32 - 1, MAX_INT32),  # check_level knows the codec's own range
    "batch_size": (1, MAX_INT32),
    "batch_records": (1, MAX_INT32),
    "base_offset": (0, MAX_INT64),
    "timestamp": (MIN_INT64, MAX_INT64),
    "timestamp_type": (0, 1),
    "partition_leader_epoch": (-1, MAX_INT32),
    "producer_id": (-1, MAX_INT64),
    "producer_epoch": (-1, 2**15 - 1),
    "base_sequence": (-1, MAX_INT32),
    "coordinator_epoch": (-1, MAX_INT32),
    "delete_horizon_ms": (0, MAX_INT64),
    "magic": (0, 2),
}


@dataclass(frozen=True)
class EncodeOptions:
    """The sizes and the codec of batches, and the header fields of each; see `encode_batches`."""

    compression_type: CompressionType | None = None
    compression_level: int | None = None
    batch_size: int | None = None
    batch_records: int | None = None
    base_offset: int = 0
    timestamp: int | None = None
    timestamp_type: Literal[0, 1] | None = None
    partition_leader_epoch: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    is_transactional: bool | None = None
    control_type: ControlType | None = None
    coordinator_epoch: int | None = None
    delete_horizon_ms: int | None = None
    magic: Literal[0, 1, 2] | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            number = getattr(self, name)
            if number is not None or name == "base_offset":  # which has a default of 0
                _check_number(name, number, least, most)
        if self.is_transactional not in (None, False, True):
            raise TypeError(f"is_transactional is True or False, not {self.is_transactional!r}")
        types = CONTROL_TYPES.values()
        if self.control_type is not None and self.control_type not in types:
            raise ValueError(f"control_type is {', '.join(types)}, not {self.control_type!r}")
        if self.compression_type is not None and self.compression_type not in COMPRESSION_IDS:
            raise ValueError(
                f"unknown compression type {self.compression_type!r}; there are: "
                + ", ".join(COMPRESSION_IDS)
            )
        if self.compression_level is not None:
            if self.codec is None:
                raise ValueError("compression_level needs a compression_type")
            check_level(self.codec, self.compression_level)

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> EncodeOptions:
        """Parse options given as text, with names spelled like columns: compressionType.

        >>> EncodeOptions.parse({"compressionType": "zstd", "baseOffset": "42"}).base_offset
        42
        """
        names = {_camel(field.name).lower(): field.name for field in fields(cls)}
        options: dict[str, Any] = {}
        for given, text in texts.items():
            name = names.get(given.lower())
            if name is None:
                every = ", ".join(map(_camel, names.values()))
                raise ValueError(f"unknown option {given!r}; there are: {every}")
            parsed = options[name] = _parsed(given, text, name)
            if name in _RANGES:
                _check_number(given, parsed, *_RANGES[name])
        return cls(**options)

    @property
    def codec(self) -> int | None:
        return None if self.compression_type is None else COMPRESSION_IDS[self.compression_type]

    def keeps_batches(self, names: list[str]) -> bool:
        """Whether records of these columns stay in the batches that they name."""
        return self.batch_size is None and any(name in names for name in BATCH_NAMES)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _parsed(given: str, text: str, name: str) -> int | bool | str:
    if name in ("compression_type", "control_type"):
        return text
    if name == "is_transactional":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{given} is true or false, not {text!r}")
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{given} is a number, not {text!r}") from None


def _check_number(name: str, number: Any, least: int, most: int) -> None:
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise TypeError(f"{name} is a whole number, not {number!r}")
    if not least <= int(number) <= most:
        raise ValueError(f"{name} is from {least} to {most}, not {number}")
