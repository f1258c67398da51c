"""Exports into moto's S3 server on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any

import boto3
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from exporting import append, records_in
from moto.server import ThreadedMotoServer

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import LockedError, OffsetOutOfRangeError
from kafkajit.scan.export.output import PartitionOutput
from kafkajit.scan.export.output_folders import RemoteFolder


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
    name = f"lake-{token_hex(4)}"  # moto's servers in one process share their buckets
    client.create_bucket(Bucket=name)
    yield f"s3://{name}/kafka?scheme=http&endpoint_override={place}&region=us-east-1"
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
    kafkajit.export(tmp_path / "logs", bucket, to="parquet")
    assert offsets(bucket) == {
        f"orders-0-{0:020}.parquet": list(range(100)),
        f"orders-0-{100:020}.parquet": list(range(100, 120)),
    }
    kafkajit.import_files(bucket, tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(tmp_path / "logs")


def store(bucket: str) -> tuple[pyarrow.fs.FileSystem, str]:
    return pyarrow.fs.FileSystem.from_uri(bucket)


def objects(bucket: str) -> dict[str, bytes]:
    """All objects of the bucket, by their names in the folder of the export."""
    filesystem, path = store(bucket)
    top = path.partition("/")[0]
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(top, recursive=True))
    return {
        file.path: filesystem.open_input_file(file.path).read()
        for file in found
        if file.type == pyarrow.fs.FileType.File
    }


def put(bucket: str, name: str, content: bytes) -> None:
    filesystem, path = store(bucket)
    with filesystem.open_output_stream(f"{path}/{name}") as file:
        file.write(content)


def below(bucket: str, name: str) -> str:
    place, _, query = bucket.partition("?")
    return f"{place}/{name}?{query}"


def test_objects_of_others_stay_whatever_their_names_are(bucket: str, tmp_path: Path) -> None:
    append(tmp_path / "logs" / "orders-0", range(20))
    kafkajit.export(tmp_path / "logs", below(bucket, "monday"), to="parquet")
    for name in (f"orders-0-{0:020}.parquet", f"orders-0-{19:020}.csv", "orders-0.json"):
        put(bucket, f"tuesday/{name}", b"another's")
    put(bucket, "_kafkajit/orders-1.json", b"another's")
    before = objects(bucket)
    assert kafkajit.export(tmp_path / "logs", bucket, to="parquet").records == 20
    after = objects(bucket)
    assert before.items() <= after.items()
    new = {name.partition("kafka/")[2] for name in after.keys() - before.keys()}
    assert {name for name in new if not name.startswith("_kafkajit/orders-0/")} == {
        f"orders-0-{0:020}.parquet"
    }


@pytest.mark.parametrize("is_file", [False, True])
def test_an_object_that_comes_during_an_upload_stays(
    bucket: str, tmp_path: Path, is_file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path / "logs" / "orders-0", range(20))
    name = "all.parquet" if is_file else f"orders-0-{0:020}.parquet"
    writer = pq.ParquetWriter.write_table

    def write(*args: Any, **named: Any) -> None:
        put(bucket, name, b"another's")
        writer(*args, **named)

    place = below(bucket, name) if is_file else bucket
    with monkeypatch.context() as changed:
        changed.setattr(pq.ParquetWriter, "write_table", write)
        with pytest.raises(FileExistsError, match=f"{name} exists"):
            kafkajit.export(tmp_path / "logs", place, to="parquet")
    with pytest.raises(FileExistsError, match=f"{name} exists"):  # and does not call it its own
        kafkajit.export(tmp_path / "logs", place, to="parquet")
    (path,) = (path for path in objects(bucket) if path.endswith(name))
    assert objects(bucket)[path] == b"another's"


def test_an_export_that_has_lost_its_journals_removes_and_overwrites_nothing(
    bucket: str, tmp_path: Path
) -> None:
    append(tmp_path / "logs" / "orders-0", range(20))
    kafkajit.export(tmp_path / "logs", bucket, to="parquet")
    filesystem, path = store(bucket)
    filesystem.delete_dir_contents(f"{path}/_kafkajit")
    append(tmp_path / "logs" / "orders-0", range(20, 25))
    before = objects(bucket)
    with pytest.raises(FileExistsError, match="exists, but no export's journal lists it"):
        kafkajit.export(tmp_path / "logs", bucket, to="parquet")
    assert objects(bucket) == before


class KilledError(BaseException):
    """The run ends here, and its further requests are not sent."""


@pytest.mark.parametrize("by", [(), ("date",)])
def test_a_run_that_ends_at_any_request_loses_and_repeats_nothing(
    by: tuple[str, ...],
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    logs = tmp_path / "logs"
    append(logs / "orders-0", range(120))
    filesystem, path = store(bucket)
    real = {name: getattr(RemoteFolder, name) for name in ("put", "opened", "remove")}
    limit, sent = 0, count()

    def at_last(name: str) -> Any:
        def call(folder: RemoteFolder, *arguments: Any) -> Any:
            if next(sent) >= limit:
                raise KilledError
            return real[name](folder, *arguments)

        return call

    def run() -> None:
        kafkajit.export(logs, bucket, to="parquet", partition_by=by, file_size="1k")

    run()
    whole = {name: content for name, content in objects(bucket).items() if "_kafkajit" not in name}
    assert len(whole) > 1
    for limit in range(0, 100, 1 if request.config.getoption("--thorough") else 4):
        filesystem.delete_dir_contents(path, missing_dir_ok=True)
        put(bucket, "another", b"another's")
        sent = count()
        with monkeypatch.context() as patched, suppress(KilledError):
            for name in real:
                patched.setattr(RemoteFolder, name, at_last(name))
            run()
            break
        run()
        found = objects(bucket)
        assert found.pop(f"{path}/another") == b"another's"
        files = {name: content for name, content in found.items() if "_kafkajit" not in name}
        assert files == whole, limit
    assert limit > 5


@pytest.mark.parametrize("by", [(), ("date",)])
@pytest.mark.parametrize("grows", [False, True])
def test_two_runs_at_once_end_in_one_export_or_in_an_error(
    grows: bool,
    by: tuple[str, ...],
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """The second run begins at each request of the first one."""
    logs = tmp_path / "logs"
    filesystem, path = store(bucket)
    real = {
        name: getattr(RemoteFolder, name)
        for name in ("put", "opened", "content", "entries", "remove")
    }

    def run() -> None:
        kafkajit.export(logs, bucket, to="parquet", partition_by=by, file_size="1k")

    for turn in range(0, 100, 1 if request.config.getoption("--thorough") else 4):
        shutil.rmtree(logs, ignore_errors=True)
        append(logs / "orders-0", range(40))
        filesystem.delete_dir_contents(path, missing_dir_ok=True)
        sent, is_inside = 0, False

        def meanwhile(name: str, turn: int = turn) -> Any:
            def call(folder: RemoteFolder, *arguments: Any) -> Any:
                nonlocal is_inside, sent
                sent += 1
                if not is_inside and sent > turn:
                    is_inside = True
                    if grows:
                        append(logs / "orders-0", range(40, 60))
                    with suppress(LockedError, FileExistsError):
                        run()
                return real[name](folder, *arguments)

            return call

        # The first run listed the log before it grew: it is too short for the second's journal.
        refused = suppress(LockedError, FileExistsError, OffsetOutOfRangeError)
        with monkeypatch.context() as patched, refused:
            for name in real:
                patched.setattr(RemoteFolder, name, meanwhile(name))
            run()
        if not is_inside:
            break
        run()
        found = sorted(offset for some in offsets(bucket).values() for offset in some)
        assert found == list(range(60 if grows else 40)), turn
    assert turn > 5


def test_a_run_that_closes_its_file_after_another_one_says_so(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    append(logs / "orders-0", range(20))
    complete = PartitionOutput.complete

    class Late:
        """A file that another run overtakes before it is closed."""

        def __init__(self, sink: Any) -> None:
            self.sink = sink

        def close(self) -> None:
            monkeypatch.undo()
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
            append(logs / "orders-0", range(20, 60))
            assert kafkajit.export(logs, bucket, to="parquet").records == 60
            self.sink.close()

    def late(output: PartitionOutput, written: str, sink: Any) -> None:
        complete(output, written, Late(sink))  # type: ignore[arg-type]

    monkeypatch.setattr(PartitionOutput, "complete", late)
    name = f"orders-0-{0:020}.parquet"
    with pytest.raises(LockedError, match=f"to a new folder, because .* replaced its file {name}"):
        kafkajit.export(logs, bucket, to="parquet")


def test_a_segment_that_a_bucket_lacks_is_named(bucket: str, tmp_path: Path) -> None:
    filesystem, path = pyarrow.fs.FileSystem.from_uri(bucket)

    def put(base_offset: int, count: int) -> None:
        with filesystem.open_output_stream(f"{path}/orders-0/{base_offset:020}.log") as file:
            file.write(kt.batch([kt.Record(b"k", b"v")] * count, base_offset=base_offset))

    for base_offset in (0, 20):
        put(base_offset, 10)
    source = bucket.replace("/kafka", "/kafka/orders-0")
    (line,) = kafkajit.export(source, tmp_path / "out", to="csv").lost
    assert line.startswith("orders-0: offsets 10 to 19 are missing between")
    put(10, 10)
    assert kafkajit.export(source, tmp_path / "whole", to="csv").lost == []
    put(10, 1)
    folder, name = path.rsplit("/", 1)
    with filesystem.open_output_stream(f"{folder}/{name}/cleaner-offset-checkpoint") as file:
        file.write(b"0\n1\norders 0 20\n")
    assert kafkajit.export(source, tmp_path / "compacted", to="csv").lost == []
