"""Streams any number of rows out of Spark, in order and in bounded memory, while tasks run.

DataFrame.toArrow collects everything in the JVM; toLocalIterator runs one task at a time and
pickles rows. Here each task runs in a Python worker (mapInArrow), which encodes its record batches
and sends them through a socket. The driver yields the pieces of the first task, then those that the
second has sent meanwhile, and so on. A task that is too far ahead has to wait.

    task 0 ─▶ socket ─▶ queue ─┐
    task 1 ─▶ socket ─▶ queue ─┼─▶ one piece after the other
    task 2 ─▶ socket ─▶ queue ─┘

Spark runs a task again if it fails, or is slow. A queue belongs to one attempt. As soon as the
driver has yielded a piece of it, other attempts come too late: if one of them is the attempt that
the job took in the end, the rows that were yielded are not those of the query.
"""

from __future__ import annotations

import shutil
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.cli.sql.local_socket import Address, Listener, connect
from kafkajit.errors import KafkaJitError
from kafkajit.system.current_folder import temporary_folder

if TYPE_CHECKING:
    import socket

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from kafkajit.cli.sql.formats import Encode

# The bytes that the driver buffers for the task whose turn it is, and for all tasks together.
_OF_TURN = 32 << 20
_AHEAD = 256 << 20
# Before each piece: rows and bytes in it. A piece of no bytes is the end of a task.
_HEADER = struct.Struct("<qq")
_HELLO = struct.Struct("<iq")  # the task and the number of the attempt


def stream_rows(df: DataFrame, encode: Encode, on_rows: Callable[[int], None]) -> Iterator[bytes]:
    """Encode a DataFrame's record batches in its tasks, and yield them in the order of its rows.

    Closing the iterator ends the tasks.

    Args:
        df: the rows; column names must differ.
        encode: turns a record batch into bytes; workers must be able to import it.
        on_rows: called with the number of rows in each piece.
    """
    context = df.sparkSession.sparkContext
    folder = str(temporary_folder())
    inbox = _Inbox()
    listening = Listener(folder)

    def run_tasks() -> dict[int, int]:
        context.addJobTag(Path(folder).name)  # of this thread's jobs
        send = partial(_send, address=listening.address, encode=encode)
        tasks = df.mapInArrow(send, "task INT, attempt BIGINT")
        return {row.task: row.attempt for row in tasks.collect()}

    try:
        for target, argument in ((inbox.accept, listening), (inbox.run, run_tasks)):
            threading.Thread(target=target, args=(argument,), daemon=True).start()
        for rows, piece in inbox.pieces():
            on_rows(rows)
            yield piece
    finally:
        if not inbox.is_over:
            context.cancelJobsWithTag(Path(folder).name)
        inbox.close()
        listening.close()
        shutil.rmtree(folder, ignore_errors=True)


def _send(
    batches: Iterator[pa.RecordBatch], address: Address, encode: Encode
) -> Iterator[pa.RecordBatch]:
    """Send all batches of a task to the driver; return the task's number and the attempt's."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    task, attempt = context.partitionId(), context.taskAttemptId()
    with connect(address) as connection:
        connection.sendall(_HELLO.pack(task, attempt))
        for batch in batches:
            piece = encode(batch)
            if piece:
                connection.sendall(_HEADER.pack(batch.num_rows, len(piece)))
                connection.sendall(piece)
        connection.sendall(_HEADER.pack(0, 0))
    row = {"task": pa.array([task], pa.int32()), "attempt": pa.array([attempt], pa.int64())}
    yield pa.RecordBatch.from_pydict(row)


Piece = tuple[int, bytes]


class _Queue:
    """The pieces that an attempt has sent and the driver has not yielded; None marks the end."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.pieces: deque[Piece | None] = deque()
        self.size = 0
        self.is_begun = False  # the driver has taken a piece


class _Inbox:
    """The queues of all tasks, and the task whose turn it is."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[int, _Queue] = {}
        self._turn = 0
        self._held = 0  # bytes, in all queues
        self._tasks: dict[int, int] = {}  # and their attempts, known once all of them are done
        self._error: BaseException | None = None
        self._is_closed = False
        self.is_over = False

    def run(self, job: Callable[[], dict[int, int]]) -> None:
        """Run the job whose tasks send."""
        try:
            self._tasks = job()
        except BaseException as error:
            self._error = error
        self.is_over = True
        with self._changed:
            self._changed.notify_all()

    def accept(self, listening: Listener) -> None:
        """Receive what tasks send, until the listener is closed."""
        with suppress(OSError):
            while True:
                connection = listening.accept()
                threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def pieces(self) -> Iterator[Piece]:
        """All pieces, task by task."""
        while True:
            with self._changed:
                self._changed.wait_for(self._can_go_on)
                if self._error is not None:
                    raise self._error
                if self.is_over:
                    self._check_attempts()
                queue = self._queues.get(self._turn)
                if queue is None:  # there was no such task
                    if self._turn > max(self._tasks, default=-1):
                        return
                    self._turn += 1
                    continue
                piece = queue.pieces.popleft()
                queue.is_begun = True
                if piece is None:
                    self._turn += 1
                else:
                    queue.size -= len(piece[1])
                    self._held -= len(piece[1])
                self._changed.notify_all()
            if piece is not None:
                yield piece

    def close(self) -> None:
        """Stop: no more pieces will be fetched."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _can_go_on(self) -> bool:
        queue = self._queues.get(self._turn)
        if queue is not None and queue.pieces:
            return True
        if self._error is not None:
            return True
        is_other = queue is not None and queue.attempt != self._tasks.get(self._turn)
        return self.is_over and (self._turn not in self._tasks or is_other)

    def _check_attempts(self) -> None:
        """Raise an error if rows of another attempt than the job's have been taken."""
        for task, attempt in self._tasks.items():
            queue = self._queues.get(task)
            if queue is not None and queue.attempt != attempt:
                raise KafkaJitError(
                    f"Spark ran task {task} again after some of its rows had been written, so the "
                    "rows are not those of the query: run it again, perhaps with "
                    "--conf spark.task.maxFailures=1 to see why the task fails"
                )

    def _receive(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            task, attempt = _HELLO.unpack(stream.read(_HELLO.size))
            queue = _Queue(attempt)
            with self._changed:
                before = self._queues.get(task)
                if before is None or not before.is_begun:
                    self._held -= 0 if before is None else before.size
                    self._queues[task] = queue
                    self._changed.notify_all()
            while header := stream.read(_HEADER.size):
                rows, size = _HEADER.unpack(header)
                piece = stream.read(size)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed or self._may_put(task, queue))
                    if self._is_closed:
                        return
                    if self._queues[task] is not queue:
                        continue  # of an attempt that does not count
                    queue.pieces.append((rows, piece) if size else None)
                    queue.size += size
                    self._held += size
                    self._changed.notify_all()

    def _may_put(self, task: int, queue: _Queue) -> bool:
        """Whether there is room for another piece of this task, or none is needed."""
        if self._queues[task] is not queue:
            return True
        if task == self._turn:
            return queue.size < _OF_TURN
        # If the task whose turn it is has not begun, it may be waiting for one of these to end.
        return self._held < _AHEAD or self._turn not in self._queues
