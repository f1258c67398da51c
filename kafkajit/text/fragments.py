"""The texts that dump-log's lines are put together from, in Kafka's words and as JSON.

Each text has a number; in JSON's form it is that number and JSON. A line of JSON is an object with
the fields that Kafka's line has: what has no name there is named here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kafkajit.format.compression import COMPRESSION_TYPES
from kafkajit.format.layout import TIMESTAMP_TYPES
from kafkajit.kernel import inlined
from kafkajit.kernel.intrinsics import WIDE, copy_wide
from kafkajit.records.control_records import CONTROL_TYPES

_KAFKAS: list[bytes] = []
_JSONS: list[bytes] = []


def _text(kafkas: str, json: str) -> int:
    _KAFKAS.append(kafkas.encode())
    _JSONS.append(json.encode())
    return len(_KAFKAS) - 1


def _field(name: str) -> int:
    return _text(f" {name}: ", f',"{name}":')


def _quoted(texts: Iterable[str]) -> int:
    """Texts next to each other; the number of the first."""
    first, *_ = [_text(text, f'"{text}"') for text in texts]
    return first


BATCH = _text("", '{"kind":"batch"')
BASE_OFFSET = _text("baseOffset: ", ',"baseOffset":')
LAST_OFFSET = _field("lastOffset")
COUNT = _field("count")
BASE_SEQUENCE = _field("baseSequence")
LAST_SEQUENCE = _field("lastSequence")
PRODUCER_ID = _field("producerId")
PRODUCER_EPOCH = _field("producerEpoch")
LEADER_EPOCH = _field("partitionLeaderEpoch")
TRANSACTIONAL = _field("isTransactional")
CONTROL = _field("isControl")
HORIZON = _text(" deleteHorizonMs: OptionalLong", ',"deleteHorizonMs":')
NO_HORIZON = _text(".empty", "null")
HORIZON_OPEN = _text("[", "")
HORIZON_CLOSE = _text("]", "")
POSITION = _field("position")
TIMESTAMP_TYPE = _text(" ", ',"timestampType":')
TIMESTAMP_TYPE_NAMES = _quoted(TIMESTAMP_TYPES[i] for i in (0, 1, -1))
LARGEST = _text(": ", ',"maxTimestamp":')
TIMESTAMP = _text(": ", ',"timestamp":')
SIZE = _field("size")
MAGIC = _field("magic")
CODEC = _field("compresscodec")
CODEC_NAMES = _quoted(COMPRESSION_TYPES.values())
CRC = _field("crc")
VALID = _field("isvalid")
FALSE = _text("false", "false")
_text("true", "true")  # FALSE + 1
END_OF_LINE = _text("\n", "}\n")

MESSAGE_OFFSET = _text("offset: ", ',"offset":')
RECORD = _text("", '{"kind":"record"')
RECORD_OFFSET = _text("| offset: ", ',"offset":')
MESSAGE_VALID = _field("isValid")
MESSAGE_END = _text("}", "")  # it is Kafka's
KEY_SIZE = _field("keySize")
VALUE_SIZE = _field("valueSize")
SEQUENCE = _field("sequence")
HEADERS = _text(" headerKeys: [", ',"headers":[')
HEADERS_END = _text("]", "]")
COMMA = _text(",", ",")
HEADER = _text("", '{"key":')
HEADER_VALUE = _text("", ',"value":')
HEADER_END = _text("", "}")
MARKER = _field("endTxnMarker")
CONTROL_TYPE = _field("controlType")
CONTROL_NAMES = _quoted(CONTROL_TYPES.values())
UNKNOWN = _quoted(["UNKNOWN"])
UNKNOWN_ID = _text("(", ',"controlTypeId":')
UNKNOWN_END = _text(")", "")
COORDINATOR_EPOCH = _field("coordinatorEpoch")
FIRST_KEY = _text("| key: ", ',"key":')
KEY = _field("key")
NO_KEY = _text("", ',"key":null')
PAYLOAD = _field("payload")
NO_PAYLOAD = _text("", ',"payload":null')
DELETE = _text("<DELETE>", "null")
BASE64 = _text("", '{"base64":')
BASE64_END = _text("", "}")

JSON = len(_KAFKAS)

_TEXTS = _KAFKAS + _JSONS
assert all(len(text) <= WIDE for text in _TEXTS)
# Padded so that one wide copy writes a text.
_PADDED = np.frombuffer(b"".join(text.ljust(WIDE, b"\0") for text in _TEXTS), dtype=np.uint8)
_LENGTHS = np.array([len(text) for text in _TEXTS], dtype=np.int64)


@inlined
def put(out, w, text):
    """Write a text; where `out` goes on."""
    copy_wide(out, w, _PADDED, np.int64(text * WIDE))
    return w + _LENGTHS[text]
