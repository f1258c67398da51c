"""The codecs by number and by name."""

from __future__ import annotations

from kafkajit.format.codecs import COMPRESSION_IDS, COMPRESSION_TYPES, codec_name


def test_a_codec_has_kafka_s_name() -> None:
    names = ["none", "gzip", "snappy", "lz4", "zstd"]
    assert [codec_name(codec) for codec in range(5)] == names
    assert [COMPRESSION_TYPES[COMPRESSION_IDS[name]] for name in names] == names


def test_a_codec_without_a_name_has_its_number() -> None:
    assert codec_name(6) == "unknown(6)"
