"""Acts as a broker of Kafka 0.9 or 0.10 towards producers, and keeps the message sets it gets.

In: produce requests on 127.0.0.1. Out: the message sets of each topic, byte for byte. Kafka 4 takes
only format v2, and the brokers that took v0 compressed its sets anew: this is where a client's own
bytes can be had.
"""

from __future__ import annotations

import struct
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, API_VERSIONS = 0, 1, 3, 10, 18
UNSUPPORTED_VERSION = 35


class RecordingBroker(ThreadingTCPServer):
    """One broker, to which every topic is one partition of its own."""

    daemon_threads = True

    def __init__(self, magic: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = self.server_address[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        # The highest versions of the releases that introduced the format.
        self.versions = {PRODUCE: 1 + magic, FETCH: 1 + magic, METADATA: magic}
        self.versions |= {FIND_COORDINATOR: 0, API_VERSIONS: 0}
        self.message_sets: dict[str, list[bytes]] = defaultdict(list)


@contextmanager
def running_recording_broker(magic: int) -> Iterator[RecordingBroker]:
    """Start a broker that knows messages of format `magic`, yield it and stop it on the way out."""
    with RecordingBroker(magic) as broker:
        threading.Thread(target=broker.serve_forever, daemon=True).start()
        yield broker
        broker.shutdown()


class _Connection(StreamRequestHandler):
    server: RecordingBroker

    def handle(self) -> None:
        answers = {PRODUCE: self.produce, METADATA: self.metadata, API_VERSIONS: self.api_versions}
        while size := self.rfile.read(4):
            request = _Reader(self.rfile.read(*struct.unpack(">i", size)))
            api, version, correlation_id = request.take(">hhi")
            request.string()  # the client's id
            body = struct.pack(">i", correlation_id) + answers[api](request, version)
            self.wfile.write(struct.pack(">i", len(body)) + body)

    def api_versions(self, _: _Reader, version: int) -> bytes:
        known = self.server.versions
        listed = [struct.pack(">hhh", api, 0, highest) for api, highest in known.items()]
        return struct.pack(">h", UNSUPPORTED_VERSION if version else 0) + _array(listed)

    def metadata(self, request: _Reader, version: int) -> bytes:
        names = [request.string() for _ in range(max(request.take(">i")[0], 0))]
        broker = struct.pack(">i", 0) + _string("127.0.0.1") + struct.pack(">i", self.server.port)
        partition = struct.pack(">hiiiiii", 0, 0, 0, 1, 0, 1, 0)  # one replica, in sync: broker 0
        topics = [
            struct.pack(">h", 0) + _string(name) + b"\0" * version + _array([partition])
            for name in names
        ]
        rack_and_controller = struct.pack(">hi", -1, 0) if version else b""
        return _array([broker]) + rack_and_controller + _array(topics)

    def produce(self, request: _Reader, version: int) -> bytes:
        request.take(">hi")  # acks, timeout
        topics = []
        for _ in range(*request.take(">i")):
            name = request.string()
            partitions = []
            for _ in range(*request.take(">i")):
                partition, size = request.take(">ii")
                self.server.message_sets[name].append(request.bytes(size))
                append_time = struct.pack(">q", -1) if version >= 2 else b""
                partitions.append(struct.pack(">ihq", partition, 0, 0) + append_time)
            topics.append(_string(name) + _array(partitions))
        return _array(topics) + (struct.pack(">i", 0) if version else b"")  # not throttled


class _Reader:
    """The fields of a request, one behind the other."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.position = 0

    def bytes(self, size: int) -> bytes:
        self.position += size
        return self.request[self.position - size : self.position]

    def take(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.bytes(struct.calcsize(layout)))

    def string(self) -> str:
        (size,) = self.take(">h")
        return self.bytes(max(size, 0)).decode()


def _array(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
