from __future__ import annotations

from pathlib import Path

import pytest
from corpus import SOUND_LOGS, log_id

from kafkajit.format.log_path import LogPath, parse_log_path

UUID = "0f4c" * 8


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/k/orders-3/00000000000000000042.log", ("orders", 3, 42, ".log")),
        (f"/default/orders/3/segment-{42:020}.kfs", ("orders", 3, 42, ".kfs")),
        (f"/default/orders/3/segment-{42:020}.index", (None, None, None, None)),
        (f"/default/orders/x/segment-{42:020}.kfs", (None, None, 42, ".kfs")),
        (f"/default/orders/2147483648/segment-{42:020}.kfs", (None, None, 42, ".kfs")),
        (f"/default/orders/{'9' * 5000}/segment-{42:020}.kfs", (None, None, 42, ".kfs")),
        (f"/default/orders/\u0663/segment-{42:020}.kfs", (None, None, 42, ".kfs")),
        ("/default/orders/3/segment-42.kfs", (None, None, None, None)),
        ("/k/orders-3/00000000000000000042.timeindex", ("orders", 3, 42, ".timeindex")),
        ("/k/orders-3/00000000000000000042.log.deleted", ("orders", 3, 42, ".log.deleted")),
        ("/k/orders-3/00000000000000000042.log.cleaned", ("orders", 3, 42, ".log.cleaned")),
        ("/k/orders-3/00000000000000000042.log.swap", ("orders", 3, 42, ".log.swap")),
        ("/k/a-b-10/09223372036854775807.log", ("a-b", 10, 2**63 - 1, ".log")),
        ("/k/a.b_c-0/00000000000000000000.log", ("a.b_c", 0, 0, ".log")),
        ("/k/__cluster_metadata-0/x", ("__cluster_metadata", 0, None, None)),
        (
            "/k/__cluster_metadata-0/00000000000000000124-0000000001.checkpoint",
            ("__cluster_metadata", 0, 124, ".checkpoint"),
        ),
        (f"/k/t-1.{UUID}-delete/00000000000000000007.log", ("t", 1, 7, ".log")),
        (f"/k/t-1.{UUID}-future/00000000000000000007.log", ("t", 1, 7, ".log")),
        (f"/k/t-1.{UUID}-stray/00000000000000000007.log", ("t", 1, 7, ".log")),
        (f"/k/t-1.{UUID}-other/00000000000000000007.log", (None, None, 7, ".log")),
        ("/k/orders/00000000000000000042.log", (None, None, 42, ".log")),
        ("/k/-3/00000000000000000042.log", (None, None, 42, ".log")),
        ("/k/t-2147483647/00000000000000000042.log", ("t", 2147483647, 42, ".log")),
        ("/k/t-2147483648/00000000000000000042.log", (None, None, 42, ".log")),
        ("/k/t-1/leader-epoch-checkpoint", ("t", 1, None, None)),
        ("/k/t-1/42.log", ("t", 1, None, None)),
        ("/k/t-1/000000000000000000042.log", ("t", 1, None, None)),
        ("/k/t-1/00000000000000000042", ("t", 1, None, None)),
        ("/", (None, None, None, None)),
    ],
)
def test_a_path_says_what_it_says(path: str, expected: tuple[object, ...]) -> None:
    assert parse_log_path(path) == LogPath(*expected)
    assert parse_log_path(Path(path)) == LogPath(*expected)


def test_a_relative_path_is_of_the_folder_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert parse_log_path("00000000000000000042.log") == LogPath("orders", 3, 42, ".log")
    assert parse_log_path("./00000000000000000042.log") == LogPath("orders", 3, 42, ".log")
    assert parse_log_path("x/y/a-1//./7") == LogPath("a", 1, None, None)


@pytest.mark.parametrize(
    "path", [path for path in SOUND_LOGS if path.parent.name != "log-dir"], ids=log_id
)
def test_a_brokers_paths_have_all_parts(path: Path) -> None:
    parsed = parse_log_path(path)
    assert f"{parsed.topic}-{parsed.partition}" == path.parent.name
    assert path.name.startswith(f"{parsed.base_offset:020}")
    assert parsed.suffix is not None
    assert path.name.endswith(parsed.suffix)
