"""Listing large buckets: how many requests, how many at once, and which folders."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import data
import pytest
import scanning
from kafscale_buckets import write_partition
from pyarrow.fs import FileInfo, FileSelector, PyFileSystem
from scanning import options_of, read_rows, read_table

import kafkajit.places.listing
import kafkajit.places.location
import kafkajit.testing as kt
from asv_bench.benchmarks.memory_store import MemoryStore
from kafkajit.errors import KafkaJitError, LeftOutError
from kafkajit.format.log_path import parse_log_path
from kafkajit.places.location import Location
from kafkajit.places.locations import find_files, find_segments
from kafkajit.places.wanted import of_topics
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.stream.folders import Folders
from kafkajit.scan.table import plan_table, plan_tasks


def stored_at(monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> str:
    """Have locations open this store, and return the URI of its root."""
    opened = PyFileSystem(store), "bucket"
    there = type("Memory", (), {"from_uri": staticmethod(lambda _: opened)})
    monkeypatch.setattr(kafkajit.places.location, "FileSystem", there)
    return "memory://bucket/kafka"


def test_remote_folders_are_listed_at_once_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(200, 400, topics=7, latency=0.01)
    uri = stored_at(monkeypatch, store)
    files = find_files(uri)
    paths = [file.path for file in files]
    assert len(paths) == 400 * 3
    assert paths == sorted(paths)
    assert 16 < store.at_once <= 32
    assert store.requests == 2 + 1 + 200  # is it a glob, is it there; the root; each partition
    assert find_files(f"{uri}/*/") == find_files(f"{uri}/topic-*") == files


def test_more_folders_than_wait_for_a_thread_are_listed_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafkajit.places.location, "_WAITING", 33)
    uri = stored_at(monkeypatch, MemoryStore(100, 100))
    paths = [file.path for file in find_files(uri)]
    assert len(paths) == 300
    assert paths == sorted(paths)


def test_a_folder_that_cannot_be_listed_ends_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(MemoryStore):
        def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
            found = super().get_file_info_selector(selector)
            if selector.base_dir.endswith("-0"):
                raise OSError("out of order")
            return found

    store = Broken(3000, 3000, latency=0.01)
    uri = stored_at(monkeypatch, store)
    with pytest.raises(OSError, match="out of order"):
        find_segments([uri])
    assert store.requests < 2000


CONDITIONS = [
    ([Predicate("topic", "=", "topic-03")], 10),
    ([Predicate("topic", "in", ("topic-01", "topic-12", "other"))], 20),
    ([Predicate("topic", "startswith", "topic-0")], 100),
    ([Predicate("topic", "=", "topic-03"), Predicate("partition", "<", 4)], 4),
    ([Predicate("partition", "=", 4)], 20),
]


@pytest.mark.parametrize(("conditions", "folders"), CONDITIONS)
def test_only_the_folders_that_a_query_asks_for_are_listed(
    conditions: list[Predicate], folders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore(200, 400, topics=20)
    options = options_of(stored_at(monkeypatch, store))
    plan = plan_table(options, conditions)
    assert store.requests == 3 + folders
    assert plan.segments == plan.segments_read == 2 * folders
    store.requests = 0
    assert len(plan_tasks(options_of(*options.paths, kind="indexes"), conditions)) > 0
    assert store.requests == 3 + folders
    store.requests = 0
    rows = read_rows(*options.paths, predicates=conditions, kind="files")
    assert store.requests == 3 + folders
    assert len(rows) == 6 * folders


def test_a_topic_that_is_not_there_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(1000, 1000, topics=20, latency=0.02)
    options = options_of(stored_at(monkeypatch, store))
    missing = [Predicate("topic", "=", "missing")]
    assert plan_table(options, missing).tasks == []
    assert plan_tasks(options_of(*options.paths, kind="producers"), missing) == []
    assert store.requests < 1000  # not 2,000 folders: the first that has segments ends the search


def test_a_place_without_segments_is_an_error_whatever_is_asked(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log.gz").touch()
    for conditions in ([], [Predicate("topic", "=", "missing")]):
        with pytest.raises(FileNotFoundError, match=r"orders-0/0{20}\.log\.gz: decompress them"):
            plan_table(options_of(tmp_path), conditions)
        with pytest.raises(FileNotFoundError, match="and no segments at"):
            plan_tasks(options_of(tmp_path, kind="producers"), conditions)


def test_a_stream_of_a_topic_lists_that_topic_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(200, 200, topics=20)
    folders = Folders(options_of(stored_at(monkeypatch, store)), ["topic-07"])
    assert len(folders.refresh()) == 10
    assert store.requests == 3 + 10


def test_files_in_the_root_do_not_depend_on_what_is_asked(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    (tmp_path / "meta.properties").touch()
    files = find_files(str(tmp_path), wanted=of_topics(["payments"]))
    assert [file.name for file in files] == ["meta.properties"]


def found_in(root: Path, *conditions: Predicate) -> list[str]:
    """The folders of the segments that a query reads, below a root."""
    plan = plan_table(options_of(root), conditions)
    splits = [split for task in plan.tasks for split in task]
    return sorted({split.file.folder.removeprefix(f"{root}/") for split in splits})


@pytest.fixture
def kafscale(tmp_path: Path) -> Path:
    for name in ("default/orders/0", "default/orders/12", "default/orders-2/0", "prod-1/orders/0"):
        write_partition(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("below", "folders"),
    [
        ("", ["default/orders-2/0", "default/orders/0", "default/orders/12", "prod-1/orders/0"]),
        ("default", ["orders-2/0", "orders/0", "orders/12"]),
        ("prod-1", ["orders/0"]),
        ("default/orders", ["0", "12"]),
        ("default/orders-2", ["0"]),
    ],
)
def test_kafscales_partitions_are_found_from_any_folder_above(
    below: str, folders: list[str], kafscale: Path
) -> None:
    root = kafscale / below if below else kafscale
    assert found_in(root) == folders
    named = [Predicate("topic", "=", "orders-2")]
    assert found_in(root, *named) == [one for one in folders if "orders-2" in f"{root}/{one}"]
    twelve = [Predicate("topic", "=", "orders"), Predicate("partition", "=", 12)]
    assert found_in(root, *twelve) == [one for one in folders if f"{root}/{one}".endswith("/12")]
    assert found_in(root, Predicate("topic", "=", "missing")) == []


def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that are listed from now on."""
    listed: list[str] = []
    list_one = Location.listed

    def noted(self: Location, folder: str, **more: bool) -> list[FileInfo]:
        listed.append(folder)
        return list_one(self, folder, **more)

    monkeypatch.setattr(Location, "listed", noted)
    return listed


