"""The corpus: 2,600 small files in a few archives, which are unpacked once.

    python tests/support/data.py pack [KIND …]    # after tests/broker/make_corpus.py
    python tests/support/data.py list [PATTERN]   # what is in the archives
    python tests/support/data.py cat PATH         # one file, such as v2/none-0/…data.out

tests/data/KIND.tar.xz holds a folder each, and tests/data/INDEX.tsv names every file with its size
and its SHA-256. Archives are unpacked into build/test-data, again when they change. Those in
tests/data/objects, of tiered storage, go to build/test-objects: the tests that take all files of a
kind in the corpus do not see them.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import fnmatch
import hashlib
import io
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ARCHIVES = TESTS / "data"
UNPACKED = TESTS.parent / "build" / "test-data"
OBJECTS = ARCHIVES / "objects"
INDEX = "INDEX.tsv"


def unpacked(archives: Path = ARCHIVES, to: Path = UNPACKED) -> Path:
    """The corpus as folders; unpacks what has changed since the last time."""
    to.mkdir(parents=True, exist_ok=True)
    with _alone(to):
        for source in sorted(path for path in archives.iterdir() if path.is_file()):
            kind = source.name.removesuffix(".tar.xz")
            digest, stamp = _digest(source), to / f".{kind}"
            if stamp.exists() and stamp.read_text() == digest:
                continue
            with tempfile.TemporaryDirectory(dir=to) as fresh:
                target = Path(fresh) / kind
                if source.suffix == ".xz":
                    with tarfile.open(source) as archive:
                        # Python 3.11.4 is the first that knows filters.
                        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                        archive.extractall(fresh, **safely)
                else:
                    shutil.copy(source, target)
                _remove(to / kind)
                target.rename(to / kind)
            stamp.write_text(digest)
    return to


def objects() -> Path:
    """The objects of tiered storage as folders, one for each plugin and its settings."""
    return unpacked(OBJECTS, UNPACKED.with_name("test-objects"))


def pack(kinds: Iterable[str], archives: Path = ARCHIVES, folders: Path = UNPACKED) -> None:
    """Write the archives of some kinds, the same bytes for the same files, and the index."""
    for kind in kinds:
        with tarfile.open(archives / f"{kind}.tar.xz", "w:xz", preset=9) as archive:
            for path in sorted(folders.joinpath(kind).rglob("*")):
                if path.is_file():
                    archive.addfile(_entry(path, folders), io.BytesIO(path.read_bytes()))
        (folders / f".{kind}").write_text(_digest(archives / f"{kind}.tar.xz"))
    (archives / INDEX).write_text("".join(f"{line}\n" for line in index(archives)))


def index(archives: Path = ARCHIVES) -> Iterator[str]:
    """The lines of the index: path, size and SHA-256 of every file in an archive."""
    yield "path\tbytes\tsha256"
    for source in sorted(archives.glob("*.tar.xz")):
        with tarfile.open(source) as archive:
            for member in archive.getmembers():
                content = archive.extractfile(member)
                assert content is not None, member.name
                digest = hashlib.sha256(content.read()).hexdigest()
                yield f"{member.name}\t{member.size}\t{digest}"


def _entry(path: Path, folders: Path) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.relative_to(folders).as_posix())
    entry.size, entry.mode = path.stat().st_size, 0o644
    return entry


def _digest(source: Path) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process unpack at a time: pytest-xdist starts several at once."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description="The corpus's archives.")
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="write archives from build/test-data")
    packing.add_argument("kinds", nargs="*", metavar="KIND", help="all by default")
    listing = commands.add_parser("list", help="list files, with their sizes")
    listing.add_argument("pattern", nargs="?", default="*")
    showing = commands.add_parser("cat", help="print a file's bytes")
    showing.add_argument("path")
    arguments = parser.parse_args()
    if arguments.command == "pack":
        pack(arguments.kinds or [path.name[:-7] for path in sorted(ARCHIVES.glob("*.tar.xz"))])
    elif arguments.command == "cat":
        path = arguments.path
        inner = path.removeprefix("objects/")
        sys.stdout.buffer.write(
            (unpacked() / path if inner == path else objects() / inner).read_bytes()
        )
    else:
        for archives, prefix in ((ARCHIVES, ""), (OBJECTS, "objects/")):
            for line in (archives / INDEX).read_text().splitlines()[1:]:
                path, size, _ = line.split("\t")
                if fnmatch.fnmatch(prefix + path, arguments.pattern):
                    print(f"{int(size):>10,}  {prefix}{path}")


if __name__ == "__main__":
    main()
