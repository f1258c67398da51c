"""Logs in an object store: moto's S3 server on this machine, the corpus in a bucket of it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import data
import failing_proxy
import partitions
import pyarrow as pa
import pytest
from corpus import DATA
from failing_proxy import (
    BAD_KEY,
    DENIED,
    EXPIRED,
    RESET,
    SLOW_DOWN,
    TOO_MANY,
    TRUNCATED,
    UNAUTHORIZED,
    FailingProxy,
    Fault,
)
from kafscale_buckets import write_partition
from moto.server import ThreadedMotoServer
from scanning import (
    batches_by_segment,
    copied,
    logs_of,
    offsets_of,
    options_of,
    plan_of,
    read_in_small_pieces,
    read_rows,
    read_table,
    records_by_segment,
    stretches_of,
)
from streaming import append, started
from typed_logs import confluent, schema_record, write_registry, write_values

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, write_segment
from kafkajit.places.locations import find_files, stored_file
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.typed_table import with_types
from kafkajit.storage.remote_store import RemoteStore

KEY, SECRET = "AKIAEXAMPLE", "wJalr/XUtn+FEMI"
COMMITTED: dict[str, Any] = {"isolationLevel": "read_committed"}
FOLDERS = {
    folder: DATA / "v2" / folder
    for folder in (
        "compacted-0",
        "segments-0",
        "transactions-0",
        "transactions-open-0",
        "transactions-segments-0",
        "zstd-0",
    )
}
by_folder = pytest.mark.parametrize("folder", FOLDERS)
HEX = "0123456789abcdef0123456789abcdef"


class Store:
    """A running server with a bucket of logs."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._client = boto3.client(
            "s3",
            endpoint_url=f"http://{endpoint}",
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )
        self._client.create_bucket(Bucket="logs")

    def put(self, key: str, content: bytes, **more: str) -> None:
        self._client.put_object(Bucket="logs", Key=key, Body=content, **more)

    def put_folder(self, folder: Path, key: str) -> None:
        for path in sorted(folder.iterdir()):
            self.put(f"{key}/{path.name}", path.read_bytes())

    def uri(self, key: str = "", user: str = "") -> str:
        return f"s3://{user}logs/{key}?endpoint_override={self.endpoint}&scheme=http"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            filled = Store(f"{host}:{port}")
            for folder in FOLDERS.values():
                without_goldens = copied(folder, tmp_path_factory.mktemp("corpus"))
                filled.put_folder(without_goldens, f"root/{folder.name}")
            log = (FOLDERS["zstd-0"] / "00000000000000000000.log").read_bytes()
            filled.put("root/meta.properties", b"version=1\n")
            filled.put(f"root/gone-0.{HEX}-delete/00000000000000000000.log", log)
            yield filled
        finally:
            server.stop()


@by_folder
def test_a_folders_rows_are_those_of_the_local_files(store: Store, folder: str) -> None:
    location = store.uri(f"root/{folder}")
    records = read_table(location, maxPartitionBytes=500)
    assert records.equals(records_by_segment(FOLDERS[folder]))
    expected = batches_by_segment(FOLDERS[folder], f"s3://logs/root/{folder}")
    assert read_table(location, kind="batches").equals(expected)
    assert read_table(location, kind="corruption").num_rows == 0


@by_folder
def test_a_consumers_rows_are_those_of_the_local_files(store: Store, folder: str) -> None:
    expected = read_table(FOLDERS[folder], **COMMITTED)
    committed = read_table(store.uri(f"root/{folder}"), maxPartitionBytes=500, **COMMITTED)
    assert committed.equals(expected)


def test_a_range_may_be_smaller_than_a_batch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_small_pieces(monkeypatch)
    table = read_table(store.uri("root/zstd-0"))
    assert table.equals(records_by_segment(FOLDERS["zstd-0"]))


