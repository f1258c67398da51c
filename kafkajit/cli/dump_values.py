"""Finds the schemas for the options --value-decoder and --key-decoder, log by log."""

from __future__ import annotations

import argparse
import re

from kafkajit.errors import InvalidSchemaError
from kafkajit.system.full_path import full_path
from kafkajit.text.prepared import Texts
from kafkajit.values.json_text import json_text
from kafkajit.values.own_schemas import OwnSchemasDecoder, Render
from kafkajit.values.record_texts import RecordTexts
from kafkajit.values.registry import SCHEMAS_TOPIC
from kafkajit.values.schemas import Schemas
from kafkajit.values.typed_records import PartitionFolder

# The names of keys and values in Kafka's lines.
_FIELDS = {"key": "key", "value": "payload"}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class DumpedValues:
    """Decoders of keys and values; logs that share their schemas share them.

    `render` makes of columns what the decoders return, by default JSON.
    """

    def __init__(self, options: argparse.Namespace, render: Render = json_text) -> None:
        self._options = options
        self._render = render
        self._schemas: dict[str, Schemas] = {}
        self._texts: dict[tuple[str, str | None], RecordTexts] = {}

    def texts(self, log: str) -> dict[str, Texts]:
        """Arguments of a Style for the log at a path."""
        chosen = [side for side in _FIELDS if getattr(self._options, f"{side}_decoder")]
        return {f"{side}_texts": self._side(side, log) for side in chosen}

    def decoder(self, side: str, log: str) -> OwnSchemasDecoder:
        """The decoder of the keys or the values of the log at a path."""
        return self._side(side, log).decoder

    def _side(self, side: str, log: str) -> RecordTexts:
        schema = getattr(self._options, f"{side}_schema")
        where = self._options.schemas
        if where is None and schema is None:
            where = self._beside(side, log)
        if (side, where) not in self._texts:
            if where is not None and where not in self._schemas:
                self._schemas[where] = Schemas.of(where)
            decoder = OwnSchemasDecoder(
                schema,
                None if where is None else self._schemas[where],
                self._render,
                type_=getattr(self._options, f"{side}_decoder").upper(),
                message=getattr(self._options, f"{side}_message"),
            )
            is_json = self._options.format == "json"
            error_field = f"{_FIELDS[side]}Error" if is_json else None
            self._texts[side, where] = RecordTexts(decoder, error_field)
        return self._texts[side, where]

    def _beside(self, side: str, log: str) -> str:
        """The location of the registry's log beside the folder of a log."""
        folder = (log if _URI.match(log) else full_path(log)).rpartition("/")[0]
        locations = (*self._options.paths, *getattr(self._options, "files", ()))
        found = PartitionFolder(folder, locations).registry()
        if found is None:
            parent = folder.rpartition("/")[0]
            raise InvalidSchemaError(
                f"there are no schemas for --{side}-decoder: no log at {parent}/{SCHEMAS_TOPIC}-0",
                advice=f"pass --schemas, or --{side}-schema if all {side}s have one schema",
            )
        return found
