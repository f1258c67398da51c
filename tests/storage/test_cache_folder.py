from __future__ import annotations

from pathlib import Path

import pytest
from strangers import folder_that_others_enter

from kafkajit.storage.cache_folder import cache_folder


def test_the_folder_is_made_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAFKAJIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cache_folder()
    assert folder == tmp_path / "cache" / "kafkajit"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("which", ["the folder", "one above"])
def test_a_folder_that_others_can_write_to_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, which: str
) -> None:
    with folder_that_others_enter() as home:
        monkeypatch.delenv("KAFKAJIT_CACHE", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        folder = cache_folder()
        assert folder is not None
        folder.chmod(0o755)
        assert cache_folder() == folder
        caplog.set_level("DEBUG", "kafkajit")
        writable = folder if which == "the folder" else home
        writable.chmod(0o777)
        assert cache_folder() is None
        assert caplog.messages == [
            f"nothing is kept in {folder} for later processes: {writable} can be written to by "
            "everybody"
        ]


def test_a_relative_folder_in_the_environment_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAFKAJIT_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert cache_folder() == tmp_path / "home" / ".cache" / "kafkajit"


def test_kafkajit_cache_0_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKAJIT_CACHE", "0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() is None
    assert not list(tmp_path.iterdir())
