from __future__ import annotations

import lzma
from pathlib import Path

import data
import pytest


@pytest.mark.parametrize("archives", [data.ARCHIVES, data.OBJECTS], ids=["corpus", "objects"])
def test_the_index_names_every_file_of_the_archives(archives: Path) -> None:
    assert (archives / data.INDEX).read_text().splitlines() == list(data.index(archives))


def test_packing_the_same_files_again_gives_the_same_bytes(tmp_path: Path) -> None:
    data.pack(["indexes"], tmp_path, data.unpacked())
    # Another release of xz may compress the same tar in another way.
    packed, kept = (
        lzma.decompress((folder / "indexes.tar.xz").read_bytes())
        for folder in (tmp_path, data.ARCHIVES)
    )
    assert packed == kept


def test_an_archive_that_changes_is_unpacked_again(tmp_path: Path) -> None:
    archives, source, folders = (tmp_path / name for name in ("archives", "source", "folders"))
    archives.mkdir()
    (archives / "loose.tsv").write_text("beside")
    for content in (b"first", b"second"):
        (source / "some" / "inside").mkdir(parents=True, exist_ok=True)
        (source / "some" / "inside" / "file").write_bytes(content)
        data.pack(["some"], archives, source)
        data.unpacked(archives, folders)
        assert (folders / "some" / "inside" / "file").read_bytes() == content
        assert (folders / "loose.tsv").read_text() == "beside"
