"""Kafka's own log on partition folders, without a broker: LogOperations.java, and who asks it.

In: a partition folder (named TOPIC-N), topic configs by Kafka's names, batches. Out: what Kafka
4.1.1 answers, and the folder as it leaves it.

    with LogOperations(work) as kafka:
        log = kafka.open(work / "orders-0", {"segment.bytes": 4096}, now=1_700_000_000_000)
        log.append(batches)
        log.do("deleteOldSegments", now=1_700_600_000_000)
        print(log.do("state")["logStartOffset"])
        log.do("close")
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from broker import compile_java, java

Answer = dict[str, Any]
Config = Mapping[str, object]


class KafkaError(Exception):
    """An exception of Kafka: `name` is its class, `trace` its stack trace."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer['error']}: {answer['message']}")
        self.name: str = answer["error"]
        self.answer = answer
        self.trace: list[str] = answer["trace"]


class LogOperations:
    """A JVM that runs one command after the other; a context manager.

    Args:
        work: a folder for what is handed over, of this JVM alone
        classes: where LogOperations.java is compiled already; otherwise that is done in `work`
        fast: run as a broker does, which takes longer to begin: for measuring
    """

    def __init__(self, work: Path, *, classes: Path | None = None, fast: bool = False) -> None:
        self.work = work / "log-operations"
        self.work.mkdir(parents=True, exist_ok=True)
        if classes is None:
            classes = self.work / "classes"
            classes.mkdir(exist_ok=True)
            compile_java([Path(__file__).with_name("LogOperations.java")], classes)
        command = java("LogOperations", classes=[classes])
        if fast:
            command = [word for word in command if not word.startswith("-XX:")]
        self._jvm = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def __enter__(self) -> LogOperations:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        self._jvm.wait()

    def do(self, command: str, folder: Path | None = None, **arguments: object) -> Answer:
        """Do one command and return the answer; raise KafkaError when Kafka throws."""
        request = {"do": command, "folder": str(folder)} | arguments
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(json.dumps(request, default=str) + "\n")
        self._jvm.stdin.flush()
        line = self._jvm.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended at {request}")
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise KafkaError(answer)
        return answer

    def clock(self, now: int) -> None:
        """Set the time, and run what is due: files are deleted, producers expire."""
        self.do("clock", now=now)

    def open(self, folder: Path, config: Config | None = None, **arguments: object) -> Log:
        """Load a log, or begin one.

        Args:
            folder: the partition's folder
            config: topic configs; `segment.bytes` may be smaller than a broker's least
            arguments: `logStartOffset`, `recoveryPoint` (both 0), `clean` (True: no recovery
                but of segments whose index is missing or corrupt), `highWatermark` (the end),
                `topicId`, `producerIdExpirationMs` (a day), `now`
        """
        opened = self.do("open", folder, config=dict(config or {}), **arguments)
        return Log(self, folder, opened)

    def recover_segment(
        self, folder: Path, base_offset: int, config: Config | None = None
    ) -> Answer:
        """Recover one segment of a folder that is not open: `bytesTruncated`, `nextOffset`."""
        return self.do("recoverSegment", folder, baseOffset=base_offset, config=dict(config or {}))

    def time_cleaning(
        self, folder: Path, config: Config, times: int, **arguments: object
    ) -> list[Answer]:
        """Clean fresh copies of a folder's closed log, repeatedly; `seconds` is Kafka's cleaner."""
        answers = []
        for _ in range(times):
            scratch = self.work / "copies"
            shutil.copytree(folder, scratch / folder.name)
            log = self.open(scratch / folder.name, config)
            answers.append(log.do("clean", **{"evenIfClean": True} | arguments))
            log.do("crash")
            shutil.rmtree(scratch)
        return answers


class Log:
    """An open log.

    `do` takes, with their arguments (and `now`, the time from then on):
        append: `file`, see the method
        roll
        becomeLeader: `leaderEpoch`, from the log end on
        updateConfig: `config`
        updateHighWatermark: `highWatermark`, or the log end
        truncateTo, truncateFullyAndStartAt, deleteRecords (the log start offset): `offset`
        deleteOldSegments: by start offset, and by size and time if the policy has `delete`
        takeProducerSnapshot, flush
        clean: see the method
        state: offsets, segments, producers, leader epochs
        close: as when a broker ends (flushed, trimmed, a snapshot)
        crash: nothing of that
    """

    def __init__(self, kafka: LogOperations, folder: Path, opened: Answer) -> None:
        self.kafka = kafka
        self.folder = folder
        self.opened = opened

    def do(self, command: str, **arguments: object) -> Answer:
        """Do one command with this log."""
        return self.kafka.do(command, self.folder, **arguments)

    def append(self, batches: bytes | Path, **arguments: object) -> list[Answer]:
        """Append batches as they stand, and return the first and last offset of each append.

        Args:
            batches: their bytes, or a file of them
            arguments: `as` ("follower" keeps offsets and epochs; "leader" gives them: batches with
                offsets from 0), `origin` of a leader's ("CLIENT", "COORDINATOR" for markers),
                `leaderEpoch`, `batchesAtOnce` (1; 0 is all), `highWatermark`, `now`
        """
        if isinstance(batches, bytes):
            path = self.kafka.work / "batches"
            path.write_bytes(batches)
            batches = path
        appended: list[Answer] = self.do("append", file=batches, **arguments)["appended"]
        return appended

    def clean(self, **arguments: object) -> Answer:
        """Compact as a cleaner thread does, if the log is dirty enough; write the checkpoint.

        Args:
            arguments: `firstDirtyOffset`, `firstUncleanableOffset` instead of what Kafka would
                choose; `evenIfClean` (False: `min.cleanable.dirty.ratio` decides);
                `dedupeBufferSize` (4 MiB), `dedupeBufferLoadFactor` (0.9), `ioBufferSize`
                (512 KiB), `maxIoBufferSize`, `now`
        """
        return self.do("clean", **arguments)
