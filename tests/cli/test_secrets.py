"""Nothing that a command prints or leaves has the secret of a location."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import boto3
import pytest
from moto.server import ThreadedMotoServer

import kafkajit.testing as kt
from kafkajit.cli import main

KEY, SECRET = "AKIAEXAMPLE", "9wJalr/XUtn+FEMI"
TOKEN = "IQoJb3JpZ2luX2VjE"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The end of the URI of a bucket, which has the sample's logs, a file of rows, and damage."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            client = boto3.client(
                "s3",
                endpoint_url=f"http://{host}:{port}",
                region_name="us-east-1",
                aws_access_key_id=KEY,
                aws_secret_access_key=SECRET,
            )
            client.create_bucket(Bucket="logs")
            sample = Path(kt.SAMPLE) / "orders-0"
            for path in sample.iterdir():
                content = path.read_bytes()
                client.put_object(
                    Bucket="logs", Key=f"root/{path.relative_to(sample.parent)}", Body=content
                )
                client.put_object(Bucket="logs", Key=f"cut/orders-0/{path.name}", Body=content[:-7])
            rows = b'{"topic": "o", "partition": 0, "value": "x"}\n'
            client.put_object(Bucket="logs", Key="rows.jsonl", Body=rows)
            yield f"endpoint_override={host}:{port}&scheme=http"
        finally:
            server.stop()


COMMANDS = [
    "info {root}",
    "info {none}",
    "tail -n 3 {root}",
    "tail {cut}",
    "tail {none}",
    "grep zzz {root}",
    "grep e {cut}",
    "dump-log --files {root}",
    "report {root} -o {out}/report.html",
    "report {cut} --json -o {out}/report.json",
    "export {root} -o {out}/exported --to parquet",
    "export {root} -o {out}/exported --to parquet",
    "export {root} -o {out}/exported --to csv",
    "export {cut} -o {out}/cut --to jsonl --mode DROPMALFORMED",
    "export {root} -o {bucket}",
    "export sample: -o {target} --to parquet",
    "export sample: -o {target} --to csv",
    "export sample: -o {target} --to parquet",
    "import {rows} {out}/imported",
    "import --apply {rows} {out}/imported",
    "import --apply {none} {out}/imported",
    "restore {root} {out}/restored",
    "restore --apply {cut} {out}/restored",
    "repair {root}",
]


def test_no_command_prints_or_leaves_a_secret(
    bucket: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    keys = ("root", "cut", "none", "rows.jsonl", "target", "")
    query = f"session_token={TOKEN}&{bucket}"
    places = {
        key.partition(".")[0] or "bucket": f"s3://{KEY}:{SECRET}@logs/{key}?{query}" for key in keys
    }
    printed = ""
    for line in COMMANDS:
        for debug in ([], ["--debug"]):
            words = [word.format(out=tmp_path, **places) for word in line.split()]
            raised = ""
            try:
                main([*words, *debug])
            except (Exception, SystemExit):  # with its traceback
                raised = traceback.format_exc()
            printed += raised + "".join(capfd.readouterr())
    assert "s3://logs/none" in printed
    left = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(left) > 15
    for text in (printed, caplog.text, b"".join(left).decode(errors="replace")):
        for secret in (KEY, SECRET, quote(SECRET, safe=""), TOKEN):
            assert secret not in text


@pytest.fixture
def echo() -> Iterator[str]:
    """The end of the URI of a store that refuses requests and repeats them, as proxies do."""

    class Echo(BaseHTTPRequestHandler):
        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(size)
            said = escape(str(dict(self.headers)) + self.path)
            body = f"<Error><Code>AccessDenied</Code><Message>{said}</Message></Error>".encode()
            self.send_response(403)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def do_HEAD(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    server.shutdown()
    server.server_close()
    thread.join()


REFUSED = [
    "info {place}",
    "export sample: -o {place}/a.csv",
    "export sample: -o {place} --to csv",
    "import {place} out --topic t --new-offsets",
    "import {place}/*.csv out --topic t --new-offsets",
    "restore {place} out",
]


@pytest.mark.parametrize("line", REFUSED)
@pytest.mark.parametrize("where", ["uri", "?profile=p", "AWS_PROFILE", "default"])
def test_a_refusal_that_repeats_the_request_shows_no_secret(
    where: str,
    line: str,
    echo: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.chdir(tmp_path)
    profile = "default" if where == "default" else "p"
    lines = (f"[{profile}]", f"aws_access_key_id={KEY}", f"aws_secret_access_key={SECRET}")
    (tmp_path / "credentials").write_text("\n".join((*lines, f"aws_session_token={TOKEN}", "")))
    user, option = "", ""
    if where == "uri":
        (tmp_path / "credentials").unlink()
        user, option = f"{KEY}:{quote(SECRET, safe='')}@", f"&session_token={TOKEN}"
    elif where == "?profile=p":
        option = "&profile=p"
    elif where == "AWS_PROFILE":
        monkeypatch.setenv("AWS_PROFILE", "p")
    words = []
    for word in line.split():
        name, place, rest = word.partition("{place}")
        there = f"s3://{user}bucket/logs{rest}?{echo}{option}"
        words.append(f"{name}{there}" if place else word)
    assert main(words) == 1
    printed = "".join(capfd.readouterr())
    assert "is refused: check the credentials" in printed
    assert TOKEN not in printed
    assert SECRET not in printed


# URIs that nothing here takes for one, and URIs where a local path is meant.
MISSPELLED = [
    "s3://AKIAEXAMPLE:9wJalrX@b/logs",
    "s3:/AKIAEXAMPLE:9wJalrX@b/logs",
    "s3://AKIAEXAMPLE:9wJalrX%40b/logs",
    "s3://AKIAEXAMPLE%3A9wJalrX%40b/logs",
    "s3n:AKIAEXAMPLE:9wJalrX@b/logs",
    " s3://AKIAEXAMPLE:9wJalrX@b/logs",
    "./s3://AKIAEXAMPLE:9wJalrX@b/logs",
    "s3://b/logs?endpoint_override=AKIAEXAMPLE:9wJalrX@bad_host:x&region=us-east-1",
    "s3://b/logs?session_token:9wJalrX",
    "s3:/AKIAEXAMPLE:9wJalrX\udcff@b/logs",
    "s3:/AKIAEXAMPLE:\\9wJalrX@b/logs",
    "hdfs://AKIAEXAMPLE:9wJalrX@127.0.0.1:1/x",
]
MISPLACED = [
    "info {}",
    "dump-log {}",
    "export sample: -o {}/a.csv",
    "report sample: --compare {} -o r.html",
    "report sample: -o {}",
    "sql -f {}",
    "tail sample:orders-0 --value-schema {}.avsc --value-decoder avro",
    "info sample: --from {}",
]


@pytest.mark.whole
def test_an_error_about_a_misspelled_uri_has_no_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in MISSPELLED:
        for line in MISPLACED:
            with suppress(SystemExit):
                main([word.format(uri) for word in line.split(" ")])
            printed = capfd.readouterr().err
            assert "9wJalrX" not in printed, (uri, line, printed)


def test_a_word_that_looks_like_an_option_is_no_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        main(["grep", "token:orders", str(tmp_path / "orders-0")])
    assert "orders-0" in capfd.readouterr().err
