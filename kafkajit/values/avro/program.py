"""Writers' schemas → programs: rows of numbers that one kernel interprets (`interpreter.py`).

A program reads what a writer's schema has written into the columns of a reader's, by the rules of
Avro's schema resolution; what no column wants, it skips. The programs of all writers lie in one
table. A writer whose data cannot be read gets a program too, which fails if it meets such data.

Over 400 lines because reading and skipping are one recursion, which appends to the same rows.
"""

from __future__ import annotations

from kafkajit.errors import InvalidSchemaError
from kafkajit.values.avro.columns import branch_names
from kafkajit.values.avro.defaults import write_default
from kafkajit.values.avro.operations import (
    BASE,
    CALL,
    CELL,
    CHECKED_STRING,
    CODE,
    COLUMNS,
    DECIMAL,
    END,
    ENUM,
    FAIL,
    FIXED,
    FIXED_DECIMAL,
    JUMP,
    LIST,
    LIST_END,
    NO_SYMBOL,
    NULLABLE,
    REST,
    REST_TEXT,
    RETURN,
    SET,
    SET_LONG,
    SKIP_BOOL,
    SKIP_BYTES,
    SKIP_ENUM,
    SKIP_FIXED,
    SKIP_INT,
    SKIP_LIST,
    SKIP_LIST_END,
    SKIP_LONG,
    SKIP_NULLABLE,
    STRING,
    UNION,
    A,
    B,
)
from kafkajit.values.avro.resolution import (
    DIRECT,
    branch_for,
    contains_itself,
    fault,
    fits,
    has_fixed_size,
    least,
    matching_fields,
    shown,
)
from kafkajit.values.avro.schema import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Union,
)
from kafkajit.values.framing import BARE, CONFLUENT, GUID
from kafkajit.values.layout import Layout, Node
from kafkajit.values.programs import CONSTANT, Form, Programs
from kafkajit.values.status import MISMATCH, TOO_DEEP

_SKIPPED = {
    "boolean": SKIP_BOOL,
    "int": SKIP_INT,
    "long": SKIP_LONG,
    "bytes": SKIP_BYTES,
    "string": SKIP_BYTES,
}
MAX_STEPS = 1_000_000  # of one schema
_SKIPPED_SIZES = {"float": 4, "double": 8}


_FORM = Form(COLUMNS, places=((BASE, CELL),), checked=(CODE, STRING, CHECKED_STRING))


