"""Processes of one user find each other through a socket; others do not get in."""

from __future__ import annotations

import pickle
import socket
import threading
from pathlib import Path

import pytest

from kafkajit.cli.sql.local_socket import Listener, connect


@pytest.fixture(params=["POSIX", "Windows"])
def listener(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Listener:
    if request.param == "Windows":
        monkeypatch.delattr(socket, "AF_UNIX")
    monkeypatch.chdir(tmp_path)
    return Listener(".")  # the path of a socket is short


def test_what_is_sent_is_received(listener: Listener) -> None:
    address = pickle.loads(pickle.dumps(listener.address))
    with connect(address) as sending, listener.accept() as receiving:
        sending.sendall(b"rows")
        sending.shutdown(socket.SHUT_WR)
        with receiving.makefile("rb") as stream:
            assert stream.read() == b"rows"
    listener.close()


def test_a_thread_that_waits_ends_when_the_listener_is_closed(listener: Listener) -> None:
    ended = threading.Event()

    def wait() -> None:
        with pytest.raises(OSError):  # noqa: PT011  any
            listener.accept()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    listener.close()
    assert ended.wait(10)


def test_a_port_is_of_this_machine_and_refuses_who_does_not_know_the_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    listener = Listener("")
    address = listener.address
    assert len(address.secret) == 16
    with socket.create_connection(("127.0.0.1", address.port), 10) as stranger:
        stranger.sendall(b"0" * 16)
        with socket.create_connection(("127.0.0.1", address.port), 10) as silent:
            silent.shutdown(socket.SHUT_WR)
            with connect(address) as known, listener.accept() as accepted:
                accepted.settimeout(10)
                known.sendall(b"rows")
                assert accepted.recv(4) == b"rows"
            assert silent.recv(1) == b""
        assert stranger.recv(1) == b""
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        connect(address)
