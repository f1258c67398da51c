"""Exports into moto's S3 server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from exporting import append, records_in
from moto.server import ThreadedMotoServer

import kafkajit


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    place = f"{host}:{port}"
    client = boto3.client("s3", endpoint_url=f"http://{place}", region_name="us-east-1")
    client.create_bucket(Bucket="lake")
    yield f"s3://lake/kafka?scheme=http&endpoint_override={place}&region=us-east-1"
    server.stop()


def offsets(bucket: str) -> dict[str, list[int]]:
    """The offsets in each file of the bucket."""
    uri, _, query = bucket.partition("?")
    filesystem, path = pyarrow.fs.FileSystem.from_uri(f"{uri}?{query}")
    files = filesystem.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
    return {
        file.base_name: pq.read_table(file.path, filesystem=filesystem, columns=["offset"])[
            "offset"
        ].to_pylist()
        for file in files
        if file.base_name.endswith(".parquet")
    }


def test_a_bucket_gets_whole_files_and_a_later_run_adds_to_them(
    bucket: str, tmp_path: Path
) -> None:
    append(tmp_path / "logs" / "orders-0", range(100))
    kafkajit.export(tmp_path / "logs", bucket, to="parquet")
    append(tmp_path / "logs" / "orders-0", range(100, 120))
    # A run that died between its file and its journal left this, with fewer records.
    kafkajit.export(tmp_path / "logs", tmp_path / "a.parquet", ending_offsets={"orders": {"0": 7}})
    uri, _, query = bucket.partition("?")
    filesystem, path = pyarrow.fs.FileSystem.from_uri(f"{uri}?{query}")
    with filesystem.open_output_stream(f"{path}/orders-0-{101:020}.parquet") as file:
        file.write((tmp_path / "a.parquet").read_bytes())
    kafkajit.export(tmp_path / "logs", bucket, to="parquet")
    assert offsets(bucket) == {
        f"orders-0-{0:020}.parquet": list(range(100)),
        f"orders-0-{100:020}.parquet": list(range(100, 120)),
    }
    kafkajit.import_files(bucket, tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(tmp_path / "logs")
