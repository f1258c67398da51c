"""The fragments of dump-log's lines, in Kafka's words and as JSON.

Each fragment has a number; its JSON form has that number plus JSON. A line of JSON is an object
with the fields of Kafka's line; fields that Kafka prints without a name have one here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kafkajit.format.codecs import COMPRESSION_TYPES
from kafkajit.format.layout import TIMESTAMP_TYPES
from kafkajit.kernel import inlined
from kafkajit.kernel.intrinsics import WIDE, copy_wide
from kafkajit.records.control_records import CONTROL_TYPES

_KAFKAS: list[bytes] = []
_JSONS: list[bytes] = []


def _fragment(kafkas: str, json: str) -> int:
    _KAFKAS.append(kafkas.encode())
    _JSONS.append(json.encode())
    return len(_KAFKAS) - 1


def _field(name: str) -> int:
    return _fragment(f" {name}: ", f',"{name}":')


def _quoted(texts: Iterable[str]) -> int:
    """Add fragments with consecutive numbers; return the first number."""
    first, *_ = [_fragment(text, f'"{text}"') for text in texts]
    return first


BATCH = _fragment("", '{"kind":"batch"')
BASE_OFFSET = _fragment("baseOffset: ", ',"baseOffset":')
LAST_OFFSET = _field("lastOffset")
COUNT = _field("count")
BASE_SEQUENCE = _field("baseSequence")
LAST_SEQUENCE = _field("lastSequence")
PRODUCER_ID = _field("producerId")
PRODUCER_EPOCH = _field("producerEpoch")
LEADER_EPOCH = _field("partitionLeaderEpoch")
TRANSACTIONAL = _field("isTransactional")
CONTROL = _field("isControl")
HORIZON = _fragment(" deleteHorizonMs: OptionalLong", ',"deleteHorizonMs":')
NO_HORIZON = _fragment(".empty", "null")
HORIZON_OPEN = _fragment("[", "")
HORIZON_CLOSE = _fragment("]", "")
POSITION = _field("position")
TIMESTAMP_TYPE = _fragment(" ", ',"timestampType":')
TIMESTAMP_TYPE_NAMES = _quoted(TIMESTAMP_TYPES[i] for i in (0, 1, -1))
LARGEST = _fragment(": ", ',"maxTimestamp":')
TIMESTAMP = _fragment(": ", ',"timestamp":')
SIZE = _field("size")
MAGIC = _field("magic")
CODEC = _field("compresscodec")
CODEC_NAMES = _quoted(COMPRESSION_TYPES.values())
CRC = _field("crc")
VALID = _field("isvalid")
FALSE = _fragment("false", "false")
_fragment("true", "true")  # FALSE + 1
END_OF_LINE = _fragment("\n", "}\n")

MESSAGE_OFFSET = _fragment("offset: ", ',"offset":')
RECORD = _fragment("", '{"kind":"record"')
RECORD_OFFSET = _fragment("| offset: ", ',"offset":')
MESSAGE_VALID = _field("isValid")
MESSAGE_END = _fragment("}", "")  # Kafka prints this brace
KEY_SIZE = _field("keySize")
VALUE_SIZE = _field("valueSize")
SEQUENCE = _field("sequence")
HEADERS = _fragment(" headerKeys: [", ',"headers":[')
HEADERS_END = _fragment("]", "]")
COMMA = _fragment(",", ",")
HEADER = _fragment("", '{"key":')
HEADER_VALUE = _fragment("", ',"value":')
HEADER_END = _fragment("", "}")
MARKER = _field("endTxnMarker")
CONTROL_TYPE = _field("controlType")
CONTROL_NAMES = _quoted(CONTROL_TYPES.values())
UNKNOWN = _quoted(["UNKNOWN"])
UNKNOWN_ID = _fragment("(", ',"controlTypeId":')
UNKNOWN_END = _fragment(")", "")
COORDINATOR_EPOCH = _field("coordinatorEpoch")
FIRST_KEY = _fragment("| key: ", ',"key":')
KEY = _field("key")
NO_KEY = _fragment("", ',"key":null')
PAYLOAD = _field("payload")
NO_PAYLOAD = _fragment("", ',"payload":null')
DELETE = _fragment("<DELETE>", "null")
BASE64 = _fragment("", '{"base64":')
BASE64_END = _fragment("", "}")

JSON = len(_KAFKAS)

_FRAGMENTS = _KAFKAS + _JSONS
assert all(len(text) <= WIDE for text in _FRAGMENTS)
# Padded, so that one wide copy writes a fragment.
_PADDED = np.frombuffer(b"".join(text.ljust(WIDE, b"\0") for text in _FRAGMENTS), dtype=np.uint8)
_LENGTHS = np.array([len(text) for text in _FRAGMENTS], dtype=np.int64)


@inlined
def put(out, w, fragment):
    """Write a fragment, unchecked; the position after it."""
    copy_wide(out, w, _PADDED, np.int64(fragment * WIDE))
    return w + _LENGTHS[fragment]
