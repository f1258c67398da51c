"""A file of another file system, which may have been replaced since it was listed."""

from __future__ import annotations

import io
from typing import Any, cast

from kafkajit.storage.stored_file import StoredFile


class _Object(io.BytesIO):
    """Refuses a position behind the end, as pyarrow's objects of S3 do."""

    def size(self) -> int:
        return len(self.getvalue())

    def read_at(self, count: int, position: int) -> bytes:
        if position > self.size():
            raise OSError("Cannot read past end of file")
        return self.getvalue()[position : position + count]


class _Store:
    def open_input_file(self, key: str) -> _Object:
        assert key == "bucket/log"
        return _Object(b"short")


def test_behind_the_end_of_an_object_that_has_become_shorter_there_are_no_bytes() -> None:
    file = StoredFile("s3://bucket/log", 100, None, "bucket/log", cast("Any", _Store()))
    assert file.read(2, 100) == b"ort"
    assert file.read(50, 10) == b""