@pytest.mark.parametrize("schemas", ["auto", "folder"])
def test_values_in_the_bucket_have_types(store: Store, schemas: str, tmp_path: Path) -> None:
    registered = [schema_record("orders-value", 1, 7, '"string"')]
    write_registry(tmp_path / "_schemas-0", registered)
    write_values(tmp_path / "orders-0", confluent(7, [b"\x02a"]))
    for folder in tmp_path.iterdir():
        store.put_folder(folder, f"typed-{schemas}/{folder.name}")
    where = store.uri(f"typed-{schemas}/_schemas-0") if schemas == "folder" else schemas
    options = with_types(options_of(store.uri(f"typed-{schemas}/orders-0"), schemas=where))
    assert options.typed is not None
    assert options.typed.readers.keys() == {"value"}


def test_tiered_segments_are_read_in_the_bucket(store: Store) -> None:
    tier = data.objects() / "aiven-compressed-encrypted" / "remote"
    for path in sorted(tier.rglob("*")):
        if path.is_file():
            store.put(f"tier/{path.relative_to(tier)}", path.read_bytes())
    (key,) = (data.objects() / "keys").rglob("first.private.pem")
    options = {"encryption.key.pairs.first.private.key.file": key, **COMMITTED}
    expected = read_table(tier, **options)
    assert read_table(store.uri("tier"), **options).equals(expected)
    assert expected.num_rows > 100


def test_kafscales_segments_are_found_in_the_bucket(store: Store, tmp_path: Path) -> None:
    for name in ("default/orders/0", "default/payments/11"):
        store.put_folder(write_partition(tmp_path / name), f"kafscale/{name}")
    expected = read_table(tmp_path)
    assert expected.num_rows == 80
    for key in ("kafscale", "kafscale/default", "kafscale/*/*/*"):
        assert read_table(store.uri(key)).equals(expected)
    uri = store.uri("kafscale/default/orders/0/segment-00000000000000000020.kfs")
    assert kafkajit.read_records(uri).num_rows == 20


def test_tiered_segments_in_a_bucket_are_a_stream(store: Store, tmp_path: Path) -> None:
    for base in (0, 10, 20):
        append(tmp_path / "logs" / "orders-0", partitions.data(base, 10), base_offset=base)
    segments = tmp_path / f"orders-{TOPIC_ID}" / "0"

    def copy(base: int) -> None:
        write_segment(segments, base, partitions.data(base, 10), end_offset=base + 9)
        for path in segments.glob(f"{base:020}*"):
            store.put(f"stream/{path.relative_to(tmp_path)}", path.read_bytes())

    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        started(store.uri("stream"), tmp_path / "logs")
    copy(0)
    both = started(store.uri("stream"), tmp_path / "logs")
    alone = started(store.uri("stream"))
    copy(10)
    for base in (0, 10):
        (tmp_path / "logs" / "orders-0" / partitions.log_name(base)).unlink()
    assert both.offsets(records=15) == list(range(10))
    assert both.restart().offsets() == list(range(10, 30))
    assert alone.offsets() == list(range(20))


def test_a_root_is_all_of_its_partitions(store: Store) -> None:
    expected = pa.concat_tables(map(records_by_segment, FOLDERS.values()))
    for root in ("root", "root/", "root/*-0"):
        assert read_table(store.uri(root)).equals(expected)


@pytest.mark.parametrize(
    ("glob", "folders"),
    [
        (
            "root/transactions*-0",
            ["transactions-0", "transactions-open-0", "transactions-segments-0"],
        ),
        ("root/{zstd,compacted}-?", ["compacted-0", "zstd-0"]),
        ("r*t/[st]*-segments-0/*.log", ["transactions-segments-0"]),
        ("root/zstd-0/00000000000000000000.log", ["zstd-0"]),
        (f"root/gone-0.{HEX}-delete", ["gone-0"]),
        ("root/*-delete", ["gone-0"]),
    ],
)
def test_globs_and_files_are_found(store: Store, glob: str, folders: list[str]) -> None:
    rows = read_rows(store.uri(glob), columns=["topic", "partition"])
    topics = [folder.rpartition("-")[0] for folder in folders]
    assert sorted({(row["topic"], row["partition"]) for row in rows}) == [
        (topic, 0) for topic in topics
    ]


