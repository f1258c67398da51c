"""One layout of several at a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafscale_buckets import write_partition
from scanning import read_rows, read_table

import kafkajit.places.listing
import kafkajit.testing as kt
from kafkajit.cli.sql.views import Logs
from kafkajit.places.layouts import LAYOUTS

ID = "tqimKeZwStOEOwRzT3L5oQ"
TOPICS = {
    "local": "here",
    "localTieredStorage": "copied",
    "aiven": "uploaded",
    "pinterest": "pinned",
    "kafscale": "scaled",
}
FILES = {
    "local": [f"here-0/{0:020}.log"],
    "localTieredStorage": [f"copied-0-{ID}/{0:020}-{ID}{end}" for end in (".log", ".snapshot")],
    "aiven": [f"uploaded-{ID}/0/{0:020}-{ID}{end}" for end in (".log", ".rsm-manifest")],
    "pinterest": [f"01/cluster/pinned-0/{0:020}.log", "01/cluster/pinned-0/offset.wm"],
}
MANIFEST = """{"version": "1", "compression": false, "chunkIndex": {"type": "fixed",
 "originalChunkSize": %d, "originalFileSize": %d, "transformedChunkSize": %d,
 "finalTransformedChunkSize": %d}, "segmentIndexes": {}}"""


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """A segment of each layout."""
    log = kt.batch([kt.Record(value=b"v")])
    for names in FILES.values():
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("manifest"):
                path.write_text(MANIFEST % ((len(log),) * 4))
            else:
                path.write_bytes(log if name.endswith(".log") else b"")
    write_partition(tmp_path / "default" / "scaled" / "0", (0,))
    return tmp_path


@pytest.mark.parametrize("layout", TOPICS)
def test_only_the_named_layout_is_read(
    layout: str, bucket: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafkajit.places.listing, "_MOST_EXPLORED", 0)
    expected = [TOPICS[layout]]
    for kind in ("records", "batches"):
        rows = read_rows(bucket, layout=layout.upper(), kind=kind)
        assert sorted({row["topic"] for row in rows}) == expected
    if layout in ("local", "aiven", "localTieredStorage"):
        assert f"{bucket}: segments of other layouts are left out: 1 of " in caplog.text
    assert Logs([str(bucket)], {"layout": layout}).topics() == expected


def test_a_layout_that_is_not_there_is_an_error(bucket: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"layout aiven at .*, but 1 of local: choose"):
        read_table(bucket / "here-0", layout="aiven")
    with pytest.raises(FileNotFoundError, match="no segments"):
        read_table(bucket / "01", layout="kafscale")
    with pytest.raises(ValueError, match=r"unknown value 'kafscal' .*did you mean 'kafscale'"):
        read_table(bucket, layout="kafscal")


def test_all_layouts_have_names() -> None:
    assert set(LAYOUTS) == {"auto", *TOPICS}
