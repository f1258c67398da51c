"""Keeps the current folder out of what a command and its children import and run.

People stand in a folder of logs when they type a command. Others may have put files there: a module
that Spark looks for, a program `java`, settings of numba.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path

# Lists of folders, in which Python, Java and the system take an empty entry for the current folder.
_LISTS = ("PYTHONPATH", "CLASSPATH", "LD_LIBRARY_PATH")
# Python's own switch. A child passes it on to each Python that it starts.
_SWITCH = "PYTHONSAFEPATH"
# The folders that Python tries before the current one.
_TEMPORARY = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108


def leave_out() -> None:
    """Leave the current folder out of this process, which runs a command, and of its children.

    Python's option -P would do so, but a script cannot pass it.
    """
    # Python has put the script's folder or, for `python -m`, the current one into sys.path.
    unwanted = {_resolved(""), _resolved(sys.argv[0]).parent}
    unwanted -= {_resolved(folder) for folder in _entries(os.environ.get("PYTHONPATH"))}
    unwanted.discard(_resolved(__file__).parents[2])  # a checkout, whose code runs already
    front = entries_in_front()
    sys.path[: len(front)] = [folder for folder in front if _resolved(folder) not in unwanted]
    safe = without_current_folder(os.environ)
    for name in os.environ.keys() - safe.keys():
        del os.environ[name]
    os.environ.update(safe)


def is_left_out() -> bool:
    """Whether this process was asked not to use the current folder."""
    return sys.flags.safe_path or bool(os.environ.get(_SWITCH))


def without_current_folder(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child that takes no code from the current folder unless it is named.

    >>> without_current_folder({"PATH": ".:/usr/bin:", "PYTHONPATH": ":/opt/modules"})
    {'PATH': '/usr/bin', 'PYTHONPATH': '/opt/modules', 'PYTHONSAFEPATH': '1'}
    """
    safe = dict(environment)
    for name in _LISTS:
        safe[name] = os.pathsep.join(_entries(safe.get(name)))
    # A program is not looked for in the current folder even if the PATH names it.
    programs = [folder for folder in _entries(safe.get("PATH")) if Path(folder).is_absolute()]
    safe["PATH"] = os.pathsep.join(programs)
    for name in (*_LISTS, "PATH", "SPARK_HOME"):
        if not safe.get(name):  # empty, each would mean the current folder
            safe.pop(name, None)
    return safe | {_SWITCH: "1"}


def entries_in_front() -> list[str]:
    """The entries of sys.path before Python's library: PYTHONPATH, a script's folder."""
    library = str(Path(os.__file__).parent)
    archive = "python{}{}.zip".format(*sys.version_info)
    for number, folder in enumerate(sys.path):
        if folder == library or Path(folder).name == archive:
            return sys.path[:number]
    return []


def temporary_folder() -> Path:
    """A new folder for files that children run.

    Python makes it in the current folder if it cannot write to /tmp and the like, and its owner
    could then exchange it.

    Raises:
        FileNotFoundError: only the current folder is left, and TMPDIR does not name it
    """
    import tempfile  # commands start without it

    parent = tempfile.gettempdir()
    usual = [*_TEMPORARY, *(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))]
    meant = {_resolved(folder) for folder in usual if folder}
    if _resolved(parent) == _resolved("") and _resolved(parent) not in meant:
        raise FileNotFoundError(
            errno.ENOENT, "no folder for temporary files can be written to: set TMPDIR to one"
        )
    return Path(tempfile.mkdtemp(prefix="kafkajit-"))


def _resolved(path: str) -> Path:
    """The one name of a file or folder; "" is the current folder."""
    try:
        return Path(path).resolve()
    except OSError:  # the current folder was removed, or links form a loop
        return Path(path)


def _entries(value: str | None) -> list[str]:
    return [entry for entry in (value or "").split(os.pathsep) if entry]