def test_files_lists_everything_except_unfinished_uploads(store: Store) -> None:
    rows = read_rows(store.uri("root"), kind="files")
    names = {
        f"s3://logs/root/{folder}/{path.name}"
        for folder in FOLDERS
        for path in FOLDERS[folder].iterdir()
        if path.suffix not in (".out", ".err", ".exit", ".sha256")
    }
    assert {row["path"] for row in rows} == names | {"s3://logs/root/meta.properties"}
    by_path = {row["path"]: row for row in rows}
    log = FOLDERS["segments-0"] / "00000000000000000048.log"
    row = by_path[f"s3://logs/root/segments-0/{log.name}"]
    assert row.pop("modificationTime") > 1_600_000_000_000_000
    assert row == {
        "topic": "segments",
        "partition": 0,
        "path": f"s3://logs/root/segments-0/{log.name}",
        "baseOffset": 48,
        "suffix": ".log",
        "length": log.stat().st_size,
        "topicId": "jUcBo3S7QwGKNZGQ9f6ytw",
    }


def test_the_endpoint_may_come_from_the_environment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{store.endpoint}")
    table = read_table("s3://logs/root/segments-0", maxPartitionBytes=500)
    assert table.equals(records_by_segment(FOLDERS["segments-0"]))


def test_the_endpoint_in_a_path_may_have_its_scheme(store: Store) -> None:
    uri = f"s3://logs/root/segments-0?endpoint_override=http://{store.endpoint}"
    assert len(offsets_of(uri)) == records_by_segment(FOLDERS["segments-0"]).num_rows


@pytest.mark.parametrize("name", ["with space", "100%", "%20", "größe", "a+b&c=d", "a:b@c#1"])
def test_a_key_is_read_as_it_is_written(store: Store, name: str) -> None:
    log = (FOLDERS["zstd-0"] / "00000000000000000000.log").read_bytes()
    key = f"odd/{name}/orders-0"
    store.put(f"{key}/00000000000000000000.log", log)
    (file,) = find_files(store.uri(key))
    assert file.path == f"s3://logs/{key}/00000000000000000000.log"
    assert file.read() == log
    assert len(offsets_of(store.uri(key))) == 86
    assert len(offsets_of(store.uri(f"odd/{name}/*/*.log"))) == 86


