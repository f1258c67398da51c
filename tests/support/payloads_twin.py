"""The slow twin of decode_payloads: the JSON that Kafka's tool prints of internal topics."""

from __future__ import annotations

import base64
import struct

import messages_twin as twin
import reference
from corpus import DATA

from kafkajit.topics import TOPICS

TABLE = twin.table()
Row = tuple[bytes | None, bytes | None]


def payload_rows(topic: str, number: int = 0) -> list[Row]:
    log = DATA / "payloads" / f"{TOPICS[topic]}-{number}" / "00000000000000000000.log"
    return [
        (record.key, record.value)
        for batch in reference.read_batches(log.read_bytes())[0]
        for record in reference.read_records(batch)
    ]


def expected_payload(topic: str, key: bytes | None, value: bytes | None) -> dict[str, str | None]:
    types = TABLE[topic]
    if topic in ("cluster_metadata", "remote_log_metadata"):
        return {"key": None, "value": None if value is None else metadata(types, value)}
    if key is None:
        if value is not None:
            raise ValueError("no key")
        return {"key": None, "value": None}
    reader = twin.Reader(key)
    number = reader.number(">h")
    if number not in types:
        text = f'{{"type":"{number}","data":"unknown","bytes":"{base64.b64encode(key).decode()}"}}'
        return {"key": text, "value": unknown_value(value)}
    messages = types[number].messages
    data, _ = twin.message_json(messages["key"], 0, key[2:])
    row = {"key": f'{{"type":"{number}","data":{data}}}', "value": None}
    if value is None:
        return row
    version = twin.Reader(value).number(">h")
    message = messages["value"]
    if not message.lowest <= version <= message.highest:
        return row | {"value": unknown_value(value)}
    data, _ = twin.message_json(message, version, value[2:])
    return row | {"value": f'{{"version":"{version}","data":{data}}}'}


def unknown_value(value: bytes | None) -> str | None:
    if value is None:
        return None
    kept = f'"data":"unknown","bytes":"{base64.b64encode(value).decode()}"}}'
    if len(value) < 2:
        return "{" + kept
    return f'{{"version":"{struct.unpack_from(">h", value)[0]}",' + kept


def metadata(types: dict[int, twin.Type], value: bytes) -> str:
    reader = twin.Reader(value)
    frame, number, version = (reader.varint() for _ in range(3))
    if max(frame, number, version) > 0x7FFF:
        raise ValueError("too large")
    frame, number, version = ((n & 0xFFFF ^ 0x8000) - 0x8000 for n in (frame, number, version))
    if frame != 1:
        raise ValueError("unknown frame")
    message = types[number].messages["value"] if number in types else None
    if message is None or not message.lowest <= version <= message.highest:
        name = types[number].name if number in types else number
        kept = base64.b64encode(value).decode()
        return f'{{"type":"{name}","version":{version},"data":"unknown","bytes":"{kept}"}}'
    data, end = twin.message_json(message, version, value[reader.at :])
    if reader.at + end < len(value):
        raise ValueError("garbage")
    return f'{{"type":"{types[number].name}","version":{version},"data":{data}}}'
