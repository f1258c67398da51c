"""Act as the owner of a folder: root changes another user's files as that user.

Whoever owns a folder can put links into it, and exchange what is in it at any moment. So root does
nothing there that its owner could not do: a link leads to nothing that the owner may not read or
write, and what is made belongs to the owner. Other users are themselves everywhere.

The user of a folder is found on the way to it, from the top: the owner of the first folder or link
that is not root's decides to what all names below it lead.

On Linux each call runs in a thread of its own, which becomes the user by its file system user
(setfsuid), loses root's rights over files by that, and ends. A signal handler, which Python runs in
the main thread, cannot interrupt it half-way. On other systems the whole process becomes the user.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import errno
import os
import platform
import stat
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kafkajit.system.full_path import full_path
from kafkajit.system.ownership import places_on_the_way

_users: Any = None
with contextlib.suppress(ImportError):
    import pwd as _users

T = TypeVar("T")

_ROOT = 0
_NO_GROUP = 65534
# setgroups of glibc is for all threads. The system call is for one.
_SETGROUPS = {"x86_64": 116, "aarch64": 159}
# How many blocks read for each user; a reader may have threads of its own.
_readers: Counter[int] = Counter()
_guard = threading.Lock()
_thread_of = threading.local()  # the user that a thread acts as
# The header of capset for this thread, and 2 times 3 words without any capability.
_CAPABILITIES = (0x20080522, 0)


class Owner(NamedTuple):
    """A user who is not root, with the group that new files get, and the other groups."""

    user: int
    group: int
    groups: tuple[int, ...] = ()


def owner_of(path: str | os.PathLike[str]) -> Owner | None:
    """The user as whom this process touches a path; None for itself.

    >>> owner_of("/")
    """
    return _owner_on_the_way(path)[0]


def _owner_on_the_way(
    path: str | os.PathLike[str], among: Mapping[int, int] | None = None
) -> tuple[Owner | None, OSError | None]:
    """The owner of a path, and why the way to it could not be gone to its end.

    Users that `among` maps to 0 do not count. Behind the first user only links do then: a file
    leads nowhere.
    """
    if _users is None or os.geteuid() != _ROOT:
        return None, None
    found: os.stat_result | None = None
    missing = None
    try:
        is_first = True
        for _, status in places_on_the_way(full_path(path)):
            user = status.st_uid
            if user == _ROOT or not _is_of_this_namespace(user):
                continue
            is_meant = is_first or stat.S_ISLNK(status.st_mode)
            if among is None or (is_meant and among.get(user, 0) > 0):
                found = status
                break
            is_first = False
    except OSError as error:
        missing = error
    return None if found is None else _owner(found.st_uid, found.st_gid), missing


def as_owner_of(folder: str | os.PathLike[str], function: Callable[..., T], *given: Any) -> T:
    """Call a function that touches the disk as the owner of a folder, if root would otherwise.

    Raises:
        FileNotFoundError: there is no such folder. One that comes now may lead anywhere.
        PermissionError: the owner may not do that, or the system does not let root act.
    """
    return acting_as(actor_in(folder), function, *given)


def actor_in(folder: str | os.PathLike[str]) -> Owner | None:
    """The user as whom a folder is changed now; None for this process's own."""
    owner = owner_now(folder)
    return getattr(_thread_of, "instead", None) if owner is None else owner