def test_an_index_splits_and_a_wrong_one_is_reported(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    folder = FOLDERS["segments-0"]
    log = logs_of(folder)[0]
    size = log.stat().st_size
    assert len(stretches_of(plan_of(store.uri("root/segments-0"), maxPartitionBytes=300))) >= 16
    assert not caplog.records
    for case, position in enumerate((size - 1, size, size + 1, 2**31 - 1, 7)):
        key = f"wrong/{case}/segments-0"
        store.put(f"{key}/{log.name}", log.read_bytes())
        store.put(f"{key}/{log.stem}.index", (5).to_bytes(4) + position.to_bytes(4))
        caplog.clear()
        rows = read_table(store.uri(key), maxPartitionBytes=300)
        assert rows.equals(records_by_segment(folder).slice(0, 48))
        if size <= position:  # what was appended since the log was listed is indexed, too
            assert not caplog.records
            continue
        (warning,) = caplog.records
        assert warning.levelno == logging.WARNING
        assert f"names position {position} for offset 5, where no sound batch" in caplog.text
        assert f"{key}/{log.stem}.index: the segment is split without it" in caplog.text


def test_segments_dropped_by_name_are_not_downloaded(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "werkzeug")
    asked = [Predicate("topic", "=", "segments")]
    since = '{"segments": {"0": 150}}'
    found = offsets_of(store.uri("root"), predicates=asked, startingOffsets=since)
    assert found == list(range(150, 192))
    downloaded = re.findall(r"GET /logs/(\S+)", caplog.text)
    assert downloaded == ["root/segments-0/00000000000000000144.log"]


def test_a_transaction_may_end_in_an_unselected_segment(store: Store) -> None:
    folder = FOLDERS["transactions-segments-0"]
    expected = [offset for offset in offsets_of(folder, **COMMITTED) if offset < 3]
    log = store.uri("root/transactions-segments-0/00000000000000000000.log")
    assert offsets_of(log, **COMMITTED) == expected == [0, 1]


def test_a_damaged_transaction_index_is_a_named_error(store: Store) -> None:
    folder = FOLDERS["transactions-0"]
    for path in (folder / "00000000000000000000.log", folder / "00000000000000000000.txnindex"):
        content = path.read_bytes()
        store.put(
            f"cut/{folder.name}/{path.name}", content[:-1] if ".txn" in path.name else content
        )
    with pytest.raises(
        kafkajit.CorruptIndexError, match="of 101 bytes is not made of entries"
    ) as e:
        read_rows(store.uri(f"cut/{folder.name}"), **COMMITTED)
    assert e.value.path == "s3://logs/cut/transactions-0/00000000000000000000.txnindex"


def test_a_single_file_can_be_opened(store: Store) -> None:
    source = stored_file(store.uri("root/zstd-0/00000000000000000000.log")).open()
    assert source.path == "s3://logs/root/zstd-0/00000000000000000000.log"
    assert source.load(10**9) == source.content.size
    assert kafkajit.read_records(source.content).num_rows == 86
    with pytest.raises(IsADirectoryError, match=r"^s3://logs/root/zstd-0 is a fol"):
        stored_file(store.uri("root/zstd-0"))


# Secrets: as they stand in a URI they are used, and never shown.


def with_secret(store: Store, key: str) -> str:
    return store.uri(key, f"{KEY}:{SECRET}@")


def test_a_secret_in_the_uri_reaches_the_store_and_no_row(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkajit")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    location = with_secret(store, "root/zstd-0")
    assert read_table(location).equals(records_by_segment(FOLDERS["zstd-0"]))
    for kind in ("batches", "files"):
        paths = {row["path"] for row in read_rows(location, kind=kind)}
        assert all(path.startswith("s3://logs/root/zstd-0/") for path in paths)
    filesystem = stored_file(with_secret(store, "root/meta.properties")).filesystem
    assert isinstance(filesystem, RemoteStore)
    assert filesystem.filesystem.__reduce__()[1][0]["secret_key"] == SECRET
    assert "s3://logs/root/zstd-0: 1 of 1 segments" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ("none-0", FileNotFoundError, "^there is nothing at s3://logs/none-0$"),
        ("root/none-*", FileNotFoundError, r"^nothing matches s3://logs/root/none-\*$"),
        ("root/zstd-0/*.index", FileNotFoundError, r"^no segments .* at s3://logs/root/zstd-0/\*"),
        ("bad/orders-0", kafkajit.CorruptRecordError, "in s3://logs/bad/orders-0/0{20}.log$"),
    ],
)
def test_no_error_shows_a_secret(
    store: Store, key: str, error: type[Exception], message: str
) -> None:
    store.put("bad/orders-0/00000000000000000000.log", kt.broken("wrong crc"))
    with pytest.raises(error, match=message) as caught:
        read_rows(with_secret(store, key))
    assert SECRET not in repr(caught.value)
    assert KEY not in str(caught.value)


def test_a_missing_bucket_is_an_error(store: Store) -> None:
    location = with_secret(store, "orders-0").replace("@logs/", "@nowhere/")
    with pytest.raises(OSError, match="nowhere") as caught:
        read_rows(location)
    assert SECRET not in str(caught.value)


