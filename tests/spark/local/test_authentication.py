"""Other users of the machine reach the driver's ports on 127.0.0.1, and learn nothing there."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from pathlib import Path

from local_java import environment

from kafkajit.spark.local import jvm
from kafkajit.storage.cache_folder import cache_folder

_RPC_REQUEST = 3


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def answer_about(port: int, block: str) -> bytes:
    """The answer of a block manager to a stranger who asks for a block."""
    asked = b"\0" + _text("app") + _text("driver") + struct.pack(">i", 1) + _text(block)
    message = struct.pack(">BqI", _RPC_REQUEST, 7, len(asked)) + asked
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(struct.pack(">q", 8 + len(message)) + message)
        (size,) = struct.unpack(">q", connection.recv(8, socket.MSG_WAITALL))
        return connection.recv(size - 8, socket.MSG_WAITALL)


PROGRAM = """
import sys
from kafkajit.spark import local_session

spark = local_session(cores="1", conf={"spark.driver.blockManager.port": sys.argv[1]})
secret = spark.sparkContext.broadcast("s3://KEY:SECRET@bucket/logs" * 100)
assert spark.sparkContext.parallelize([1]).map(lambda row: len(secret.value)).collect()
print(spark.conf.get("spark.driver.port"), flush=True)
sys.stdin.read()
"""


def test_blocks_and_messages_are_for_those_who_have_the_secret() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        blocks = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(blocks)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as program:
        assert program.stdin
        assert program.stdout
        messages = int(program.stdout.readline())
        answers = [answer_about(messages, "broadcast_0_piece0")]
        answers += [answer_about(blocks, f"broadcast_{number}_piece0") for number in range(10)]
        program.stdin.close()
    assert program.returncode == 0
    assert all(b"SaslMessage" in answer for answer in answers), answers


def test_a_crash_of_the_jvm_writes_where_nobody_else_can(tmp_path: Path) -> None:
    (flag,) = [one for one in jvm._flags(tmp_path, {}, verbose=True) if "ErrorFile" in one]
    cache = cache_folder()
    assert cache is not None
    assert flag == f"-XX:ErrorFile={cache}/java-error-%p.log"
