"""JSON made to harm: no row is smuggled, all ends soon, and both readers agree with Python's."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus import NO_JIT
from json_columns import bits, decode_json, gives_up

from kafkajit import RecordDeserializationError
from kafkajit.values.framing import BARE
from kafkajit.values.json import inference, reading
from kafkajit.values.json.careful import MalformedError, read_value
from kafkajit.values.json.reading import JsonReader, bodies_of
from kafkajit.values.json.types import JSON_TEXT, MOMENT, column_of, struct_of

RECORD = pa.struct({"v": pa.int64()})


@pytest.mark.parametrize(
    "body",
    [
        b'{"v":1}\n{"v":2}', b'{"v":1}{"v":2}', b'1},{"v":2', b'1}\n{"v":2', b'{"v":1}, {"v":2}',
        b'{"v":1}]', b'[{"v":1},{"v":2}]', b'{"v":1}\0', b'"a"\n"b"',
    ],
)  # fmt: skip
@pytest.mark.whole
def test_a_body_is_one_row_whatever_it_has(body: bytes) -> None:
    values = [b'{"v":0}', body, b'{"v":9}']
    found = decode_json(values, RECORD, mode="PERMISSIVE").to_pylist()
    assert [row["value"] for row in found] == [{"v": 0}, None, {"v": 9}]
    assert len(decode_json(values, RECORD, mode="DROPMALFORMED")) == 2


@pytest.mark.parametrize("count", [999, 1000, 5001])
def test_the_careful_reader_reads_any_number_of_escapes(count: int) -> None:
    text = "a\n" * count
    assert read_value(json.dumps(text).encode(), column_of(pa.string())) == text
    with pytest.raises(MalformedError, match="a string has no end"):
        read_value(json.dumps(text).encode()[:-1], column_of(pa.string()))


def test_bodies_do_not_reach_into_each_other() -> None:
    content = np.frombuffer(b'"abc"12345{"v":1}' + b" " * 40, dtype=np.uint8)
    starts, ends = np.array([0, 1, 5, 5, 10, 10]), np.array([3, 4, 8, 10, 16, 17])
    found = JsonReader(column_of(pa.int64())).decode(content, starts, ends)
    assert found.values.to_pylist() == [None, None, 123, 12345, None, None]
    assert found.bad.tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize(
    ("type_", "body", "expected"),
    [
        (RECORD, '{"v":1,"v":2}', {"v": 2}),
        (RECORD, '{"v":"x","v":2}', {"v": 2}),
        (RECORD, '{"v":1,"v":null}', {"v": None}),
        (RECORD, r'{"v":1,"\u0076":2}', {"v": 2}),
        (pa.struct({"v": RECORD}), '{"v":{"v":1},"v":{}}', {"v": {"v": None}}),
        (pa.struct({"v": pa.list_(pa.int64())}), '{"v":[1,2],"v":[3]}', {"v": [3]}),
        (pa.struct({"v": pa.list_(pa.int64())}), '{"v":[1,2],"v":null}', {"v": None}),
        (pa.map_(pa.string(), pa.int64()), '{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        (pa.map_(pa.string(), pa.int64()), r'{"a":1,"\u0061":3}', {"a": 3}),
        (pa.map_(pa.string(), pa.int64()),
         "{" + ",".join(f'"k{n % 50}":{n}' for n in range(51)) + "}",
         {"k0": 50, **{f"k{n}": n for n in range(1, 50)}}),
    ],
)  # fmt: skip
@pytest.mark.whole
def test_the_last_of_two_fields_counts(type_: pa.DataType, body: str, expected: Any) -> None:
    (found,) = decode_json([body.encode()], type_).to_pylist()
    assert found == (list(expected.items()) if pa.types.is_map(type_) else expected)


@pytest.mark.parametrize("name", ['a":1,"b', 'a"', "a\\", "a\n"])
def test_a_name_is_not_taken_for_the_text_of_several(name: str) -> None:
    type_ = pa.struct({name: pa.int64()})
    bodies = [f'{{"{name}":2}}'.encode(), json.dumps({name: 3}).encode()]
    found = decode_json(bodies, type_, mode="PERMISSIVE").to_pylist()
    assert found[0]["value"] in (None, {name: None})
    assert found[1]["value"] == {name: 3}


def test_values_may_be_nested_500_deep_and_no_deeper() -> None:
    skipped = pa.struct({"x": pa.int64()})
    for depth, is_good in ((499, True), (500, False), (100_000, False)):
        for left, right in (("[", "]"), ('{"a":', "}")):
            body = ('{"a":' + left * depth + "1" + right * depth + "}").encode()
            found = decode_json([body], skipped, mode="PERMISSIVE").to_pylist()[0]
            assert (found["value"] == {"x": None}) == is_good
            if not is_good:
                assert found["error"].startswith("the value is nested deeper than 500 levels, byte")
            assert len(decode_json([body], mode="DROPMALFORMED")) == is_good


def test_an_array_of_arrays_that_never_end_takes_little_time() -> None:
    count = 2_000 if NO_JIT else 200_000
    values = [b'"' + b"a" * 100] * count
    decode_json(values[:1], pa.string(), mode="DROPMALFORMED")
    started = time.process_time()
    assert len(decode_json(values, pa.string(), mode="DROPMALFORMED")) == 0
    assert time.process_time() - started < 20
    with pytest.raises(RecordDeserializationError):
        decode_json(values, pa.string())


def test_many_keys_cost_no_more_than_few() -> None:
    keys = [f"k{n}" for n in range(200 if NO_JIT else 3000)]
    value = json.dumps(dict.fromkeys(keys, 1)).encode()
    found = decode_json([value] * 10, pa.map_(pa.string(), pa.int64()))
    assert [key for key, _ in found[9].as_py()] == keys
    assert gives_up([value], column_of(found.type)) == []
    wide = json.dumps({f"k{n}": n for n in range(5000)}).encode()
    assert len(decode_json([wide], pa.map_(pa.string(), pa.int64()))[0]) == 5000


def test_a_new_key_in_each_value_ends_in_a_map() -> None:
    values = [json.dumps({"x": {f"k{n}": n}}).encode() for n in range(1500)]
    found = decode_json(values)
    assert found.type == pa.struct({"x": pa.map_(pa.string(), pa.string())})
    assert found[1499].as_py() == {"x": [("k1499", "1499")]}


def test_too_many_columns_become_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_MOST_COLUMNS", 50)
    value = {f"a{n}": {f"b{m}": m for m in range(6)} for n in range(20)}
    found = decode_json([json.dumps(value).encode()] * 3)
    assert found.type == pa.map_(pa.string(), pa.string())
    assert json.loads(dict(found[2].as_py())["a7"]) == value["a7"]


def test_deep_values_without_a_schema_end_in_json_text() -> None:
    found = decode_json([b"[" * 100 + b"]" * 100])
    assert str(found.type).count("list") == 32
    assert len(decode_json([b"[" * 400 + b"]" * 400])) == 1


def test_values_may_lie_in_more_memory_than_a_cell_can_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [f"text {number}" * (number % 7) for number in range(300)]
    values = [None if n % 5 == 0 else json.dumps(text).encode() for n, text in enumerate(texts)]
    expected = [None if n % 5 == 0 else text for n, text in enumerate(texts)]
    monkeypatch.setattr(reading, "MOST_BYTES", 200)
    assert decode_json(values, pa.string()).to_pylist() == expected
    assert decode_json(values).to_pylist() == expected
    monkeypatch.setattr(reading, "MOST_BYTES", 40)
    with pytest.raises(RecordDeserializationError, match="a value has more than 2 GiB"):
        decode_json(values, pa.string())


MIXED = struct_of(
    {
        "id": column_of(pa.int64()),
        "n": column_of(pa.float64()),
        "t": column_of(pa.string()),
        "at": column_of(MOMENT),
        "b": column_of(pa.bool_()),
        "l": column_of(pa.list_(pa.field("element", pa.struct({"q": pa.int32()})))),
        "m": column_of(pa.map_(pa.string(), pa.string())),
        "any": JSON_TEXT,
    }
)
PIECES = [
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u0041", b"\\ud83d\\ude00", b"\\ud800",
    b"1e5", b"-", b".0", b"0", b"9" * 19, b"null", b"true", b"\xff", b"\xc3\xa9", b"\n", b" ",
    b"\0", b'"id":',
    b'{"q":1}', b"NaN", b'"t":"x",', b'"m":{"a":"b"},', b'"l":[],', b'"any":[1, {}],', b"1.5",
]  # fmt: skip


def spoilt(source: random.Random) -> bytes:
    value = {
        "id": source.randrange(-5, 2**40), "n": source.random() * 10 ** source.randrange(-9, 9),
        "t": source.choice(["", "plain", "é\n\"x\"", "😀"]), "at": "2024-05-06T07:08:09.5Z",
        "b": source.random() < 0.5, "l": [{"q": 1}, None, {}][: source.randrange(4)],
        "m": {"a": "b", "c": None}, "any": source.choice([1, None, "x", [1, {"y": 2}]]),
    }  # fmt: skip
    body = json.dumps(value, indent=source.choice([None, 1]), ensure_ascii=source.random() < 0.5)
    raw = bytearray(body.encode())
    for _ in range(source.randrange(3)):
        at = source.randrange(len(raw))
        piece = source.choice(PIECES)
        kind = source.randrange(3)
        if kind == 0:
            raw[at:at] = piece
        elif kind == 1:
            raw[at : at + len(piece)] = piece
        else:
            del raw[at : at + source.randrange(1, 6)]
    return bytes(raw)


def carefully(body: bytes) -> tuple[Any, str]:
    """A value as the careful reader has it, and why it is malformed."""
    try:
        return pa.array([read_value(body, MIXED)], MIXED.type)[0].as_py(), ""
    except MalformedError as error:
        return None, str(error)


@pytest.mark.parametrize("seed", range(8))
def test_spoilt_values_are_read_by_both_readers_as_by_python(seed: int) -> None:
    source = random.Random(seed)
    values = [spoilt(source) for _ in range(100 if NO_JIT else 3000)]
    found = JsonReader(MIXED).decode(*bodies_of(pa.array(values), BARE))
    found.values.validate(full=True)
    bad = set(found.bad.tolist())
    read = 0
    for row, value in enumerate(found.values.to_pylist()):
        expected, words = carefully(values[row])
        assert bits(value) == bits(expected)
        assert (row in bad) == bool(words)
        if words:
            assert found.words(row) == words
        elif value is not None:
            assert value["t"] == json.loads(values[row]).get("t")
            read += 1
    assert 0.2 < read / len(values) < 0.9


@pytest.mark.parametrize("seed", range(8))
def test_python_reads_what_is_taken_for_json_and_nothing_else(seed: int) -> None:
    source = random.Random(1000 + seed)
    values = [spoilt(source) for _ in range(100 if NO_JIT else 3000)]
    empty = pa.struct({"x": pa.int8()})
    found = decode_json(values, empty, framing="bare", mode="PERMISSIVE").to_pylist()
    for body, row in zip(values, found, strict=True):
        try:
            is_object = isinstance(_strict(body), dict)
        except ValueError:
            is_object = False
        assert (row["error"] is None) == is_object, body


def _strict(body: bytes) -> Any:
    def refuse(text: str) -> Any:
        raise ValueError(text)

    return json.loads(body.decode(), parse_constant=refuse)


def test_json_text_is_the_text_of_the_value() -> None:
    values = [b' {"a": [1, 2.50, {}],\n "b": "\\u00e9"}', b'"x"', b" 1.0 ", b"null", b"true"]
    found = JsonReader(JSON_TEXT)
    content = np.frombuffer(b"".join(values) + bytes(20), dtype=np.uint8)
    ends = np.cumsum([len(value) for value in values])
    decoded = found.decode(content, ends - [len(value) for value in values], ends)
    texts = [value.decode().strip() for value in values]
    assert decoded.values.to_pylist() == [None if text == "null" else text for text in texts]
    assert [read_value(value, JSON_TEXT) for value in values] == decoded.values.to_pylist()
