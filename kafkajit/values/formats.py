"""The formats of values: how each gets from schemas to columns, and the kernel that reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kafkajit.values.avro.columns import column_layout
from kafkajit.values.avro.interpreter import read_values
from kafkajit.values.avro.program import Compiler
from kafkajit.values.layout import Layout, Node
from kafkajit.values.programs import Programs
from kafkajit.values.schema import AVRO


class ProgramCompiler(Protocol):
    """Compiles the programs of many writers into the columns of one reader."""

    def add(self, writer: Any, framing: int) -> int:
        """Compile a writer's schema; return the row where its program begins."""

    def programs(self) -> Programs:
        """All programs."""


class Format(NamedTuple):
    """How values of one format are read.

    `reader` picks the type to read into from a parsed schema, if need be by the first value's bytes
    behind the schema's name, and by the framing. A kernel that reads values is one of `avro`'s
    signature.
    """

    reader: Callable[[Any, bytes, int], Any]
    layout: Callable[..., tuple[Layout, Node]]
    compiler: Callable[[Layout, Node], ProgramCompiler]
    read_values: Callable[..., tuple[int, int]]


FORMATS: dict[str, Format] = {
    AVRO: Format(lambda schema, _body, _framing: schema, column_layout, Compiler, read_values),
}
