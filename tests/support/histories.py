"""The histories in tests/data/logs: partition folders before and after each step of Kafka's log."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from typing import Any, NamedTuple

from corpus import DATA

KINDS = ("append", "recover", "truncate", "retain", "compact")


class Step(NamedTuple):
    """A step: the command, Kafka's answer, and the folder's files before and after it."""

    stated: dict[str, Any]
    before: dict[str, bytes]
    after: dict[str, bytes]
    batches: bytes = b""  # the appended batches


@cache
def histories(kind: str) -> list[list[Step]]:
    """The histories of one kind of operation."""
    contents = {}
    with tarfile.open(DATA / "logs" / f"{kind}.tar.xz") as archive:
        for entry in archive:
            file = archive.extractfile(entry)
            assert file is not None
            contents[entry.name] = file.read()
    scripts = [name for name in contents if name.endswith("/steps.json")]
    return [_steps(contents, script.removesuffix("/steps.json")) for script in scripts]


def _steps(contents: dict[str, bytes], folder: str) -> list[Step]:
    steps: list[Step] = []
    before: dict[str, bytes] = {}
    for place, stated in enumerate(json.loads(contents[f"{folder}/steps.json"])):
        after = {
            name: contents.get(f"{folder}/{place}/{name}", before.get(name, b""))
            for name in stated["files"]
        }
        batches = contents.get(f"{folder}/{place}.batches", b"")
        steps.append(Step(stated, before, after, batches))
        before = after
    return steps
