"""Keys and values with a schema: bytes in memory → Arrow, and back."""

from __future__ import annotations

import json

import kafkajit
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.framing import CONFLUENT

from . import avro_values, protobuf_values

ROWS = 200_000


class Avro:
    """Orders of ten fields, baskets with lists and maps."""

    def setup(self) -> None:
        self.flat = avro_values.flat(ROWS)
        self.by_turns = avro_values.flat(ROWS, 10)
        self.nested = avro_values.nested(ROWS)
        self.schema = {1: json.dumps(avro_values.FLAT)}
        self.decoded = kafkajit.decode_values(self.flat, schemas=self.schema)

    def time_flat(self) -> None:
        kafkajit.decode_values(self.flat, schemas=self.schema)

    def time_two_of_ten_fields(self) -> None:
        kafkajit.decode_values(self.flat, schemas=self.schema, columns=avro_values.TWO)

    def time_ten_schemas_by_turns(self) -> None:
        kafkajit.decode_values(self.by_turns, avro_values.FLAT, schemas=avro_values.versions(10))

    def time_nested(self) -> None:
        kafkajit.decode_values(self.nested, schemas={1: json.dumps(avro_values.NESTED)})

    def time_encode_flat(self) -> None:
        kafkajit.encode_values(self.decoded, avro_values.FLAT, schema_id=1)

    def time_a_new_schema(self) -> None:
        """Parsing, compiling, and the first value."""
        decoder = ValueDecoder(json.dumps(avro_values.FLAT), None, CONFLUENT, None, stops=True)
        values = self.flat[:1]
        decoder.settle([values])
        decoder.decode(values)


class Protobuf:
    """The same orders as messages."""

    def setup(self) -> None:
        self.flat = protobuf_values.flat(ROWS)
        self.schema = {1: protobuf_values.ORDER}
        self.time_flat()

    def time_flat(self) -> None:
        kafkajit.decode_values(self.flat, schemas=self.schema)

    def time_two_of_ten_fields(self) -> None:
        kafkajit.decode_values(self.flat, schemas=self.schema, columns=avro_values.TWO)
