"""A proxy on this machine in front of a server: it delays requests, refuses them, or breaks off."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW_DOWN = (503, "SlowDown", "Please reduce your request rate.")
DENIED = (403, "AccessDenied", "Access Denied")
BAD_KEY = (403, "InvalidAccessKeyId", "The AWS Access Key Id does not exist in our records.")
TOO_MANY = (429, "TooManyRequests", "Slow down.")
UNAUTHORIZED = (401, "Unauthorized", "Sign in.")
EXPIRED = (400, "ExpiredToken", "The provided token has expired.")
RESET = "reset"  # the connection breaks off before an answer
TRUNCATED = "truncated"  # half of the body arrives
Fault = tuple[int, str, str] | str


@dataclass
class FailingProxy:
    """What the proxy does to requests, and those that it has seen."""

    address: str = ""
    delay: float = 0
    faults: list[Fault] = field(default_factory=list)  # for the next requests, one each
    fault: Fault | None = None  # for all other requests
    only: str = ""  # faults hit the requests whose line contains it
    seen: list[str] = field(default_factory=list)  # the lines of requests, such as GET /logs?…
    users: set[str] = field(default_factory=set)  # the access keys of requests; "" is nobody's
    at_once: int = 0
    _running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def listings(self) -> list[str]:
        return [line for line in self.seen if "list-type=" in line]

    def enter(self, line: str) -> Fault | None:
        with self._lock:
            self.seen.append(line)
            self._running += 1
            self.at_once = max(self.at_once, self._running)
            if self.only not in line:
                return None
            return self.faults.pop(0) if self.faults else self.fault

    def leave(self) -> None:
        with self._lock:
            self._running -= 1


@contextmanager
def run(server: str) -> Iterator[FailingProxy]:
    """Run a proxy in front of a server, host:port."""
    proxy = FailingProxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            sent = self._body()  # so that the next request begins after it
            signed = re.search("Credential=([^/]+)/", self.headers.get("Authorization", ""))
            proxy.users.add(signed[1] if signed else "")
            fault = proxy.enter(f"{self.command} {self.path}")
            try:
                time.sleep(proxy.delay)
                self._answer(fault, sent)
            finally:
                proxy.leave()

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sent = b""
            while not sent.endswith(b"\r\n0\r\n"):
                line = self.rfile.readline()
                size = int(line.partition(b";")[0], 16)
                sent += line + (self.rfile.read(size + 2) if size else b"")
            while (line := self.rfile.readline()).strip():  # trailers
                sent += line
            return sent + line

        def _answer(self, fault: Fault | None, sent: bytes) -> None:
            if fault == RESET:
                self.close_connection = True
                return
            if isinstance(fault, tuple):
                status, code, text = fault
                body = f"<Error><Code>{code}</Code><Message>{text}</Message></Error>".encode()
                self._send(status, {"Content-Type": "application/xml"}, body)
                return
            connection = http.client.HTTPConnection(server)
            connection.request(self.command, self.path, sent, dict(self.headers))
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            headers = {
                name: value
                for name, value in answer.getheaders()
                if name.lower() not in ("connection", "transfer-encoding", "date", "server")
            }
            self._send(answer.status, headers, body, cut=fault == TRUNCATED)

        def _send(
            self, status: int, headers: dict[str, str], body: bytes, *, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() != "content-length" or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) // 2] if cut else body)
            if cut:
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    host, port = httpd.server_address[:2]
    proxy.address = f"{host!s}:{port}"
    try:
        yield proxy
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
