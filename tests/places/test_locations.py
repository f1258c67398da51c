"""Locations: which files are found where, and that nobody's secrets are shown."""

from __future__ import annotations

import errno
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from scanning import far_away, write_partition

import kafkajit.places.location
from kafkajit import testing as kt
from kafkajit.places.location import READABLE_NAME, absolute, as_location, shown
from kafkajit.places.locations import find_files, find_segments, is_partition_name, stored_file
from kafkajit.places.wanted import of_topics
from kafkajit.reader import SegmentReader
from kafkajit.schema import record_schema
from kafkajit.storage.globs import glob_to_regex

LOG = "00000000000000000000.log"
HEX = "0123456789abcdef0123456789abcdef"
RECORDS = kt.batch([kt.Record(value=b"v")] * 3)

KEPT = "orders-0/.kafkajit-repair-20261122T010203Z"

TREE = [
    "meta.properties",
    "orders-0/00000000000000000000.log",
    "orders-0/00000000000000000000.index",
    "orders-0/00000000000000000005.log",
    "orders-0/00000000000000000000.log.deleted",
    "orders-0/00000000000000000000.log.cleaned",
    "orders-0/00000000000000000000.log.swap",
    "orders-0/leader-epoch-checkpoint",
    "orders-12/00000000000000000000.log",
    "payments-0/00000000000000000000.log",
    "__consumer_offsets-7/00000000000000000000.log",
    f"orders-1.{HEX}-delete/00000000000000000000.log",
    f"orders-0.{HEX}-future/00000000000000000000.log",
    f"orders-0.{HEX}-stray/00000000000000000000.log",
    "notes/00000000000000000000.log",
    "lost+found/x",
    "orders-0/copies-1/00000000000000000000.log",
    f"{KEPT}/orders-0/00000000000000000000.log",
    f"{KEPT}/cleaner-offset-checkpoint",
    "orders-0/.kafkajit-change/new/00000000000000000000.log",
    ".x-0/00000000000000000000.log",
    ".hidden/00000000000000000000.log",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in TREE:
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(RECORDS if ".log" in name else b"")
    return tmp_path / "logs"


def found(location: str, root: Path | str) -> list[str]:
    files = find_files(location)
    assert [file.path for file in files] == sorted({file.path for file in files})
    return [file.path.removeprefix(f"{root}/") for file in files]


ALL_OF_ORDERS_0 = sorted(name for name in TREE if re.fullmatch(r"orders-0/[^./][^/]*", name))
OF_ROOT = sorted(
    [
        "meta.properties",
        *ALL_OF_ORDERS_0,
        f"orders-12/{LOG}",
        f"payments-0/{LOG}",
        f"__consumer_offsets-7/{LOG}",
        f".x-0/{LOG}",
    ]
)
# location below the root: files found
LOCATIONS = {
    "": OF_ROOT,
    "/": OF_ROOT,
    "/orders-0": ALL_OF_ORDERS_0,
    "/orders-0/": ALL_OF_ORDERS_0,
    f"/orders-0/{LOG}": [f"orders-0/{LOG}"],
    "/meta.properties": ["meta.properties"],
    "/notes": [f"notes/{LOG}"],  # whatever its name, a folder that is named is read
    f"/orders-1.{HEX}-delete": [f"orders-1.{HEX}-delete/{LOG}"],
    f"/orders-0.{HEX}-future": [f"orders-0.{HEX}-future/{LOG}"],
    f"/orders-0.{HEX}-stray/": [f"orders-0.{HEX}-stray/{LOG}"],
    "/orders-*": [*ALL_OF_ORDERS_0, f"orders-12/{LOG}"],
    "/*-0": [*ALL_OF_ORDERS_0, f"payments-0/{LOG}"],
    "/orders-?": ALL_OF_ORDERS_0,
    "/orders-??": [f"orders-12/{LOG}"],
    "/orders-[0-3]": ALL_OF_ORDERS_0,
    "/orders-[!1]*": ALL_OF_ORDERS_0,
    "/orders-[^1]*": ALL_OF_ORDERS_0,
    "/{orders,payments}-0": [*ALL_OF_ORDERS_0, f"payments-0/{LOG}"],
    "/orders-{0,12}/*.log": [f"orders-0/{LOG}", f"orders-0/{LOG[:-5]}5.log", f"orders-12/{LOG}"],
    "/orders-{1?,2}": [f"orders-12/{LOG}"],
    f"/*/{LOG}": [
        *(f"{name}/{LOG}" for name in ("__consumer_offsets-7", "notes", "orders-0")),
        *(f"{name}/{LOG}" for name in ("orders-12", "payments-0")),
    ],
    "/*-{delete,stray}": [],
    "/*-delete": [f"orders-1.{HEX}-delete/{LOG}"],
    "/orders-*-future": [f"orders-0.{HEX}-future/{LOG}"],
    "/*/00000000000000000000.log.*": [
        f"orders-0/{LOG}.{suffix}" for suffix in ("cleaned", "deleted", "swap")
    ],
    "/../logs/orders-12": [f"orders-12/{LOG}"],
    # A location finds a hidden folder if it spells the dot.
    "/*/*/orders-0": [],
    "/*/*/*/*.log": [],
    f"/{KEPT}": [f"{KEPT}/cleaner-offset-checkpoint", f"{KEPT}/orders-0/{LOG}"],
    f"/{KEPT}/orders-0": [f"{KEPT}/orders-0/{LOG}"],
    f"/{KEPT}/*/*.log": [f"{KEPT}/orders-0/{LOG}"],
    "/*/.kafkajit-repair-*/orders-0": [f"{KEPT}/orders-0/{LOG}"],
    "/orders-0/.kafkajit-*/new/*.log": [f"orders-0/.kafkajit-change/new/{LOG}"],
    "/.x-0": [f".x-0/{LOG}"],
    "/.h*": [f".hidden/{LOG}"],
}
LOCAL: dict[str, Callable[[Path], str]] = {
    "path": str,
    "file:/x": lambda root: f"file:{root}",
    "file:///x": lambda root: f"file://{root}",
    "file://localhost/x": lambda root: f"file://localhost{root}",
    "relative": lambda root: os.path.relpath(root),
}


@pytest.mark.parametrize("below", LOCATIONS)
@pytest.mark.parametrize("spelling", LOCAL)
def test_a_location_names_files(spelling: str, below: str, root: Path) -> None:
    if not LOCATIONS[below]:
        with pytest.raises(FileNotFoundError, match="nothing matches"):
            find_files(LOCAL[spelling](root) + below)
        return
    assert found(LOCAL[spelling](root) + below, root) == LOCATIONS[below]


@pytest.mark.parametrize("below", [below for below in LOCATIONS if ".." not in below])
def test_a_location_that_is_not_local_names_the_same_files(
    below: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = far_away(monkeypatch, root)
    if not LOCATIONS[below]:
        with pytest.raises(FileNotFoundError, match=re.escape(f"nothing matches {uri}{below}")):
            find_files(uri + below)
        return
    assert found(uri + below, uri) == LOCATIONS[below]


@pytest.mark.parametrize("name", ["kafka-logs-1", "broker-0", "orders-0", "data.1-2"])
def test_a_root_may_be_called_like_a_partition(name: str, tmp_path: Path) -> None:
    (tmp_path / name / "orders-3").mkdir(parents=True)
    (tmp_path / name / "orders-3" / LOG).touch()
    (tmp_path / name / "meta.properties").touch()
    assert found(str(tmp_path / name), tmp_path / name) == ["meta.properties", f"orders-3/{LOG}"]


@pytest.mark.parametrize("around", [".kafkajit-repair-20261122T010203Z", ".hidden", "..."])
def test_what_is_named_may_lie_below_a_hidden_folder(around: str, tmp_path: Path) -> None:
    folder = tmp_path / around / "orders-0"
    folder.mkdir(parents=True)
    (folder / LOG).touch()
    for location in (folder.parent, folder, folder / LOG, folder / "*.log"):
        assert found(str(location), folder) == [LOG]


def test_brokers_roots_beside_each_other_are_not_read_as_one(tmp_path: Path) -> None:
    for broker in ("broker-0", "broker-1"):
        (tmp_path / broker / "orders-0").mkdir(parents=True)
        (tmp_path / broker / "orders-0" / LOG).touch()
    assert find_files(str(tmp_path)) == []
    assert len(find_files(f"{tmp_path}/broker-1")) == 1
    assert len(find_files(f"{tmp_path}/broker-*")) == 2  # which somebody asked for


NAMES = [
    "with space",
    "100%",
    "%20",
    "a%2Fb",
    "größe",
    "日志",
    "a+b&c=d",
    "semi;colon",
    "at@home",
    "a:b",
    "quote'\"s",
    "#1",
    "back\\slash",
]


@pytest.mark.parametrize("spelling", LOCAL)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_as_it_is_written(name: str, spelling: str, tmp_path: Path) -> None:
    folder = tmp_path / name / "orders-0"
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(RECORDS)
    location = LOCAL[spelling](folder)
    (file,) = find_files(location)
    assert file.path == f"{folder}/{LOG}"
    assert (file.name, file.folder, file.size) == (LOG, str(folder), len(RECORDS))
    assert file.read() == RECORDS
    assert stored_file(f"{location}/{LOG}") == file
    assert [found.path for found in find_files(f"{location}/*.log")] == [file.path]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_not_local_is_read_as_it_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / name / "orders-0"
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(RECORDS)
    uri = far_away(monkeypatch, tmp_path)
    (file,) = find_files(f"{uri}/{name}/orders-0")
    assert file.path == f"{uri}/{name}/orders-0/{LOG}"
    assert file.read() == RECORDS


@pytest.mark.parametrize("name", ["a*b-0", "what?-0", "[x]-0", "{x}-0", "[x-0", "{x-0"])
def test_a_name_with_a_globs_letters_is_itself_where_there_is_one(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / LOG).touch()
    (tmp_path / "axb-0").mkdir()
    (tmp_path / "axb-0" / LOG).touch()
    assert found(f"{tmp_path}/{name}", tmp_path) == [f"{name}/{LOG}"]


def test_a_relative_path_may_have_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "us:east").mkdir()
    (tmp_path / "us:east" / LOG).touch()
    assert [file.path for file in find_files("us:east")] == [f"{tmp_path}/us:east/{LOG}"]


def test_a_file_uri_with_a_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"names a host; a local path is file:///path"):
        find_files(f"file://logs{tmp_path}")


