"""A stream between processes of one user on this machine: the only module that opens its sockets.

POSIX systems have sockets with a path, in a folder that only this user may enter. Elsewhere the
socket has a port on 127.0.0.1, to which any user of the machine can connect. So the address has a
secret there, and a process that connects sends it first.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from contextlib import suppress
from typing import NamedTuple

_HERE = "127.0.0.1"
_SECRET_BYTES = 16
# Seconds that a connection has to send the secret.
_PATIENCE = 10.0
_WAITING = 128


class Address(NamedTuple):
    """The place of a socket, for a process that connects."""

    path: str
    port: int = 0  # 0: the socket has a path
    secret: bytes = b""


class Listener:
    """A socket that processes of this user connect to.

    Args:
        folder: a folder that only this user may enter.
    """

    def __init__(self, folder: str) -> None:
        self.address = Address(f"{folder}/rows")
        if hasattr(socket, "AF_UNIX"):
            self._socket = socket.socket(socket.AF_UNIX)
            place: str | tuple[str, int] = self.address.path
        else:
            self._socket = socket.socket()
            place = _HERE, 0
        try:
            self._socket.bind(place)
            self._socket.listen(_WAITING)
        except BaseException:
            self._socket.close()
            raise
        if not isinstance(place, str):
            port = self._socket.getsockname()[1]
            self.address = Address("", port, secrets.token_bytes(_SECRET_BYTES))

    def accept(self) -> socket.socket:
        """Wait for a process that knows the address; raise an OSError once this is closed."""
        while True:
            connection, _ = self._socket.accept()
            if _knows(self.address.secret, connection):
                return connection
            connection.close()

    def close(self) -> None:
        """Close the socket; a thread that waits in `accept` goes on."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone does not wake that thread
        self._socket.close()


def _knows(secret: bytes, connection: socket.socket) -> bool:
    if not secret:
        return True
    told = b""
    try:
        connection.settimeout(_PATIENCE)
        while len(told) < len(secret) and (more := connection.recv(len(secret) - len(told))):
            told += more
        connection.settimeout(None)
    except OSError:
        return False
    return hmac.compare_digest(told, secret)


def connect(address: Address) -> socket.socket:
    """Connect to a listener of this user."""
    has_path = not address.port
    connection = socket.socket(socket.AF_UNIX) if has_path else socket.socket()
    try:
        connection.connect(address.path if has_path else (_HERE, address.port))
        connection.sendall(address.secret)
    except BaseException:
        connection.close()
        raise
    return connection
