"""Absolute paths, in which .. leads where the system goes.

os.path.abspath drops a name and the .. after it. If the name is a link, the path leads elsewhere
then: what is judged would not be what is opened.
"""

from __future__ import annotations

import os


def full_path(path: str | os.PathLike[str]) -> str:
    """An absolute path. Links stay in it, and so does a .. behind one.

    >>> full_path("/logs/../k/./orders-0")
    '/k/orders-0'
    """
    names = os.fspath(path).split("/")
    if os.pardir not in names or os.name == "nt":  # Windows drops them, too
        return os.path.abspath(path)  # noqa: PTH100  keeps a glob's //
    if names[0]:
        names = [*os.getcwd().split("/"), *names]  # noqa: PTH109
    kept: list[str] = []
    for name in names:
        if name in ("", os.curdir) or (name == os.pardir and not kept):
            continue
        before = "/" + "/".join(kept)
        if name == os.pardir and kept[-1] != os.pardir and not os.path.islink(before):  # noqa: PTH114
            kept.pop()
        else:
            kept.append(name)
    return "/" + "/".join(kept)