@pytest.mark.parametrize("spelling", LOCAL)
def test_a_missing_path_is_named(spelling: str, tmp_path: Path) -> None:
    location = LOCAL[spelling](tmp_path / "none")
    for look in (find_files, stored_file):
        with pytest.raises(FileNotFoundError, match=f"^there is nothing at {tmp_path}/none$"):
            look(location)


def test_a_glob_in_a_missing_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"^there is nothing at {tmp_path}/none$"):
        find_files(f"{tmp_path}/none/*.log")


def test_a_glob_that_nothing_matches_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(f"nothing matches {tmp_path}/o-*/*.log")):
        find_files(f"{tmp_path}/o-*/*.log")


def test_a_file_in_the_place_of_a_globs_folder_is_passed_over(root: Path) -> None:
    assert found(f"{root}/*/leader-epoch-checkpoint", root) == ["orders-0/leader-epoch-checkpoint"]


def test_an_empty_folder_has_no_files(tmp_path: Path) -> None:
    assert find_files(str(tmp_path)) == []


def test_a_folder_is_no_segment_file(root: Path) -> None:
    with pytest.raises(IsADirectoryError, match=f"^{root} is a folder, not a segment file: "):
        stored_file(f"file:{root}")


@pytest.mark.parametrize(
    ("glob", "names", "others"),
    [
        ("*", ["", "a", ".x", "a b"], []),
        ("a?c", ["abc", "a.c"], ["ac", "abbc"]),
        ("a.c", ["a.c"], ["abc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x"]),
        ("[-a]x", ["-x", "ax"], ["bx"]),
        ("[a-]x", ["-x", "ax"], ["bx"]),
        ("[^a-c]x", ["dx", "^x"], ["ax", "x"]),
        ("[!a]x", ["bx", "!x"], ["ax"]),
        ("[]a]x", ["]x", "ax"], ["bx"]),
        ("[!]a]x", ["bx"], ["]x", "ax"]),
        ("[[a]x", ["[x", "ax"], ["]x"]),
        ("[a&&b]x", ["ax", "&x"], ["cx"]),
        ("[a||~~]x", ["|x", "~x"], ["bx"]),
        ("[\\d]x", ["dx"], ["5x", "\\x"]),
        ("a\\*b", ["a*b"], ["axb", "a\\*b"]),
        ("\\{a,b\\}", ["{a,b}"], ["a"]),
        ("{a\\,b,c}", ["a,b", "c"], ["a"]),
        ("[\\]-a]", ["]", "a", "_"], ["-", "\\"]),
        ("[a\\-c]", ["a", "-", "c"], ["b"]),
        ("a\\\\*", ["a\\b"], ["a*"]),
        ("[^]x", ["^x"], ["ax"]),
        ("[x", ["[x"], ["x"]),
        ("[]x", ["[]x"], ["x"]),
        ("{a,b}-{0,1?}", ["a-0", "b-12"], ["a-1", "c-0", "a,b-0"]),
        ("{a,{b,c}}", ["a", "b", "c"], ["{b"]),
        ("{,x}y", ["y", "xy"], ["zy"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("(a|b)+$", ["(a|b)+$"], ["a"]),
        ("é*", ["él"], ["e"]),
    ],
)
def test_a_glob_is_hadoops(glob: str, names: list[str], others: list[str]) -> None:
    regex = glob_to_regex(glob)
    assert [name for name in names if not regex.fullmatch(name)] == []
    assert [name for name in others if regex.fullmatch(name)] == []


@pytest.mark.parametrize(
    ("glob", "message"),
    [
        ("{a,b", "opens a { that it does not close"),
        ("[z-a]", "bad character range z-a"),
        ("a*\\", "ends in a backslash"),
    ],
)
def test_a_glob_that_makes_no_sense_is_named(glob: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^the glob {re.escape(repr(glob))} .*{message}"):
        glob_to_regex(glob)
    with pytest.raises(ValueError, match=message):
        find_files(f"{tmp_path}/{glob}")


SECRET = "wJalrXUtnFEMI"
# pyarrow refuses all of these before it uses the network.
WITH_SECRETS = [
    f"s3://AKIA:{SECRET}@bucket/logs?region=x&bogus=1",
    f"s3a://AKIA:{SECRET}@bucket?bogus=1",
    f"s3://AKIA:a/{SECRET}/b+c@bucket/logs?bogus=1",
    f"s3://AKIA:a b{SECRET}@bucket/logs?bogus=1",
    f"s3://AKIA:[{SECRET}@bucket/logs?bogus=1",
    f"s3://AKIA:{SECRET}@buck]et/logs",
    f"abfs://:{SECRET}@account.dfs.core.windows.net/logs?bogus=1",
    f"nowhere://user:{SECRET}@host/logs",
    f"nowhere://user:{SECRET}@host:8020",
    f"nowhere://bucket/logs?access={SECRET}",
]


@pytest.mark.parametrize("location", WITH_SECRETS)
def test_no_secret_is_shown(location: str) -> None:
    assert SECRET not in shown(location)
    assert "AKIA" not in shown(location)
    assert "?" not in shown(location)
    with pytest.raises(ValueError, match=r"^cannot open ") as caught:
        find_files(location)
    error: BaseException | None = caught.value
    while error is not None:  # a traceback shows what an error came from as well
        assert SECRET not in str(error)
        assert "\n" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_reason_is_one_line_and_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hdfs:
        @staticmethod
        def from_uri(uri: str) -> None:
            raise OSError(f"Unable to load libjvm for {uri}\ndlopen(a) failed\ndlopen(b) failed")

    monkeypatch.setattr(kafkajit.places.location, "FileSystem", Hdfs)
    with pytest.raises(ValueError, match=r"^cannot open hdfs://node:8020/x: Unable to load ") as e:
        find_files(f"hdfs://me:{SECRET}@node:8020/x")
    assert str(e.value).endswith("libjvm for hdfs://node:8020/")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://bucket/a@b:c/d", "s3://bucket/a@b:c/d"),
        ("s3://bucket", "s3://bucket"),
        ("s3a://key:a/b@bucket/x/", "s3a://bucket/x"),
        ("hdfs://node:8020/a@b", "hdfs://node:8020/a@b"),
        ("hdfs:/x", "hdfs:///x"),
        ("s3://bucket/orders-?/*.log?region=x", "s3://bucket/orders-?/*.log"),
        ("file:/x//y/", "/x/y"),
        ("file:///x/../y", "/y"),
        ("/x/./y/", "/x/y"),
    ],
)
def test_a_location_is_shown_as_its_files_paths_begin(location: str, expected: str) -> None:
    assert shown(location) == expected


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_secrets_and_query_reach_the_file_system_and_nothing_else(
    scheme: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class S3:
        @staticmethod
        def from_uri(uri: str) -> tuple[SubTreeFileSystem, str]:
            asked.append(uri)
            return SubTreeFileSystem(str(root.parent), LocalFileSystem()), "logs"

    monkeypatch.setattr(kafkajit.places.location, "FileSystem", S3)
    files = find_files(f"{scheme}://AKIA:a/b+c%2Fd@logs/orders-12?region=x&scheme=http")
    assert asked == ["s3://AKIA:a%2Fb%2Bc%2Fd@logs/?region=x&scheme=http"]
    assert [file.path for file in files] == [f"{scheme}://logs/orders-12/{LOG}"]
    assert [file.path for file in files[0].beside()] == [f"{scheme}://logs/orders-12/{LOG}"]
    assert files[0].open().path == f"{scheme}://logs/orders-12/{LOG}"


def test_a_file_system_with_roots_of_its_own_keeps_its_host(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hdfs:
        @staticmethod
        def from_uri(uri: str) -> tuple[LocalFileSystem, str]:
            assert uri == "hdfs://me@node:8020/"
            return LocalFileSystem(), "/"

    monkeypatch.setattr(kafkajit.places.location, "FileSystem", Hdfs)
    (file,) = find_files(f"hdfs://me@node:8020{root}/orders-12")
    assert file.path == f"hdfs://node:8020{root}/orders-12/{LOG}"
    assert file.read() == RECORDS


def offsets_in(location: str, start: int = 0, end: int | None = None) -> list[int]:
    source = stored_file(location).open(start, end)
    reader = SegmentReader(source, start=start, end=end)
    return [
        offset
        for rows in reader.records(record_schema(["offset"]))
        for offset in rows["offset"].to_pylist()
    ]


@pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])
def test_a_file_is_what_it_was_when_it_was_listed(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    path = folder / LOG
    path.write_bytes(RECORDS + RECORDS[:30])  # a broker is just appending
    file = stored_file(f"{far_away(monkeypatch, folder)}/{LOG}" if is_far else str(path))
    path.write_bytes(RECORDS * 2)
    for end in (None, file.size):
        source = file.open(0, end)
        assert source.content.size == len(RECORDS) + 30
        assert len(list(SegmentReader(source, end=end).framed())) == 1
    path.write_bytes(RECORDS[:-10])
    with pytest.raises(EOFError, match=f"{LOG} ended at {len(RECORDS) - 10}, before its"):
        file.open().load(file.size)


@pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])
def test_a_range_of_a_file_is_read_where_it_stands(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [kt.batch([kt.Record()] * 2, base_offset=2 * place) for place in range(4)]
    (tmp_path / LOG).write_bytes(b"".join(logs))
    location = f"{far_away(monkeypatch, tmp_path) if is_far else tmp_path}/{LOG}"
    size = len(logs[0])
    assert offsets_in(location) == list(range(8))
    assert offsets_in(location, size, 3 * size) == [2, 3, 4, 5]
    assert stored_file(location).read(size, 8) == logs[1][:8]
    assert stored_file(location).read(4 * size, 8) == b""


@pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])
def test_a_stored_file_can_be_sent_to_another_process(
    is_far: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = far_away(monkeypatch, root) if is_far else str(root)
    file = stored_file(f"{location}/orders-12/{LOG}")
    assert pickle.loads(pickle.dumps(file)) == file
    assert [beside.name for beside in file.beside()] == [LOG]


@pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])
def test_the_files_beside_a_file_are_those_of_its_folder(
    is_far: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = far_away(monkeypatch, root) if is_far else str(root)
    beside = stored_file(f"{location}/orders-0/{LOG}").beside()
    assert sorted(file.path for file in beside) == [
        f"{location}/{name}" for name in ALL_OF_ORDERS_0
    ]
    assert {file.path: file for file in find_files(f"{location}/orders-0")} == {
        file.path: file for file in beside
    }


def test_segments_are_told_by_their_names_or_a_glob_or_asked_for_by_themselves(
    tmp_path: Path,
) -> None:
    for name in (LOG, "copy.bin", "notes.txt"):
        (tmp_path / name).touch()

    def names(location: str, glob: str | None = None) -> list[str]:
        return [log.name for log in find_segments([location], glob)[0]]

    assert names(str(tmp_path)) == [LOG]
    assert names(str(tmp_path), "*.bin") == ["copy.bin"]
    assert names(f"{tmp_path}/copy.bin") == names(f"file://{tmp_path}/copy.bin") == ["copy.bin"]
    with pytest.raises(FileNotFoundError, match="no segments"):
        names(f"{tmp_path}/copy.bin", "*.log")
    assert set(find_segments([str(tmp_path)])[1]) == {str(path) for path in tmp_path.iterdir()}


def test_a_log_whose_segments_are_being_swapped_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    logs = [folder / f"{base:020d}.log" for base in (0, 5)]
    for path in [*logs, Path(f"{logs[0]}.swap"), Path(f"{logs[0]}.cleaned")]:
        path.touch()
    find_segments([str(tmp_path)])
    assert caplog.messages == []  # what is old is still all there
    Path(f"{logs[0]}.cleaned").unlink()
    find_segments([str(tmp_path)])
    (stated,) = caplog.messages
    assert stated.startswith(f"{folder}: segments are being swapped")


@pytest.mark.parametrize(
    ("path", "locations", "expected"),
    [
        ("/k/orders-0", ["/k"], "/k/orders-0"),
        ("s3://b/k/a-0", ["s3://b/k"], "s3://b/k/a-0"),
        ("s3://b/k/a-0", ["s3://id:se/cret@b/k?region=x"], "s3://id:se/cret@b/k/a-0?region=x"),
        ("s3://b/k/a-0", ["s3://c/?region=y", "s3://b/*?region=x"], "s3://b/k/a-0?region=x"),
        ("s3://b/k/a-0", ["gs://b/k?region=x", "/k"], "s3://b/k/a-0"),
    ],
)
def test_a_folder_that_was_found_is_opened_as_its_location_was(
    path: str, locations: list[str], expected: str
) -> None:
    assert as_location(path, locations) == expected


def test_what_is_no_uri_is_a_local_path_for_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("us:east") == shown("us:east") == f"{tmp_path}/us:east"
    assert absolute("s3://b/o?region=x") == "s3://b/o?region=x"


def test_compressed_segments_are_named_and_not_left_out_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    packed = folder / f"{5:020}.log.gz"
    packed.write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=rf"but {packed}: decompress them first$"):
        find_segments([str(folder)])
    (folder / f"{0:020}.log").write_bytes(b"")
    find_segments([str(folder)])
    assert [record.getMessage() for record in caplog.records] == [
        f"{packed}: not read, decompress it first"
    ]