def test_dump_log_and_readers_take_uris(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    from kafkajit.cli import main

    folder = FOLDERS["segments-0"]
    uri = store.uri("root/segments-0")
    assert main(["dump-log", "--print-data-log", uri]) == 0
    remote = capfd.readouterr().out
    assert main(["dump-log", "--print-data-log", str(folder)]) == 0
    local = capfd.readouterr().out
    assert remote == local.replace(f"Dumping {folder}", "Dumping s3://logs/root/segments-0")
    log = store.uri(f"root/segments-0/{0:020}.log")
    for binary_view in (False, True):
        table = kafkajit.read_records(log, binary_view=binary_view, columns=["offset", "value"])
        there = kafkajit.read_records(folder / f"{0:020}.log", columns=["offset", "value"])
        assert table.to_pylist() == there.to_pylist()


# A busy, slow or broken store.


@pytest.fixture
def proxy(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingProxy]:
    monkeypatch.setattr("kafkajit.storage.remote_store._PAUSES", (0.01, 0.02, 0.04))
    with failing_proxy.run(store.endpoint) as running:
        yield running


def uri_of(proxy: FailingProxy, key: str, user: str = "") -> str:
    return f"s3://{user}logs/{key}?endpoint_override={proxy.address}&scheme=http"


@pytest.mark.parametrize("only", ["list-type", ".log"])
@pytest.mark.parametrize(
    "fault", [SLOW_DOWN, TOO_MANY, RESET, TRUNCATED], ids=["503", "429", "reset", "truncated"]
)
def test_a_store_that_fails_for_a_while_gives_all_rows(
    fault: Fault, only: str, proxy: FailingProxy
) -> None:
    location = uri_of(proxy, "root/segments-0")
    proxy.only, proxy.faults = only, [fault] * 3
    rows = read_table(location, maxPartitionBytes=500)
    assert proxy.faults == []
    assert rows.equals(records_by_segment(FOLDERS["segments-0"]))


def test_repeated_requests_are_counted_and_reported_once(
    proxy: FailingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkajit")
    proxy.only, proxy.faults = "list-type", [TOO_MANY] * 3
    read_table(uri_of(proxy, "root"))
    messages = [record.getMessage() for record in caplog.records]
    (warning,) = [text for text in messages if "sent again" in text]
    assert re.fullmatch(
        r"s3://logs/root.*: requests are sent again, after \d\.\d s: .*429.*", warning
    )
    (listed,) = [text for text in messages if "listed" in text]
    assert re.fullmatch(r"s3://logs/root: listed \d+ files in \d+ requests, .*", listed)
    assert listed.endswith("0 bytes, 3 requests repeated")


def test_a_store_that_stays_busy_is_an_error(proxy: FailingProxy) -> None:
    proxy.only, proxy.fault = "list-type", TOO_MANY
    with pytest.raises(
        OSError, match=r"^s3://logs/root.* cannot be read, after 4 tries: try again"
    ):
        read_table(uri_of(proxy, "root"))
    assert len(proxy.listings()) == 4


@pytest.mark.parametrize("fault", [DENIED, BAD_KEY, UNAUTHORIZED, EXPIRED])
@pytest.mark.parametrize("only", ["list-type", ".log"])
def test_a_refusal_names_the_place_and_what_to_do(
    only: str, fault: Fault, proxy: FailingProxy, capfd: pytest.CaptureFixture[str]
) -> None:
    from kafkajit.cli import main

    proxy.only, proxy.fault = only, fault
    location = uri_of(proxy, "root/segments-0", f"{KEY}:{SECRET}@")
    with pytest.raises(PermissionError, match=r"^access to s3://logs/root/segments-0") as caught:
        read_table(location)
    assert "is refused: check the credentials" in str(caught.value)
    assert SECRET not in str(caught.value)
    # A refusal does not pass. Small segments are read together, and then the first one alone.
    assert sum(only in line for line in proxy.seen) <= 2
    assert main(["dump-log", location]) != 0
    assert "access to s3://logs/root/segments-0" in capfd.readouterr().err


def test_a_bucket_elsewhere_is_an_error_that_names_the_remedy(proxy: FailingProxy) -> None:
    proxy.fault = (301, "PermanentRedirect", "another endpoint")
    with pytest.raises(OSError, match=r"root lies in another region: add it to the URI, such as"):
        read_table(uri_of(proxy, "root"))


def test_requests_of_a_task_are_counted(
    proxy: FailingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkajit")
    folder = FOLDERS["zstd-0"]
    read_table(uri_of(proxy, "root/zstd-0"))
    (log,) = logs_of(folder)
    (text,) = [text for text in caplog.messages if "read in" in text]
    size = log.stat().st_size
    assert (
        text
        == f"s3://logs/root/zstd-0/{log.name} and 0 other files: read in 2 requests, {size:,} bytes"
    )
    downloads = [line for line in proxy.seen if line.endswith(".log")]
    assert downloads == [f"{verb} /logs/root/zstd-0/{log.name}" for verb in ("HEAD", "GET")]


def test_folders_are_listed_at_once(proxy: FailingProxy) -> None:
    proxy.delay = 0.05
    assert read_table(uri_of(proxy, "root"), kind="files").num_rows > 20
    assert len(proxy.listings()) <= len(FOLDERS) + 3
    assert proxy.at_once >= len(FOLDERS)


# Options in the URI.


def test_an_anonymous_request_has_no_signature(store: Store, proxy: FailingProxy) -> None:
    for path in logs_of(FOLDERS["zstd-0"]):
        store.put(f"public/zstd-0/{path.name}", path.read_bytes(), ACL="public-read")
    location = uri_of(proxy, "public/zstd-0")
    expected = records_by_segment(FOLDERS["zstd-0"])
    assert read_table(f"{location}&anonymous=true").equals(expected)
    assert proxy.users == {""}
    assert read_table(f"{location}&anonymous=false").equals(expected)
    assert proxy.users == {"", KEY}


@pytest.mark.parametrize("section", ["backup", "profile backup"])
def test_a_profile_has_keys_and_an_endpoint(
    section: str, proxy: FailingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "aws"
    file.write_text(
        f"[{section}]\naws_access_key_id = AKIABACKUP\naws_secret_access_key = {SECRET}\n"
        f"region = eu-west-1\nendpoint_url = http://{proxy.address}\n"
    )
    name = "AWS_CONFIG_FILE" if " " in section else "AWS_SHARED_CREDENTIALS_FILE"
    monkeypatch.setenv(name, str(file))
    location = "s3://logs/root/zstd-0?profile=backup&region=us-east-1"
    assert read_table(location).equals(records_by_segment(FOLDERS["zstd-0"]))
    assert proxy.users == {"AKIABACKUP"}
    with pytest.raises(
        ValueError, match=r"^cannot open s3://logs/root: profile 'other' has no acc"
    ):
        find_files("s3://logs/root?profile=other")


def test_the_profile_may_come_from_the_environment(
    proxy: FailingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "aws").write_text(
        f"[backup]\naws_access_key_id = AKIABACKUP\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws"))
    monkeypatch.setenv("AWS_PROFILE", "backup")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    find_files(uri_of(proxy, "root/zstd-0"))
    assert proxy.users == {"AKIABACKUP"}


def test_a_wrong_option_is_named_without_the_secret(store: Store) -> None:
    with pytest.raises(ValueError, match=r"^cannot open s3://logs/root: option anonymous: ") as e:
        find_files(with_secret(store, "root") + "&anonymous=perhaps")
    assert SECRET not in str(e.value)


@pytest.mark.parametrize("ending", ["", "/"])
def test_an_empty_object_with_a_folders_name_does_not_hide_it(ending: str, store: Store) -> None:
    """Some tools leave one for each folder."""
    store.put_folder(FOLDERS["zstd-0"], "marked/zstd-0")
    for key in ("marked", "marked/", "marked/zstd-0", "marked/zstd-0/"):
        store.put(key, b"")
    expected = read_table(store.uri("root/zstd-0")).num_rows
    for key in ("marked", "marked/zstd-0"):
        assert read_table(store.uri(f"{key}{ending}")).num_rows == expected > 0
