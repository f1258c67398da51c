"""Messages → programs: rows of numbers that one kernel interprets (`interpreter.py`).

Protobuf names fields by numbers, so the columns of one message decide the program, whatever schema
a value was written with. A writer's schema decides only to which messages its indexes lead, and
whether its fields can be read as those of the reader's message at all.
"""

from __future__ import annotations

from kafkajit.values.framing import BARE, GLUE, SINGLE_OBJECT
from kafkajit.values.layout import INT, Layout, Node
from kafkajit.values.programs import CONSTANT, Form, Programs
from kafkajit.values.protobuf.columns import is_wrapper
from kafkajit.values.protobuf.compatibility import check_compatible
from kafkajit.values.protobuf.messages import messages_by_name
from kafkajit.values.protobuf.operations import (
    BASE,
    BOOL,
    BYTES,
    CELL,
    CHECKED_TEXT,
    CLEARED,
    CODE,
    COLUMNS,
    COUNT,
    DURATION,
    FIXED32,
    FIXED32_TO_LONG,
    FIXED64,
    GROUP,
    INDEX,
    INDEXES,
    INT32,
    INT64,
    JSON_MESSAGE,
    LAST_QUICK,
    MESSAGE,
    MESSAGE_START,
    NARROW,
    NEXT,
    NUMBERED,
    ONEOF,
    ONEOF_CELL,
    QUICK,
    REPEATED,
    REPEATED_MESSAGE,
    SINT32,
    SINT64,
    SIZED,
    SKIP_FIXED32,
    SKIP_FIXED64,
    SKIP_SIZED,
    SKIP_TEXT,
    SKIP_VARINT,
    SPACE,
    START,
    TAG,
    TEXT,
    TIMESTAMP,
    TOO_NESTED,
    UINT32,
    UINT32_TO_LONG,
    VALID,
    VALID_CELL,
    VARINT,
    WIDE,
    A,
    B,
)
from kafkajit.values.protobuf.schema import Field, Message, ProtoFile

_FORM = Form(
    COLUMNS,
    places=((BASE, CELL), (VALID, VALID_CELL), (ONEOF, ONEOF_CELL)),
    checked=(CODE, TEXT, CHECKED_TEXT),
)
_CODES = {
    "int32": INT32, "enum": INT32, "int64": INT64, "uint64": INT64, "uint32": UINT32,
    "sint32": SINT32, "sint64": SINT64, "bool": BOOL, "string": TEXT, "bytes": BYTES,
    "fixed32": FIXED32, "sfixed32": FIXED32, "float": FIXED32,
    "fixed64": FIXED64, "sfixed64": FIXED64, "double": FIXED64,
}  # fmt: skip
_WIRE = {
    "fixed32": NARROW, "sfixed32": NARROW, "float": NARROW,
    "fixed64": WIDE, "sfixed64": WIDE, "double": WIDE,
    "string": SIZED, "bytes": SIZED, "message": SIZED, "group": GROUP,
}  # fmt: skip
_SKIPPED = {VARINT: SKIP_VARINT, WIDE: SKIP_FIXED64, SIZED: SKIP_SIZED, NARROW: SKIP_FIXED32}
_MOMENTS = {"google.protobuf.Timestamp": TIMESTAMP, "google.protobuf.Duration": DURATION}
# Numbers up to this one are found in a table, larger ones by search.
_DENSE = 256


