"""Makes a process as poor as another system: what Python lacks there is missing here.

This is not that system. It finds a name that exists on Linux only. It does not find paths with
backslashes, files that cannot be renamed while they are open, or libraries built in another way.
"""

from __future__ import annotations

import errno
import importlib
import mmap
import os
import signal
import socket
import sys
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

# Python's documentation has "Availability: Unix" at these, and "not macOS" at the second group.
POSIX_MODULES = (
    *("crypt", "curses", "fcntl", "grp", "nis", "ossaudiodev", "posix_ipc", "pty", "pwd"),
    *("readline", "resource", "spwd", "syslog", "termios", "tty"),
)
POSIX_OF_OS = (
    *("chown", "chroot", "ctermid", "fchmod", "fchown", "fork", "forkpty", "fpathconf"),
    *("fstatvfs", "getegid", "geteuid", "getgid", "getgroups", "getloadavg", "getpgid", "getpgrp"),
    *("getpriority", "getsid", "getuid", "getxattr", "initgroups", "killpg", "lchown", "lockf"),
    *("major", "makedev", "minor", "mkfifo", "mknod", "nice", "openpty", "pathconf", "posix_spawn"),
    *("posix_spawnp", "pread", "preadv", "pwrite", "pwritev", "readv", "register_at_fork"),
    *("sched_yield", "sendfile", "setegid", "seteuid", "setgid", "setgroups", "setpgid"),
    *("setpriority", "setregid", "setreuid", "setsid", "setuid", "statvfs", "sync", "sysconf"),
    *("tcgetpgrp", "tcsetpgrp", "ttyname", "uname", "wait", "wait3", "wait4", "waitid", "writev"),
    *("O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC"),
)
# But O_TMPFILE, which Python's own tempfile has found by now.
LINUX_OF_OS = (
    *("copy_file_range", "eventfd", "fdatasync", "memfd_create", "pidfd_open", "pipe2"),
    *("posix_fadvise", "posix_fallocate", "sched_getaffinity", "sched_setaffinity", "splice"),
    *("O_DIRECT", "O_LARGEFILE", "O_NOATIME", "O_PATH"),
)
LINUX_OF_MMAP = ("MADV_HUGEPAGE", "MADV_NOHUGEPAGE", "MAP_POPULATE", "MADV_DONTFORK", "MADV_REMOVE")
POSIX_OF_SIGNAL = (
    *("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGSTOP", "SIGTSTP"),
    *("SIGUSR1", "SIGUSR2", "SIGWINCH", "alarm", "pause", "pthread_kill", "pthread_sigmask"),
    *("setitimer", "siginterrupt", "sigpending", "sigtimedwait", "sigwait"),
)
LINUX_OF_SOCKET = ("TCP_QUICKACK", "AF_NETLINK", "AF_PACKET", "AF_VSOCK")
POSIX_OF_SOCKET = ("AF_UNIX", "SO_REUSEPORT", "recv_fds", "send_fds", "socketpair")

# Modules of other packages that kernels and codecs come from: these know on which system they are.
LIBRARIES = (
    *("numpy", "numba", "llvmlite.binding", "numba.core.caching", "numba.typed", "pyarrow"),
    *("pyarrow.compute", "pyarrow.csv", "pyarrow.dataset", "pyarrow.fs", "pyarrow.json"),
    *("pyarrow.parquet", "pyarrow.acero", "crc32c", "lz4.frame", "zstandard", "cramjam", "isal"),
    *("isal.igzip", "isal.isal_zlib", "deflate", "backports.zstd", "cryptography", "subprocess"),
    *("tempfile", "multiprocessing", "asyncio", "shutil", "ctypes", "getpass", "http.server"),
    *("logging.handlers", "webbrowser", "uuid", "zipfile", "cmd", "rlcompleter"),
)


class _Missing(MetaPathFinder):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, name: str, *_: Any) -> None:
        if name in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def become(system: str) -> None:
    """Take away what this process would not have with that `sys.platform`."""
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    missing: list[tuple[Any, tuple[str, ...]]] = [
        (os, LINUX_OF_OS),
        (mmap, LINUX_OF_MMAP),
        (socket, LINUX_OF_SOCKET),
    ]
    if system == "win32":
        sys.modules["msvcrt"] = _locks_of_windows()
        _without(POSIX_MODULES)
        mapping = tuple(name for name in dir(mmap) if name.startswith(("MADV_", "MAP_", "PROT_")))
        missing += [(os, POSIX_OF_OS), (signal, POSIX_OF_SIGNAL), (socket, POSIX_OF_SOCKET)]
        missing += [(mmap, mapping)]
    for module, names in missing:
        for name in names:
            vars(module).pop(name, None)
    sys.platform = system


def _locks_of_windows() -> ModuleType:
    """msvcrt, as far as its locks: made of those of this system."""
    fcntl = importlib.import_module("fcntl")

    def locking(file: int, mode: int, count: int) -> None:
        assert (mode, count) == (2, 1)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    made = ModuleType("msvcrt")
    made.LK_NBLCK = 2  # type: ignore[attr-defined]
    made.locking = locking  # type: ignore[attr-defined]
    return made


def _without(modules: tuple[str, ...]) -> None:
    for name in modules:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Missing(modules))
