"""Keys and values that another room makes text of, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.records.chunk import Chunk
from kafkajit.storage.source import Bytes, Int64s

# Makes text of fields: from the bytes, the places of the fields in them and their sizes (-1: NULL)
# to the text, and where that of each field begins and the last ends.
Texts = Callable[[Bytes, Int64s, Int64s], tuple[Bytes, Int64s]]


class PreparedTexts(NamedTuple):
    """The texts of a chunk's keys and values, as kernels take them."""

    key: Bytes
    key_offsets: Int64s
    value: Bytes
    value_offsets: Int64s


def prepared_texts(chunk: Chunk, key: Texts | None, value: Texts | None) -> PreparedTexts | None:
    """The texts of a chunk's records; None if neither keys nor values need any."""
    if (key is None and value is None) or not len(chunk):
        return None
    is_control = np.repeat(chunk.batches.is_control, chunk.counts)
    parts: list[npt.NDArray[np.generic]] = []
    for name, texts in (("key", key), ("value", value)):
        if texts is None:
            made = np.zeros(0, dtype=np.uint8), np.zeros(len(chunk) + 1, dtype=np.int64)
        else:
            starts = chunk.fields[name].astype(np.int64)
            sizes = chunk.fields[name + "Size"].astype(np.int64)
            # A broken message may have sizes that lead out of it.
            is_whole = (starts >= 0) & (starts + sizes <= chunk.content.size)
            sizes[is_control | ~is_whole] = -1
            made = texts(chunk.content, starts, sizes)
        for array in made:
            array.setflags(write=False)
            parts.append(array)
    return PreparedTexts(*parts)  # type: ignore[arg-type]