class Compiler:
    """Compiles the program of one message, and the ways to it from writers' schemas."""

    def __init__(self, layout: Layout, root: Node) -> None:
        self._layout = layout
        self._message: Message = root.schema
        self._rows: list[list[int]] = []
        self._texts = bytearray()
        self._symbols: list[int] = []
        self._fields: list[str] = []
        self._faults: dict[int, str] = {}
        self._json: dict[Message, int] = {}
        self._root = root
        self._start = self._compile(root, self._message, "")

    def programs(self) -> Programs:
        return Programs.of(
            _FORM, self._rows, bytes(self._texts), self._symbols, [], self._fields, self._faults
        )

    def add(self, writer: ProtoFile, framing: int) -> int:
        """The row where values begin that a writer's schema and a framing describe."""
        if framing in (BARE, SINGLE_OBJECT):
            row = self._row(START, "", a=self._start)
            self._rows[row][VALID_CELL] = self._root.valid
            return row
        if framing == GLUE:
            numbered = messages_by_name(writer)
            entry = self._row(NUMBERED, "", a=len(self._rows) + 1, count=len(numbered))
            for message in numbered:
                self._index_row(message)
            return entry
        entry = self._row(INDEXES, "", count=len(writer.messages))
        self._rows[entry][B] = len(self._symbols)
        for message in writer.messages:
            self._symbols.append(self._text(message.name.rpartition(".")[2].encode()))
        self._rows[entry][A] = self._indexes(writer.messages)
        return entry

    def _indexes(self, messages: list[Message]) -> int:
        """Rows of messages side by side, which an index names."""
        first = len(self._rows)
        for message in messages:
            self._index_row(message)
        for number, message in enumerate(messages):
            self._rows[first + number][B] = self._indexes(message.messages)
        return first

    def _index_row(self, message: Message) -> None:
        """The row of a message that a value can name."""
        row = self._row(INDEX, "", a=-1, count=len(message.messages))
        if message.name == self._message.name:
            check_compatible(message, self._message)
            self._rows[row][A] = self._start
            self._rows[row][VALID_CELL] = self._root.valid
        else:
            self._faults[row] = f"the message is {message.name}, not {self._message.name}"

    def _row(
        self,
        code: int,
        field: str,
        *,
        cell: int = -1,
        space: int = 0,
        a: int = 0,
        count: int = 0,
    ) -> int:
        row = [0] * COLUMNS
        row[CODE], row[SPACE], row[CELL], row[A], row[COUNT] = code, space, cell, a, count
        row[VALID_CELL] = row[ONEOF_CELL] = -1
        row[TAG] = -1  # no field has it; rows of fields get their own
        if cell >= 0:
            row[SPACE] = self._layout.cells[cell].space
        self._rows.append(row)
        self._fields.append(field)
        return len(self._rows) - 1

    def _text(self, content: bytes) -> int:
        start = len(self._texts)
        self._texts += content
        return CONSTANT + (start | len(content) << 32)

    # Messages.

    def _compile(self, node: Node, message: Message, field: str) -> int:
        """Compile a message into a struct; return the row where it starts."""
        children = dict(zip(node.type.names, node.children, strict=True))
        return self._message_rows(message, children, node.space, field)

    def _message_rows(
        self, message: Message, children: dict[str, Node], space: int, field: str
    ) -> int:
        fields = sorted(message.fields, key=lambda field: field.number)
        inside = {
            one.name: self._inside(one, children[one.name], _inside(field, one.name))
            for one in fields
            if one.name in children
        }
        oneofs = self._oneof_cells(fields, children, space)
        start = self._row(MESSAGE_START, field)
        rows = []
        for one in fields:
            if one.type == "group":
                continue
            path = _inside(field, one.name)
            node = children.get(one.name)
            if node is not None:
                row = self._field_row(one, node, path, inside[one.name])
            elif one.oneof in oneofs or not one.is_repeated:
                row = self._row(_SKIPPED[_wire(one)], path, space=space)
                self._rows[row][TAG] = one.number << 3 | _wire(one)
            else:
                continue
            if one.oneof in oneofs:
                self._rows[row][ONEOF_CELL] = oneofs[one.oneof]
                self._clears(row, node)
            rows.append((one.number, row))
        self._link(start, rows)
        return start

    def _link(self, start: int, rows: list[tuple[int, int]]) -> None:
        """Tell where a message's fields are, by number, and which one follows each."""
        self._rows[start][A] = rows[0][1] if rows else start
        following = [row for _, row in rows[1:]] + [rows[0][1]] if rows else []
        for (_, number), behind in zip(rows, following, strict=True):
            row = self._rows[number]
            row[NEXT] = behind
            # A tag of one byte; a text that is checked is not read by the quick loop.
            row[QUICK] = int(row[CODE] <= LAST_QUICK and row[ONEOF_CELL] < 0 and row[TAG] < 0x80)
        dense = {number: row for number, row in rows if number < _DENSE}
        count = max(dense, default=-1) + 1
        self._rows[start][B], self._rows[start][COUNT] = len(self._symbols), count
        self._symbols += [dense.get(number, -1) for number in range(count)]
        sparse = [(number, row) for number, row in rows if number >= _DENSE]
        self._rows[start][CLEARED] = len(self._symbols)
        self._symbols += [len(sparse), *(part for pair in sparse for part in pair)]

    def _oneof_cells(
        self, fields: list[Field], children: dict[str, Node], space: int
    ) -> dict[str | None, int]:
        """Hidden cells of the oneofs of which a column holds a field: the row that was set last."""
        names = {one.oneof for one in fields if one.name in children and one.oneof is not None}
        return {name: self._layout.cell(INT, space) for name in sorted(names)}

    def _clears(self, row: int, node: Node | None) -> None:
        """The cells to clear if another field of the oneof follows, an outer one first."""
        cells = [] if node is None else _cells(node)
        self._rows[row][CLEARED], self._rows[row][COUNT] = len(self._symbols), len(cells)
        for cell, counted in cells:
            self._symbols += [cell, counted]

    def _inside(self, field: Field, node: Node, path: str) -> int:
        """The row where the message of a field starts; -1 if it has no message that is read."""
        of = field.of
        if not isinstance(of, Message) or of.name in _MOMENTS:
            return -1
        if field.is_map:
            names = [part.name for part in of.fields]
            children = dict(zip(names, node.children, strict=True))
            return self._message_rows(of, children, node.children[0].space, path)
        if field.is_repeated:
            node, path = node.children[0], path + "[]"
        return self._message_of(of, node, path)

    def _message_of(self, of: Message, node: Node, path: str) -> int:
        """The row where a message starts that is a column."""
        if node.form == "null":
            return -1
        if node.form == "struct":
            return self._compile(node, of, path)
        if is_wrapper(of):
            inner = of.fields[0]
            start = self._row(MESSAGE_START, path)
            row = self._scalar_row(inner, node, path)
            self._rows[row][TAG] = inner.number << 3 | _wire(inner)
            self._link(start, [(inner.number, row)])
            return start
        return self._json_rows(of)

    def _json_rows(self, message: Message) -> int:
        """A message that is only checked, and that may contain itself."""
        if message in self._json:
            return self._json[message]
        self._json[message] = start = self._row(MESSAGE_START, "")
        rows = []
        for one in sorted(message.fields, key=lambda field: field.number):
            if isinstance(one.of, Message):
                row = self._row(MESSAGE, one.name)
                self._rows[row][A] = self._json_rows(one.of)
            else:
                is_text = one.type == "string"
                row = self._row(SKIP_TEXT if is_text else _SKIPPED[_wire(one)], one.name)
            self._rows[row][TAG] = one.number << 3 | _wire(one)
            rows.append((one.number, row))
        self._link(start, rows)
        return start

    # Fields.

    def _field_row(self, field: Field, node: Node, path: str, start: int) -> int:
        if not field.is_repeated:
            row = self._single_row(field, node, path, start)
            self._rows[row][VALID_CELL] = node.valid
            self._rows[row][TAG] = field.number << 3 | _wire(field)
            return row
        element = node.children[0]
        is_message = isinstance(field.of, Message) and element.form in ("struct", "bytes", "null")
        if field.is_map or (is_message and element.form == "struct"):
            row = self._row(REPEATED_MESSAGE, path, cell=node.cell, a=start)
            self._rows[row][B] = element.space
            self._rows[row][TAG] = field.number << 3 | SIZED
            return row
        row = self._row(REPEATED, path, cell=node.cell, a=element.space)
        inner = self._single_row(field, element, path + "[]", start)
        wire = _wire(field)
        self._rows[inner][TAG] = field.number << 3 | wire
        self._rows[row][TAG] = field.number << 3 | SIZED
        return row

    def _single_row(self, field: Field, node: Node, path: str, start: int) -> int:
        """A row that reads a field, or an element of it."""
        of = field.of
        if not isinstance(of, Message) or of.name in _MOMENTS:
            return self._scalar_row(field, node, path)
        if node.form == "null":
            return self._row(TOO_NESTED, path, space=node.space)
        if node.form == "struct" or is_wrapper(of):
            return self._row(MESSAGE, path, space=node.space, a=start)
        return self._row(JSON_MESSAGE, path, cell=node.cell, a=start)

    def _scalar_row(self, field: Field, node: Node, path: str) -> int:
        if isinstance(field.of, Message):
            return self._row(_MOMENTS[field.of.name], path, cell=node.cell)
        code = _CODES[field.type]
        width = self._layout.cells[node.cell].width
        if width > INT:
            code = {UINT32: UINT32_TO_LONG}.get(code, code)
            if field.type == "fixed32":
                code = FIXED32_TO_LONG
        return self._row(code, path, cell=node.cell)


def _wire(field: Field) -> int:
    """The wire type of a field that is single."""
    return _WIRE.get(field.type, VARINT)


def _cells(node: Node) -> list[tuple[int, int]]:
    """The cells of a column with the space that each counts, or -1; an outer one first."""
    cells = [(node.valid, -1)] if node.valid >= 0 else []
    if node.cell >= 0:
        cells.append((node.cell, node.children[0].space if node.form == "list" else -1))
    return cells + [cell for child in node.children for cell in _cells(child)]


def _inside(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name
