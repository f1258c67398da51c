"""The zstd that Python has from 3.14 on; for older Pythons its backport, which is the same code."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    try:
        from compression.zstd import (
            ZstdCompressor,
            ZstdDecompressor,
            ZstdError,
            get_frame_info,
            get_frame_size,
        )
    except ImportError as error:
        raise ImportError(
            f"this Python was built without zstd ({error}): install libzstd's headers and build it "
            "again, or take another Python"
        ) from None

    C_MODULE = "_zstd"
else:
    from backports.zstd import (
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
        get_frame_info,
        get_frame_size,
    )

    C_MODULE = "backports.zstd._zstd"  # what has libzstd's functions

__all__ = [
    "C_MODULE",
    "ZstdCompressor",
    "ZstdDecompressor",
    "ZstdError",
    "get_frame_info",
    "get_frame_size",
]
