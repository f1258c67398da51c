"""dump-log against Kafka's own DumpLogSegments, over mutated files and random options.

    PYTHONPATH=.:tests:tests/support python tests/broker/dump_differential.py --cases 50000

One JVM runs Kafka's tool again and again (DumpLogLoop.java), this process runs ours; both see the
same folder. Standard output, the exit code and, unless Kafka's tool throws, standard error have to
be the same. If it throws, ours writes one line for the file instead of the trace. A case follows
from the seed and its number. What differs is kept below --keep, a folder for each case, and
counted by class at the end.

`meant` knows the differences that docs/format.md lists.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import mutations
from broker import UTF8, compile_java, java
from corpus import DATA
from index_damage import damaged_indexes

from kafkajit.cli import main as kafkajit

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
MOST_BYTES = 8000  # a seed is cut off behind them
DECODERS = ("StringDecoder", "LongDecoder", "IntegerDecoder")
PACKAGE = "org.apache.kafka.tools.api"
TOPIC_DECODERS = (
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "share-group-state-decoder",
    "remote-log-metadata-decoder",
)

# Snappy with little-endian sizes, and a second lz4 frame.
_MEANT = re.compile(
    rb"(?P<snappy>\x82SNAPPY\x00\x01\x00{3})|(?P<lz4>\x04\x22M\x18.+\x04\x22M\x18)", re.DOTALL
)

Files = Mapping[str, bytes]  # by name, below the folder that both tools run in


class Run(NamedTuple):
    """The output and the exit code of a tool."""

    out: bytes
    err: bytes
    code: int


class Case(NamedTuple):
    """Files, and the arguments that both tools get."""

    files: Files
    arguments: list[str]


class DumpLogSegments:
    """Kafka's tool in a JVM that stays; a context manager.

    Args:
        folder: where it runs, which relative names of files begin at
        classes: where DumpLogLoop.java is compiled to
    """

    def __init__(self, folder: Path, classes: Path) -> None:
        classes.mkdir(parents=True, exist_ok=True)
        compile_java([Path(__file__).with_name("DumpLogLoop.java")], classes)
        command = java("DumpLogLoop", classes=[classes])
        self._jvm = subprocess.Popen(
            [command[0], "-Xmx512m", *command[1:]],
            cwd=folder,
            env=os.environ | UTF8,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> DumpLogSegments:
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

    def run(self, arguments: list[str]) -> Run:
        """Run the tool once."""
        assert self._jvm.stdin is not None
        self._jvm.stdin.write("\t".join(arguments).encode() + b"\n")
        self._jvm.stdin.flush()
        code, out, err = struct.unpack(">iii", self._read(12))
        return Run(self._read(out), self._read(err), code)

    def _read(self, size: int) -> bytes:
        assert self._jvm.stdout is not None
        answer = self._jvm.stdout.read(size)
        if len(answer) < size:
            raise RuntimeError("the JVM ended")
        return answer


def ours(arguments: list[str]) -> Run:
    """Run `kafkajit dump-log` in this process and the current folder."""
    kept = sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdout = io.TextIOWrapper(out, "utf-8")
    sys.stderr = io.TextIOWrapper(err, "utf-8")
    try:
        try:
            code = kafkajit(["dump-log", *arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        return Run(out.getvalue(), err.getvalue(), code)
    finally:
        sys.stdout, sys.stderr = kept


def difference(case: Case, kafkas: Run, our: Run) -> str | None:
    """Name the difference in a word or two; None if the runs agree."""
    if b"OutOfMemoryError" in kafkas.err:
        return None  # the batch claims a size beyond the JVM's memory
    if our.code != kafkas.code:
        return "exit code"
    if b'Exception in thread "main"' not in kafkas.err:
        if our.out != kafkas.out:
            return "stdout"
        return "stderr" if our.err != kafkas.err else None
    if our.out != kafkas.out:
        # We go on with the next file.
        several = "," in case.arguments[case.arguments.index("--files") + 1]
        if not (several and our.out.startswith(kafkas.out + b"Dumping ")):
            return "stdout before an exception"
    said = kafkas.err.partition(b'Exception in thread "main"')[0]
    return None if our.err.startswith(said) else "stderr before an exception"


def meant(case: Case, kafkas: Run) -> str | None:
    """The reason of an intended difference, which docs/format.md lists; None for others."""
    logs = b"".join(content for name, content in case.files.items() if name.endswith(".log"))
    found = _MEANT.search(logs)
    if found is not None and b" compresscodec: " + found.lastgroup.encode() in kafkas.out:
        return f"what {found.lastgroup} is accepted here"
    return None


def class_of(case: Case, kafkas: Run, our: Run) -> str:
    """The class of a difference, which it shares with others like it."""
    thrown = re.search(rb'Exception in thread "main" (.*)', kafkas.err)
    frame = re.search(rb"\tat ([\w.$]+)", kafkas.err)
    said = [line for line in our.err.decode(errors="replace").splitlines() if "kafkajit" in line]
    name = case.arguments[case.arguments.index("--files") + 1]
    parts = [
        Path(name).suffix,
        thrown[1].decode(errors="replace")[:150] if thrown else "no exception",
        frame[1].decode() if frame else "",
        said[0].partition(": ")[2].partition(": ")[2] if said else "we report nothing",
    ]
    return " | ".join(re.sub(r"\d+", "N", part) for part in parts)


class Cases:
    """Cases by number."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._segments = list(_segments())
        self._sources = [log for log in mutations.seeds() if _MEANT.search(log) is None]

    def case(self, number: int) -> Case:
        """A case, always the same of a number."""
        rng = random.Random(f"{self._seed}/{number}")
        if rng.random() < 0.15:
            log = b"".join(rng.choice(self._sources) for _ in range(rng.choice([1, 2, 4])))
            files = {"orders-0/00000000000000000000.log": log}
        else:
            files = dict(rng.choice(self._segments))
        mutable = [name for name in files if files[name]]
        for name in rng.sample(mutable, min(len(mutable), rng.choice([0, 1, 1, 1, 2, 3]))):
            files[name] = _mutated(rng, name, files[name])
        if rng.random() < 0.03 and len(files) > 1:
            del files[rng.choice(sorted(files))]
        return Case(files, [*_options(rng), "--files", _chosen(rng, sorted(files))])


