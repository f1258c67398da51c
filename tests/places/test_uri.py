"""URIs are never taken for local paths, and a folder of a bucket has one path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyarrow.fs import _MockFileSystem

import kafkajit
import kafkajit.testing as kt
from kafkajit.change.files import local_folder
from kafkajit.cli import main
from kafkajit.places import location as location_module
from kafkajit.places.location import Location, absolute, filesystem_at, shown
from kafkajit.places.uri import REDACTED, has_secrets, uri_of

CONTROL = [
    "s3://bucket/kafka\n",
    "s3://bucket/a\nb",
    "file:///k\n",
    "s3://bucket/\x1b[2K",
    "s3:/a\r",
]
NOT_URIS = ["\ns3://bucket/k", " s3://bucket/k", "s_3://bucket/k", "://k", "C://k"]


@pytest.mark.parametrize(
    "location",
    [*CONTROL, *NOT_URIS, "s3://bucket/a/../b", "s3://bucket/.."],
)
def test_what_looks_like_a_uri_is_never_a_local_path(location: str) -> None:
    for opened in (uri_of, absolute, Location, filesystem_at, local_folder):
        with pytest.raises(ValueError, match=r"write (the URI|the path|it as in)") as raised:
            opened(location)  # type: ignore[operator]
        assert str(raised.value).isprintable()


@pytest.mark.parametrize("location", ["s3:/\udcff", "gs://b/\udcff/.."])
def test_an_error_can_be_printed_although_a_location_is_not_text(location: str) -> None:
    with pytest.raises(ValueError, match=r"\\udcff") as raised:
        uri_of(location)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "location",
    ["s3://k:\udcffsecret@b/x", "s3://b/x?secret_key=secret\udcff", "hdfs://k:secret\udcff@h"],
)
def test_an_error_of_a_location_that_is_not_text_shows_no_secret(location: str) -> None:
    for opened in (Location, filesystem_at):
        with pytest.raises(ValueError, match="the path is not UTF-8") as raised:
            opened(location)  # type: ignore[operator]
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize("location", CONTROL[:3] + NOT_URIS[:2])
def test_commands_write_nothing_to_a_folder_that_is_named_like_a_uri(
    location: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text('{"topic": "o", "partition": 0, "value": "x"}\n')
    for words in (
        ["export", "sample:", "-o", location, "--to", "csv"],
        ["export", "sample:", "-o", f"{location}.csv"],
        ["import", "--apply", "rows.jsonl", location],
        ["import", location, "logs"],
        ["restore", "--apply", "sample:", location],
        ["restore", "--apply", location, "logs"],
        ["report", "sample:", "-o", f"{location}.html"],
        ["tail", location],
    ):
        assert main(words) == 1
        error = capsys.readouterr().err
        assert error.endswith("\n")
        assert error[:-1].isprintable()
    assert list(Path().iterdir()) == [Path("rows.jsonl")]


def test_secrets_are_not_in_the_errors() -> None:
    for location in (
        "s3://key:secret@bucket/k\n",
        "s3://key:secret@bucket/a/../b",
        "x y://k:secret@h",
    ):
        with pytest.raises(ValueError, match="write") as raised:
            uri_of(location)
        assert "secret" not in str(raised.value)


SPELLINGS = [
    "s3://AKIA:SE9CRET@bucket/k",
    "S3A://AKIA:SE9CRET@bucket/k",
    "s3://AKIA:9/SE9CRET@bucket/k",
    "s3://AKIA:9@SE9CRET@bucket/k",
    "s3://AKIA:9?SE9CRET@bucket/k",
    "s3://AKIA%3ASE9CRET@bucket/k",
    "s3:/AKIA:SE9CRET@bucket/k",
    "s3:///AKIA:SE9CRET@bucket/k",
    "s3://bucket/k?secret_key=SE9CRET",
    "s3://bucket/k?secret-key=SE9CRET&region=x",
    "s3://bucket/k&secret_key=SE9CRET",
    "s3://bucket/k#Session-Token=SE9CRET",
    "s3://bucket/k?session%5Ftoken=SE9CRET",
    "abfs://container@account.dfs.core.windows.net/k?client_secret=SE9CRET",
    "gs://bucket/k?access_token=SE9CRET",
    "gs://AKIA:SE9CRET@bucket/k",
    "abfs://container:9/SE9CRET@account.dfs.core.windows.net/k",
    "hdfs://AKIA:SE9CRET@node:8020/k",
]


@pytest.mark.parametrize("location", SPELLINGS)
def test_a_secret_is_one_in_each_spelling(location: str) -> None:
    assert has_secrets(location)
    texts = [shown(location), re.sub(REDACTED, "", f"EXPLAIN SELECT * FROM f('{location}')")]
    # pyarrow refuses the option before it uses the network.
    refused = f"{location}{'&' if '?' in location else '?'}bogus=1"
    for opened in (Location, local_folder, filesystem_at):
        with pytest.raises(ValueError, match=r".") as raised:
            opened(refused)  # type: ignore[operator]
        texts.append(str(raised.value))
    for text in texts:
        assert "SE9CRET" not in text


@pytest.mark.parametrize(
    "location",
    [
        "/a:b@c",
        "s3://bucket/a@b:c/d",
        "s3://bucket/x=1/y?a/*.log",
        "s3://bucket/k?region=x&endpoint_override=h:9",
        "abfs://container@account.dfs.core.windows.net/a@b",
        "hdfs://node:8020/a@b",
    ],
)
def test_a_location_without_a_secret_is_shown_as_it_is(location: str) -> None:
    assert not has_secrets(location)
    begins = location.partition("?region")[0].replace("container@", "")
    assert shown(location) == begins
    assert re.sub(REDACTED, "", location) == location


@pytest.mark.parametrize(
    ("location", "advice"),
    [
        ("s3:/AKIA:SE9CRET@bucket/k", r"^s3:// has no bucket: write the URI as in s3://bucket/"),
        ("s3://bucket/k&secret_key=x", r"do not begin with a question mark: .*\?region=eu-west-1$"),
    ],
)
def test_a_uri_of_a_store_that_nobody_can_mean_is_refused(location: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        Location(location)


def test_a_local_path_may_have_anything(tmp_path: Path) -> None:
    odd = tmp_path / "a\nb" / "s3:" / "orders-0"
    odd.mkdir(parents=True)
    (odd / f"{0:020}.log").write_bytes(kt.batch([kt.Record()]))
    assert kafkajit.Log(odd).end_offset == 1
    assert uri_of("./s3://bucket") is uri_of("/data/s3://bucket") is None
    assert shown(f"file://{tmp_path}/x/../y") == f"{tmp_path}/y"


@pytest.mark.parametrize("path", ["a/./b", "a//b/", "./a/b", "/a/b/."])
def test_a_folder_of_a_bucket_has_one_path(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = _MockFileSystem()
    monkeypatch.setattr(location_module, "_opened", lambda _uri: (store, "bucket", None, ()))
    location = f"s3://bucket/{path}?region=eu-west-1"
    assert filesystem_at(location)[1] == Location(location).path == "bucket/a/b"
    assert shown(location) == "s3://bucket/a/b"
