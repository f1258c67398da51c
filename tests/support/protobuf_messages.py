"""Random messages of all types, and what Protobuf's own reader for Python has for them."""

from __future__ import annotations

import functools
import json
import random
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

PROTO = """\
syntax = "proto3";
package acme.test;
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Other {
  int32 x = 1;
  message Inside { int64 y = 1; }
}

message Everything {
  int32 int32 = 1;
  int64 int64 = 2;
  uint32 uint32 = 3;
  uint64 uint64 = 4;
  sint32 sint32 = 5;
  sint64 sint64 = 6;
  fixed32 fixed32 = 7;
  fixed64 fixed64 = 8;
  sfixed32 sfixed32 = 9;
  sfixed64 sfixed64 = 10;
  float float = 11;
  double double = 12;
  bool bool = 13;
  string string = 14;
  bytes bytes = 15;
  optional int32 maybe_int = 16;
  optional string maybe_text = 17;
  enum Color { RED = 0; BLUE = 1; DARK = -5; }
  Color color = 18;
  repeated Color colors = 19;
  repeated int32 ints = 20;
  repeated string texts = 21;
  repeated double doubles = 22;
  repeated sint64 unpacked = 23 [packed = false];
  map<string, int64> counts = 24;
  map<int32, Node> nodes = 25;
  message Node {
    string name = 1;
    repeated int32 numbers = 2;
    Node next = 3;
    map<string, string> tags = 4;
  }
  Node node = 26;
  repeated Node list = 27;
  oneof choice {
    int32 one_int = 28;
    Node one_node = 29;
    string one_text = 300;
  }
  google.protobuf.Timestamp time = 30;
  repeated google.protobuf.Timestamp times = 31;
  google.protobuf.Duration duration = 32;
  google.protobuf.Int64Value wrapped = 33;
  repeated google.protobuf.StringValue wraps = 34;
  google.protobuf.Struct struct = 35;
  google.protobuf.Value json = 36;
  repeated bool flags = 1000;
  repeated fixed32 fixed = 1001;
  Everything itself = 1002;
}
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {
    "int32": (-(2**31), 2**31), "int64": (-(2**63), 2**63), "uint32": (0, 2**32),
    "uint64": (0, 2**64),
}  # fmt: skip


@functools.cache
def python_module(text: str = PROTO, name: str = "everything") -> Any:
    """The module that protoc makes of a .proto file."""
    protoc = import_module("grpc_tools.protoc")
    folder = Path(mkdtemp())
    (folder / f"{name}.proto").write_text(text)
    builtin = Path(protoc.__file__).parent / "_proto"
    arguments = ["", f"-I{folder}", f"-I{builtin}", f"--python_out={folder}"]
    assert protoc.main([*arguments, str(folder / f"{name}.proto")]) == 0
    sys.path.insert(0, str(folder))
    try:
        return import_module(f"{name}_pb2")
    finally:
        sys.path.remove(str(folder))


def everything(r: random.Random, depth: int = 0) -> Message:
    """A message of PROTO in which each field is set or not."""
    message: Message = python_module().Everything()
    _fill(r, message, depth)
    return message


def _fill(r: random.Random, message: Any, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if r.random() < 0.5:
            continue
        if _is_map(field):
            _fill_map(r, getattr(message, field.name), field.message_type, depth)
        elif field.message_type is not None:
            if depth > 1 and field.message_type.full_name.startswith("acme"):
                continue
            for _ in range(r.randrange(4) if field.is_repeated else 1):
                inner = getattr(message, field.name)
                inner = inner.add() if field.is_repeated else inner
                inner.SetInParent()
                _fill_message(r, inner, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(_scalar(r, field) for _ in range(r.randrange(5)))
        else:
            setattr(message, field.name, _scalar(r, field))


def _fill_map(r: random.Random, entries: Any, entry: Any, depth: int) -> None:
    key, value = entry.fields
    for _ in range(r.randrange(4)):
        name = _scalar(r, key)
        if value.message_type is not None:
            _fill(r, entries[name], depth + 1)
        else:
            entries[name] = _scalar(r, value)


def _fill_message(r: random.Random, message: Any, depth: int) -> None:
    match message.DESCRIPTOR.full_name.rpartition("protobuf.")[2]:
        case "Timestamp":
            message.seconds, message.nanos = r.randrange(-(10**9), 10**10), r.randrange(10**9)
        case "Duration":
            message.seconds, message.nanos = r.randrange(10**9), r.randrange(10**9)
        case "Struct":
            message.update({"a": 1, "b": [1.5, None, "x", {"c": True}]})
        case "Value":
            message.string_value = 'é"\n'
        case _:
            _fill(r, message, depth)


def _scalar(r: random.Random, field: Any) -> Any:
    types = type(field)
    kind = {
        getattr(types, f"CPPTYPE_{name}"): name.lower()
        for name in ("INT32", "INT64", "UINT32", "UINT64", "DOUBLE", "FLOAT", "BOOL", "ENUM")
    }.get(field.cpp_type, "text")
    if kind in _NUMBERS:
        low, high = _NUMBERS[kind]
        return r.choice([0, 1, 300, low, high - 1, r.randrange(low, high)])
    if kind in ("double", "float"):
        return r.choice([0.0, 1.5, -2.25])
    if kind == "bool":
        return r.random() < 0.5
    if kind == "enum":
        return r.choice([0, 1, -5, 77])
    if field.type == types.TYPE_BYTES:
        return r.randbytes(r.randrange(6))
    return "".join(r.choice("abé☃") for _ in range(r.randrange(20)))


def as_python(message: Any) -> dict[str, Any]:
    """A message as Protobuf's reader has it, in the form of our columns; maps are sorted."""
    found = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            inner = field.message_type.fields_by_name["value"]
            found[field.name] = _sorted((name, _one(inner, value[name])) for name in value)
        elif field.is_repeated:
            found[field.name] = [_one(field, item) for item in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _one(field, value)
    return found


def _one(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if field.message_type is None:
        return value
    name = field.message_type.full_name.rpartition("protobuf.")[2]
    if name == "Timestamp":
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name == "Duration":
        return timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name in ("Struct", "Value"):
        return _Json(MessageToDict(value))
    return value.value if name.endswith("Value") else as_python(value)


class _Json:
    """A value that our columns have as JSON text."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and json.loads(other) == self._value

    def __hash__(self) -> int:
        return 0


def in_order(value: Any) -> Any:
    """What our columns have, with sorted maps, of whose entries with one key the last counts."""
    if isinstance(value, dict):
        return {name: in_order(part) for name, part in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return _sorted((name, in_order(part)) for name, part in dict(value).items())
    return [in_order(part) for part in value] if isinstance(value, list) else value


def _sorted(entries: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return sorted(entries, key=lambda entry: repr(entry[0]))


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