def _segments() -> Iterator[Files]:
    """Segments of real brokers, each with the files of its folder beside it."""
    for part in ("v2", "old", "internal", "payloads", "damaged", "messages", "tiered", "written"):
        for folder in sorted(path for path in (DATA / part).rglob("*") if path.is_dir()):
            partition = folder.name if re.search(r"-\d+$", folder.name) else "orders-0"
            names = sorted(path for path in folder.iterdir() if path.suffix in SEGMENT_SUFFIXES)
            by_offset: dict[str, dict[str, bytes]] = {}
            for path in names:
                with path.open("rb") as file:
                    content = file.read(MOST_BYTES)
                stem = path.name.split(".")[0]
                by_offset.setdefault(stem, {})[f"{partition}/{path.name}"] = content
            yield from by_offset.values()
    for segment in damaged_indexes().values():
        yield {f"orders-0/{0:020}{suffix}": content for suffix, content in segment.items()}


def _mutated(rng: random.Random, name: str, content: bytes) -> bytes:
    count = rng.choice([1, 1, 1, 2, 4])
    if name.endswith((".log", ".checkpoint")):
        for _ in range(count):
            content = rng.choice(mutations._MUTATIONS)(rng, content) or b"\0"
        return mutations.repaired(content) if rng.random() < 0.6 else content
    for _ in range(count):
        content = rng.choice(_FILE_MUTATIONS)(rng, name, content) or b"\0"
    return content


def _flip(rng: random.Random, _: str, content: bytes) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def _overwrite(rng: random.Random, _: str, content: bytes) -> bytes:
    at = rng.randrange(len(content))
    value = rng.choice([b"\0", b"\xff", b"\x7f\xff", bytes(4), b"\xff" * 4, rng.randbytes(4)])
    return (content[:at] + value + content[at + len(value) :])[: len(content)]


def _cut(rng: random.Random, _: str, content: bytes) -> bytes:
    return content[: rng.randrange(1, len(content) + 1)]


def _append(rng: random.Random, _: str, content: bytes) -> bytes:
    return content + rng.choice([bytes, rng.randbytes])(rng.randrange(1, 40))


def _entries(rng: random.Random, name: str, content: bytes) -> bytes:
    """Entries moved, doubled or left out."""
    size = {".index": 8, ".timeindex": 12, ".txnindex": 34}.get(Path(name).suffix, 8)
    entries = [content[at : at + size] for at in range(0, len(content), size)]
    at = rng.randrange(len(entries))
    match rng.randrange(4):
        case 0:
            entries.insert(rng.randrange(len(entries) + 1), entries[at])
        case 1:
            del entries[at]
        case 2:
            entries.insert(at, bytes(size))
        case _:
            rng.shuffle(entries)
    return b"".join(entries)


