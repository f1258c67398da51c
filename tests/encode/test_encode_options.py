from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

import pyarrow as pa
import pytest

import kafkajit
from kafkajit import encode_batches
from kafkajit.encode import writer
from kafkajit.encode.encode_options import CompressionType, ControlType, EncodeOptions
from kafkajit.encode.writer import Encoder
from kafkajit.format.codecs import COMPRESSION_IDS
from kafkajit.records.control_records import CONTROL_TYPES

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
NUMBERS = {
    "batch_size": (1, MAX_INT32),
    "batch_records": (1, MAX_INT32),
    "base_offset": (0, MAX_INT64),
    "timestamp": (-(2**63), MAX_INT64),
    "timestamp_type": (0, 1),
    "partition_leader_epoch": (-1, MAX_INT32),
    "producer_id": (-1, MAX_INT64),
    "producer_epoch": (-1, 2**15 - 1),
    "base_sequence": (-1, MAX_INT32),
    "coordinator_epoch": (-1, MAX_INT32),
    "delete_horizon_ms": (0, MAX_INT64),
    "magic": (0, 2),
}


def test_every_option_is_checked() -> None:
    others = {"compression_type", "compression_level", "is_transactional", "control_type"}
    assert {field.name for field in fields(EncodeOptions)} == NUMBERS.keys() | others


@pytest.mark.parametrize("function", [encode_batches, kafkajit.iter_encoded_batches])
def test_the_signature_and_the_docstring_have_every_option(function: Callable[..., Any]) -> None:
    spelled = inspect.signature(function).parameters
    given = {
        name: (parameter.annotation, parameter.default)
        for name, parameter in spelled.items()
        if name not in ("records", "batches", "source")
    }
    assert given == {field.name: (field.type, field.default) for field in fields(EncodeOptions)}
    assert all(spelled[name].kind is inspect.Parameter.KEYWORD_ONLY for name in given)
    documented = inspect.getdoc(function) or ""
    assert all(f"\n    {name}: " in documented for name in spelled)


def test_every_option_of_the_signature_reaches_the_batches() -> None:
    given = {name: least for name, (least, _) in NUMBERS.items()} | {
        "magic": 2,
        "compression_type": "gzip",
        "compression_level": 1,
        "is_transactional": True,
        "control_type": "ABORT",
    }
    seen: list[EncodeOptions] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "Encoder", lambda options: seen.append(options) or Encoder(options))
        encode_batches(pa.table({}), **given)
        kafkajit.iter_encoded_batches(pa.table({}), **given)
    assert seen == [EncodeOptions(**given)] * 2


def test_the_names_that_types_know_are_those_of_the_format() -> None:
    assert get_args(CompressionType) == tuple(COMPRESSION_IDS)
    assert get_args(ControlType) == tuple(CONTROL_TYPES.values())


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_out_of_range_is_an_error_that_names_the_option(name: str) -> None:
    least, most = NUMBERS[name]
    for number in (least, most):
        assert getattr(EncodeOptions(**{name: number}), name) == number
    for number in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"^{name} is from {least} to {most}, not {number}$"):
            encode_batches(pa.table({}), **{name: number})
    for wrong in ("1", 1.0, True, b"1"):
        with pytest.raises(TypeError, match=f"^{name} is a whole number, not {wrong!r}$"):
            encode_batches(pa.table({}), **{name: wrong})


def test_a_base_offset_is_a_number() -> None:
    with pytest.raises(TypeError, match=r"^base_offset is a whole number, not None$"):
        encode_batches(pa.table({}), base_offset=None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"linger_ms": 5}, TypeError, r"iter_encoded_batches\(\) got an unexpected keyword"),
        (
            {"compression_type": "brotli"},
            ValueError,
            "unknown compression type 'brotli'; there are:",
        ),
        ({"compression_level": 3}, ValueError, "compression_level needs a compression_type"),
        (
            {"compression_type": "snappy", "compression_level": 1},
            ValueError,
            "snappy has no levels",
        ),
        (
            {"compression_type": "zstd", "compression_level": 23},
            ValueError,
            "zstd has levels from -131072 to 22, not 23",
        ),
        (
            {"compression_type": "gzip", "compression_level": "6"},
            TypeError,
            "compression_level is a whole number, not '6'",
        ),
        ({"control_type": "BEGIN"}, ValueError, "control_type is ABORT, COMMIT, .*, not 'BEGIN'"),
        ({"is_transactional": "yes"}, TypeError, "is_transactional is True or False, not 'yes'"),
    ],
)
def test_an_option_that_is_wrong_is_an_error_before_anything_is_read(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    def records() -> Any:
        raise AssertionError
        yield

    with pytest.raises(error, match=f"^{message}"):
        kafkajit.iter_encoded_batches(records(), **options)


def test_options_that_come_as_text_are_checked_under_the_names_that_they_have_there() -> None:
    given = {"compressionType": "zstd", "BATCHSIZE": "5", "isTransactional": "False"}
    options = EncodeOptions(compression_type="zstd", batch_size=5, is_transactional=False)
    assert EncodeOptions.parse(given) == options
    with pytest.raises(ValueError, match=r"^batchSize is from 1 to 2147483647, not 0$"):
        EncodeOptions.parse({"batchSize": "0"})
    with pytest.raises(ValueError, match=r"^producerId is a number, not 'x'$"):
        EncodeOptions.parse({"producerId": "x"})
    with pytest.raises(ValueError, match=r"^isTransactional is true or false, not '1'$"):
        EncodeOptions.parse({"isTransactional": "1"})
    with pytest.raises(ValueError, match=r"^unknown option 'codec'; there are: compressionType, c"):
        EncodeOptions.parse({"codec": "zstd"})