class Compiler:
    """Compiles the programs of many writers into the columns of one reader."""

    def __init__(self, layout: Layout, root: Node) -> None:
        self._layout = layout
        self._root = root
        self._rows: list[list[int]] = []
        self._texts = bytearray()
        self._symbols: list[int] = []
        self._limits: list[list[int]] = []
        self._fields: list[str] = []
        self._faults: dict[int, str] = {}
        self._calls: list[tuple[int, Named]] = []
        self._enums: dict[tuple[int, int], int] = {}  # the first symbol, by writer and reader
        self._kept: list[AvroType] = []  # whose ids are in use
        self._steps = 0
        self._most_steps = MAX_STEPS

    def programs(self) -> Programs:
        return Programs.of(
            _FORM,
            self._rows,
            bytes(self._texts),
            self._symbols,
            self._limits,
            self._fields,
            self._faults,
        )

    def add(self, writer: AvroType, framing: int = BARE) -> int:
        """Compile a writer's schema; return the row where its program begins.

        A schema that is only "bytes" stands for bytes without their size in front if Confluent's
        serializer has framed them.
        """
        entry = len(self._rows)
        self._most_steps = self._steps + MAX_STEPS
        try:
            self._compile(writer, is_raw=framing in (CONFLUENT, GUID))
        except (InvalidSchemaError, RecursionError) as error:
            self._forget(entry)
            if isinstance(error, RecursionError):
                raise InvalidSchemaError("the schema is nested too deeply") from None
            raise
        return entry

    def _compile(self, writer: AvroType, *, is_raw: bool) -> None:
        if is_raw and writer.kind == "bytes" and not writer.logical:
            self._read_rest(writer, self._root)
        else:
            self._read(writer, self._root, "")
        self.row(END, "")
        self._compile_calls()

    def _forget(self, entry: int) -> None:
        """Remove the rows of a program that cannot be compiled."""
        del self._rows[entry:]
        del self._fields[entry:]
        self._calls.clear()
        self._faults = {row: fault for row, fault in self._faults.items() if row < entry}

    def _step(self, count: int = 1) -> None:
        """Count what is compiled: a few types that name each other can be a tree of billions."""
        self._steps += count
        if self._steps > self._most_steps:
            raise InvalidSchemaError(f"the schema unfolds to more than {MAX_STEPS:,} types")

    def row(
        self, code: int, field: str, *, cell: int = -1, a: int = 0, b: int = 0, c: int = 0
    ) -> int:
        self._step()
        space = self._layout.cells[cell].space if cell >= 0 else 0
        self._rows.append([code, space, 0, a, b, c, cell, 0])
        self._fields.append(field)
        return len(self._rows) - 1

    def fail(self, field: str, fault: str, status: int = MISMATCH) -> None:
        self._faults[self.row(FAIL, field, a=status)] = fault

    # Reading into columns.

    def _read(self, writer: AvroType, node: Node, field: str) -> None:
        """Read a writer's type, which may be a union, into a column."""
        self._step()
        if isinstance(writer, Union):
            self._read_union(writer, node, field)
        elif writer.kind == "null":
            self._read_null(node, field)
        else:
            self.set(node, field)
            self._read_value(writer, node, field)

    def _read_rest(self, writer: AvroType, node: Node) -> None:
        """Read bytes without their size in front."""
        if node.form == "bytes" and fits(writer, node.schema):
            self.set(node, "")
            is_text = node.schema.kind == "string"
            self.row(REST_TEXT if is_text else REST, "", cell=node.cell)
        else:
            self.fail("", f"bytes cannot be read as {shown(node.schema)}")

    def set(self, node: Node, field: str) -> None:
        if node.valid >= 0:
            self.row(SET, field, cell=node.valid, a=1)

    def _read_null(self, node: Node, field: str) -> None:
        if node.form == "null":
            self.set(node, field)
        elif not node.is_nullable:
            self.fail(field, f"null cannot be read as {shown(node.schema)}")

    def _read_union(self, writer: Union, node: Node, field: str) -> None:
        kinds = [branch.kind for branch in writer.branches]
        if len(kinds) == 2 and "null" in kinds and node.is_nullable and node.form != "null":
            null = kinds.index("null")
            row = self.row(NULLABLE, field, cell=node.valid, a=null)
            self._read_value(writer.branches[1 - null], node, field)
            self._rows[row][B] = len(self._rows)
            return
        first = self.row(UNION, field, a=len(kinds)) + 1
        for _ in kinds:
            self.row(JUMP, field)
        ends = []
        for number, branch in enumerate(writer.branches):
            self._rows[first + number][A] = len(self._rows)
            self._read(branch, node, field)
            ends.append(self.row(JUMP, field))
        for row in ends:
            self._rows[row][A] = len(self._rows)

    def _read_value(self, writer: AvroType, node: Node, field: str) -> None:
        """Read a writer's type that is neither a union nor null; the column's cell is set."""
        reader = node.schema
        if isinstance(reader, Union):
            self._read_into_union(writer, node, field)
        elif node.form == "null":
            if isinstance(reader, Named) and fits(writer, reader):
                self.fail(
                    field,
                    "the value contains its own type more often than recursion allows",
                    TOO_DEEP,
                )
            else:
                self.fail(field, f"{shown(writer)} cannot be read as {shown(reader)}")
        elif why := fault(writer, reader):
            self.fail(field, why)
        elif isinstance(writer, Record) and isinstance(reader, Record):
            self._read_record(writer, reader, node, field)
        elif isinstance(writer, Array) and isinstance(reader, Array):
            (items,) = node.children
            self._read_list([(writer.items, items)], node, field)
        elif isinstance(writer, Map) and isinstance(reader, Map):
            key, values = node.children
            parts = [(AvroType("string"), key), (writer.values, values)]
            self._read_list(parts, node, field)
        else:
            self._read_leaf(writer, reader, node, field)

    def _read_leaf(self, writer: AvroType, reader: AvroType, node: Node, field: str) -> None:
        if reader.logical and reader.logical.name == "decimal":
            limit = 10**reader.logical.precision
            words = [limit >> 64 * word & 2**64 - 1 for word in range(4)]
            self._limits.append(words)
            code = FIXED_DECIMAL if isinstance(writer, Fixed) else DECIMAL
            width = self.width(node)
            size = writer.size if isinstance(writer, Fixed) else 0
            row = len(self._limits) - 1
            self.row(code, field, cell=node.cell, a=row, b=width, c=size)
        elif isinstance(writer, Fixed):
            self.row(FIXED, field, cell=node.cell, a=writer.size)
        elif isinstance(writer, Enum) and isinstance(reader, Enum):
            first = self._symbols_of(writer, reader)
            self.row(ENUM, field, cell=node.cell, a=first, b=len(writer.symbols))
        else:
            self.row(DIRECT[writer.kind, reader.kind], field, cell=node.cell)

    def _symbols_of(self, writer: Enum, reader: Enum) -> int:
        """The place of the first symbol of a writer's enum."""
        pair = id(writer), id(reader)
        if pair not in self._enums:
            self._kept += [writer, reader]
            self._enums[pair] = len(self._symbols)
            self._step(len(writer.symbols))
            readers = set(reader.symbols)
            for symbol in writer.symbols:
                known = symbol if symbol in readers else reader.default
                self._symbols.append(NO_SYMBOL if known is None else self.text(known.encode()))
        return self._enums[pair]

    def _read_into_union(self, writer: AvroType, node: Node, field: str) -> None:
        branches = [branch for branch in node.schema.branches if branch.kind != "null"]
        branch = branch_for(writer, branches)
        if branch is None:
            self.fail(field, f"no branch of the reader's union accepts {shown(writer)}")
            return
        children = dict(zip(node.type.names, node.children, strict=True))
        name = branch_names(branches)[branches.index(branch)]
        self.row(SET_LONG, field, cell=node.children[0].cell, a=self.text(name.encode()), b=1)
        child = children.get(name)
        if child is not None:
            self.set(child, field)
            self._read_value(writer, child, _inside(field, name))
        else:
            self._skip(writer, field, ())

    def _read_record(self, writer: Record, reader: Record, node: Node, field: str) -> None:
        wanted = dict(zip(node.type.names, node.children, strict=True))
        written = matching_fields(writer, reader)
        for inner in writer.fields:
            target = written.get(inner.name)
            inside = _inside(field, inner.name)
            if target is not None and target.name in wanted:
                self._read(inner.type, wanted[target.name], inside)
            else:
                self._skip(inner.type, inside, ())
        found = {inner.name for inner in written.values()}
        for inner in reader.fields:
            if inner.name in wanted and inner.name not in found:
                self._read_default(inner, wanted[inner.name], _inside(field, inner.name))

    def _read_default(self, inner: Field, node: Node, field: str) -> None:
        if inner.default is NO_DEFAULT:
            self.fail(field, "the writer has no such field, and the reader has no default for it")
        else:
            write_default(self, inner.default, inner.type, node, field)

    def _read_list(self, parts: list[tuple[AvroType, Node]], node: Node, field: str) -> None:
        fewest = sum(least(type_) for type_, _ in parts)
        row = self.row(LIST, field, cell=node.cell, a=parts[0][1].space, c=fewest)
        for type_, child in parts:
            self._read(type_, child, _inside(field, "key" if child is not parts[-1][1] else "[]"))
        self.row(LIST_END, field, a=row, cell=node.cell)
        self._rows[row][B] = len(self._rows)

    # Skipping.

    def _skip(self, writer: AvroType, field: str, around: tuple[AvroType, ...]) -> None:
        """Skip a writer's type, `around` which are records that are being skipped."""
        self._step()
        if isinstance(writer, Record):
            if writer in around or contains_itself(writer):
                self._calls.append((self.row(CALL, field), writer))
            else:
                self._skip_fields(writer, field, around)
        elif isinstance(writer, Union):
            self._skip_union(writer, field, around)
        elif isinstance(writer, (Array, Map)):
            parts = [AvroType("string")] if isinstance(writer, Map) else []
            parts.append(writer.values if isinstance(writer, Map) else writer.items)
            fewest = sum(map(least, parts))
            is_fixed = all(map(has_fixed_size, parts))
            row = self.row(SKIP_LIST, field, a=int(is_fixed), c=fewest)
            for part in parts:
                self._skip(part, _inside(field, "[]"), around)
            self.row(SKIP_LIST_END, field, a=row)
            self._rows[row][B] = len(self._rows)
        elif isinstance(writer, Enum):
            self.row(SKIP_ENUM, field, a=len(writer.symbols))
        elif isinstance(writer, Fixed) or writer.kind in _SKIPPED_SIZES:
            self.row(SKIP_FIXED, field, a=least(writer))
        elif writer.kind != "null":
            self.row(_SKIPPED[writer.kind], field)

    def _skip_fields(self, record: Record, field: str, around: tuple[AvroType, ...]) -> None:
        for inner in record.fields:
            self._skip(inner.type, _inside(field, inner.name), (*around, record))

    def _skip_union(self, writer: Union, field: str, around: tuple[AvroType, ...]) -> None:
        kinds = [branch.kind for branch in writer.branches]
        if len(kinds) == 2 and "null" in kinds:
            null = kinds.index("null")
            row = self.row(SKIP_NULLABLE, field, a=null)
            self._skip(writer.branches[1 - null], field, around)
            self._rows[row][B] = len(self._rows)
            return
        first = self.row(UNION, field, a=len(kinds)) + 1
        for _ in kinds:
            self.row(JUMP, field)
        ends = []
        for number, branch in enumerate(writer.branches):
            self._rows[first + number][A] = len(self._rows)
            self._skip(branch, field, around)
            ends.append(self.row(JUMP, field))
        for row in ends:
            self._rows[row][A] = len(self._rows)

    def _compile_calls(self) -> None:
        """The records that contain themselves, each once."""
        starts: dict[int, int] = {}
        while self._calls:
            row, record = self._calls.pop()
            assert isinstance(record, Record)
            if id(record) not in starts:
                starts[id(record)] = len(self._rows)
                self._skip_fields(record, self._fields[row], ())
                self.row(RETURN, self._fields[row])
            self._rows[row][A] = starts[id(record)]

    def width(self, node: Node) -> int:
        return self._layout.cells[node.cell].width

    def text(self, content: bytes) -> int:
        """A text as a cell has it."""
        start = len(self._texts)
        self._texts += content
        return CONSTANT + (start | len(content) << 32)


def _inside(field: str, name: str) -> str:
    return f"{field}.{name}" if field and name != "[]" else f"{field}{name}"
