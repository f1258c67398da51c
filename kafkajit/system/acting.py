"""Act as the owner of a folder: root changes another user's files as that user.

Whoever owns a folder can put links into it, and exchange what is in it at any moment. So root does
nothing there that its owner could not do: a link leads to nothing that the owner may not read or
write, and what is made belongs to the owner. Other users are themselves everywhere.

The user of a folder is found on the way to it, from the top: from the first part that is not root's
on, its owner decides what a name leads to. A link of that user ends the search, and so does a part
that is missing.

On Linux only the calling thread acts, by its file system user (setfsuid), which takes root's rights
over files away. On other systems the whole process does.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import stat
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from kafkajit.system.ownership import places_on_the_way

_users: Any = None
with contextlib.suppress(ImportError):
    import pwd as _users

_ROOT = 0
_NO_GROUP = 65534
# setgroups of glibc is for all threads. The system call is for one.
_SETGROUPS = {"x86_64": 116, "aarch64": 159}
_acting = threading.local()
# How many blocks read for each user; a reader may have threads of its own.
_readers: Counter[int] = Counter()
_guard = threading.Lock()


class Owner(NamedTuple):
    """A user who is not root, with the group that new files get, and the other groups."""

    user: int
    group: int
    groups: tuple[int, ...] = ()


def owner_of(path: str | os.PathLike[str]) -> Owner | None:
    """The user as whom this process touches a path; None for itself.

    >>> owner_of("/")
    """
    if _users is None or os.geteuid() != _ROOT:
        return None
    found: os.stat_result | None = None
    with contextlib.suppress(OSError):  # the path may be missing from some part on
        for _, status in places_on_the_way(os.path.abspath(path)):  # noqa: PTH100
            if status.st_uid != _ROOT:
                found = status
                if stat.S_ISLNK(status.st_mode):
                    break
    return None if found is None else _owner(found.st_uid, found.st_gid)


@contextmanager
def acting_as(owner: Owner | None) -> Iterator[None]:
    """Touch the disk as a user; None changes nothing.

    Raises:
        PermissionError: the system does not let this process do that.
    """
    before = getattr(_acting, "owner", None)
    if owner is None or owner == before:
        yield
        return
    _act(owner)
    _acting.owner = owner
    try:
        yield
    finally:
        _act(before)
        _acting.owner = before


@contextmanager
def as_owner_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Touch the disk as the owner of a folder, if root would touch it otherwise."""
    with acting_as(owner_of(path)):
        yield


@contextmanager
def reading_for(path: str | os.PathLike[str]) -> Iterator[None]:
    """Read files for results that the owner of a folder gets.

    In this block root opens this user's files as the user: a link among them leads to nothing that
    the user may not read. Files of others are opened as before.
    """
    owner = owner_of(path)
    if owner is None:
        yield
        return
    with _guard:
        _readers[owner.user] += 1
    try:
        yield
    finally:
        with _guard:
            _readers[owner.user] -= 1


@contextmanager
def opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """Open a file to read, as the block around it says."""
    owner = None
    if any(_readers.values()):
        owner = owner_of(os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120
    with acting_as(owner if owner is not None and _readers[owner.user] else None):
        yield


@cache
def _owner(user: int, group: int) -> Owner:
    try:
        known = _users.getpwuid(user)
    except KeyError:  # such as a container's
        return Owner(user, group if group != _ROOT else _NO_GROUP)
    groups = os.getgrouplist(known.pw_name, known.pw_gid)
    return Owner(user, group if group in groups else known.pw_gid, tuple(sorted(groups)))


def _act(owner: Owner | None) -> None:
    """Become a user, or root again."""
    if sys.platform == "linux":
        _act_in_thread(owner)
    elif owner is None:
        os.seteuid(_ROOT)
        os.setegid(os.getgid())
        os.setgroups(_own_groups())
    else:
        _own_groups()
        os.seteuid(_ROOT)  # from one user to another
        os.setgroups(owner.groups)
        os.setegid(owner.group)
        os.seteuid(owner.user)


def _act_in_thread(owner: Owner | None) -> None:
    own = _own_groups()
    system = ctypes.CDLL(None, use_errno=True)
    groups = own if owner is None else owner.groups
    number = _SETGROUPS.get(platform.machine())
    if number is None:
        os.setgroups(groups)
    else:
        ids = (ctypes.c_uint32 * len(groups))(*groups)
        if system.syscall(number, len(groups), ids) != 0:
            code = ctypes.get_errno()
            raise PermissionError(code, f"setgroups: {os.strerror(code)}")
    user, group = (_ROOT, os.getegid()) if owner is None else (owner.user, owner.group)
    system.setfsgid(group)
    system.setfsuid(user)
    if system.setfsuid(-1) != user:  # it tells of no error; this changes nothing
        raise PermissionError(
            errno.EPERM, f"cannot act as user {user}, whose folder it is: run kafkajit as that user"
        )


@cache
def _own_groups() -> tuple[int, ...]:
    return tuple(os.getgroups())
