"""Rows that tasks send while they run: what becomes of tasks that Spark runs again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable

import pytest

from kafkajit.cli.sql.row_stream import _HEADER, _HELLO, _Inbox
from kafkajit.errors import KafkaJitError


class Attempt:
    """An attempt of a task that sends pieces to an inbox."""

    def __init__(self, inbox: _Inbox, task: int, attempt: int) -> None:
        ours, theirs = socket.socketpair()
        self._ours = ours
        self._thread = threading.Thread(target=inbox._receive, args=(theirs,))
        self._thread.start()
        ours.sendall(_HELLO.pack(task, attempt))

    def send(self, pieces: Iterable[bytes], *, ends: bool = True) -> Attempt:
        for piece in pieces:
            self._ours.sendall(_HEADER.pack(1, len(piece)) + piece)
        if ends:
            self._ours.sendall(_HEADER.pack(0, 0))
        self._ours.close()
        self._thread.join(10)
        return self


def test_rows_come_in_the_order_of_tasks() -> None:
    inbox = _Inbox()
    Attempt(inbox, 1, 1).send([b"c"])
    Attempt(inbox, 0, 0).send([b"a", b"b"])
    inbox.run(lambda: {0: 0, 1: 1})
    assert [piece for _, piece in inbox.pieces()] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("ends", [True, False])
def test_an_attempt_that_fails_before_its_turn_does_not_count(ends: bool) -> None:
    inbox = _Inbox()
    Attempt(inbox, 0, 0).send([b"a"], ends=ends)
    Attempt(inbox, 0, 7).send([b"a", b"b"])
    inbox.run(lambda: {0: 7})
    assert [piece for _, piece in inbox.pieces()] == [b"a", b"b"]
    assert inbox._held == 0


@pytest.mark.parametrize("ends", [True, False])
def test_an_attempt_that_fails_after_its_rows_were_taken_is_an_error(ends: bool) -> None:
    inbox = _Inbox()
    pieces = inbox.pieces()
    Attempt(inbox, 0, 0).send([b"a", b"b"], ends=ends)
    assert next(pieces) == (1, b"a")
    Attempt(inbox, 0, 7).send([b"a", b"b", b"c"])
    inbox.run(lambda: {0: 7})
    with pytest.raises(KafkaJitError, match="Spark ran task 0 again"):
        list(pieces)


def test_a_slower_attempt_that_spark_gives_up_does_no_harm() -> None:
    inbox = _Inbox()
    pieces = inbox.pieces()
    first = Attempt(inbox, 0, 0)
    first.send([b"a", b"b"])
    assert next(pieces) == (1, b"a")
    Attempt(inbox, 0, 7).send([b"a"], ends=False)
    inbox.run(lambda: {0: 0})
    assert [piece for _, piece in pieces] == [b"b"]
