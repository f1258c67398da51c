from __future__ import annotations

from pathlib import Path

import pytest
from producing import rows, write

from kafkajit.places.locations import find_files
from kafkajit.produce.options import OPTIONS, ProduceOptions

PATH = {"path": "/kafka"}


def parsed(**given: str) -> ProduceOptions:
    return ProduceOptions.parse(PATH | given)


@pytest.mark.parametrize(
    "name", ["compression.type", "compressionType", "compressiontype", "COMPRESSION.TYPE"]
)
def test_a_name_is_kafkas_or_its_words_however_spark_spells_it(name: str) -> None:
    assert parsed(**{name: "zstd"}).compression_type == "zstd"


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("topic", "orders", "topic", "orders"),
        ("partitions", "12", "partitions", 12),
        ("compression.type", "uncompressed", "compression_type", "none"),
        ("batch.size", "65536", "batch_size", 65536),
        ("leaderEpoch", "3", "leader_epoch", 3),
        ("keepOffsets", "TRUE", "keep_offsets", True),
        ("topicId", "pUM3BMsVQk2fe-klgEgLLA", "topic_id", "pUM3BMsVQk2fe-klgEgLLA"),
        ("partitionOverwriteMode", "DYNAMIC", "partition_overwrite_mode", "dynamic"),
        ("force", "true", "force", True),
    ],
)
def test_an_option_is_parsed_into_its_attribute(
    name: str, text: str, attribute: str, value: object
) -> None:
    assert getattr(parsed(**{name: text}), attribute) == value


@pytest.mark.parametrize("name", ["segment.bytes", "segmentBytes"])
def test_topic_configs_are_options(name: str) -> None:
    assert parsed(**{name: "1048576"}).config.segment_bytes == 1 << 20


def test_topic_configs_that_concern_no_file_may_come_along() -> None:
    options = parsed(**{"retention.ms": "1000", "min.insync.replicas": "2"})
    assert options.config.retention_ms == 1000


@pytest.mark.parametrize("name", ["compressionLevel", "compression.zstd.level"])
def test_a_codec_has_its_level(name: str) -> None:
    options = parsed(**{"compression.type": "zstd", name: "9", "compression.gzip.level": "1"})
    assert options.encode_options(0).compression_level == 9


@pytest.mark.parametrize("text", ["file:/var/my logs", "file:///var/my logs", "/var/my logs"])
def test_a_path_may_be_a_uri_of_a_local_file(text: str) -> None:
    assert ProduceOptions.parse({"path": text}).path == Path("/var/my logs")


@pytest.mark.parametrize("name", ["with%20space", "a#b", "größe"])
def test_a_uri_is_the_folder_that_a_reader_finds_under_it(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, [[rows(topic=["a"], partition=[0], value=[b"v"])]])
    uri = f"file://{tmp_path / name}"
    assert ProduceOptions.parse({"path": uri}).path == tmp_path / name
    (log,) = (file for file in find_files(uri) if file.name.endswith(".log"))
    assert Path(log.path).parent.parent == tmp_path / name


def test_a_path_is_relative_to_the_drivers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ProduceOptions.parse({"path": "out"}).path == tmp_path / "out"


@pytest.mark.parametrize("text", ["s3://bucket/logs", "hdfs://namenode/logs", "gs://b"])
def test_a_remote_path_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"option path: .* use a local or shared folder, .* copy the log"
    ):
        ProduceOptions.parse({"path": text})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topik": "a"}, "unknown option 'topik': did you mean 'topic'"),
        ({"kind": "batches"}, "unknown option 'kind' for writing: it is an option for reading"),
        ({"zzz": "a"}, "unknown option 'zzz'; there are: path, topic, partitions"),
        ({"topic": "a/b"}, "option topic: Topic name is invalid: 'a/b' contains"),
        ({"topic": ""}, "option topic: Topic name is invalid: the empty string"),
        ({"partitions": "0"}, "option partitions: a number from 1 to 2147483647, not '0'"),
        ({"partitions": "many"}, "option partitions: a number from 1 to 2147483647, not 'many'"),
        ({"compression.type": "zst"}, r"unknown value 'zst' \(did you mean 'zstd'"),
        ({"compressionLevel": "9"}, "option compressionLevel needs a compression.type that has"),
        ({"compressionLevel": "9", "compression.type": "none"}, "option compressionLevel needs a"),
        ({"compression.type": "zstd", "compressionLevel": "99"}, "99"),
        ({"compression.type": "zstd", "compressionLevel": "high"}, "a number, not 'high'"),
        ({"batch.size": "16k"}, "option batch.size: bytes from 1 to 2147483647, not '16k'"),
        ({"keepOffsets": "yes"}, "option keepOffsets: expected true or false, not 'yes'"),
        ({"topicId": "orders"}, "option topicId: a topic's id as kafka-topics.sh"),
        ({"topicId": "A" * 22}, "option topicId: a topic's id"),
        ({"partitionOverwriteMode": "all"}, "unknown value 'all'; there are: static, dynamic"),
        ({"segment.bytes": "1g"}, r"segment.bytes must be a number of bytes, not '1g'"),
        ({"segment.bytes": "3"}, "segment.bytes must be 14 to 2147483647, not 3"),
        ({"path": ""}, "option path: the folder's path is empty"),
    ],
)
def test_an_option_with_a_wrong_value_is_an_error(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProduceOptions.parse(PATH | given)


def test_without_a_path_the_error_shows_how_to_give_one() -> None:
    with pytest.raises(ValueError, match=r"option path is missing: .*\.save\(.* temporary view"):
        ProduceOptions.parse({"topic": "orders"})


def test_every_option_is_documented_and_has_a_field_of_its_own() -> None:
    fields = ProduceOptions.__dataclass_fields__
    for name, option in OPTIONS.items():
        assert option.doc
        assert option.attribute in fields, name
