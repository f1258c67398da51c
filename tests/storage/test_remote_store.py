"""Remote file systems: what tasks get of them, and what becomes of errors that pyarrow raises."""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import ArrowException
from pyarrow.fs import FileInfo, LocalFileSystem, PyFileSystem

from asv_bench.benchmarks.memory_store import MemoryStore
from kafkajit.places.location import Location
from kafkajit.places.uri import secrets_in, uri_of
from kafkajit.storage.remote_store import RemoteSink, RemoteStore


@pytest.mark.parametrize(
    "uri",
    [
        "abfs://account:a2V5@container/kafka",
        "abfs://container@account.dfs.core.windows.net/kafka?credential_kind=anonymous",
        "abfs://account@container/kafka?sas_token=a2V5",
        "gs://anonymous@bucket/kafka?endpoint_override=localhost:1",
        "s3://key:secret@bucket/kafka?region=eu-west-1",
        "s3://bucket/kafka?region=eu-west-1&anonymous=true",
    ],
)
def test_a_task_has_the_credentials_of_the_uri(uri: str) -> None:
    try:
        store = Location(uri)._filesystem
    except ValueError as error:
        pytest.skip(str(error))
    assert store is not None
    there = pickle.loads(pickle.dumps(store))
    assert there == store
    assert there.filesystem.equals(store.filesystem)
    assert "a2V5" not in repr(store)


def test_a_key_of_azure_in_the_uri_signs_requests() -> None:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.log_message = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        uri = f"abfs://account:a2%2FV5+==@127.0.0.1:{server.server_port}/container?enable_tls=false"
        store = Location(uri)._filesystem
        assert store is not None
        for one in (store, pickle.loads(pickle.dumps(store))):
            seen.clear()
            with suppress(OSError):
                one.get_file_info(["container/kafka"])
            assert seen
            assert all(text.startswith("SharedKey account:") for text in seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Failing(MemoryStore):
    """A store that raises these errors first."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        super().__init__(1, 1)
        self.errors = list(errors)

    def get_file_info(self, paths: Sequence[str]) -> list[FileInfo]:
        if self.errors:
            raise self.errors.pop(0)
        return super().get_file_info(paths)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that are waited, without waiting."""
    waited: list[float] = []
    clock = SimpleNamespace(sleep=waited.append)  # threads of other tests wait for theirs
    monkeypatch.setattr("kafkajit.storage.remote_store.time", clock)
    return waited


def asked(errors: Sequence[Exception]) -> Failing:
    handler = Failing(errors)
    RemoteStore(PyFileSystem(handler), "memory://").get_file_info(["bucket/kafka"])
    return handler


@pytest.mark.parametrize(
    "error",
    [
        OSError("AWS Error SLOW_DOWN during ListObjectsV2 operation"),
        OSError("AWS Error UNKNOWN (HTTP status 429) during HeadObject operation"),
        OSError("google::cloud::Status(UNAVAILABLE: try again)"),
        OSError("503 The server is busy. ServerBusy"),
        OSError("AWS Error NETWORK_CONNECTION during GetObject: curlCode: 28, Timeout"),
        ConnectionResetError("reset by peer"),
        TimeoutError("timed out"),
    ],
    ids=str,
)
def test_errors_that_pass_are_waited_for_longer_and_longer(
    error: OSError, pauses: list[float]
) -> None:
    assert asked([error] * 3).errors == []
    waited = [seconds for seconds in pauses if seconds]  # the store itself waits for 0 s
    assert [0.5 <= wait / pause <= 1.5 for wait, pause in zip(waited, (1, 2, 4), strict=True)]
    with pytest.raises(OSError, match=r"^memory://bucket/kafka cannot be read, after 4 tries: try"):
        asked([error] * 4)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (PermissionError("no"), PermissionError, "access to memory://bucket/kafka is refused: che"),
        (OSError("Status(PERMISSION_DENIED: x)"), PermissionError, "memory://bucket/kafka is refu"),
        (OSError("AuthenticationFailed"), PermissionError, "memory://bucket/kafka is refused: che"),
        (ArrowException("AuthenticationExceptionE: Bearer"), PermissionError, "kafka is refused"),
        (OSError("HTTP status 301"), OSError, "memory://bucket/kafka lies in another region: add"),
        (
            OSError("AWS Error NETWORK_CONNECTION: curlCode: 7, Could not connect to server"),
            OSError,
            "memory://bucket/kafka cannot be reached: check the endpoint and the network",
        ),
        (ConnectionRefusedError("no"), OSError, "memory://bucket/kafka cannot be reached: check"),
        (FileNotFoundError("gone"), FileNotFoundError, "^gone$"),
        (OSError("disk on fire"), OSError, "^disk on fire$"),
    ],
    ids=repr,
)
def test_other_errors_are_raised_at_once(
    error: Exception, kind: type[Exception], message: str, pauses: list[float]
) -> None:
    with pytest.raises(kind, match=message):
        asked([error])
    assert not any(pauses)


