"""The .proto language: what is read of it, as protoc reads it, and what is refused."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import google.type
import pytest
from proto_files import COUNT, ROOT, Author, compiled, described
from proto_texts import IMPORTED, TEXTS

from kafkajit import InvalidSchemaError
from kafkajit.values.protobuf.proto_text import parse_proto
from kafkajit.values.protobuf.schema import Enum, Field, Message
from kafkajit.values.protobuf.well_known import WELL_KNOWN

TWO, THREE = 'syntax = "proto2"; ', 'syntax = "proto3"; '
E23 = 'edition = "2023"; '
AT_ONCE = 50


def fields_of(text: str, imports: dict[str, str] | None = None) -> dict[str, Field]:
    """The fields of the first message of a file."""
    return {member.name: member for member in parse_proto(text, imports).messages[0].fields}


def names_of(messages: list[Message]) -> list[Any]:
    return [[message.name, *names_of(message.messages)] for message in messages]


def with_presence(text: str) -> str:
    return " ".join(name for name, member in fields_of(text).items() if member.has_presence)


def test_a_string_has_any_number_of_escapes() -> None:
    for quote in "\"'":
        text = r"\n" * 5000 + f"\\{quote}x"
        (member,) = fields_of(
            f"{TWO} message M {{ optional string s = 1 [default = {quote}{text}{quote}]; }}"
        ).values()
        assert member.name == "s"
    with pytest.raises(InvalidSchemaError, match="a string does not end at line 1, column 8"):
        parse_proto('import "a' + r"\n" * 5000)


# As protoc.


@pytest.mark.whole
@pytest.mark.parametrize("name", TEXTS)
def test_every_part_of_the_language_is_read_as_protoc_reads_it(name: str) -> None:
    theirs = compiled([ROOT], {**IMPORTED, ROOT: TEXTS[name]})
    assert theirs is not None, "protoc must accept the file"
    assert described(parse_proto(TEXTS[name], IMPORTED)) == theirs[ROOT]


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(0, COUNT, AT_ONCE))
def test_random_files_are_read_or_refused_as_by_protoc(seed: int) -> None:
    accepted = 0
    for number in range(seed, seed + AT_ONCE):
        texts = Author(number).files()
        theirs = compiled([ROOT], texts)
        if theirs is None:
            with pytest.raises(InvalidSchemaError, match=r"the type .* is not known"):
                parse_proto(texts[ROOT], texts)
        else:
            accepted += 1
            assert described(parse_proto(texts[ROOT], texts)) == theirs[ROOT], texts
    assert accepted > AT_ONCE / 2


@pytest.mark.whole
def test_the_files_of_protobuf_and_google_are_read_as_by_protoc() -> None:
    folders = {
        "google/protobuf": Path(str(files("grpc_tools"))) / "_proto" / "google" / "protobuf",
        "google/type": Path(google.type.__path__[0]),
    }
    texts = {
        f"{name}/{path.name}": path.read_text()
        for name, folder in folders.items()
        for path in folder.glob("*.proto")
    }
    theirs = compiled([*texts], texts)
    assert theirs is not None
    for path, text in texts.items():
        assert described(parse_proto(text, texts)) == theirs[path], path
        if path in WELL_KNOWN and "descriptor" not in path and "features" not in path:
            assert described(parse_proto(WELL_KNOWN[path])) == theirs[path], path
    assert {path for path in WELL_KNOWN if path.startswith("google/")} <= texts.keys()


def test_the_enums_of_google_are_known() -> None:
    texts = {
        ROOT: THREE
        + "".join(
            f'import "google/type/{name}.proto";'
            for name in ("month", "dayofweek", "calendar_period")
        )
        + """
            message A { google.type.Month a = 1; google.type.DayOfWeek b = 2;
            google.type.CalendarPeriod c = 3; }""",
    } | {
        f"google/type/{name}.proto": (Path(google.type.__path__[0]) / f"{name}.proto").read_text()
        for name in ("month", "dayofweek", "calendar_period")
    }
    theirs = compiled([ROOT], texts)
    assert theirs is not None
    assert described(parse_proto(texts[ROOT])) == theirs[ROOT]


# What is read.


def test_a_file_has_its_package_and_its_messages() -> None:
    file = parse_proto(THREE + "package shop.orders; message Order { int64 id = 1; } message B {}")
    assert file.package == "shop.orders"
    assert [message.name for message in file.messages] == ["shop.orders.Order", "shop.orders.B"]
    (member,) = file.messages[0].fields
    assert (member.name, member.number, member.type, member.of) == ("id", 1, "int64", None)


def test_messages_are_in_the_order_of_their_numbers_in_a_framing() -> None:
    text = (
        TWO
        + """message A {
        message B {} map<int32, B> by_number = 1; optional group G = 2 { message H {} }
        message C {} extend X { optional group I = 5 {} } }
        extend X { optional group J = 6 {} } message X { extensions 5 to 9; }"""
    )
    assert names_of(parse_proto(text).messages) == [
        ["A", ["A.B"], ["A.ByNumberEntry"], ["A.G", ["A.G.H"]], ["A.C"], ["A.I"]],
        ["J"],
        ["X"],
    ]


def test_a_map_is_a_repeated_message_of_a_key_and_a_value() -> None:
    member = fields_of(THREE + "message A { map<string, A> m = 3; }")["m"]
    assert member.is_map
    assert (member.type, member.is_repeated, member.has_presence) == ("message", True, False)
    assert isinstance(member.of, Message)
    key, value = member.of.fields
    assert (key.name, key.number, key.type, key.has_presence) == ("key", 1, "string", False)
    assert (value.name, value.number, value.type, value.has_presence) == (
        "value", 2, "message", True,
    )  # fmt: skip


@pytest.mark.parametrize("syntax", [TWO, THREE, E23])
def test_a_part_of_a_map_is_zero_if_it_is_not_written(syntax: str) -> None:
    member = fields_of(syntax + "message A { map<int32, bytes> m = 1; }")["m"]
    assert isinstance(member.of, Message)
    assert [part.has_presence for part in member.of.fields] == [False, False]


def test_a_map_may_be_spelled_out_as_registries_did() -> None:
    text = (
        THREE
        + """message A { repeated MEntry m = 1;
        message MEntry { option map_entry = true; string key = 1; int32 value = 2; } }"""
    )
    assert fields_of(text)["m"].is_map
    assert described(parse_proto(text)) == described(
        parse_proto(THREE + "message A { map<string, int32> m = 1; }")
    )


def test_an_enum_has_the_first_name_of_each_number() -> None:
    text = (
        THREE
        + """message A { E e = 1; } enum E { option allow_alias = true;
        ZERO = 0; NULL = 0; LEAST = -0x80000000; MOST = 2147483647; }"""
    )
    enum = fields_of(text)["e"].of
    assert isinstance(enum, Enum)
    assert enum.names == {0: "ZERO", -(2**31): "LEAST", 2**31 - 1: "MOST"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("required int32 a = 1; optional int32 b = 2; repeated int32 c = 3; optional A d = 4;"
         " optional group E = 5 {} map<int32, A> f = 6; oneof o { int32 g = 7; }", "a b d e g"),
    ],
)  # fmt: skip
def test_fields_of_proto2_have_presence(text: str, names: str) -> None:
    assert with_presence(TWO + f"message A {{ {text} }}") == names


def test_fields_of_proto3_have_presence_if_they_are_optional() -> None:
    text = """message A { int32 a = 1; optional int32 b = 2; repeated int32 c = 3; A d = 4;
        map<int32, A> f = 6; oneof o { int32 g = 7; A h = 8; } bytes i = 9; }"""
    assert with_presence(THREE + text) == "b d g h"
    fields = fields_of(THREE + text)
    assert [fields[name].oneof for name in "bgh"] == [None, "o", "o"]


@pytest.mark.parametrize(
    ("file", "message", "member", "has_presence"),
    [
        ("", "", "", True),
        ("IMPLICIT", "", "", False),
        ("IMPLICIT", "", "EXPLICIT", True),
        ("IMPLICIT", "", "LEGACY_REQUIRED", True),
        ("", "IMPLICIT", "", False),
        ("", "IMPLICIT", "EXPLICIT", True),
        ("IMPLICIT", "EXPLICIT", "", True),
        ("", "", "IMPLICIT", False),
    ],
)
def test_features_of_an_edition_decide_presence(
    file: str, message: str, member: str, has_presence: bool
) -> None:
    def option(value: str) -> str:
        return f"option features.field_presence = {value};" if value else ""

    brackets = f"[features.field_presence = {member}]" if member else ""
    text = f"{E23}{option(file)} message A {{ int32 a = 1 {brackets}; {option(message)} }}"
    assert fields_of(text)["a"].has_presence is has_presence


def test_a_delimited_message_is_a_group() -> None:
    text = (
        E23
        + """option features.message_encoding = DELIMITED; message A { A a = 1;
        A b = 2 [features.message_encoding = LENGTH_PREFIXED]; map<int32, A> c = 3; }"""
    )
    fields = fields_of(text)
    assert [fields[name].type for name in "abc"] == ["group", "message", "message"]
    assert isinstance(fields["c"].of, Message)
    assert fields["c"].of.fields[1].type == "message"


@pytest.mark.parametrize(
    ("path", "name", "fields"),
    [
        ("confluent/type/decimal.proto", "confluent.type.Decimal",
         [("value", 1, "bytes"), ("precision", 2, "uint32"), ("scale", 3, "int32")]),
        ("confluent/type/variant.proto", "confluent.type.Variant",
         [("metadata", 1, "bytes"), ("value", 2, "bytes")]),
    ],
)  # fmt: skip
def test_confluents_types_are_known(path: str, name: str, fields: list[Any]) -> None:
    found = fields_of(f'{THREE} import "{path}"; message A {{ {name} a = 1; }}')["a"].of
    assert isinstance(found, Message)
    assert [(member.name, member.number, member.type) for member in found.fields] == fields


def test_confluents_options_are_accepted() -> None:
    text = (
        THREE
        + """import "confluent/meta.proto";
        message A { option (confluent.message_meta).doc = "a";
          string a = 1 [(confluent.field_meta) = { doc: "b", params: [{ key: "k" value: "v" }] },
            (confluent.field_meta).tags = "PII"]; }"""
    )
    assert [*fields_of(text)] == ["a"]


def test_a_text_that_is_given_precedes_a_well_known_one() -> None:
    path = "google/protobuf/timestamp.proto"
    text = f'{THREE} import "{path}"; message A {{ google.protobuf.Timestamp a = 1; }}'
    given = THREE + "package google.protobuf; message Timestamp { string text = 1; }"
    found = fields_of(text, {path: given})["a"].of
    assert isinstance(found, Message)
    assert [member.name for member in found.fields] == ["text"]


def test_two_fields_of_a_type_share_it() -> None:
    fields = fields_of(THREE + "message A { B b = 1; repeated B c = 2; } message B {}")
    assert fields["b"].of is fields["c"].of


# What is refused.


@pytest.mark.whole
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('syntax = "proto4";',
         "the syntax 'proto4' is not known at line 1, column 10: kafkajit reads proto2 and proto3"),
        ('edition = "1999";',
         "the edition '1999' is not known at line 1, column 11: kafkajit reads 2023 and 2024"),
        ("mesage A {}", "expected a statement such as 'message', found 'mesage' at line 1,"
         " column 1: did you mean 'message'?"),
        (f"message A {{}} {THREE}", "'syntax' must be the first statement of the file"),
        ("package a; package b;", "the file has two packages at line 1, column 12: remove one"),
        ("message A {}\n  message A {}", "'A' is declared twice at line 2, column 11: rename it,"
         " or the first one at line 1, column 9"),
        (THREE + "message A { int32 a = 1; oneof a { int32 b = 2; } }", "'a' is declared twice"),
        (THREE + "message A { map<int32, A> a = 1; message AEntry {} }", "'AEntry' is declared tw"),
        ("enum A { X = 0; } enum B { X = 0; }", "'X' is declared twice"),
        ("enum A {}", "the enum 'A' has no values at line 1, column 6"),
        ("enum A { X = 0; Y = 1; Z = 1; }", "'Z' has the number of another value of 'A' at line 1,"
         " column 24: change it, or set option allow_alias = true"),
        ("enum A { X = 2147483648; }", "the number of a value must be from -2147483648 to"
         " 2147483647, not '2147483648'"),
        (THREE + "message A {\n  int32 a = 1;\n  int32 b = 1;\n}", "the fields 'a' and 'b' of 'A'"
         " have the same number 1 at line 3, column 9: give one of them another number"),
        (THREE + "message A { int32 a = 0; }",
         "the number of a field must be from 1 to 536870911, not '0' at line 1, column 42"),
        (THREE + "message A { int32 a = 0x20000000; }", "to 536870911, not '0x20000000'"),
        (THREE + "message A { int32 a = -1; }", "expected the number of a field, found '-'"),
        (THREE + "message A { int32 a = 19999; }", "the number 19999 of a field is reserved for"
         " Protobuf itself at line 1, column 42: choose one outside of 19000 to 19999"),
        (THREE + "message A { int32 a = 08; }", "expected the number of a field, found '08'"),
        (THREE + "message A { int32 a; }", "expected '=', found ';'"),
        (THREE + "message A { Adress a = 1; } message Address {}",
         "the type 'Adress' is not known at line 1, column 32: did you mean 'Address'?"),
        (THREE + "message A { integer a = 1; }", "the type 'integer' is not known at line 1,"),
        (THREE + "message A { Bool a = 1; }", "did you mean 'bool'?"),
        (THREE + "message A { Xyz a = 1; }", "declare it, or import the file that does"),
        (THREE + "package a.b; message A { a.X x = 1; message a {} } message X {}",
         "the type 'a.X' is not known at line 1, column 45: 'a' means 'a.b.A.a' here; write a dot"),
        (THREE + 'message A { b.X x = 1; } import "private.proto";',
         "the type 'b.X' is not known at line 1, column 32: import 'x.proto', which declares it"),
        (THREE + 'import "shop/order.proto";',
         "the imported file 'shop/order.proto' is missing at line 1,"
         " column 27: give its text, which a registry keeps as a reference of the schema"),
        (THREE + 'import "google/protobuf/timestmp.proto";',
         "did you mean 'google/protobuf/timestamp.proto'?"),
        (THREE + 'import "circle.proto";', "files import each other in a circle: "),
        (THREE + 'import "x.proto"; package b; message X {}', "'X' is declared twice at line 1,"
         " column 57: rename it, or the first one at line 1, column 39 of x.proto"),
        (THREE + 'import "x.proto"; package b.X;', "the package 'b.X' has the name of something"),
        (THREE + 'import "broken.proto";', "expected '}', found the end of the text at line 3,"
         " column 1 in broken.proto"),
        (THREE + 'import x;', "expected the path of a file in quotes, found 'x'"),
        ("message A { int32 a = 1; }", "a field of proto2 must have a label at line 1, column 13:"
         " write optional, required or repeated in front of its type"),
        (THREE + "message A { required int32 a = 1; }", "proto3 does not have the label required"),
        (E23 + "message A { optional int32 a = 1; }", "an edition does not have the label optional"
         " at line 1, column 31: set features.field_presence of the field"),
        (THREE + "message A { oneof o { repeated int32 a = 1; } }", "a field of a oneof must not"),
        (THREE + "message A { repeated map<int32, A> a = 1; }", "a map is a field without a label"),
        (THREE + "message A { oneof o { map<int32, A> a = 1; } }", "a map is a field without a la"),
        (THREE + "message A { map<float, A> a = 1; }", "the key of a map has the type 'float' at"
         " line 1, column 36: integers, bool and string can be keys"),
        (THREE + "message A { map<A, A> a = 1; }", "the key of a map has the type 'A'"),
        (TWO + "message A { map<int32, group> a = 1; }", "the value of a map cannot be a group"),
        (THREE + "message A { group B = 1 {} }", "only proto2 has groups at line 1, column 32"),
        (TWO + "message A { optional group b = 1 {} }", "begins with a capital letter"),
        (TWO + "message A { optional group B = 1; }", "expected '{', found ';'"),
        (THREE + "message A { E a = 1; message E { option map_entry = true;"
         " int32 key = 1; int32 value = 2; } }",
         "the field 'a' is an entry of a map, but is not repeated"),
        (THREE + "message A { repeated E a = 1; message E { option map_entry = true; } }",
         "'E' is an entry of a map, but does not have the fields key = 1 and value = 2"),
        (E23 + "option features.field_presence = IMPLICT;", "features.field_presence does not have"
         " the value 'IMPLICT' at line 1, column 52: did you mean 'IMPLICIT'?"),
        ("/* a", "a comment does not end at line 1, column 1: close it with */"),
        ("option a = 'b\n';", "a string does not end at line 1, column 12: close it with ' on the"),
        ("message A {", "expected '}', found the end of the text at line 1, column 12"),
        ("message A", "expected '{', found the end of the text at line 1, column 10"),
        ("\n\n   §", "unexpected character '§' at line 3, column 4: only strings and comments may"),
        ("option a = ;", "expected the value of the option, found ';'"),
        ("message A { optional A = 1; }", "expected the name of the field, found '='"),
    ],
)  # fmt: skip
def test_a_text_that_is_malformed_is_refused(text: str, error: str) -> None:
    imports = {
        "x.proto": THREE + "package b; message X {}",
        "private.proto": THREE + 'import "x.proto"; package b;',
        "circle.proto": 'import "circle2.proto";',
        "circle2.proto": 'import "circle.proto";',
        "broken.proto": "message A {\n\n",
    }
    with pytest.raises(InvalidSchemaError) as raised:
        parse_proto(text, imports)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_error_has_its_place() -> None:
    with pytest.raises(InvalidSchemaError) as raised:
        parse_proto('import "a.proto";', {"a.proto": "message A {\n  optional B b = 1;\n}"})
    error = raised.value
    assert (error.path, error.line, error.column) == ("a.proto", 2, 12)
