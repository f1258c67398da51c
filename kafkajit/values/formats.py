"""The formats of values: how each gets from schemas to columns, and the kernel that reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kafkajit.values.avro.columns import column_layout as avro_layout
from kafkajit.values.avro.interpreter import read_values as read_avro
from kafkajit.values.avro.program import Compiler as AvroCompiler
from kafkajit.values.layout import Layout, Node
from kafkajit.values.programs import Programs
from kafkajit.values.protobuf.columns import column_layout as protobuf_layout
from kafkajit.values.protobuf.interpreter import read_values as read_protobuf
from kafkajit.values.protobuf.messages import message_to_read
from kafkajit.values.protobuf.program import Compiler as ProtobufCompiler
from kafkajit.values.schema import AVRO, JSON, PROTOBUF


class ProgramCompiler(Protocol):
    """Compiles the programs of many writers into the columns of one reader."""

    def add(self, writer: Any, framing: int) -> int:
        """Compile a writer's schema; return the row where its program begins."""

    def programs(self) -> Programs:
        """All programs."""


class Format(NamedTuple):
    """The steps from schemas of one format to the columns of its values.

    `reader` picks the type to read into: from the parsed schema to read into, from that which the
    first value was written with, and from its framing and the bytes behind that. A kernel
    that reads values is one of `avro.interpreter`'s signature.
    """

    reader: Callable[[Any, Any, int, bytes, str | None], Any]
    layout: Callable[..., tuple[Layout, Node]]
    compiler: Callable[[Layout, Node], ProgramCompiler]
    read_values: Callable[..., tuple[int, int]]


def _avro_type(schema: Any, _written: Any, _framing: int, _body: bytes, message: str | None) -> Any:
    if message is not None:
        raise ValueError(f"an Avro schema has no messages, such as {message!r}")
    return schema


FORMATS: dict[str, Format] = {
    AVRO: Format(_avro_type, avro_layout, AvroCompiler, read_avro),
    PROTOBUF: Format(message_to_read, protobuf_layout, ProtobufCompiler, read_protobuf),
}
# JSON names its fields in each value: its reader needs no programs.
READABLE = (*FORMATS, JSON)
