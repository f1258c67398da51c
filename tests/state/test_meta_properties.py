from __future__ import annotations

import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit.schema import META_PROPERTIES_COLUMNS, table_schema
from kafkajit.state.meta_properties import MAX_SIZE

ID = "Ksei0zZI9W8PcZF7RNU6ZA"


def properties(content: bytes | str) -> dict[str, str]:
    if isinstance(content, str):
        content = content.encode("latin-1")
    table = kafkajit.read_meta_properties(content)
    assert table.schema == table_schema(META_PROPERTIES_COLUMNS)
    found = {row["key"]: row["value"] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


def test_the_properties_of_a_broker_are_read_in_their_order() -> None:
    path = DATA / "internal" / "log-dir" / "meta.properties"
    expected = dict(
        line.split("=") for line in path.read_text().splitlines() if not line.startswith("#")
    )
    assert len(expected) == 4
    rows = kafkajit.read_meta_properties(path).to_pylist()
    assert [tuple(row.values()) for row in rows] == list(expected.items())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("version=0\nbroker.id=3\n", {"version": "0", "broker.id": "3"}),
        ("# a=1\n  ! b=2\n\n \t\f\n", {}),
        ("a=1\ra =2\r\nb\n", {"a": "2", "b": ""}),
        ("  a \t= \f 1 2 \n", {"a": "1 2 "}),
        ("a:=b\nb::c\nd e=f\ng = = h\n", {"a": "=b", "b": ":c", "d": "e=f", "g": "= h"}),
        ("a\\ b\\=\\:c=d\\=\n", {"a b=:c": "d="}),
        ("a=b\\\n   c\\\\\nd=e", {"a": "bc\\", "d": "e"}),
        ("a=b\\\r\n c\\\r d\\", {"a": "bcd"}),
        ("a=b\\\n\nc=d\\\n#e\n", {"a": "b", "c": "d#e"}),
        ("\\\n#a\nb=c\\\\\\\nd", {"b": "c\\d"}),
        ('a=\\t\\r\\n\\f\\q\\"', {"a": '\t\r\n\fq"'}),
        ("\\u00e9=\\uD83D\\uDE00\\uD83D", {"é": "😀�"}),
        ("\xe9=\xff", {"é": "ÿ"}),
        ("=", {"": ""}),
        (
            "version= 1 \nnode.id=+7\ncluster.id=\n",
            {"version": "1 ", "node.id": "+7", "cluster.id": ""},
        ),
        (f"directory.id={ID}", {"directory.id": ID}),
    ],
)
def test_a_text_is_what_java_takes_it_for(text: str, expected: dict[str, str]) -> None:
    assert properties(text) == expected


def stored(text: str, *, key: bool) -> str:
    """Properties.store's way to write it."""
    out = ""
    for place, unit in enumerate(text):
        if unit == " " and (key or place == 0):
            out += "\\ "
        elif unit in "\t\n\r\f":
            out += "\\" + {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}[unit]
        elif unit in "=:#!\\":
            out += "\\" + unit
        elif " " <= unit <= "~":
            out += unit
        else:
            utf16 = unit.encode("utf-16-be")
            out += "".join(f"\\u{utf16[i : i + 2].hex()}" for i in range(0, len(utf16), 2))
    return out


@given(st.dictionaries(st.text(max_size=6).filter(lambda key: "." not in key), st.text(max_size=9)))
def test_whatever_java_stores_is_read_back(expected: dict[str, str]) -> None:
    expected.pop("version", None)
    text = "".join(
        f"{stored(key, key=True)}={stored(value, key=False)}\n" for key, value in expected.items()
    )
    assert properties("#\n#Sat Nov 21\n" + text) == expected


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("#\nversion=2", "Unknown meta.properties version number 2", None),
        ("version=x", "Invalid meta.properties version string 'x'", None),
        ("broker.id=x", "Unable to read broker.id as a base-10 number.", None),
        ("version=1\ncluster.id=x", "Failed to find node.id", None),
        ("version=1\nbroker.id=1\ncluster.id=x", "Failed to find node.id", None),
        (
            "version=1\nnode.id=1.0\ncluster.id=x",
            "Unable to read node.id as a base-10 number.",
            None,
        ),
        ("version=1\nnode.id=1", "cluster.id was not found.", None),
        ("directory.id=x", "Unable to read directory.id as a Uuid: x", None),
        ("\na\\\n=\\u12g4", "Malformed \\uxxxx encoding.", 2),
        ("a\\u00", "Malformed \\uxxxx encoding.", 1),
        (
            "a" * (MAX_SIZE + 1),
            f"the file has {MAX_SIZE + 1} bytes, and Kafka writes no meta.properties that large",
            None,
        ),
    ],
)
def test_what_kafka_refuses_is_an_error(text: str, message: str, line: int | None) -> None:
    with pytest.raises(kafkajit.CorruptCheckpointError) as caught:
        properties(text)
    assert (caught.value.message, caught.value.line) == (message, line)


@given(st.lists(st.sampled_from(["\\", "\n", "\r", " ", "=", ":", "#", "u0041", "u", "a", "é"])))
def test_whatever_the_bytes_they_are_read_or_refused(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        found = properties(text)
    except kafkajit.CorruptCheckpointError as refused:
        complaint = refused.message
    else:
        complaint = None
        assert sum(map(len, [*found, *found.values()])) <= len(text)
    assert complaint is None or (complaint == "Malformed \\uxxxx encoding." and "\\u" in text)


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["\\\n", "\\", "a\\\n", "=", " ", "\n", "\\u0041"])
def test_the_largest_file_takes_linear_time(part: str) -> None:
    properties(part * (MAX_SIZE // len(part)))  # a square of them would be minutes
