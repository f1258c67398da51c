"""Compressed text, levels and dates: what other programs find in exported files."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
import zstandard
from exporting import append, records_in

import kafkajit
import kafkajit.testing as kt

UNPACK = {
    "gzip": gzip.decompress,
    "zstd": lambda content: zstandard.ZstdDecompressor().stream_reader(content).read(),
}
ENDS = {"gzip": ".gz", "zstd": ".zst"}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    append(tmp_path / "logs" / "orders-0", range(500))
    return tmp_path / "logs"


@pytest.mark.parametrize("level", [None, 1, 9])
@pytest.mark.parametrize("codec", UNPACK)
@pytest.mark.parametrize("to", ["csv", "jsonl"])
def test_other_programs_decompress_what_is_written(
    to: str, codec: str, level: int | None, logs: Path, tmp_path: Path
) -> None:
    plain, packed = tmp_path / f"a.{to}", tmp_path / f"a.{to}{ENDS[codec]}"
    kafkajit.export(logs, plain)
    kafkajit.export(logs, packed, level=level)
    ends = {"orders": {"0": 300}}
    for ending_offsets in (ends, None):
        named = {"to": to, "codec": codec, "level": level, "ending_offsets": ending_offsets}
        kafkajit.export(logs, tmp_path / "folder", **named)
    text = UNPACK[codec](packed.read_bytes())
    assert text == plain.read_bytes()
    files = sorted((tmp_path / "folder").glob(f"orders-0-*.{to}{ENDS[codec]}"))
    assert len(files) == 2
    texts = [UNPACK[codec](file.read_bytes()).decode() for file in files]
    if to == "csv":
        rows = [row for part in texts for row in list(csv.reader(io.StringIO(part)))[1:]]
        assert rows == list(csv.reader(io.StringIO(text.decode())))[1:]
    else:
        assert "".join(texts) == text.decode()
        assert [json.loads(line)["offset"] for line in text.splitlines()] == list(range(500))
    kafkajit.import_files(tmp_path / "folder", tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(logs)


@pytest.mark.parametrize(
    ("out", "named", "message"),
    [
        (
            "a.csv.gz",
            {"codec": "zstd"},
            r"a\.csv\.gz is not a name for .*: name the file a\.csv\.zst",
        ),
        ("a.csv.gz", {"codec": "none"}, r"name the file a\.csv$"),
        ("a.jsonl", {"codec": "gzip"}, r"name the file a\.jsonl\.gz"),
        ("a.parquet.gz", {}, "the format of .* is not known"),
        ("a.csv.gz", {"level": 99}, "gzip has levels from 1 to 9, not 99"),
        ("a.parquet", {"level": 99}, "zstd has levels from -131072 to 22, not 99"),
        ("a.avro", {"codec": "deflate", "level": -1}, "deflate has levels from 0 to 9, not -1"),
        ("a.parquet", {"codec": "snappy", "level": 1}, "needs a codec with levels: .*, not snappy"),
        ("a.csv", {"level": 1}, "needs a codec with levels: .*, not none"),
    ],
)
def test_a_codec_or_a_level_that_does_not_fit_is_refused(
    out: str, named: dict[str, str | int], message: str, logs: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        kafkajit.export(logs, tmp_path / out, **named)  # type: ignore[arg-type]
    assert not list(tmp_path.glob("a*"))


# No timestamp, the least and the most, and those around the years 1 and 9999.
EXTREME = [
    None,
    -(1 << 63) + 1,
    -62_135_596_800_001,
    -62_135_596_800_000,
    -1,
    0,
    253_402_300_799_999,
    253_402_300_800_000,
    (1 << 63) - 1,
]


def extreme_log(folder: Path) -> Path:
    """A log of records with extreme timestamps, in an order that dates would change."""
    with kafkajit.LogWriter(folder) as log:
        for offset, time in enumerate([*EXTREME, *reversed(EXTREME), *EXTREME]):
            record = kt.Record(b"k", b"v%d" % offset)
            if time is None:
                log.append(kt.batch([record], base_offset=offset, base_timestamp=-1))
            else:
                log.append(kt.batch([record], base_offset=offset, base_timestamp=time))
    return folder


@pytest.mark.parametrize("to", ["parquet", "arrow", "csv", "jsonl", "avro"])
@pytest.mark.parametrize("by", [(), ("date",)])
def test_extreme_timestamps_come_back_in_the_same_order(
    by: tuple[str, ...], to: str, tmp_path: Path
) -> None:
    extreme_log(tmp_path / "logs" / "orders-0")
    kafkajit.export(tmp_path / "logs", tmp_path / "files", to=to, partition_by=by)
    kafkajit.import_files(tmp_path / "files", tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(tmp_path / "logs")