def test_unwanted_partitions_of_kafscale_are_not_listed(
    kafscale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = listings(monkeypatch)
    find_files(str(kafscale), wanted=of_topics(["orders-2"]))
    assert f"{kafscale}/default/orders-2/0" in listed
    assert f"{kafscale}/default/orders/12" not in listed


def test_a_root_of_partitions_is_not_explored(tmp_path: Path) -> None:
    """Folders beside them may have copies of other brokers, which nobody asked for."""
    for folder in ("orders-0", "copy/orders-0", "copy/orders/0"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{0:020}.log").write_bytes(kt.batch([b"v"]))
    write_partition(tmp_path / "default/orders/0")
    assert found_in(tmp_path) == ["orders-0"]
    assert found_in(tmp_path, Predicate("topic", "=", "payments")) == []
    with pytest.raises(FileNotFoundError, match="no segments"):
        found_in(tmp_path / "copy" / "orders")


def test_a_folder_of_another_name_costs_one_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders-0", "backup", "notes", "lost+found"):
        (tmp_path / name).mkdir()
    for name in ("orders-0", "backup"):
        (tmp_path / name / f"{0:020}.log").write_bytes(kt.batch([b"v"]))
    looked: list[str] = []
    listed = listings(monkeypatch)
    with_names = Location._with_names

    def noted(self: Location, folder: str) -> list[FileInfo]:
        looked.append(Path(folder).name)
        return with_names(self, folder)

    monkeypatch.setattr(Location, "_with_names", noted)
    named: list[Exception] = []
    find_segments([str(tmp_path)], failed=named.append)
    assert looked == ["backup", "notes"]
    assert [Path(folder).name for folder in listed] == [tmp_path.name, "orders-0"]
    assert [str(error).partition(":")[0] for error in named] == [f"{tmp_path}/backup"]
    looked.clear()
    find_segments([str(tmp_path)], wanted=of_topics(["orders"]), failed=named.append)
    assert looked == []


def test_a_link_to_a_partition_beside_it_is_not_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder, name in ((root, "orders-0"), (tmp_path, "away-0")):
        scanning.write_partition(folder, {0: kt.batch([b"v"])}, name)
    (root / "current").symlink_to("orders-0")
    (root / "elsewhere").symlink_to(tmp_path / "away-0")
    named: list[Exception] = []
    assert len(find_segments([str(root)], failed=named.append)[0]) == 1
    assert [str(error).partition(":")[0] for error in named] == [f"{root}/elsewhere"]


def test_partitions_beside_a_stray_segment_are_named(tmp_path: Path) -> None:
    scanning.write_partition(tmp_path, {0: b""}, "orders-0")
    (tmp_path / f"{0:020}.log").write_bytes(kt.batch([b"v"]))
    named: list[Exception] = []
    find_segments([str(tmp_path)], failed=named.append)
    assert [str(error).partition(", as")[0] for error in named] == [
        f"{tmp_path}/orders-0: not read, the folder around it has segments itself"
    ]


def test_brokers_folders_side_by_side_are_not_one_root(tmp_path: Path) -> None:
    for broker in ("broker1", "broker2"):
        (tmp_path / broker / "orders-0").mkdir(parents=True)
        (tmp_path / broker / "orders-0" / f"{0:020}.log").write_bytes(kt.batch([b"v"]))
    with pytest.raises(FileNotFoundError, match="no segments"):
        found_in(tmp_path)


def test_a_bucket_of_other_things_is_not_explored_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafkajit.places.listing, "_MOST_EXPLORED", 5)
    for at in range(6):
        (tmp_path / f"other{at}").mkdir()
    write_partition(tmp_path / "other5" / "orders" / "0")
    caplog.set_level("INFO")
    with pytest.raises(FileNotFoundError, match="no segments"):
        found_in(tmp_path)
    assert "the folders below are not searched, because there are more than 5: name" in caplog.text


def write_pinterest(base: Path, cluster: str, topic: str, partition: int, bits: int) -> Path:
    """A partition's folder as the uploader of Pinterest's plugin names it."""
    digest = hashlib.md5(f"{cluster}-{topic}-{partition}".encode()).digest()
    entropy = f"{int.from_bytes(digest):0128b}"[:bits]
    folder = base / entropy / cluster / f"{topic}-{partition}"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(kt.batch([kt.Record(value=b"v")]))
    (folder / "offset.wm").write_text(f"{0:020}")
    return folder


@pytest.mark.parametrize("bits", [0, 3, 8])
@pytest.mark.parametrize("base", ["", "base", "base/logs"])
def test_pinterests_partitions_are_found_below_entropy_bits(
    base: str, bits: int, tmp_path: Path
) -> None:
    root = tmp_path / base
    folders = {
        f"{topic}-{partition}": write_pinterest(root, "kafka-1", topic, partition, bits)
        for topic in ("orders", "payments")
        for partition in range(4)
    }
    assert read_table(root).num_rows == read_table(root.parent if base else root).num_rows == 8
    named = [Predicate("topic", "=", "orders"), Predicate("partition", ">", 1)]
    expected = sorted(str(folders[name].relative_to(root)) for name in ("orders-2", "orders-3"))
    assert found_in(root, *named) == expected
    assert found_in(root, Predicate("topic", "=", "kafka")) == []


def test_unwanted_partitions_of_pinterest_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [
        write_pinterest(tmp_path, "kafka-1", topic, partition, 2)
        for topic in ("orders", "payments")
        for partition in range(4)
    ]
    listed = listings(monkeypatch)
    find_files(str(tmp_path), wanted=of_topics(["orders"]))
    assert {folder.name for folder in folders if str(folder) in listed} == {
        f"orders-{partition}" for partition in range(4)
    }


TIERED = {"local-storage": "", "aiven-plain": "", "aiven-compressed": "some/prefix"}


@pytest.mark.parametrize(
    ("name", "above"),
    [
        ("local-storage", "mixed"),
        ("local-storage", "a/b"),
        ("aiven-plain", "mixed"),
        ("aiven-plain", "a/b"),
        ("aiven-compressed", ""),
    ],
)
def test_tiered_segments_are_found_in_the_levels_below(
    name: str, above: str, tmp_path: Path
) -> None:
    remote = data.objects() / name / "remote"
    expected = sorted(log.name for log in find_segments([str(remote / TIERED[name])])[0])
    assert expected
    shutil.copytree(remote, tmp_path / "bucket" / above, dirs_exist_ok=True)
    bucket = str(tmp_path / "bucket")
    found = find_segments([bucket])[0]
    assert sorted(log.name for log in found) == expected
    topic = parse_log_path(found[0].path).topic
    assert topic is not None
    only = find_segments([bucket], wanted=of_topics([topic]))[0]
    assert [log.path for log in only] == [
        log.path for log in found if parse_log_path(log.path).topic == topic
    ]
    assert find_segments([bucket], wanted=of_topics(["missing"]))[0] == []


def test_what_is_not_searched_is_named(tmp_path: Path) -> None:
    write_partition(tmp_path / "1" / "2" / "orders" / "0")
    write_partition(tmp_path / "1" / "2" / "3" / "4" / "orders" / "0")
    scanning.write_partition(tmp_path / "1", {0: b""}, "copy-0")
    named: list[Exception] = []
    assert len(find_segments([str(tmp_path)], failed=named.append)[0]) > 0
    assert [str(error) for error in named] == [
        f"{tmp_path}/1/copy-0: not read, partitions are looked for only in the folder that a path "
        "names, by names such as orders-0: name it as a path, or a copy with such a name"
    ]
    deep = tmp_path / "deep"
    write_partition(deep / "1" / "2" / "3" / "4" / "5" / "orders" / "0")
    with pytest.raises(KafkaJitError, match=f"^{deep}: .* in 4 levels of folders, and there are"):
        find_segments([str(deep)], failed=named.append)


def test_tiered_segments_below_a_root_of_partitions_are_named(
    kafscale: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (kafscale / "others" / "of" / "no" / "kind").mkdir(parents=True)
    write_pinterest(kafscale / "backup", "main", "pins", 0, 3)
    (kafscale / "around").symlink_to(kafscale)
    everything = find_segments([str(kafscale)])[0]
    assert "it leads to partitions" not in caplog.text
    scanning.write_partition(kafscale, {0: b""}, "orders-0")
    named: list[Exception] = []
    assert len(find_segments([str(kafscale)], failed=named.append)[0]) == 1 < len(everything)
    (error,) = [error for error in named if "it leads to partitions" in str(error)]
    names = [f"{kafscale}/{name}" for name in ("backup", "default")]
    assert str(error).startswith(f"{', '.join(names)}: not read, it leads to partitions of tiered")


def test_copies_of_segments_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    segment = f"{0:020}.log"
    copies = [f"{0:020} (1).log", f"{segment}.bak", f"{segment}~", "4.log", "copy of it.log"]
    copies += [f"{3:020}.LOG", f"{segment}.part", f".{segment}.Zk3a0Q", f"{segment}.tar.gz"]
    others = ["notes.log", f"{0:020}.index", f"{7:020}.log.deleted", f"{0:020}.snapshot"]
    for name in (segment, *copies, *others):
        (folder / name).write_bytes(b"x")
    (folder / "5.log").touch()  # has no record
    errors: list[Exception] = []
    found, _ = find_segments([str(tmp_path)], failed=errors.append)
    assert [file.name for file in found] == [segment]
    (error,) = errors
    assert isinstance(error, LeftOutError)
    assert sorted(error.places) == sorted(f"{folder}/{name}" for name in copies)
    assert "not read, the name of a segment is 20 digits and .log" in str(error)


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


@pytest.mark.parametrize("name", [f"{3:020}.LOG", f".{3:020}.log.Zk3a0Q", f"{3:020}.log.enc"])
def test_a_partition_of_which_only_a_copy_is_there_is_named(name: str, tmp_path: Path) -> None:
    put(tmp_path / "orders-0" / f"{0:020}.log")
    put(tmp_path / "payments-0" / name)
    errors: list[Exception] = []
    assert find_segments([str(tmp_path)], failed=errors.append)[0]
    assert [str(error) for error in errors] == [
        f"{tmp_path}/payments-0/{name}: not read, the name of a segment is 20 digits and .log"
    ]


@pytest.mark.parametrize("place", ["orders-0/orders-0", "orders-0/sub", "payments-0/payments-0"])
def test_segments_in_a_folder_of_a_partitions_folder_are_named(place: str, tmp_path: Path) -> None:
    put(tmp_path / "orders-0" / f"{0:020}.log")
    put(tmp_path / place / f"{3:020}.log")
    errors: list[Exception] = []
    assert find_segments([str(tmp_path)], failed=errors.append)[0]
    assert [str(error) for error in errors] == [
        f"{tmp_path}/{place}: not read, it is in a partition's folder, as a second copy makes it: "
        "name it as a path"
    ]


@pytest.mark.parametrize("place", ["payments/0", "topic=payments/partition=0"])
def test_partitions_of_other_programs_are_named(place: str, tmp_path: Path) -> None:
    put(tmp_path / "orders-0" / f"{0:020}.log")
    put(tmp_path / place / f"{3:020}.log")
    errors: list[Exception] = []
    assert find_segments([str(tmp_path)], failed=errors.append)[0]
    (error,) = errors
    assert f"{tmp_path}/{place.partition('/')[0]}: not read" in str(error)


def test_files_in_a_log_dirs_folder_are_no_copies_of_segments(tmp_path: Path) -> None:
    root = tmp_path / "kafka-logs-1"  # a name like a partition's
    (root / "orders-0").mkdir(parents=True)
    (root / "orders-0" / f"{0:020}.log").write_bytes(b"x")
    (root / "broker1.log").write_bytes(b"x")
    errors: list[Exception] = []
    find_segments([str(root)], failed=errors.append)
    assert errors == []
