"""Whether others may have written what is on disk: code is loaded from files of this user alone.

Owners and modes are those of POSIX. Windows protects a user's folders by itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

_groups: Any = None
_users: Any = None
with contextlib.suppress(ImportError):
    import grp as _groups
    import pwd as _users

_ROOT = 0
_MOST_LINKS = 40  # as in Linux


def others_of_file(
    path: str | os.PathLike[str], trusted: str | os.PathLike[str] | None = None
) -> str | None:
    """Who may have written a file besides this user and root; None if nobody.

    Args:
        path: the file
        trusted: a file whose writers are not meant
    """
    if _users is None:
        return None
    found = Path(path).stat()
    like = None if trusted is None else Path(trusted).stat()
    return _owner(found, like) or _writers(found, like)


def others_of(found: os.stat_result, users: Collection[int] = ()) -> str | None:
    """Who may have written a file or folder besides this user and root, and perhaps others."""
    if _users is None:
        return None
    return (None if found.st_uid in users else _owner(found)) or _writers(found)


def others_of_folder(folder: str | os.PathLike[str]) -> str | None:
    """Who may have written into a folder besides this user and root; None if nobody.

    Whoever may write to a folder above can exchange this one, unless the one above is sticky, as
    /tmp is. If others cannot enter a folder, the modes of what is in it do not matter.
    """
    if _users is None:
        return None
    closed: Path | None = None
    try:
        places = [
            (Path(place), found) for place, found in places_on_the_way(Path(folder).absolute())
        ]
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    for place, found in places:
        if closed is not None and closed not in place.parents:
            closed = None  # a link has led out of it
        is_sticky = found.st_mode & stat.S_ISVTX and place != places[-1][0]
        reason = _owner(found)
        if reason is None and closed is None and not is_sticky:
            reason = _writers(found)
        if reason is not None:
            return f"{place} {reason}"
        if closed is None and not found.st_mode & (stat.S_IXGRP | stat.S_IXOTH):
            closed = place
    return None


def link_of_another(path: str | os.PathLike[str]) -> Path | None:
    """The first link on the way to a path that another user than this one and root has made."""
    if _users is None:
        return None
    with contextlib.suppress(OSError):
        for place, found in places_on_the_way(Path(path).absolute()):
            if stat.S_ISLNK(found.st_mode) and found.st_uid not in (os.getuid(), _ROOT):
                return Path(place)
    return None


def places_on_the_way(path: str | os.PathLike[str]) -> Iterator[tuple[str, os.stat_result]]:
    """All folders and links on the way to an absolute path, and the path itself."""
    # Without pathlib: a change asks for the way to each file that it touches.
    place = ""
    yield "/", os.lstat("/")
    names = os.fspath(path).split("/")[::-1]
    links = 0
    while names:
        name = names.pop()
        if name in ("", os.curdir):
            continue
        if name == os.pardir:
            place = place.rpartition("/")[0]
            continue
        here = f"{place}/{name}"
        found = os.lstat(here)
        yield here, found
        if not stat.S_ISLNK(found.st_mode):
            place = here
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
        target = os.readlink(here)  # noqa: PTH115
        if target.startswith("/"):
            place = ""
        names.extend(target.split("/")[::-1])


def _owner(found: os.stat_result, like: os.stat_result | None = None) -> str | None:
    if found.st_uid in (os.getuid(), _ROOT) or (like and found.st_uid == like.st_uid):
        return None
    return f"belongs to user {found.st_uid}"


def _writers(found: os.stat_result, like: os.stat_result | None = None) -> str | None:
    mode, group = found.st_mode, found.st_gid
    if stat.S_ISLNK(mode):
        return None  # a link has no mode
    if like is not None:
        mode &= ~(like.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if like.st_gid == group else 0)))
    if mode & stat.S_IWOTH:
        return "can be written to by everybody"
    if mode & stat.S_IWGRP and not _is_of_one_user(group):
        return f"can be written to by group {group}"
    return None


@cache
def _is_of_one_user(group: int) -> bool:
    """Whether a group is root's or this user's own, as many systems make one for each user."""
    if group == _ROOT:
        return True
    try:
        user, found = _users.getpwuid(os.getuid()), _groups.getgrgid(group)
    except KeyError:
        return False
    is_own = (found.gr_gid, found.gr_name) == (user.pw_gid, user.pw_name)
    return is_own and set(found.gr_mem) <= {user.pw_name}
