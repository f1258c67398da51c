"""The search over the segments of a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitions import marker
from scanning import far_away, options_of, read_in_small_pieces, read_rows, write_partition

import kafkajit.testing as kt
from kafkajit.places.named import Named
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.patterns import Pattern
from kafkajit.scan.plan import Split
from kafkajit.scan.search import SIDES, Found, Search, Searcher, plan_search
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import Gap

COLUMNS = ("topic", "partition", "offset")
FIELD = st.one_of(st.none(), st.text("abAB1", max_size=9).map(str.encode))
HEADERS = st.lists(st.tuples(st.text("ab", max_size=2), FIELD), max_size=2)
RECORD = st.builds(kt.Record, key=FIELD, value=FIELD, headers=HEADERS)
MESSAGE = st.builds(kt.Record, key=FIELD, value=FIELD)
CODECS = st.sampled_from(kt.CODECS)
BATCHES = st.lists(
    st.one_of(
        st.tuples(st.just(2), CODECS, st.lists(RECORD, min_size=1, max_size=4)),
        st.tuples(
            st.sampled_from([0, 1]),
            st.sampled_from(kt.CODECS[:-1]),
            st.lists(MESSAGE, min_size=1, max_size=4),
        ),
    ),
    max_size=5,
)


def log_of(batches: Sequence[tuple[int, str, list[kt.Record]]]) -> bytes:
    log, offset = b"", 0
    for magic, codec, records in batches:
        if magic == 2:
            log += kt.batch(records, base_offset=offset, codec=codec)
        else:
            log += kt.message_set(records, base_offset=offset, codec=codec, magic=magic)
        offset += len(records)
    return log


def found_at(
    *locations: str | Path, search: Search, around: bool = False, **options: Any
) -> tuple[list[int], list[Gap]]:
    """The offsets that are found, and the damage."""
    asked = options_of(*locations, **options)
    offsets, gaps = [], []
    for _, part in Searcher(search, asked, COLUMNS, around).parts(plan_search(asked)):
        if isinstance(part, Gap):
            gaps.append(part)
        else:
            assert isinstance(part, Found)
            offsets += compress(part.records["offset"].to_pylist(), part.matches)
    return offsets, gaps


def offsets_of(*locations: str | Path, search: Search, **options: Any) -> list[int]:
    offsets, gaps = found_at(*locations, search=search, **options)
    assert not gaps
    return offsets


def text(*words: str, **how: Any) -> Search:
    return Search(tuple(map(Pattern.of_text, words)), **how)


@given(
    BATCHES,
    st.lists(st.text("abAB1", max_size=4), min_size=1, max_size=2),
    st.lists(st.sampled_from(SIDES), min_size=1, unique=True),
    st.booleans(),
    st.booleans(),
)
def test_the_records_are_those_that_a_plain_loop_finds(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[int, str, list[kt.Record]]],
    words: list[str],
    sides: list[str],
    ignores_case: bool,
    is_inverted: bool,
) -> None:
    folder = write_partition(tmp_path_factory.mktemp("log"), {0: log_of(batches)})
    flags = re.IGNORECASE if ignores_case else 0
    wanted = [re.compile(re.escape(word.encode()), flags) for word in words]

    def places(record: kt.Record) -> list[bytes | None]:
        parts = {
            "key": [record.key],
            "value": [record.value],
            "headers": [part for key, value in record.headers for part in (key.encode(), value)],
        }
        return [part for side in sides for part in parts[side]]

    records = [record for _, _, records in batches for record in records]
    expected = [
        offset
        for offset, record in enumerate(records)
        if any(word.search(part) for part in places(record) if part is not None for word in wanted)
        != is_inverted
    ]
    patterns = tuple(Pattern.of_text(word, ignores_case=ignores_case) for word in words)
    search = Search(patterns, tuple(sides), is_inverted)
    if not records:
        return
    assert offsets_of(folder, search=search) == expected
    assert offsets_of(folder, search=search, checkCrcs="false") == expected
    assert found_at(folder, search=search, around=True) == (expected, [])


def test_a_match_is_in_one_field_of_one_record(tmp_path: Path) -> None:
    records = [kt.Record(b"ab", b"cd", [("ef", b"gh")]), kt.Record(b"ij", b"kl")]
    folder = write_partition(tmp_path, {0: kt.batch(records)})
    for word in ("ab", "cd", "ef", "gh"):
        assert offsets_of(folder, search=text(word)) == [0]
    content = (folder / f"{0:020}.log").read_bytes()
    for at in range(61, len(content) - 1):
        pair = content[at : at + 2]
        expected = [0] * (pair in (b"ab", b"cd", b"ef", b"gh")) + [1] * (pair in (b"ij", b"kl"))
        assert offsets_of(folder, search=Search((Pattern.of_bytes(pair),))) == expected


def test_markers_of_transactions_are_not_searched(tmp_path: Path) -> None:
    ids = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    log = kt.batch([kt.Record(value=b"in")], base_sequence=0, **ids)
    folder = write_partition(tmp_path, {0: log + marker(1, 7)})
    assert offsets_of(folder, search=text("")) == [0]
    assert offsets_of(folder, search=text("zz", is_inverted=True)) == [0]


@pytest.mark.parametrize("codec", kt.CODECS)
@pytest.mark.parametrize("how", sorted(kt.BREAKS))
def test_damage_is_reported_and_the_search_goes_on(tmp_path: Path, codec: str, how: str) -> None:
    good = [kt.batch([kt.Record(value=b"value")], base_offset=at, codec=codec) for at in (0, 9)]
    folder = write_partition(
        tmp_path, {0: good[0] + kt.broken(how, base_offset=1, codec=codec) + good[1]}
    )
    expected = [
        (row["corruption"]["position"], row["corruption"]["length"])
        for row in read_rows(folder, mode="PERMISSIVE")
        if row["corruption"]
    ]
    offsets, gaps = found_at(folder, search=text("value"))
    assert [offset for offset in offsets if offset in (0, 9)] == [0, 9]
    assert [gap[1:3] for gap in gaps] == expected


def test_a_batch_with_a_wrong_checksum_is_searched_on_request(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: kt.broken("wrong crc")})
    offsets, (gap,) = found_at(folder, search=text("value"))
    assert offsets == []
    assert (gap.path, gap.position) == (str(folder / f"{0:020}.log"), 0)
    assert offsets_of(folder, search=text("value"), checkCrcs="false") == [0, 1, 2]


def test_only_batches_with_a_needle_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kafkajit.records.default_records as default_records

    read = default_records._read_records
    counts: list[int] = []

    def counted(content: Any, extents: Any, memory: Any) -> Any:
        counts.append(extents.size)
        return read(content, extents, memory)

    monkeypatch.setattr(default_records, "_read_records", counted)
    log = b"".join(
        kt.batch([kt.Record(value=b"value of %02d" % at)], base_offset=at) for at in range(20)
    )
    folder = write_partition(tmp_path, {0: log})
    assert offsets_of(folder, search=text("of 03", "of 17")) == [3, 17]
    assert sum(counts) == 2
    regex = Search((Pattern.of_regex(r"^v.*of 1\d$"),))
    assert offsets_of(folder, search=regex) == list(range(10, 20))
    assert sum(counts) == 12


def test_remote_segments_are_searched_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [(2, codec, [kt.Record(value=codec.encode())]) for codec in kt.CODECS]
    write_partition(tmp_path, {0: log_of(batches)})
    read_in_small_pieces(monkeypatch)
    found = offsets_of(far_away(monkeypatch, tmp_path), search=text("lz4", "zstd"))
    assert found == [at for at, codec in enumerate(kt.CODECS) if codec in ("lz4", "zstd")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("orders-0", "orders-1", "payments-0", "__own-0"):
        records = [kt.Record(value=b"v", timestamp=1000 * at) for at in range(4)]
        log = b"".join(
            kt.batch([record], base_offset=at, base_timestamp=1000 * at)
            for at, record in enumerate(records)
        )
        write_partition(tmp_path, {0: log}, name)
    return tmp_path


def planned(
    options: ScanOptions,
    topics: list[str] | str = (),
    partitions: list[str] = (),
    **given: Any,  # type: ignore[assignment]
) -> list[str]:
    splits = plan_search(options, Named.of(topics, partitions), **given)
    return [Path(split.file.path).parent.name for split in splits]


def test_a_search_is_in_the_topics_and_partitions_that_are_named(root: Path) -> None:
    options = options_of(root)
    assert planned(options) == ["orders-0", "orders-1", "payments-0"]
    assert planned(options, ["orders"]) == planned(options, "orders") == ["orders-0", "orders-1"]
    assert planned(options, [], ["orders-1", "__own-0"]) == ["__own-0", "orders-1"]
    assert planned(options, ["payments"], ["orders-1"]) == ["orders-1", "payments-0"]
    with pytest.raises(
        FileNotFoundError, match=r"no segments of orders-7, other at .*: orders has"
    ):
        planned(options, ["payments", "other"], ["orders-7"])
    assert planned(options_of(root / "__own-0")) == ["__own-0"]


def test_a_name_is_not_missing_because_of_offsets(root: Path) -> None:
    assert planned(options_of(root), ["orders"], offsets=(100, None)) == []


def test_offsets_and_times_limit_a_search(root: Path) -> None:
    def found(offsets: tuple[int | None, int | None], **options: Any) -> list[int]:
        asked = options_of(root / "orders-0", **options)
        return [
            offset
            for _, part in Searcher(text("v"), asked, COLUMNS).parts(
                plan_search(asked, offsets=offsets)
            )
            if isinstance(part, Found)
            for offset in part.records["offset"].to_pylist()
        ]

    assert found((1, 3)) == [1, 2]
    assert found((None, 1)) == [0]
    assert found((None, None), startingTimestamp="2000ms") == [2, 3]
    assert found((1, None), endingTimestamp="3000ms") == [1, 2]


def test_small_segments_are_read_together(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "orders-1" / f"{0:020}.log"
    behind = b"".join(kt.batch([kt.Record(value=b"v")], base_offset=at) for at in range(5, 9))
    path.write_bytes(path.read_bytes() + kt.broken("wrong crc", base_offset=4) + behind)
    opened = []
    open_file = StoredFile.open

    def counted(file: StoredFile, *stretch: int) -> Any:
        opened.append(file.path)
        return open_file(file, *stretch)

    monkeypatch.setattr(StoredFile, "open", counted)
    asked = options_of(root)
    parts = list(Searcher(text("v"), asked, COLUMNS).parts(plan_search(asked)))
    found = [
        (Path(split.file.path).parent.name, offset)
        for split, part in parts
        if isinstance(part, Found)
        for offset in part.records["offset"].to_pylist()
    ]
    places = {"orders-0": range(4), "orders-1": [*range(4), *range(5, 9)], "payments-0": range(4)}
    assert found == [(place, offset) for place, offsets in places.items() for offset in offsets]
    (gap,) = [part for _, part in parts if isinstance(part, Gap)]
    assert gap.path == str(path)
    # Nothing is left to read the last one with.
    assert opened == [str(path), str(root / "payments-0" / path.name)]


def test_what_is_not_wanted_any_more_is_not_read(root: Path) -> None:
    asked = options_of(root)
    done: list[str] = []

    def wants(split: Split) -> bool:
        return split.file.path not in done

    found = []
    searcher = Searcher(text("v"), asked, COLUMNS, wants=wants)
    splits = plan_search(asked)
    done.append(splits[1].file.path)
    for split, _ in searcher.parts(splits):
        found.append(Path(split.file.path).parent.name)
        done.append(split.file.path)
    assert found == ["orders-0", "payments-0"]


def test_a_segment_that_cannot_be_read_does_not_end_the_search(root: Path) -> None:
    asked = options_of(root)
    splits = plan_search(asked)
    Path(splits[1].file.path).unlink()
    found = [
        (Path(split.file.path).parent.name, type(part))
        for split, part in Searcher(text("v"), asked, COLUMNS).parts(splits)
    ]
    assert found == [("orders-0", Found), ("orders-1", FileNotFoundError), ("payments-0", Found)]