def test_a_link_to_nothing_is_passed_over_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_partition(tmp_path, {0: b""})
    lost, partition = folder / f"{9:020}.log", tmp_path / "orders-1"
    lost.symlink_to(tmp_path / "elsewhere")
    partition.symlink_to(tmp_path / "nowhere")
    for _ in range(2):
        assert [file.path for file in find_files(str(tmp_path))] == [f"{folder}/{0:020}.log"]
    reason = "not read, it is a link to a file or folder that does not exist"
    warnings = {record.getMessage() for record in caplog.records}
    assert warnings == {f"{lost}: {reason}", f"{partition}: {reason}"}
    assert len(caplog.records) == 2


def test_a_name_that_is_not_utf8_is_passed_over_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_partition(tmp_path, {0: b""})
    segment = folder / f"{0:020}.log"
    try:
        (folder / os.fsdecode(b"caf\xe9")).write_bytes(b"")
        (tmp_path / os.fsdecode(b"caf\xe9-0")).mkdir()
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    assert [file.path for file in find_files(str(tmp_path))] == [str(segment)]
    assert [file.path for file in find_files(str(folder))] == [str(segment)]
    (named, *_) = [record.getMessage() for record in caplog.records]
    assert named == f"{tmp_path}/caf\\xe9-0: not read, its name is not UTF-8"


