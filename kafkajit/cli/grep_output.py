"""Runs a search over the splits of a plan, and prints what it finds as the options ask for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from threading import Lock

import numpy as np
import pyarrow as pa

from kafkajit.cli.error_text import reason
from kafkajit.cli.grep_lines import RECORD_COLUMNS, GrepLines, Neighbours
from kafkajit.cli.look import PLACE, complain, painted
from kafkajit.cli.problems import Problems
from kafkajit.cli.progress import Progress
from kafkajit.cli.sql.table import escaped
from kafkajit.format.log_path import parse_log_path
from kafkajit.places.tiered_files import TieredFile
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.plan import Split
from kafkajit.scan.search import Found, Search, Searcher
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import Gap
from kafkajit.walk.threads import thread_count

MATCH, NO_MATCH, ERROR = 0, 1, 2  # grep's exit codes


class GrepOutput:
    """Prints matches, and remembers whether there were some, and errors."""

    def __init__(self, options: argparse.Namespace, search: Search, lines: GrepLines) -> None:
        self._options = options
        self._search = search
        self._lines = lines
        is_listed = options.quiet or options.files_with_matches
        self._is_counted = options.count and not is_listed
        self._is_short = is_listed or options.count
        self._around = (options.before_context, options.after_context)
        if self._is_short:
            self._around = (0, 0)
        self.progress = Progress()
        self._place = ""  # of the last records
        self._neighbours = Neighbours(*self._around)
        self._places: dict[str, str] = {}  # the partition of each segment
        self._paths: dict[str, str] = {}  # a segment of each partition
        self._counts: dict[str, int] = {}  # matches by partition
        self._listed: set[str] = set()  # the segments with a match that were printed
        self._has_match = self._has_output = False
        self._problems = Problems("grep", self.progress.hide)

    def search(self, splits: list[Split], scan: ScanOptions) -> None:
        """Search the splits, a partition after the other."""
        self._places = places_of(split.file for split in splits)
        self._paths = {place: path for path, place in self._places.items()}
        self._lines.folders = {
            path: place for path, place in self._places.items() if place != place_of(path)
        }
        self._counts = dict.fromkeys(self._paths, 0)
        order = {place: number for number, place in enumerate(self._counts)}
        unprinted = list(reversed(self._counts)) if self._is_counted else []

        # Threads ask what is wanted while others' records are counted and printed.
        lock = Lock()

        def wants(split: Split) -> bool:
            with lock:
                return self._wants(split)

        columns = () if self._is_short else RECORD_COLUMNS
        threads = thread_count(self._options.threads)
        searcher = Searcher(self._search, scan, columns, any(self._around), wants, threads)
        shown = searcher.progress
        self.progress.watch(lambda: (self._places.get(shown.path, ""), shown.done, shown.total))
        for split, part in searcher.parts(splits):
            place = self._places[split.file.path]
            behind = len(order) - order[place]  # partitions, this one included
            with lock:
                while len(unprinted) > behind:
                    self._print([self._count_of(unprinted.pop())])
                if isinstance(part, Found):
                    self._found(part, place, split.file.path)
                elif isinstance(part, Gap):
                    self.error(_words(part))
                else:
                    self.error(reason(part))
            if self._options.quiet and self._has_match:
                break
        if self._is_counted:
            self._print([self._count_of(place) for place in reversed(unprinted)])
        self.progress.stop()

    def error(self, text: str) -> None:
        """Report an error; the search goes on."""
        self._problems.say(text)

    def add(self, error: Exception) -> None:
        """Report the error of a folder or file that is left out."""
        self._problems.add(error)

    def note(self, text: str) -> None:
        """Print a line on stderr."""
        self.progress.hide()
        complain("grep", text)

    def code(self) -> int:
        """The exit code: an error counts more than a match, but not if nothing is printed."""
        if self._problems and not (self._options.quiet and self._has_match):
            return ERROR
        return MATCH if self._has_match else NO_MATCH

    def _wants(self, split: Split) -> bool:
        """Whether a split has to be read on."""
        if self._options.quiet and self._has_match:
            return False
        if split.file.path in self._listed:
            return False
        place = self._places[split.file.path]
        limit = self._options.max_count
        is_full = limit is not None and self._counts[place] >= limit
        return not is_full or (place == self._place and not self._neighbours.is_complete)

    def _found(self, found: Found, place: str, path: str) -> None:
        """Count and print the matches among some records, up to the limit."""
        if place != self._place:
            self._place, self._neighbours = place, Neighbours(*self._around)
        options = self._options
        records, matches = found
        count = int(matches.sum())
        if options.max_count is not None:
            left = options.max_count - self._counts[place]
            if count > left:
                matches = matches & (np.cumsum(matches) <= left)
                count = left
        self._counts[place] += count
        self._has_match |= count > 0
        if self._is_short:
            if options.files_with_matches and count and not options.quiet:
                self._listed.add(path)
                is_json = options.format == "json"
                self._print([json.dumps({"path": path}) if is_json else painted(path, PLACE)])
            return
        if not any(self._around):
            if count:
                rows = records if matches.all() else records.filter(pa.array(matches))
                self._write(self._lines.pieces(rows, path))
            return
        for rows, is_next in self._neighbours.around(Found(records, matches)):
            if self._has_output and not is_next and options.format == "text":
                self._print([self._lines.separator])
            self._write(self._lines.pieces(rows, path))

    def _count_of(self, place: str) -> str:
        count = self._counts[place]
        if self._options.format == "text":
            return f"{painted(escaped(place), PLACE)}\t{count}"
        path = self._paths[place]
        topic, partition = parse_log_path(path)[:2]
        where = {} if topic is None else {"topic": topic, "partition": partition}
        if topic is None or path in self._lines.folders:
            where["path"] = place
        return json.dumps({**where, "count": count})

    def _print(self, lines: list[str]) -> None:
        self._write(f"{line}\n" for line in lines)

    def _write(self, texts: Iterable[str]) -> None:
        self.progress.hide()
        self._has_output = True
        for text in texts:
            sys.stdout.write(text)


def places_of(logs: Iterable[StoredFile]) -> dict[str, str]:
    """The partition of each log by its path; its folder if other folders have that partition."""
    logs = list(logs)
    folders: dict[str, set[str]] = {}
    tiered = set()
    for log in logs:
        place = place_of(log.path)
        folders.setdefault(place, set()).add(log.folder)
        if isinstance(log, TieredFile):
            tiered.add(place)  # its folders have one log together
    several = {place for place, inside in folders.items() if len(inside) > 1} - tiered
    found = ((log, place_of(log.path)) for log in logs)
    return {log.path: log.folder if place in several else place for log, place in found}


def place_of(path: str) -> str:
    """The partition of a segment, or its path if that has no partition."""
    topic, partition = parse_log_path(path)[:2]
    return path if topic is None else f"{topic}-{partition}"


def _words(gap: Gap) -> str:
    return (
        f"{gap.path}: {gap.reason} at position {gap.position}: {gap.length:,} bytes are damaged "
        "and were not searched"
    )
