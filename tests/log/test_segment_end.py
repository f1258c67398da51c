"""The ends of logs, read without kernels, are those that the kernels find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from corpus import LOGS, log_id, run_python
from hypothesis import example, given
from hypothesis import strategies as st
from scanning import by_folder, write_partition

import kafkajit.testing as kt
from kafkajit.format.layout import BATCH_HEADER
from kafkajit.log import segment_end
from kafkajit.log.segment import Segment, segments_of
from kafkajit.log.segment_end import begins_with_hole, plain_end, walked_end
from kafkajit.places.locations import find_segments

PLACES = st.floats(0, 1, exclude_max=True)
CHANGES = st.lists(st.tuples(PLACES, st.integers(0, 255)), max_size=3)
LOG = b"".join(
    kt.batch([kt.Record(value=b"v" * 50)] * 2, base_offset=base, codec=codec)
    for base, codec in ((0, "none"), (2, "zstd"), (7, "none"), (9, "lz4"))
)
# The position of the third batch.
THIRD = len(kt.batch([kt.Record(value=b"v" * 50)] * 2)) + len(
    kt.batch([kt.Record(value=b"v" * 50)] * 2, codec="zstd")
)


def segments_at(location: Path) -> list[Segment]:
    return segments_of(*find_segments([str(location)]))


@pytest.fixture
def by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_end, "_SMALL", 0)


@by_folder
@pytest.mark.parametrize("small", [0, 1 << 30], ids=["by index", "whole"])
def test_sound_logs_of_v2_end_where_the_kernels_find_it(
    folder: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_end, "_SMALL", small)
    for segment in segments_at(folder):
        assert plain_end(segment) in (walked_end(segment), None)


@pytest.mark.parametrize("path", LOGS, ids=log_id)
def test_any_log_ends_where_the_kernels_find_it(path: Path) -> None:
    (segment,) = segments_of(*find_segments([str(path)]))
    assert plain_end(segment) in (walked_end(segment), None)


def test_a_sound_log_is_read_without_kernels(tmp_path: Path, by_index: None) -> None:
    folder = write_partition(tmp_path, {0: LOG})
    (folder / f"{0:020}.index").write_bytes(kt.offset_index([(8, THIRD)]))
    (segment,) = segments_at(folder)
    found = plain_end(segment)
    assert found == walked_end(segment)
    assert found is not None
    assert (found.offset, found.codecs, found.formats) == (10, {"none", "lz4"}, {"v2"})


@pytest.mark.parametrize(
    "content",
    [
        LOG[:-1],
        LOG + b"\0" * 100,
        LOG + LOG,
        kt.batch([kt.Record(value=b"v")], magic=1),
        LOG * 0 + b"PAR1" + b"\0" * 100,
    ],
    ids=["torn", "preallocated", "offsets that go back", "v1", "no log"],
)
def test_other_logs_are_left_to_the_kernels(tmp_path: Path, content: bytes) -> None:
    (segment,) = segments_at(write_partition(tmp_path, {0: content}))
    assert plain_end(segment) is None


def test_a_log_of_many_batches_is_left_to_the_kernels(tmp_path: Path) -> None:
    batches = [kt.batch([kt.Record()], base_offset=base) for base in range(257)]
    (few,) = segments_at(write_partition(tmp_path / "few", {0: b"".join(batches[:256])}))
    (many,) = segments_at(write_partition(tmp_path / "many", {0: b"".join(batches)}))
    assert plain_end(few) == walked_end(few)
    assert plain_end(many) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("baseOffset", -1),
        ("batchLength", 10_000),
        ("partitionLeaderEpoch", -2),
        ("magic", 3),
        ("attributes", 0x80),
        ("attributes", 0x100),
        ("lastOffsetDelta", 0),
        ("maxTimestamp", -2),
        ("producerId", -2),
        ("baseSequence", -2),
        ("recordsCount", -1),
        ("recordsCount", 3),
    ],
)
def test_a_header_that_no_broker_writes_is_left_to_the_kernels(
    tmp_path: Path, name: str, value: int
) -> None:
    log = bytearray(LOG)
    np.frombuffer(log, BATCH_HEADER, 1)[name] = value
    (segment,) = segments_at(write_partition(tmp_path, {0: bytes(log)}))
    assert plain_end(segment) is None


@pytest.mark.parametrize(
    "entries",
    [[], [(8, THIRD - 1)], [(8, len(LOG))], [(8, 1 << 20)], [(8, -5)], [(8, THIRD), (0, 0)]],
)
def test_an_entry_that_leads_to_no_batch_is_left_to_the_kernels(
    tmp_path: Path, entries: Sequence[tuple[int, int]], by_index: None
) -> None:
    folder = write_partition(tmp_path, {0: LOG})
    (folder / f"{0:020}.index").write_bytes(kt.offset_index(entries))
    (segment,) = segments_at(folder)
    assert plain_end(segment) is None
    assert walked_end(segment).offset == 10


def test_an_entry_is_believed_only_if_the_batch_there_has_its_checksum(
    tmp_path: Path, by_index: None
) -> None:
    log = bytearray(LOG)
    log[THIRD + 70] ^= 1
    folder = write_partition(tmp_path, {0: bytes(log)})
    (folder / f"{0:020}.index").write_bytes(kt.offset_index([(8, THIRD)]))
    (segment,) = segments_at(folder)
    assert plain_end(segment) is None


@given(CHANGES, st.booleans())
@example([(0.1, 0)], True)
def test_changed_bytes_make_no_other_end(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int]], has_index: bool
) -> None:
    log = bytearray(LOG)
    for place, byte in changes:
        log[int(place * len(log))] = byte
    folder = write_partition(tmp_path_factory.mktemp("changed"), {0: bytes(log)})
    if has_index:
        (folder / f"{0:020}.index").write_bytes(kt.offset_index([(8, THIRD)]))
    (segment,) = segments_at(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_end, "_SMALL", 0 if has_index else 1 << 30)
        assert plain_end(segment) in (walked_end(segment), None)


def test_a_quick_look_loads_no_kernel() -> None:
    code = "import sys; from kafkajit.cli import main; main(['info', 'sample:payments-0']); "
    code += (
        "print([name for name in ('numba', 'pandas', 'pyarrow.compute') if name in sys.modules])"
    )
    assert run_python(code).endswith("\n[]\n")


def test_a_batch_that_may_be_huge_is_left_to_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned = kt.batch([kt.Record(value=b"v" * 50)], last_offset_delta=3)
    (segment,) = segments_at(write_partition(tmp_path, {0: cleaned}))
    assert begins_with_hole(segment)
    monkeypatch.setattr(segment_end, "_CHECKED", len(cleaned) - 1)
    assert not begins_with_hole(segment)
