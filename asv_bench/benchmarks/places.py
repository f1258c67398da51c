"""Segments in tiered storage: objects on a local disk → Arrow."""

from __future__ import annotations

import tempfile
from pathlib import Path

import kafkajit

from .segments import SMALL, Segment
from .tiered_objects import TOPIC_ID, Options, key_pair, write_segment

CHUNK = 4 << 20
COLUMNS = ["offset", "value"]


class Objects:
    """The forms of Aiven's plugin, in chunks of 4 MiB."""

    params = (["plain", "zstd", "AES-GCM", "both"],)
    param_names = ("form",)

    def setup(self, form: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        root = Path(self._folder.name)
        pair = key_pair(root, "key1")
        is_encrypted = form in ("AES-GCM", "both")
        options = Options(CHUNK, form in ("zstd", "both"), pair if is_encrypted else None)
        log = Segment(SMALL // 115).path().read_bytes()
        self.path = write_segment(root / f"orders-{TOPIC_ID}" / "0", 0, log, options)
        self.keys = {pair.id: str(pair.file)}
        self.time_read(form)

    def teardown(self, form: str) -> None:
        del form
        self._folder.cleanup()

    def time_read(self, form: str) -> None:
        del form
        for _ in kafkajit.iter_records(self.path, columns=COLUMNS, private_keys=self.keys):
            pass
