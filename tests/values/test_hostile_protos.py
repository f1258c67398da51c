"""Texts in the .proto language made to harm: always an error with a name, and soon."""

from __future__ import annotations

import random
import re
import tracemalloc
from typing import Any

import pytest
from proto_files import ROOT, compiled, described
from proto_texts import IMPORTED, TEXTS

import kafkajit
from kafkajit import InvalidSchemaError
from kafkajit.values.protobuf.grammar import MAX_DEPTH
from kafkajit.values.protobuf.proto_text import MAX_NAME, parse_proto

THREE = 'syntax = "proto3"; '
MANY = 30_000
WORD = re.compile(r"\s+|//[^\n]*|\w+|\"[^\"\n]*\"|'[^'\n]*'|.", re.DOTALL)
WORDS = """
    optional repeated required message enum oneof map group extend option reserved to max extensions
    import public package syntax service rpc stream int32 string A B E true < > { } [ ] ( ) ; , = .
    - / /* // ' " \\ \0 \ud800 é 0 1 2 -1 19000 99999999999999999999 0x 08 1.5 1e+ 'x'
    """


def refused(text: str, imports: dict[str, str] | None = None) -> str:
    """The error about a text: one line of moderate length, whatever the text is."""
    with pytest.raises(InvalidSchemaError) as raised:
        parse_proto(text, imports)
    error = str(raised.value)
    assert "\n" not in error
    assert len(error) < 600
    error.encode()
    return error


def mutated(text: str, author: random.Random) -> str:
    words = WORD.findall(text)
    for _ in range(author.choice([1, 1, 1, 2, 3])):
        place = author.randrange(len(words) + 1)
        change = author.randrange(4)
        if change == 0:
            words[place:] = words[place + 1 :]
        elif change == 1:
            words.insert(place, f" {author.choice(WORDS.split())} ")
        elif change == 2:
            words[place : place + 1] = [author.choice(WORDS.split())]
        else:
            words[place:place] = words[place : place + author.randrange(1, 9)]
    return "".join(words)


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(6))
def test_a_mutated_text_is_read_as_by_protoc_or_refused(seed: int) -> None:
    author = random.Random(seed)
    for _ in range(50):
        text = mutated(TEXTS[author.choice([*TEXTS])], author)
        ours = None
        try:
            ours = described(parse_proto(text, IMPORTED))
        except InvalidSchemaError as error:
            assert "\n" not in str(error)  # noqa: PT017
        # protoc takes NUL for the end of the text
        theirs = None if "\0" in text else compiled([ROOT], {**IMPORTED, ROOT: text})
        if theirs is not None:
            assert ours == theirs[ROOT], text


@pytest.mark.parametrize("name", ["custom options", "groups", "comments", "presence in editions"])
def test_a_text_that_is_cut_anywhere_is_read_or_refused(name: str) -> None:
    for end in range(len(TEXTS[name])):
        try:
            parse_proto(TEXTS[name][:end], IMPORTED)
        except InvalidSchemaError as error:
            assert error.line is not None  # noqa: PT017


def nested(depth: int, opening: str, closing: str = "}") -> str:
    return "".join(opening.format(n) for n in range(depth)) + closing * depth


@pytest.mark.parametrize(
    ("syntax", "opening"),
    [
        (THREE, "message A{} {{ "),
        ("", "message A{} {{ optional group G = 1 {{ "),
        ("", "message A{} {{ extend X {{ optional group G = 1 {{ "),
        (THREE, "message A{} {{ map<int32, A0> m = 1; "),
    ],
)
def test_messages_may_not_be_nested_deeper_than_protoc_allows(syntax: str, opening: str) -> None:
    closing = "}" * opening.count("{{")
    error = f"messages are nested deeper than {MAX_DEPTH} at line 1"
    assert error in refused(syntax + nested(MANY, opening, closing))


def test_messages_may_be_nested_as_deep_as_protoc_allows() -> None:
    text = THREE + nested(MAX_DEPTH - 1, "message A{} {{ ")
    theirs = compiled([ROOT], {ROOT: text})
    assert theirs is not None
    assert described(parse_proto(text)) == theirs[ROOT]


