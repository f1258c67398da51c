"""A store that throttles, breaks off and denies: whole files appear, or an error and nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from secrets import token_hex

import boto3
import failing_proxy
import pyarrow.fs
import pytest
from exporting import append, records_in
from failing_proxy import DENIED, RESET, SLOW_DOWN, TOO_MANY, TRUNCATED, FailingProxy, Fault
from moto.server import ThreadedMotoServer

import kafkajit
from kafkajit.scan.export.output_folders import RemoteFolder

LOGS = {"orders-0": 120, "orders-1": 40}
FAULTS: list[Fault] = [SLOW_DOWN, TOO_MANY, RESET, TRUNCATED, DENIED]


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingProxy]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with failing_proxy.run(f"{host}:{port}") as running:
        yield running
    server.stop()


@pytest.fixture
def bucket(proxy: FailingProxy) -> str:
    name = f"lake-{token_hex(4)}"  # moto's servers in one process share their buckets
    client = boto3.client("s3", endpoint_url=f"http://{proxy.address}", region_name="us-east-1")
    client.create_bucket(Bucket=name)
    return f"s3://{name}?scheme=http&endpoint_override={proxy.address}&region=us-east-1"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name, records in LOGS.items():
        append(tmp_path / "logs" / name, range(records))
    return tmp_path / "logs"


def below(bucket: str, name: str) -> str:
    place, _, query = bucket.partition("?")
    return f"{place}/{name}?{query}"


def objects(bucket: str) -> dict[str, bytes]:
    filesystem, path = pyarrow.fs.FileSystem.from_uri(bucket)
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
    return {
        file.path.partition("/")[2]: filesystem.open_input_file(file.path).read()
        for file in found
        if file.type == pyarrow.fs.FileType.File
    }


def files(bucket: str) -> dict[str, bytes]:
    return {name: content for name, content in objects(bucket).items() if "_kafkajit" not in name}


def some_faults(seed: int) -> list[Fault]:
    drawn = random.Random(seed)
    return [drawn.choice(FAULTS) for _ in range(drawn.randint(1, 6))]


@pytest.mark.parametrize("seed", range(4, 8))
def test_an_export_that_meets_faults_is_finished_by_the_next_run(
    seed: int, logs: Path, bucket: str, proxy: FailingProxy, tmp_path: Path
) -> None:
    proxy.only = random.Random(-seed).choice(["PUT", "POST", "HEAD", "GET", "DELETE", ""])
    proxy.faults = some_faults(seed)
    with suppress(OSError, ValueError):
        kafkajit.export(logs, below(bucket, "out"), to="csv", file_size="1k")
    proxy.faults, proxy.only = [], ""
    kafkajit.export(logs, below(bucket, "out"), to="csv", file_size="1k")
    kafkajit.import_files(below(bucket, "out"), tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(logs)


def test_throttled_reads_are_repeated(
    logs: Path, bucket: str, proxy: FailingProxy, tmp_path: Path
) -> None:
    filesystem, top = pyarrow.fs.FileSystem.from_uri(bucket)
    for path in sorted(logs.rglob("*.log")):
        with filesystem.open_output_stream(f"{top}/logs/{path.relative_to(logs)}") as file:
            file.write(path.read_bytes())
    source = below(bucket, "logs")
    before = objects(bucket)
    for number, fault in enumerate([SLOW_DOWN, RESET, TRUNCATED]):
        proxy.only, proxy.faults = "GET", [fault, fault]
        kafkajit.export(source, tmp_path / f"out-{number}", to="csv")
        proxy.faults = [fault, fault]
        kafkajit.restore(source, tmp_path / f"kafka-{number}").apply()
        proxy.faults = [fault, fault]
        rows = kafkajit.dataset(source).count_rows()
        assert rows == sum(LOGS.values())
        assert records_in(tmp_path / f"kafka-{number}") == records_in(logs)
        kafkajit.import_files(tmp_path / f"out-{number}", tmp_path / f"back-{number}").apply()
        assert records_in(tmp_path / f"back-{number}") == records_in(logs)
    proxy.faults = []
    assert objects(bucket) == before


def test_what_is_denied_is_an_error_and_leaves_nothing(
    logs: Path, bucket: str, proxy: FailingProxy, tmp_path: Path
) -> None:
    proxy.only, proxy.fault = "PUT", DENIED
    with pytest.raises(OSError, match=r"(?i)access.?denied"):
        kafkajit.export(logs, below(bucket, "out"), to="csv")
    assert objects(bucket) == {}
    proxy.fault = None
    kafkajit.export(logs, below(bucket, "out"), to="csv")
    assert len(files(bucket)) == len(LOGS)


@pytest.mark.parametrize("which", range(1, 4))
def test_an_entry_of_a_journal_that_arrives_although_its_request_failed_keeps_its_files(
    which: int, logs: Path, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = RemoteFolder.put, count(1)

    def put(folder: RemoteFolder, name: str, content: bytes) -> None:
        real(folder, name, content)
        if next(calls) == which:
            raise OSError("the connection broke off")

    monkeypatch.setattr(RemoteFolder, "put", put)
    with pytest.raises(OSError, match="broke off"):
        kafkajit.export(logs, below(bucket, "out"), to="csv", file_size="1k")
    kafkajit.export(logs, below(bucket, "out"), to="csv", file_size="1k")
    kafkajit.import_files(below(bucket, "out"), tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(logs)
