"""Make kafkajit/topics/messages.schema again, from Kafka's generated message classes.

In: Kafka's jars, those of the tests or those that KAFKAJIT_KAFKA_LIB names. Out: the table, in the
notation that its head explains. Run again for a later Kafka, and read the difference.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from broker import compile_java, java

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent.parent / "kafkajit" / "topics" / "messages.schema"

HEAD = """\
# Kafka's messages in its internal topics, as Kafka 4.1.1 knows them.
# Written by tests/broker/make_schemas.py, which reads Kafka's generated classes.
#
#   topic NAME           the lines below are in this topic
#   ID TYPE              a type of record, by the number that its payload names
#   key|value MESSAGE VERSIONS [flexible VERSIONS]
#                        a message; where flexible, lengths are varints and structs end with tags
#   FIELD TYPE[?] [VERSIONS] [tag N] [holds TYPE] [= DEFAULT]
#                        a field, in the order of Kafka's JSON; indented ones are a struct's.
#                        ? may be null; []X an array; VERSIONS if not all of those around it;
#                        tag N stands among the tags, and is left out where it has its default;
#                        holds: bytes that contain a message if protocolType is consumer;
#                        DEFAULT if it is not 0, "", false, [] or a struct of these
#
# VERSIONS are 3 (this one), 1-3 or 2+ (and all after it).
"""

TYPES = {
    "BOOLEAN": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "UINT16": "uint16",
    "INT32": "int32",
    "INT64": "int64",
    "FLOAT64": "float64",
    "UUID": "uuid",
    "STRING": "string",
    "BYTES": "bytes",
    "struct": "struct",
}
# What Kafka's tool looks into: see DumpLogSegments.OffsetsMessageParser.
HOLDS = {
    ("GroupMetadataValue", "subscription"): "SUBSCRIPTION",
    ("GroupMetadataValue", "assignment"): "ASSIGNMENT",
}
IMPLIED = {"bool": False, "string": "", "bytes": "", "struct": "{}", "uuid": "A" * 22}


def main() -> None:
    """Write the table."""
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as work:
        compile_java([HERE / "Schemas.java"], Path(work))
        run = subprocess.run(
            java("Schemas", classes=[Path(work)]), capture_output=True, check=True, text=True
        )
    TARGET.write_text("\n".join([HEAD, *lines(json.loads(run.stdout))]) + "\n")
    print(f"{TARGET}: {len(TARGET.read_text().splitlines())} lines")


def lines(messages: list[dict[str, Any]]) -> Iterator[str]:
    """The table's lines."""
    for topic, of_topic in groupby(messages, key=lambda message: message["topic"]):
        yield f"topic {topic}"
        for (number, name), of_type in groupby(of_topic, key=lambda m: (m["id"], m["name"])):
            yield f"{number} {name}"
            for message in of_type:
                yield f"  {message['role']} {headline(message)}"
                every = range(message["lowest"], message["highest"] + 1)
                yield from field_lines(message["message"], message["fields"], every, " " * 4)
        yield ""


def headline(message: dict[str, Any]) -> str:
    """A message's name and versions."""
    every = range(message["lowest"], message["highest"] + 1)
    text = f"{message['message']} {of_versions(every)}"
    if message["flexible"]:
        text += f" flexible {of_versions(message['flexible'], message['highest'])}"
    return text


def field_lines(
    message: str, fields: list[dict[str, Any]], every: range, indent: str
) -> Iterator[str]:
    """The fields of a message or struct, below each struct its own."""
    for field in fields:
        versions = [int(version) for version in field["versions"]]
        assert versions == list(range(versions[0], versions[-1] + 1)), field
        stated = {
            (
                of["type"].removeprefix("COMPACT_").removeprefix("NULLABLE_"),
                of["array"],
                of["nullable"],
                of.get("tag"),
            )
            for of in field["versions"].values()
        }
        ((schema_type, is_array, nullable, tag),) = stated
        type_ = TYPES[schema_type]
        words = [field["name"], "[]" * is_array + type_ + "?" * nullable]
        if versions != list(every):
            words.append(of_versions(versions, every[-1]))
        if tag is not None:
            words.append(f"tag {tag}")
        if (message, field["name"]) in HOLDS:
            words.append(f"holds {HOLDS[message, field['name']]}")
        default = field["default"]
        if default not in ("[]" if is_array else IMPLIED.get(type_, "0"), "0.0"):
            words.append(f"= {default if isinstance(default, str) else json.dumps(default)}")
        yield indent + " ".join(words)
        if "struct" in field:
            within = range(versions[0], versions[-1] + 1)
            yield from field_lines(message, field["struct"]["fields"], within, indent + "  ")


def of_versions(versions: range | list[int], highest: int | None = None) -> str:
    """3, 1-3 or 2+."""
    first, last = versions[0], versions[-1]
    if last == highest:
        return f"{first}+"
    return f"{first}" if first == last else f"{first}-{last}"


if __name__ == "__main__":
    main()
