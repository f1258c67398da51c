"""How records become batches, as a caller says it: the options of encode_batches, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from kafkajit.format.compression import COMPRESSION_IDS
from kafkajit.format.compressor import check_level
from kafkajit.format.limits import MAX_INT32, MAX_INT64, MIN_INT64
from kafkajit.records.control_records import CONTROL_TYPES

# Columns that say which batch a record is from.
BATCH_NAMES = ("baseOffset", "position")

_RANGES = {
    "compression_level": (-MAX_INT32 - 1, MAX_INT32),  # what a codec has: check_level
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
class BatchOptions:
    """How records become batches, and what is said of every batch; see `encode_batches`."""

    compression_type: str | None = None
    compression_level: int | None = None
    batch_size: int | None = None
    batch_records: int | None = None
    base_offset: int = 0
    timestamp: int | None = None
    timestamp_type: int | None = None
    partition_leader_epoch: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    is_transactional: bool | None = None
    control_type: str | None = None
    coordinator_epoch: int | None = None
    delete_horizon_ms: int | None = None
    magic: int | None = None

    @classmethod
    def named(cls, given: dict[str, Any]) -> BatchOptions:
        """Those that a caller named.

        >>> BatchOptions.named({"batch_size": 1000}).batch_size
        1000
        """
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                raise TypeError(f"there is no option {name}: there are {', '.join(names)}")
        return cls(**given)

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            number = getattr(self, name)
            if number is not None or name == "base_offset":  # which is 0 where nobody says it
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
    def of(cls, texts: Mapping[str, str]) -> BatchOptions:
        """Options that come as text, in the spelling of columns: compressionType and the like.

        >>> BatchOptions.of({"compressionType": "zstd", "baseOffset": "42"}).base_offset
        42
        """
        known = {_camel(field.name).lower(): field for field in fields(cls)}
        options: dict[str, Any] = {}
        for name, text in texts.items():
            field = known.get(name.lower())
            if field is None:
                names = ", ".join(_camel(field.name) for field in fields(cls))
                raise ValueError(f"unknown option {name!r}; there are: {names}")
            parsed = options[field.name] = _parsed(name, text, str(field.type))
            if field.name in _RANGES:
                _check_number(name, parsed, *_RANGES[field.name])
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


def _parsed(name: str, text: str, kind: str) -> int | bool | str:
    if kind.startswith("str"):
        return text
    if kind.startswith("bool"):
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{name} is true or false, not {text!r}")
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} is a number, not {text!r}") from None


def _check_number(name: str, number: Any, least: int, most: int) -> None:
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise TypeError(f"{name} is a whole number, not {number!r}")
    if not least <= int(number) <= most:
        raise ValueError(f"{name} is from {least} to {most}, not {number}")
