"""Forks Spark's Python workers from one process that has imported everything.

For each kind of worker (looking up data sources, making one, planning a read, running tasks) Spark
starts `python -m pyspark.daemon KIND`, one after the other. Each imports pyspark, pyarrow and
pandas again, which takes 0.3 s, or 1 s if pyspark comes from its zip file. The fork server imports
them once, while the JVM starts.

Spark's Python (PYSPARK_PYTHON) is a `stub` that runs this file as a client. The client passes its
arguments, environment and standard streams to the server, and the server forks a child that runs
the module as `python -m` would. Spark talks to that child; the client stays as the process that
Spark signals. If no server answers, the client becomes the Python that Spark asked for.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys

ADDRESS = "KAFKAJIT_FORK_SERVER"

# Seconds that a client waits for a busy server: uncached kernels compile for about ten seconds.
_PATIENCE = 30.0
_LENGTH = 4


def stub() -> str:
    """A shell script that starts the client in 15 ms, without site or Spark's zip files."""
    python, file = (argument.replace("'", "'\\''") for argument in (sys.executable, __file__))
    return f"#!/bin/sh\nexec '{python}' -I -S '{file}' \"$@\"\n"


def main(arguments: list[str]) -> None:
    """Run as Python, with Spark's arguments."""
    address = os.environ.get(ADDRESS, "")
    if arguments[:1] != ["-m"] or not _hand_over(address, arguments[1:]):
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606


def _hand_over(address: str, arguments: list[str]) -> bool:
    """Have the server run a module and wait until it ends; False if no server answers."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_PATIENCE)
        connection.connect(address)
        # The server answers first. Until then this client can still run the module itself.
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
        try:
            if child:  # 0, if the server ended instead of answering, would be this process's group
                os.kill(child, number)
        except ProcessLookupError:
            pass  # Spark also closes the child's stdin, at which it ends by itself
        os._exit(0)

    signal.signal(signal.SIGTERM, terminate)
    connection.recv(1)  # returns when the child has ended; nothing is sent
    return True


def serve(folder: str, jvm_pid: int, jvm: int, listening: int | None = None) -> None:
    """Fork workers until the driver or the JVM ends, then tidy up. Stdin ends when the driver does.

    Args:
        folder: the session's folder, removed at the end: only this process outlives a killed driver
        jvm_pid: the JVM to kill when the driver has ended. If it ended by itself, it would take a
            second to empty the folder, keep stderr open meanwhile, and print the errors of workers
            whose connections break
        jvm: a pipe whose other end only the JVM holds
        listening: the socket that clients connect to, if forking is possible here
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

    _import_everything()
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


def _import_everything() -> None:
    """Import the modules of workers, and load the kernels that most queries need.

    No threads may start here, because a fork loses them.
    """
    import contextlib
    import importlib

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
        with contextlib.suppress(Exception):  # the worker that needs it will report the error
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        from kafkajit.spark.warm_up import read_sample

        read_sample()


def _be_python(connection: socket.socket) -> None:
    """Run a client's module in a child of the server, in the client's place. Does not return."""
    import runpy

    code = 1
    try:
        connection.sendall(b"!")
        length, descriptors, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        with connection.makefile("rb") as stream:
            message = stream.read(int.from_bytes(length, "big"))
        folder, (module, *arguments), environment = marshal.loads(message)  # noqa: S302
        # stderr stays the server's, which is /dev/null unless the session is verbose: Spark's
        # workers print a traceback there if a query does not take all of their rows.
        for number, descriptor in enumerate(descriptors):
            if number < 2:
                os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(folder)
        os.environb.clear()
        os.environb.update(environment)
        # As PYTHONSAFEPATH has it, the current folder is not among these: it holds data.
        first = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
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
