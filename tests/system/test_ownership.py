from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from strangers import IS_ROOT, folder_that_others_enter, give_away

from kafkajit.system import ownership
from kafkajit.system.ownership import others_of_file, others_of_folder


@pytest.fixture
def root() -> Iterator[Path]:
    with folder_that_others_enter() as folder:
        yield folder


@pytest.fixture
def cache(root: Path) -> Path:
    folder = root / "above" / "cache"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def not_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group of new files has other users."""
    monkeypatch.setattr(ownership, "_is_of_one_user", lambda _: False)


def test_a_new_folder_is_this_users_alone(cache: Path) -> None:
    assert others_of_folder(cache) is None


@pytest.mark.usefixtures("not_alone")
@pytest.mark.parametrize(
    ("mode", "who"), [(0o775, "group"), (0o757, "everybody"), (0o1777, "everybody")]
)
def test_a_folder_that_others_write_to_is_not(cache: Path, mode: int, who: str) -> None:
    cache.chmod(mode)
    said = others_of_folder(cache)
    assert said is not None
    assert said.startswith(f"{cache} can be written to by {who}")


@pytest.mark.usefixtures("not_alone")
@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_nor_is_one_below_a_folder_that_others_write_to(cache: Path, mode: int) -> None:
    cache.parent.chmod(mode)
    said = others_of_folder(cache)
    assert said is not None
    assert said.startswith(f"{cache.parent} can be written to by")
    cache.parent.chmod(mode | 0o1000)  # sticky, as /tmp is
    assert others_of_folder(cache) is None


@pytest.mark.usefixtures("not_alone")
def test_modes_do_not_matter_where_others_cannot_enter(cache: Path) -> None:
    cache.chmod(0o775)
    cache.parent.chmod(0o700)
    assert others_of_folder(cache) is None


def test_a_folder_of_another_user_is_not_this_users(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.chmod(0o700)
    user = give_away(cache, monkeypatch)
    assert str(others_of_folder(cache)).endswith(f" belongs to user {user}")


def test_nor_is_one_below_a_folder_of_another_user(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = give_away(cache.parent, monkeypatch)
    assert str(others_of_folder(cache)).endswith(f" belongs to user {user}")


def test_links_lead_to_folders_that_are_judged(cache: Path, root: Path) -> None:
    link = root / "link"
    link.symlink_to("above/../above/cache")
    assert others_of_folder(link) is None
    cache.chmod(0o777)
    assert str(others_of_folder(link)).startswith(f"{cache} ")
    cache.chmod(0o755)
    cache.parent.chmod(0o777)
    assert str(others_of_folder(link)).startswith(f"{cache.parent} ")


def test_a_link_out_of_a_folder_that_others_cannot_enter_does_not_count_as_inside(
    cache: Path, root: Path
) -> None:
    closed = root / "closed"
    closed.mkdir(mode=0o700)
    (closed / "link").symlink_to(cache)
    cache.chmod(0o777)
    assert str(others_of_folder(closed / "link")).startswith(f"{cache} ")


@pytest.mark.skipif(not IS_ROOT, reason="only root gives links away")
def test_a_link_of_another_user_is_not_followed(
    cache: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = root / "link"
    link.symlink_to(cache)
    give_away(link, monkeypatch)
    assert str(others_of_folder(link)).startswith(f"{link} belongs to user ")


def test_links_in_a_circle_and_missing_folders_are_named(root: Path) -> None:
    (root / "circle").symlink_to("circle")
    assert others_of_folder(root / "circle") == (
        f"{root}/circle: Too many levels of symbolic links"
    )
    assert others_of_folder(root / "missing") == f"{root}/missing: No such file or directory"


@pytest.mark.usefixtures("not_alone")
def test_a_file_is_as_trusted_as_another_if_nobody_else_writes_to_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, code = root / "file", root / "code"
    for path in (file, code):
        path.touch(mode=0o644)
    assert others_of_file(file) is others_of_file(file, code) is None
    for mode, who in ((0o664, "group "), (0o646, "everybody")):
        file.chmod(mode)
        for trusted in (None, code):
            said = str(others_of_file(file, trusted))
            assert said.startswith(f"can be written to by {who}")
        code.chmod(mode)
        assert others_of_file(file, code) is None
    file.chmod(0o644)
    user = give_away(file, monkeypatch)
    assert others_of_file(file) == f"belongs to user {user}"


@pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")
@pytest.mark.usefixtures("not_alone")
def test_a_file_of_the_owner_of_a_trusted_one_is_trusted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, code = root / "file", root / "code"
    for path in (file, code):
        path.touch()
        path.chmod(0o664)
    user = give_away(file, monkeypatch)
    assert others_of_file(file, code) == f"belongs to user {user}"
    give_away(code, monkeypatch)
    assert others_of_file(file, code) is None
    os.chown(code, -1, 1)
    assert str(others_of_file(file, code)).startswith("can be written to by group ")


def test_a_group_of_one_user_is_that_user(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ownership._is_of_one_user(0)
    assert not ownership._is_of_one_user(2**30)
    user = ownership._users.getpwuid(os.getuid())
    group = ownership._groups.struct_group((user.pw_name, "x", 4711, []))
    monkeypatch.setattr(ownership._groups, "getgrgid", lambda _: group)
    account = ownership._users.struct_passwd((*user[:3], 4711, *user[4:]))
    monkeypatch.setattr(ownership._users, "getpwuid", lambda _: account)
    ownership._is_of_one_user.cache_clear()
    assert ownership._is_of_one_user(4711)
    group = ownership._groups.struct_group((user.pw_name, "x", 4711, [user.pw_name, "mallory"]))
    ownership._is_of_one_user.cache_clear()
    assert not ownership._is_of_one_user(4711)
    ownership._is_of_one_user.cache_clear()


def test_systems_without_owners_trust_their_folders(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.chmod(0o777)
    monkeypatch.setattr(ownership, "_users", None)
    assert others_of_folder(cache) is None
    assert others_of_file(cache) is None