def test_each_of_several_locations_must_have_segments(tmp_path: Path) -> None:
    good, other, packed = (tmp_path / name for name in ("good", "other", "packed"))
    write_partition(good, {0: b""})
    (packed / "orders-0").mkdir(parents=True)
    (packed / "orders-0" / f"{0:020}.log.gz").touch()
    other.mkdir()
    for empty, words in (
        (other, f"no segments (20 digits and .log) at {other}: a path is a segment, "),
        (packed, f"no segments (20 digits and .log) at {packed}, but {packed}/orders-0/"),
    ):
        for locations in ([good, empty], [empty, good], [empty]):
            with pytest.raises(FileNotFoundError, match=f"^{re.escape(words)}"):
                find_segments(list(map(str, locations)))
        named: list[Exception] = []
        logs, _ = find_segments([str(empty), str(good)], failed=named.append)
        assert len(logs) == 1
        (error,) = named
        assert str(error).startswith(words)
        with pytest.raises(FileNotFoundError, match=f"^{re.escape(words)}"):
            find_segments([str(empty)], failed=named.append)
    for failed in (None, [].append):
        with pytest.raises(FileNotFoundError, match=f"there is nothing at {tmp_path}/gone"):
            find_segments([str(good), f"{tmp_path}/gone"], failed=failed)