@pytest.mark.parametrize(
    ("location", "answer"),
    [
        ("s3://AKIA:SE9%2FCRET@bucket/k?region=x", "denied, you sent SE9/CRET and SE9%2FCRET"),
        ("s3://bucket/k?region=x&session_token=SE9CRET", "{'x-amz-security-token': 'SE9CRET'}"),
        ("abfs://c@acct/k?sas_token=%3Fsv%3D1%26sig%3DSE9CRET", "http://acct/c?sig=SE9CRET&sv=1"),
    ],
)
def test_a_store_that_repeats_a_secret_does_not_bring_it_into_an_error(
    location: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "FROM-ENVIRONMENT")
    uri = uri_of(location)
    assert uri is not None
    store = RemoteStore(LocalFileSystem(), "memory://", secrets=secrets_in(uri, {}))
    for kind in (OSError, PermissionError, ArrowException):

        def refused(kind: type[Exception] = kind) -> None:
            raise kind(f"{answer} FROM-ENVIRONMENT")

        with pytest.raises((OSError, ArrowException)) as raised:
            store.ask(refused, "k")
        shown = "".join(traceback.format_exception(raised.value))
        assert "CRET" not in shown
        assert "FROM-ENVIRONMENT" not in shown.replace('FROM-ENVIRONMENT")', "")
        assert "***" in shown


def test_the_secrets_of_a_profile_are_not_for_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ("[p]", "aws_access_key_id=AKIA", "aws_secret_access_key=SE9CRET")
    (tmp_path / "credentials").write_text("\n".join((*lines, "aws_session_token=TOKEN")))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    store = Location("s3://bucket/k?profile=p&region=x")._filesystem
    assert store is not None
    assert {"SE9CRET", "TOKEN"} <= {*store.secrets}


def test_a_secret_is_hidden_whole_if_another_one_is_a_part_of_it() -> None:
    uri = uri_of("s3://AKIA:SE9C@bucket/k?region=x&session_token=SE9CRET")
    assert uri is not None
    store = RemoteStore(LocalFileSystem(), "memory://", secrets=secrets_in(uri, {}))

    def refused() -> None:
        raise OSError("you sent SE9C and SE9CRET")

    with pytest.raises(OSError, match=r"^you sent \*\*\* and \*\*\*$"):
        store.ask(refused, "k")


def test_a_write_that_fails_is_not_repeated(pauses: list[float]) -> None:
    class Full:
        closed = False
        tries = 0

        def write(self, _: bytes) -> int:
            self.tries += 1
            raise OSError("AWS Error SLOW_DOWN during UploadPart operation")

    file = Full()
    sink = RemoteSink(RemoteStore(LocalFileSystem(), "memory://"), file, "bucket/rows")
    with pytest.raises(OSError, match=r"^memory://bucket/rows cannot be written: try again later"):
        sink.write(b"rows")
    assert file.tries == 1
    assert not pauses


@pytest.mark.parametrize("whence", [os.SEEK_SET, os.SEEK_CUR, os.SEEK_END])
def test_arrow_reads_a_remote_file_from_any_position(whence: int, tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"0123456789")
    store = RemoteStore(LocalFileSystem(), "memory://")
    with store.open_input_file(str(tmp_path / "rows")) as file:
        assert file.read(4) == b"0123"
        file.seek({os.SEEK_SET: 6, os.SEEK_CUR: 2, os.SEEK_END: -4}[whence], whence)
        assert (file.tell(), file.read(2), file.read()) == (6, b"67", b"89")
    with store.open_input_file(str(tmp_path / "rows")).as_native() as native:
        assert native.size() == 10
        native.seek(8)
        assert native.read() == b"89"
