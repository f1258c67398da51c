"""The client that Spark starts and signals as a worker, while a child of the fork server works."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkajit.spark.local import fork_server

_LENGTH = 4


@contextmanager
def client_of(child: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A client that waits for the end of a child which a server has named to it."""
    address = str(folder / "server")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(1)
        client = subprocess.Popen(
            [sys.executable, "-I", "-S", fork_server.__file__, "-m", "some.module"],
            env=os.environ | {fork_server.ADDRESS: address},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        try:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"!")
                length, descriptors, _, _ = socket.recv_fds(connection, _LENGTH, 3)
                for descriptor in descriptors:
                    os.close(descriptor)
                connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
                connection.sendall(child.to_bytes(_LENGTH, "big"))
                _await_handler(client.pid)
                yield client
        finally:
            client.kill()
            client.communicate()


def _await_handler(process: int) -> None:
    """Wait until a process has a handler of its own for SIGTERM."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            name, _, mask = line.partition(":")
            if name == "SigCgt" and int(mask, 16) >> (signal.SIGTERM - 1) & 1:
                return
        time.sleep(0.01)
    raise AssertionError("the client does not catch SIGTERM")


def test_a_worker_is_ended_by_the_signal_that_spark_sends_to_its_client(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as child, client_of(child.pid, tmp_path) as client:
        client.terminate()
        assert client.communicate(timeout=60) == ("", "")
        assert (client.returncode, child.wait(timeout=60)) == (0, -signal.SIGTERM)


def test_a_client_whose_worker_has_ended_ends_in_silence(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with client_of(child.pid, tmp_path) as client:
        client.terminate()
        assert client.communicate(timeout=60) == ("", "")
        assert client.returncode == 0


def test_a_client_without_a_worker_ends_alone(tmp_path: Path) -> None:
    with client_of(0, tmp_path) as client:
        neighbour = subprocess.Popen(["sleep", "60"], process_group=client.pid)
        client.terminate()
        assert client.communicate(timeout=60) == ("", "")
        with pytest.raises(subprocess.TimeoutExpired):
            neighbour.wait(timeout=0.2)
        neighbour.kill()
        neighbour.wait()
        assert client.returncode == 0