def _number(rng: random.Random, _: str, content: bytes) -> bytes:
    """A number that is next to what was there, or an extreme one."""
    layout = rng.choice([">i", ">q", ">h"])
    size = struct.calcsize(layout)
    if len(content) < size:
        return content
    at = rng.randrange(0, len(content) - size + 1, 2)
    bits = 8 * size
    (before,) = struct.unpack_from(layout, content, at)
    value = rng.choice([before + 1, before - 1, 2 * before, 0, -1, 2 ** (bits - 1) - 1])
    value = (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    return content[:at] + struct.pack(layout, value) + content[at + size :]


def _crc_again(_: random.Random, name: str, content: bytes) -> bytes:
    """Correct the checksum of a .snapshot, so that the bytes behind it are parsed."""
    if not name.endswith(".snapshot") or len(content) < 6:
        return content
    import crc32c

    return content[:2] + struct.pack(">I", crc32c.crc32c(content[6:])) + content[6:]


def _entry_and_crc(rng: random.Random, name: str, content: bytes) -> bytes:
    return _crc_again(rng, name, _number(rng, name, content))


_FILE_MUTATIONS: list[Callable[[random.Random, str, bytes], bytes]] = [
    _flip,
    _overwrite,
    _cut,
    _append,
    _entries,
    _number,
    _entry_and_crc,
]


def _options(rng: random.Random) -> list[str]:
    options: list[str] = []

    def maybe(chance: float, *words: str) -> None:
        if rng.random() < chance:
            options.extend(words)

    maybe(0.4, "--print-data-log")
    maybe(0.3, "--deep-iteration")
    maybe(0.15, "--skip-record-metadata")
    maybe(0.1, "--verify-index-only")
    maybe(0.1, "--index-sanity-check")
    sizes = [0, 1, 11, 16, 17, 18, 60, 61, 62, 92, 100, 500, 1000, 5000, 2**31 - 1, -1]
    maybe(0.15, "--max-bytes", str(rng.choice(sizes)))
    maybe(0.1, "--max-message-size", str(rng.choice(sizes)))
    maybe(0.1, "--value-decoder-class", f"{PACKAGE}.{rng.choice(DECODERS)}")
    maybe(0.1, "--key-decoder-class", f"{PACKAGE}.{rng.choice(DECODERS)}")
    # With several such options ours takes the one for the log's topic (docs/format.md).
    maybe(0.4, f"--{rng.choice(TOPIC_DECODERS)}")
    return options


def _chosen(rng: random.Random, names: list[str]) -> str:
    """The files to dump: mostly one, of which Kafka's tool prints all that it can."""
    if rng.random() < 0.15:
        return ",".join(rng.sample(names, rng.randrange(1, len(names) + 1)))
    return rng.choice(names)


def write(files: Files) -> None:
    """Write only these files into the current folder: Kafka's tool makes indexes, too."""
    for path in Path().iterdir():
        shutil.rmtree(path)
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def compare(case: Case, kafka: DumpLogSegments) -> tuple[Run, Run]:
    """The results of both tools for a case, Kafka's first."""
    write(case.files)
    kafkas = kafka.run(case.arguments)
    write(case.files)
    return kafkas, ours(case.arguments)


def keep(folder: Path, case: Case, kafkas: Run, our: Run) -> None:
    """Write down a case and its results, for a person to read."""
    folder.mkdir(parents=True)
    for name, content in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "arguments.json").write_text(json.dumps(case.arguments))
    for tool, run in (("kafka", kafkas), ("kafkajit", our)):
        (folder / f"{tool}.out").write_bytes(run.out)
        (folder / f"{tool}.err").write_bytes(run.err)
        (folder / f"{tool}.exit").write_text(str(run.code))


def main() -> None:
    """Run cases, keep those that differ, and print how many of each class there are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first one's number")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1200, help="stop then (%(default)s)")
    parser.add_argument("--keep", type=Path, default=Path("dump-differences"))
    options = parser.parse_args()
    keep_in = options.keep.absolute()
    begun = time.monotonic()
    classes: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    cases = Cases(options.seed)
    done = 0
    numbers = options.only or range(options.first, options.first + options.cases)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "files"
        folder.mkdir()
        os.chdir(folder)
        with DumpLogSegments(folder, Path(work) / "classes") as kafka:
            for number in numbers:
                if time.monotonic() - begun > options.seconds:
                    break
                case = cases.case(number)
                kafkas, our = compare(case, kafka)
                done += 1
                what = difference(case, kafkas, our)
                reason = meant(case, kafkas) if what else None
                if reason is not None:
                    allowed[reason] += 1
                elif what is not None:
                    name = f"{what}: {class_of(case, kafkas, our)}"
                    classes[name] += 1
                    print(number, name, flush=True)
                    if classes[name] <= 5:
                        keep(keep_in / str(number), case, kafkas, our)
        os.chdir("/")
    print(f"{done} cases in {time.monotonic() - begun:.0f} s, {sum(classes.values())} differ")
    for name, count in (*classes.most_common(), *allowed.most_common()):
        print(f"{count:>6} {'meant: ' if name in allowed else ''}{name}")
    sys.exit(1 if classes else 0)


if __name__ == "__main__":
    main()