@contextmanager
def changing_for(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Change what belongs to a folder and lies elsewhere as the owner of the folder, too.

    In this block root changes its own folders as that user, who may have written what is done.
    """
    before = getattr(_thread_of, "instead", None)
    _thread_of.instead = owner_now(folder)
    try:
        yield
    finally:
        _thread_of.instead = before


def acting_as(owner: Owner | None, function: Callable[..., T], *given: Any) -> T:
    """Call a function as a user; None changes nothing."""
    if owner is None:
        return function(*given)
    done: list[T] = []
    failed: list[BaseException] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        try:
            _become(owner)
            _thread_of.user = owner.user
            done.append(function(*given))
        except BaseException as error:
            failed.append(error)
        ended.release()

    if sys.platform == "linux":
        # An exception from a signal in threading.Thread.start would leave a trace of the thread.
        _thread.start_new_thread(run, ())
        ended.acquire()
    else:
        try:
            run()
        finally:
            _thread_of.user = None
            _be_root_again()
    if not failed:
        return done[0]
    error = failed[0]
    if isinstance(error, PermissionError) and error.filename is not None:
        raise PermissionError(
            error.errno,
            f"{error.strerror} for user {owner.user}, as whom root acts, since the folder or one "
            "around it is this user's: run kafkajit as the user who owns the files",
            error.filename,
        ) from None
    raise error


def is_acting() -> bool:
    """Whether this thread acts as another user."""
    return getattr(_thread_of, "user", None) is not None


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


def opening(path: str | os.PathLike[str], function: Callable[..., T], *given: Any) -> T:
    """Call a function that opens a file to read, as the block around it says."""
    owner = None
    if any(_readers.values()):
        # All that is on the way counts, and the file itself: a user's link may lie in a folder of
        # root's or of a third user's.
        owner = owner_now(path, _readers)
    return acting_as(owner, function, *given)


def owner_now(
    folder: str | os.PathLike[str], among: Mapping[int, int] | None = None
) -> Owner | None:
    """As `owner_of`, of a folder that is there: a missing one may be anybody's when it comes."""
    owner, missing = _owner_on_the_way(folder, among)
    if owner is None and missing is not None:
        raise missing
    return owner


@cache
def _is_of_this_namespace(user: int) -> bool:
    """Whether root here has rights over a user's files: a container may not know the user."""
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return True
    ranges = [tuple(map(int, line.split())) for line in lines]
    return any(first <= user < first + count for first, _, count in ranges)


@cache
def _owner(user: int, group: int) -> Owner:
    try:
        known = _users.getpwuid(user)
    except KeyError:  # such as a container's
        return Owner(user, group if group == user else _NO_GROUP)
    groups = os.getgrouplist(known.pw_name, known.pw_gid)
    return Owner(user, group if group in groups else known.pw_gid, tuple(sorted(groups)))


def _become(owner: Owner) -> None:
    """Become a user: the calling thread on Linux, else the process."""
    if sys.platform != "linux":
        _own_groups()
        os.setgroups(owner.groups)
        os.setegid(owner.group)
        os.seteuid(owner.user)
        return
    system = ctypes.CDLL(None, use_errno=True)
    system.setfsuid.restype = system.setfsgid.restype = ctypes.c_uint32
    number = _SETGROUPS.get(platform.machine())
    ids = (ctypes.c_uint32 * len(owner.groups))(*owner.groups)
    if number is None:
        os.setgroups(owner.groups)  # of all threads; root needs none
        may_act = True
    else:
        may_act = system.syscall(number, len(owner.groups), ids) == 0
    system.setfsgid(owner.group)
    system.setfsuid(owner.user)
    # It tells of no error. Asked for -1, it changes nothing.
    if not may_act or system.setfsuid(-1) != owner.user:
        raise PermissionError(
            errno.EPERM,
            f"root cannot act here as user {owner.user}, who owns the folder (no CAP_SETUID or "
            "CAP_SETGID): run kafkajit as that user",
        )
    # Those over files are gone. With the others a user would see, for one, others' processes.
    header = (ctypes.c_uint32 * len(_CAPABILITIES))(*_CAPABILITIES)
    system.capset(header, (ctypes.c_uint32 * 6)())


def _be_root_again() -> None:
    os.seteuid(_ROOT)
    os.setegid(os.getgid())
    os.setgroups(_own_groups())


@cache
def _own_groups() -> tuple[int, ...]:
    return tuple(os.getgroups())