@pytest.mark.whole
@pytest.mark.parametrize(
    "text",
    [
        "{" * MANY,
        "}" * MANY,
        '"' * MANY,
        '"' + "\\" * MANY,
        "'" + "a" * MANY,
        "/*" * MANY,
        "/ " * MANY,
        "." * MANY,
        "é" * MANY,
        "\ufeff" * MANY,
        "a" * MANY,
        "9" * MANY,
        "message " * MANY,
        "message A " * MANY,
        "option a = " + "{" * MANY,
        "option a = {" + "[{}]" * MANY,
        "option " + "(" * MANY,
        "option a" + ".a" * MANY,
        "option a = " + "-" * MANY,
        "option a = " + "1e+" * MANY,
        "package a" + ".a" * MANY + ";",
        "package " + "a" * MANY + ";",
        "message " + "a" * MANY + " {}",
        "service S {" + "rpc " * MANY,
        "extend " + "A." * MANY,
        "extend A { " * MANY,
        "message A { reserved " + "1, " * MANY,
        "message A { extensions 1 to " + "max to " * MANY,
        "message A { optional a" + ".a" * MANY + " x = 1; }",
        "message A { optional " + "." * MANY,
        "message A { optional " + "b" * MANY + " x = 1; }",
        "message A { optional int32 a = " + "9" * MANY + "; }",
        "message A { optional int32 a = 0x" + "f" * MANY + "; }",
        "message A { optional int32 a = 0" + "7" * MANY + "; }",
        "message A { optional int32 a = 1" + "[" * MANY,
        "message A { " + "optional int32 a = 1; " * MANY,
        "message A { " + "oneof a { " * MANY,
        "message A { optional map" + "<map" * MANY,
        "enum A { X = " + "-" * MANY,
        "enum A { X = -" + "9" * MANY + "; }",
        "enum A { " + "reserved 1; " * MANY,
        "import " + "'a' " * MANY + ";",
        "import '" + "\\377" * MANY + "';",
        "import '\\ud800';",
        "import '\\UFFFFFFFF';",
        "syntax = '" + "proto3" * MANY + "';",
        "\0",
        "message A {} \0",
        "// \0",
        "\ud800",
        "/* \udfff */",
        "option a = '\ud83d';",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_garbage_is_refused(text: str) -> None:
    refused(text)


def test_many_declarations_are_read_in_linear_memory() -> None:
    fields = "".join(f"int32 a{n} = {n}; " for n in range(1, 4_000))
    values = "".join(f"V{n} = {n}; " for n in range(2_000))
    messages = "".join(f"message M{n} {{}} " for n in range(500))
    package = ".".join(["a" * 9] * 95)
    text = f"{THREE} package {package}; message A {{ {fields} }} enum E {{ {values} }} {messages}"
    tracemalloc.start()
    file = parse_proto(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(file.messages[0].fields) == 3_999
    assert peak < 100 * len(text)


def test_an_unknown_type_among_many_is_refused() -> None:
    text = THREE + "".join(f"message M{n} {{}} " for n in range(5_000))
    assert "'Mx' is not known" in refused(text + "message A { Mx a = 1; }")


@pytest.mark.parametrize("extra", [0, 1])
def test_a_full_name_has_a_limit(extra: int) -> None:
    text = f"package {'a' * (MAX_NAME - 4)}; message B {{ message {'C' * (1 + extra)} {{}} }}"
    if extra:
        assert f"more than {MAX_NAME} characters" in refused(text)
    else:
        (message,) = parse_proto(text).messages[0].messages
        assert len(message.name) == MAX_NAME


def chain(length: int, last: str) -> dict[str, str]:
    files = {f"{n}.proto": f'import public "{n + 1}.proto";' for n in range(length)}
    return {**files, f"{length}.proto": last}


def test_a_chain_of_imports_may_be_long() -> None:
    text = THREE + 'import "0.proto"; message A { B b = 1; }'
    file = parse_proto(text, chain(1_000, THREE + "message B {}"))
    assert file.messages[0].fields[0].of is not None


@pytest.mark.parametrize("length", [0, 1, 1_000])
def test_imports_may_not_go_in_a_circle(length: int) -> None:
    error = refused('import "0.proto";', chain(length, 'import "0.proto";'))
    assert error.startswith("files import each other in a circle: '")
    assert error.endswith(".proto: remove one of the imports")


@pytest.mark.parametrize("imported", ["\0", "message A {", "import 'x.proto';", "package a.1;"])
def test_an_error_in_an_imported_file_has_its_path(imported: str) -> None:
    assert " in 0.proto" in refused('import "0.proto";', {"0.proto": imported})


def test_a_deep_stack_of_the_caller_is_not_in_the_way() -> None:
    def parse(depth: int) -> Any:
        return (
            parse(depth - 1) if depth else parse_proto(THREE + nested(MAX_DEPTH, "message A{} {{"))
        )

    assert parse(500).messages


def test_messages_in_a_long_chain_of_fields_are_refused() -> None:
    links = "".join(f"message M{at} {{ M{at + 1} next = 1; }}\n" for at in range(MANY))
    schema = f"{THREE}\n{links}message M{MANY} {{ }}\n"
    with pytest.raises(InvalidSchemaError, match="nested too deeply"):
        kafkajit.decode_values([b"\0\0\0\0\1\0"], schema=schema)


@pytest.mark.parametrize(
    "text",
    [
        f"{THREE}message A {{ string a = 1; }} // as in /etc/a.avsc",
        f"{THREE}message A {{ string a = 1; }} // a.proto",
        "// a\nmessage A { optional string a = 1; } //.proto",
    ],
)
def test_a_schema_that_ends_like_a_files_name_is_a_schema(text: str) -> None:
    values = kafkajit.decode_values([b"\0\0\0\0\1\0\x0a\1x"], schema=text)
    assert values.to_pylist() == [{"a": "x"}]