def test_a_location_whose_segments_are_others_than_the_wanted_has_segments(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_partition(tmp_path / name, {0: b""}, f"{name}-0")
    wanted = of_topics(["a"])
    logs, _ = find_segments([f"{tmp_path}/a", f"{tmp_path}/b"], wanted=wanted)
    assert [log.folder for log in logs] == [f"{tmp_path}/a/a-0"]
    (tmp_path / "c").mkdir()
    for others in (["a", "c"], ["b", "c"]):
        with pytest.raises(FileNotFoundError, match=f"no segments .* at {tmp_path}/c: "):
            find_segments([f"{tmp_path}/{name}" for name in others], wanted=wanted)


def unreadable(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let the system refuse these folders, also to root."""
    listed = os.scandir

    def scandir(path: str) -> Any:
        if Path(path) in folders:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_what_cannot_be_listed_is_named_and_the_others_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write_partition(tmp_path, {0: b""}, f"orders-{number}")
    (tmp_path / "orders-3").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "orders-0" / f"{5:020}.log")
    unreadable(monkeypatch, tmp_path / "orders-1")
    named: list[Exception] = []
    logs, _ = find_segments([str(tmp_path)], failed=named.append)
    assert [log.folder for log in logs] == [f"{tmp_path}/orders-0", f"{tmp_path}/orders-2"]
    assert [str(error) for error in named] == [
        f"{tmp_path}/orders-3: not read, it is a link to a file or folder that does not exist",
        f"{tmp_path}/orders-0/{5:020}.log is a FIFO, not a file",
        f"[Errno 13] Permission denied: '{tmp_path}/orders-1'",
    ]
    with pytest.raises(OSError, match=r"is a FIFO, not a file|Permission denied"):
        find_segments([str(tmp_path)])
    monkeypatch.undo()
    unreadable(monkeypatch, tmp_path)
    with pytest.raises(PermissionError, match=str(tmp_path)):
        find_segments([str(tmp_path)], failed=named.append)


def test_partitions_that_wait_are_named_if_there_are_no_others(tmp_path: Path) -> None:
    names = [f"orders-0.{'0' * 32}-{kind}" for kind in ("delete", "future", "stray")]
    for name in names:
        write_partition(tmp_path, {0: b""}, name)
    paths = ", ".join(f"{tmp_path}/{name}" for name in names)
    with pytest.raises(FileNotFoundError, match=rf"at {tmp_path}, but {paths}: brokers delete"):
        find_segments([str(tmp_path)])
    assert len(find_segments([f"{tmp_path}/{names[0]}"])[0]) == 1


def test_a_path_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    folder = f"{tmp_path}/\udcff"
    for location in (folder, f"file://{folder}", f"{folder}/*"):
        with pytest.raises(ValueError, match=r"/\\xff.*: the path is not UTF-8: rename it"):
            find_segments([location])


def test_digits_of_other_scripts_are_no_partition() -> None:
    assert not is_partition_name("orders-٣")
    assert READABLE_NAME.fullmatch("٣" * 20 + ".log") is None
