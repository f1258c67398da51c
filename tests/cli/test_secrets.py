"""Nothing that a command prints or leaves has the secret of a location."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
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
