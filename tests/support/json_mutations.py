"""Other JSON out of JSON: values that are exchanged, removed, repeated, or of another type.

A mutation of bytes seldom leaves JSON, so the checks of a document's contents would not be reached.
"""

from __future__ import annotations

import json
import random
from typing import Any

SCALARS: list[Any] = [
    None, True, False, 0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**400, 1.5, 1e308,
    "", "x", "0", "1", "null", "\0", "\ud800", "é", "/", "..", "x" * 300, [], {}, [[]], {"": None},
]  # fmt: skip


def mutated_json(content: bytes, seed: int, most: int) -> bytes | None:
    """Change the document in a line; None if the line is not JSON, or becomes too long."""
    r = random.Random(seed)
    lines = content.split(b"\n")
    try:
        at = r.randrange(len(lines))
        document = json.loads(lines[at])
    except (ValueError, RecursionError):
        try:
            document, lines, at = json.loads(content), [b""], 0
        except (ValueError, RecursionError):
            return None
    try:
        for _ in range(r.choice((1, 1, 2, 4))):
            document = _changed(document, r)
        text = json.dumps(document, ensure_ascii=r.random() < 0.5)
    except (ValueError, RecursionError):  # it would contain itself
        return None
    lines[at] = text.encode(errors="surrogatepass")
    result = b"\n".join(lines)
    return result if len(result) <= most else None


def _changed(document: Any, r: random.Random) -> Any:
    """The document with one change."""
    places = [*_places(document)]
    if not places:
        return json.loads(json.dumps(r.choice(SCALARS)))
    inside, key = r.choice(places)
    kind = r.randrange(6)
    if kind == 0:
        del inside[key]
    elif kind == 1:
        other, name = r.choice(places)
        inside[key] = other.get(name) if isinstance(other, dict) else other[name]
    elif kind == 2 and isinstance(inside, list):
        inside.insert(key, inside[key])
    elif kind == 2:
        names = [name for one, name in places if isinstance(one, dict)]
        inside[r.choice(names)] = inside[key]
    elif kind == 3 and type(inside[key]) is int:
        inside[key] += r.choice((-1, 1, 256, -(2**31), inside[key]))
    elif kind == 4:
        inside[key] = r.choice(([inside[key]], {"type": inside[key]}, str(inside[key])[:99]))
    else:
        inside[key] = r.choice(SCALARS)
    return json.loads(json.dumps(document))  # a part that is at two places is changed at one


def _places(document: Any) -> Any:
    """All values inside of a document: what they are in, and their keys there."""
    left = [document]
    while left:
        one = left.pop()
        if isinstance(one, (dict, list)):
            for key, value in one.items() if isinstance(one, dict) else enumerate(one):
                yield one, key
                left.append(value)
