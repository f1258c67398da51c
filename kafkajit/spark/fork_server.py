"""Spark's Python workers, forked from one process that has imported everything.

For each kind of worker (looking up data sources, making one, planning a read, running tasks) Spark
starts `python -m pyspark.daemon KIND`, one after the other, and each imports pyspark, pyarrow and
pandas again: 0.3 s each, and 1 s where pyspark comes out of its zip file. Here a fork server
imports them once, while the JVM starts. What Spark takes for Python (PYSPARK_PYTHON) is `stub`,
which runs this file: it hands arguments, environment and standard streams to the server, and the
server forks a child that runs the module as `python -m` would. Spark talks to that child as ever;
the client stays in between as the process that Spark signals. Where no server answers, the client
becomes the Python that Spark asked for.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys

ADDRESS = "KAFKAJIT_FORK_SERVER"

# Seconds that a client waits for a server that is still busy: kernels that are not cached yet
# compile for some ten seconds.
_PATIENCE = 30.0
_LENGTH = 4


def stub() -> str:
    """A shell script that starts the client: 15 ms, without site and without Spark's zip files."""
    python, file = (argument.replace("'", "'\\''") for argument in (sys.executable, __file__))
    return f"#!/bin/sh\nexec '{python}' -I -S '{file}' \"$@\"\n"


def main(arguments: list[str]) -> None:
    """What Spark starts in Python's place, with Python's arguments."""
    address = os.environ.get(ADDRESS, "")
    if arguments[:1] != ["-m"] or not _hand_over(address, arguments[1:]):
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606


def _hand_over(address: str, arguments: list[str]) -> bool:
    """Have the server run a module, and stay until it ends; False where there is no server."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_PATIENCE)
        connection.connect(address)
        # Nothing is handed over before the server has said hello: until then we can fall back.
        if not connection.recv(1):
            return False
    except OSError:
        return False
    connection.settimeout(None)
    folder = os.getcwd()  # noqa: PTH109 (pathlib takes longer to import than all of this)
    message = marshal.dumps((folder, arguments, dict(os.environb)))
    socket.send_fds(connection, [len(message).to_bytes(_LENGTH, "big")], [0, 1, 2])
    connection.sendall(message)
    child = int.from_bytes(connection.recv(_LENGTH), "big")

    def terminate(number: int, _: object) -> None:
        os.kill(child, number)
        os._exit(0)

    signal.signal(signal.SIGTERM, terminate)
    connection.recv(1)  # nothing comes: it returns when the child has ended
    return True


def serve(folder: str, jvm_pid: int, jvm: int, listening: int | None = None) -> None:
    """Fork workers until stdin ends, which says that the driver has gone, or the JVM has; tidy up.

    Args:
        folder: the session's, removed in the end: nobody else outlives a driver that is killed
        jvm_pid: killed when the driver has gone. Left to itself it takes a second to remove what is
            in the folder, holds a terminal's or a pipe's stderr meanwhile, and prints there what
            workers say whose connection breaks.
        jvm: a pipe of which only the JVM holds the other end
        listening: the socket that clients connect to, where the system lets us fork
    """
    import select
    import shutil

    if listening is not None:
        _fork_workers(jvm, socket.socket(fileno=listening))
    else:
        select.select([0, jvm], [], [])
    if not select.select([jvm], [], [], 0)[0]:
        os.kill(jvm_pid, signal.SIGKILL)
        select.select([jvm], [], [])
    shutil.rmtree(folder, ignore_errors=True)


def _fork_workers(jvm: int, listening: socket.socket) -> None:
    import gc
    import select

    _warm_up()
    gc.freeze()  # a collection in a child would write to the pages that it shares with us
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with listening:
        client = listening.fileno()
        while select.select([0, jvm, client], [], [])[0] == [client]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                os.close(jvm)
                listening.close()
                _be_python(connection)
            connection.close()


def _warm_up() -> None:
    """Import what workers import, and load the kernels, without a thread: forks lose threads."""
    import contextlib
    import importlib
    from pathlib import Path

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    modules = [
        "pyspark.worker",
        "pyspark.sql.worker.lookup_data_sources",
        "pyspark.sql.worker.create_data_source",
        "pyspark.sql.worker.data_source_pushdown_filters",
        "pyspark.sql.worker.analyze_udtf",
        "pandas",
        "kafkajit.spark.session",
    ]
    for name in modules:
        with contextlib.suppress(Exception):  # whoever needs it will see why it cannot be had
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        import kafkajit

        sample = Path(kafkajit.__file__).parent / "sample"
        for path in sample.rglob("*.log"):
            kafkajit.read_records(path.read_bytes())
            kafkajit.read_record_batches(path.read_bytes())


def _be_python(connection: socket.socket) -> None:
    """In a child of the server: take a client's place and run its module. Does not return."""
    import runpy

    code = 1
    try:
        connection.sendall(b"!")
        length, descriptors, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        with connection.makefile("rb") as stream:
            message = stream.read(int.from_bytes(length, "big"))
        folder, (module, *arguments), environment = marshal.loads(message)  # noqa: S302
        # stderr stays the server's, which is nowhere unless the session is verbose: what Spark's
        # workers say there is a traceback where somebody did not want all of their rows.
        for number, descriptor in enumerate(descriptors):
            if number < 2:
                os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(folder)
        os.environb.clear()
        os.environb.update(environment)
        first = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        sys.path[:] = first + [entry for entry in sys.path if entry not in first]
        sys.argv[1:] = arguments
        connection.sendall(os.getpid().to_bytes(_LENGTH, "big"))
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main(sys.argv[1:])
