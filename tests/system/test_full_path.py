"""A path is made absolute without leading elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkajit.system.full_path import full_path


@pytest.mark.parametrize(
    "path",
    [
        *("a", ".", "", "..", "../..", "a..b", "..a", "a/..b/../c..", "x/..", "/..", "a//b/", "//"),
        *("link/../f", "link/../f/../g", "link/../../here/x", "link/..", "link/.", "link/f/.."),
        *("sub/../f", "sub/./../link/..//../root", "../here/link/..", "loop/../a", "dangling/.."),
    ],
)
def test_a_full_path_leads_where_the_path_does(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (here / "link").symlink_to(tmp_path / "root" / "sub")
    (here / "loop").symlink_to("loop")
    (here / "dangling").symlink_to(tmp_path / "none" / "sub")
    monkeypatch.chdir(here)
    full = full_path(path)
    assert full.startswith("/")
    assert os.path.realpath(full) == os.path.realpath(path)
    if not {"link", "loop", "dangling"} & {*path.split("/")}:
        assert full == os.path.abspath(path)  # noqa: PTH100
    assert full_path(full) == full
