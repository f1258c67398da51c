"""The options that a table uses. One that it would ignore is an error."""

from __future__ import annotations

from collections.abc import Iterable

# The kinds that use an option; all kinds use the others.
_LOG_KINDS, _RECORD_KINDS = ("records", "batches", "corruption"), ("records",)
_USED_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("startingoffsets", "endingoffsets", "overlaps"), _LOG_KINDS),
    **dict.fromkeys(("startingtimestamp", "endingtimestamp", "isolationlevel"), _LOG_KINDS),
    "onetaskperpartition": ("records", "batches"),
    **dict.fromkeys(("valueschema", "keyschema", "valuemessage", "keymessage"), _RECORD_KINDS),
    "framing": _RECORD_KINDS,
}


def is_used(name: str, kind: str) -> bool:
    """Whether a kind of table uses an option.

    >>> is_used("startingOffsets", "batches"), is_used("startingOffsets", "files")
    (True, False)
    """
    return kind in _USED_BY.get(name.lower(), (kind,))


def check_used(names: Iterable[str], kind: str, *, has_value: bool, has_key: bool) -> None:
    """Raise an error for an option that would be ignored.

    Args:
        names: of the options that are given.
        kind: of the table.
        has_value: whether values have a schema.
        has_key: whether keys have one.
    """
    for name in names:
        if not is_used(name, kind):
            kinds = _USED_BY[name.lower()]
            listed = " and ".join([", ".join(kinds[:-1])] * (len(kinds) > 1) + [kinds[-1]])
            ending = "s" if len(kinds) > 1 else ""
            raise ValueError(f"option {name}: it is for the kind{ending} {listed}, not {kind}")
        if name == "valueMessage" and not has_value:
            raise ValueError("option valueMessage: pass valueSchema or schemas, too")
        if name == "keyMessage" and not has_key:
            raise ValueError("option keyMessage: pass keySchema or schemas, too")
        if name == "framing" and not (has_value or has_key):
            raise ValueError("option framing: pass valueSchema, keySchema or schemas, too")
