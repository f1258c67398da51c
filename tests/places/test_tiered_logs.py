"""Segments in tiered storage are read as those of a broker's folder, in whatever form they lie."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import data
import pyarrow as pa
import pytest
from corpus import DATA
from scanning import far_away, options_of, read_in_small_pieces, read_table

import kafkajit
from asv_bench.benchmarks.tiered_objects import (
    PLAIN,
    TOPIC_ID,
    KeyPair,
    Options,
    key_pair,
    write_segment,
)
from kafkajit import Log, RemoteStorageError
from kafkajit.places.locations import files_at
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.table import plan_tasks

ORIGINAL = DATA / "v2" / "transactions-segments-0"
TOPIC = "transactions-segments"
LOGS = sorted(ORIGINAL.glob("*.log"))
BASES = [int(log.stem) for log in LOGS]
ENDS = [*(base - 1 for base in BASES[1:]), kafkajit.Log(str(ORIGINAL)).end_offset - 1]
INDEXES = {"offset": ".index", "timestamp": ".timeindex", "transaction": ".txnindex"}
INDEX_NAMES = ("offset", "timestamp")
FORMS = ["plain", "fixed", "compressed", "encrypted", "both"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return key_pair(tmp_path_factory.mktemp("keys"), "key1")


def options_of_form(form: str, pair: KeyPair) -> Options:
    return Options(
        chunk_size=700,
        compresses=form in ("compressed", "both"),
        pair=pair if form in ("encrypted", "both") else None,
        is_variable=form != "fixed",
    )


def write_tier(root: Path, options: Options = PLAIN, *, rows: slice = slice(None)) -> Path:
    """The segments of the original log, in tiered storage."""
    folder = root / f"{TOPIC}-{TOPIC_ID}" / "0"
    for log, base, end in list(zip(LOGS, BASES, ENDS, strict=True))[rows]:
        beside = {name: log.with_suffix(suffix) for name, suffix in INDEXES.items()}
        indexes = {name: path.read_bytes() for name, path in beside.items() if path.exists()}
        id_ = f"{base:04}MKeZwStOEOwRzT3L5o"
        write_segment(
            folder, base, log.read_bytes(), options, end_offset=end, indexes=indexes, segment_id=id_
        )
    return folder


def without_paths(table: pa.Table) -> list[dict[str, Any]]:
    return table.drop_columns([n for n in ("path",) if n in table.schema.names]).to_pylist()


def key_options(pair: KeyPair) -> dict[str, str]:
    return {f"encryption.key.pairs.{pair.id}.private.key.file": str(pair.file)}


# Objects that real brokers have copied.

ARCHIVES = ["local-storage", *sorted(path.name for path in data.objects().glob("aiven-*"))]
PREFIXES = {"aiven-compressed": "some/prefix", "aiven-mixed": "tier"}


def archive(name: str) -> tuple[Path, Path, dict[str, str]]:
    """(tiered storage, the log's folders with all that was copied, the options with keys)."""
    folder = data.objects() / name
    whole = folder / ("original" if name == "local-storage" else "logs")
    keys = {
        f"encryption.key.pairs.{path.name.partition('.')[0]}.private.key.file": str(path)
        for path in (data.objects() / "keys").rglob("*.private.pem")
    }
    return folder / "remote" / PREFIXES.get(name, ""), whole, keys


def records_of(*locations: Path | str, **options: Any) -> dict[tuple[str, int], list[Any]]:
    """The records of each partition, but those of brokers' own topics."""
    found: dict[tuple[str, int], list[Any]] = {}
    for row in without_paths(read_table(*locations, **options)):
        if not row["topic"].startswith("__"):
            found.setdefault((row["topic"], row["partition"]), []).append(row)
    return found


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_what_a_broker_has_copied_is_read(name: str, isolation: str) -> None:
    tier, whole, keys = archive(name)
    asked = {"isolationLevel": isolation}
    copied, original = records_of(tier, **asked, **keys), records_of(whole, **asked)
    assert copied.keys() == original.keys()
    for partition, rows in copied.items():
        assert rows == original[partition][: len(rows)]
        assert len(rows) > 30


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("is_in_pieces", [False, True])
def test_a_bucket_has_the_same(
    name: str, is_in_pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tier, _, keys = archive(name)
    expected = records_of(tier, isolationLevel="read_committed", **keys)
    if is_in_pieces:
        read_in_small_pieces(monkeypatch)
    there = far_away(monkeypatch, tier)
    assert records_of(there, isolationLevel="read_committed", **keys) == expected


@pytest.mark.parametrize("name", ARCHIVES)
def test_what_a_broker_has_copied_and_what_it_has_is_one_log(name: str) -> None:
    tier, whole, keys = archive(name)
    logs = data.objects() / name / "logs"
    original = records_of(whole)
    for paths in ([tier, logs], [logs, tier]):
        assert records_of(*paths, **keys) == original


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_file_has_the_bytes_of_the_original(name: str) -> None:
    tier, whole, keys = archive(name)
    files = files_at([str(tier)], ScanOptions.parse({"path": str(tier), **keys}).private_keys)
    compared = set()
    for file in files.values():
        place = kafkajit.parse_log_path(file.path)
        suffix = file.name[file.name.index(".") :]
        if suffix in (".log", ".index", ".timeindex", ".txnindex"):
            original = (
                whole / f"{place.topic}-{place.partition}" / f"{place.base_offset:020}{suffix}"
            )
            assert file.size == original.stat().st_size
            assert file.read() == original.read_bytes()
            compared.add(suffix)
    assert compared == {".log", ".index", ".timeindex", ".txnindex"}


# Forms.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["records", "batches", "corruption"])
def test_each_form_has_the_rows_of_the_original(
    form: str, kind: str, pair: KeyPair, tmp_path: Path
) -> None:
    write_tier(tmp_path, options_of_form(form, pair))
    table = read_table(tmp_path, kind=kind, **key_options(pair))
    assert without_paths(table) == without_paths(read_table(ORIGINAL, kind=kind))


@pytest.mark.parametrize("form", FORMS)
def test_a_consumer_sees_the_same(form: str, pair: KeyPair, tmp_path: Path) -> None:
    write_tier(tmp_path, options_of_form(form, pair))
    asked = {"isolationLevel": "read_committed", "startingOffsets": f'{{"{TOPIC}": {{"0": 9}}}}'}
    table = read_table(tmp_path, **asked, **key_options(pair))
    assert without_paths(table) == without_paths(read_table(ORIGINAL, **asked))


@pytest.mark.parametrize("form", FORMS)
def test_python_reads_an_object_and_a_folder(form: str, pair: KeyPair, tmp_path: Path) -> None:
    folder = write_tier(tmp_path, options_of_form(form, pair))
    keys = {pair.id: str(pair.file)}
    for log, original in zip(sorted(folder.glob("*.log")), LOGS, strict=True):
        expected = kafkajit.read_records(original)
        for path in (log, str(log), log.as_uri()):
            assert kafkajit.read_records(path, private_keys=keys).equals(expected)
        batches = list(kafkajit.iter_records(log, private_keys=keys))
        assert pa.Table.from_batches(batches).equals(pa.table(expected).replace_schema_metadata())
    log = Log(str(folder), private_keys=keys)
    original_log = Log(str(ORIGINAL))
    assert (log.topic, log.partition) == (TOPIC, 0)
    assert log.end_offset == original_log.end_offset
    columns = ["offset", "key", "value"]
    for offset in range(0, log.end_offset, 7):
        expected = original_log.read(offset, 5, columns=columns)
        assert log.read(offset, 5, columns=columns).equals(expected)
    assert log.aborted_transactions(0, 10**6).equals(original_log.aborted_transactions(0, 10**6))


@pytest.mark.parametrize("depth", ["root", "topic", "partition", "glob"])
def test_a_location_is_any_folder_of_the_layout(depth: str, tmp_path: Path) -> None:
    folder = write_tier(tmp_path, Options(compresses=True))
    location = {
        "root": tmp_path,
        "topic": folder.parent,
        "partition": folder,
        "glob": tmp_path / "transactions-*" / "*",
    }[depth]
    assert read_table(location).num_rows == read_table(ORIGINAL).num_rows


@pytest.mark.parametrize("form", FORMS)
def test_indexes_inside_an_object_are_files_of_the_log(
    form: str, pair: KeyPair, tmp_path: Path
) -> None:
    original = DATA / "v2" / "segments-0"
    folder = tmp_path / f"segments-{TOPIC_ID}" / "0"
    for log in sorted(original.glob("*.log")):
        indexes = {name: log.with_suffix(INDEXES[name]).read_bytes() for name in INDEX_NAMES}
        content = log.read_bytes()
        write_segment(folder, int(log.stem), content, options_of_form(form, pair), indexes=indexes)
    for kind in ("offsetIndex", "timeIndex"):
        table = read_table(tmp_path, kind=kind, **key_options(pair))
        assert without_paths(table) == without_paths(read_table(original, kind=kind))
        assert table.num_rows > 0


FOREIGN = {
    "0-1-v1.log": "Redpanda's",
    "5-99-1024-3-v1.log.3": "Redpanda's",
    "00000000000000000007.batch": "Tansu's",
    "tqimKeZwStOEOwRzT3L5oQ.log": "that of a plugin before Kafka 3.6",
    "00000000000000000007.log.tqimKeZwStOEOwRzT3L5oQ": "that of a plugin for HDFS",
    "00001-a.metadata.json": "an Iceberg table's",
}
CLOUD = "5a/kafka/orders/0_15"


@pytest.mark.parametrize("folder", ["", "kafka/orders/0_15", CLOUD])
@pytest.mark.parametrize("file", FOREIGN)
def test_a_format_of_its_own_is_named(file: str, folder: str, tmp_path: Path) -> None:
    there = tmp_path / folder
    there.mkdir(parents=True, exist_ok=True)
    (there / file).write_bytes(bytes(range(256)))
    words = rf"but {there}/{file}: the format is {FOREIGN[file]}, which kafkajit does not read: \w"
    with pytest.raises(FileNotFoundError, match=words):
        read_table(tmp_path)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(b"")
    for read in (read_table, kafkajit.read_records):
        with pytest.raises(kafkajit.NotALogError, match=f"it seems to be {FOREIGN[file]}, which"):
            read(there / file)


def test_a_manifest_of_redpanda_is_named(tmp_path: Path) -> None:
    (tmp_path / "0_15").mkdir()
    (tmp_path / "0_15" / "manifest.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="the format is Redpanda's"):
        read_table(tmp_path)
    (tmp_path / "0_15").rename(tmp_path / "orders")  # others have such files, too
    with pytest.raises(FileNotFoundError, match="a path is a segment"):
        read_table(tmp_path)


def test_files_of_a_format_of_its_own_beside_segments_are_named_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    shutil.copytree(ORIGINAL, folder)
    for at in range(5):
        (folder / f"{at}-1-v1.log").touch()
    assert read_table(tmp_path).num_rows == read_table(ORIGINAL).num_rows
    assert f"{folder}/2-1-v1.log and 2 more: left out, the format is Redpanda's" in caplog.text


def test_an_object_of_automq_is_named(tmp_path: Path) -> None:
    path = tmp_path / "42"
    path.write_bytes(b"\x5a\0" + bytes(range(200)) + bytes.fromhex("88e241b785f4cff7"))
    with pytest.raises(kafkajit.NotALogError, match=r"it seems to be an object of AutoMQ's .*meta"):
        kafkajit.read_records(path)


def test_other_folders_may_have_such_names(tmp_path: Path) -> None:
    """The end of a folder's name is an id by chance."""
    root = tmp_path / "kafka-logs-of-a-cluster-at-home"
    shutil.copytree(ORIGINAL, root / f"{TOPIC}-0")
    for other in (f"copy-{TOPIC_ID}", f"copy-{TOPIC_ID}/0", "0", "lost+found"):
        (root / other).mkdir()
        shutil.copy(LOGS[0], root / other)
    assert read_table(root).num_rows == read_table(ORIGINAL).num_rows


def test_an_object_has_the_same_bytes_by_any_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tier(tmp_path, Options(compresses=True))
    name = sorted(folder.glob("*.log"))[0].name
    monkeypatch.chdir(folder)
    for path in (name, f"../0/{name}", f"{folder}//{name}", Path(name)):
        assert kafkajit.read_records(path).num_rows == kafkajit.read_records(LOGS[0]).num_rows


def test_a_prefix_may_end_in_the_name_of_a_folder() -> None:
    tier, _, keys = archive("aiven-mixed")
    options = {**keys, "maxPartitionBytes": 1000}
    assert set(read_table(tier, **options)["topic"].to_pylist()) == {"orders"}
    private = {key.split(".")[3]: path for key, path in keys.items()}
    (folder,) = (data.objects() / "aiven-mixed" / "remote" / "tier").glob("*/0")
    assert Log(str(folder), private_keys=private).topic == "orders"
    for path in folder.glob("*.log"):
        table = kafkajit.read_records(path, private_keys=private)
        assert set(table["topic"].to_pylist()) == {"orders"}


# Segments that are not there once.


def test_a_copy_that_is_not_finished_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_tier(tmp_path)
    (last, manifest) = (
        sorted(folder.glob(f"*{suffix}"))[-1] for suffix in (".log", ".rsm-manifest")
    )
    manifest.unlink()
    table = read_table(tmp_path)
    assert table["offset"].to_pylist()[-1] == ENDS[-2]
    assert f"{last.stem}: not read, its copy to tiered storage is not finished" in caplog.text
    with pytest.raises(RemoteStorageError, match="copy to tiered storage is not finished"):
        kafkajit.read_records(last)


def test_a_copy_without_its_last_object_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """LocalTieredStorage copies the snapshot last."""
    folder = tmp_path / f"{TOPIC}-0-{TOPIC_ID}"
    folder.mkdir()
    stems = [folder / f"{base:020}-{base:022}" for base in BASES[:2]]
    for stem, log in zip(stems, LOGS, strict=False):
        shutil.copy(log, stem.with_suffix(".log"))
    with pytest.raises(FileNotFoundError, match="no segments"):
        read_table(tmp_path)
    stems[0].with_suffix(".snapshot").touch()
    assert read_table(tmp_path).num_rows == kafkajit.read_records(LOGS[0]).num_rows
    assert f"{stems[1].name}: not read, its copy to tiered storage is not finished" in caplog.text


def test_an_empty_object_of_a_segment_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / f"{TOPIC}-0-{TOPIC_ID}"
    folder.mkdir()
    for base, log in zip(BASES[:2], LOGS, strict=False):
        stem = folder / f"{base:020}-{base:022}"
        stem.with_suffix(".log").write_bytes(log.read_bytes() if base else b"")
        stem.with_suffix(".snapshot").touch()
    with pytest.raises(RemoteStorageError, match=f"object is empty, .* in .*{0:020}-{0:022}.log"):
        read_table(tmp_path)
    with pytest.raises(RemoteStorageError, match="object is empty"):
        kafkajit.restore(tmp_path, tmp_path / "kafka")


def test_a_segment_that_was_copied_twice_is_read_once(tmp_path: Path) -> None:
    folder = write_tier(tmp_path)
    copied = LOGS[1].read_bytes()
    write_segment(folder, BASES[1], copied, end_offset=ENDS[1], segment_id="copyMKeZwStOEOwRzT3L5o")
    whole = b"".join(log.read_bytes() for log in LOGS[1:3])
    write_segment(folder, BASES[1], whole, end_offset=ENDS[2], segment_id="bothMKeZwStOEOwRzT3L5o")
    offsets = read_table(tmp_path)["offset"].to_pylist()
    assert offsets == read_table(ORIGINAL)["offset"].to_pylist()
    log = Log(str(folder))
    assert log.read(0, 10**6)["offset"].to_pylist() == offsets


@pytest.mark.parametrize("is_local_first", [True, False])
def test_a_broker_and_its_tiered_storage_are_one_log(tmp_path: Path, is_local_first: bool) -> None:
    write_tier(tmp_path / "tier", rows=slice(0, 3))
    local = tmp_path / "logs" / f"{TOPIC}-0"
    shutil.copytree(ORIGINAL, local)
    (local / LOGS[0].name).unlink()
    (local / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    paths = [local.parent, tmp_path / "tier"]
    table = read_table(*(paths if is_local_first else reversed(paths)))
    assert without_paths(table) == without_paths(read_table(ORIGINAL))


def test_a_broker_with_another_topic_of_the_name_is_read_by_itself(tmp_path: Path) -> None:
    write_tier(tmp_path / "tier")
    shutil.copytree(ORIGINAL, tmp_path / "logs" / f"{TOPIC}-0")
    table = read_table(tmp_path / "tier", tmp_path / "logs")
    assert table.num_rows == 2 * read_table(ORIGINAL).num_rows


@pytest.mark.parametrize("id_", [TOPIC_ID, "AAAAAHTfRYy67jzwZdeqSQ"])
def test_a_glob_of_a_brokers_files_finds_its_topic_id(id_: str, tmp_path: Path) -> None:
    write_tier(tmp_path / "tier")
    local = tmp_path / f"{TOPIC}-0"
    local.mkdir()
    shutil.copy(LOGS[-1], local)
    (local / "partition.metadata").write_text(f"version: 0\ntopic_id: {id_}")
    count = read_table(tmp_path / "tier", f"{local}/*.log").num_rows
    more = 0 if id_ == TOPIC_ID else kafkajit.read_records(LOGS[-1]).num_rows
    assert count == read_table(ORIGINAL).num_rows + more
    options = options_of(tmp_path / "tier", f"{local}/*.log", oneTaskPerPartition=True)
    assert len(plan_tasks(options, [])) == 1 + bool(more)


def test_a_partition_without_a_record_is_no_obstacle(tmp_path: Path) -> None:
    write_tier(tmp_path)
    empty = tmp_path / f"empty-{TOPIC_ID}" / "0"
    write_segment(empty, 0, b"", end_offset=0)
    assert read_table(tmp_path).num_rows == read_table(ORIGINAL).num_rows
    assert Log(str(empty)).end_offset == 0


def test_a_recreated_topic_has_a_log_of_its_own(tmp_path: Path) -> None:
    write_tier(tmp_path)
    other = tmp_path / f"{TOPIC}-AAAAAHTfRYy67jzwZdeqSQ" / "0"
    write_segment(other, 0, LOGS[0].read_bytes(), end_offset=ENDS[0])
    count = read_table(ORIGINAL).num_rows + kafkajit.read_records(LOGS[0]).num_rows
    assert read_table(tmp_path).num_rows == count
