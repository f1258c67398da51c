"""Objects of tiered storage as Aiven's plugin writes them, out of a broker's segments."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TOPIC_ID = "MWJ6FHTfRYy67jzwZdeqSQ"
_HASH = 64


class KeyPair(NamedTuple):
    """A private key's file by its id, and the numbers of the public one."""

    id: str
    file: Path
    exponent: int
    modulus: int


def key_pair(folder: Path, id_: str, bits: int = 2048) -> KeyPair:
    key = rsa.generate_private_key(65537, bits)
    file = folder / f"{id_}.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    numbers = key.public_key().public_numbers()
    return KeyPair(id_, file, numbers.e, numbers.n)


def wrapped(pair: KeyPair, content: bytes) -> bytes:
    """OAEP with SHA3-512, for the label and for the mask."""
    size = (pair.modulus.bit_length() + 7) // 8
    room = size - len(content) - 2 * _HASH - 2
    block = hashlib.sha3_512().digest() + bytes(room) + b"\1" + content
    seed = os.urandom(_HASH)
    masked = _xor(block, _mask(seed, len(block)))
    padded = b"\0" + _xor(seed, _mask(masked, _HASH)) + masked
    return pow(int.from_bytes(padded, "big"), pair.exponent, pair.modulus).to_bytes(size, "big")


def _mask(seed: bytes, size: int) -> bytes:
    out = b""
    while len(out) < size:
        out += hashlib.sha3_512(seed + struct.pack(">I", len(out) // _HASH)).digest()
    return out[:size]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


class Options(NamedTuple):
    """The plugin's settings."""

    chunk_size: int = 1000
    compresses: bool = False
    pair: KeyPair | None = None
    is_variable: bool = True  # the chunk index


PLAIN = Options()


def write_segment(
    folder: Path,
    base_offset: int,
    log: bytes,
    options: Options = PLAIN,
    *,
    end_offset: int = 0,
    indexes: dict[str, bytes] | None = None,
    epochs: dict[int, int] | None = None,
    segment_id: str = "tqimKeZwStOEOwRzT3L5oQ",
    max_timestamp: int | None = None,
) -> Path:
    """Write the three objects of a segment into a partition's folder; return the log's path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{base_offset:020}-{segment_id}"
    key, aad = os.urandom(32), os.urandom(32)
    pieces = [log[at : at + options.chunk_size] for at in range(0, len(log), options.chunk_size)]
    chunks = [_transformed(piece, options, key, aad) for piece in pieces or [b""]]
    stem.with_suffix(".log").write_bytes(b"".join(chunks))
    places: dict[str, Any] = {}
    content = b""
    for name, index in (indexes or {}).items():
        if index and options.pair is not None:
            index = _encrypted(index, key, aad)
        places[name] = {"position": len(content), "size": len(index)}
        content += index
    stem.with_suffix(".indexes").write_bytes(content)
    sizes = [len(chunk) for chunk in chunks]
    manifest: dict[str, Any] = {
        "version": "1",
        "chunkIndex": {
            "originalChunkSize": options.chunk_size,
            "originalFileSize": len(log),
            **(_variable(sizes) if options.compresses or options.is_variable else _fixed(sizes)),
        },
        "segmentIndexes": places,
        "compression": options.compresses,
        "remoteLogSegmentMetadata": {
            "remoteLogSegmentId": {
                "topicIdPartition": {
                    "topicId": folder.parent.name[-22:],
                    "topicPartition": {
                        "topic": folder.parent.name[:-23],
                        "partition": int(folder.name),
                    },
                },
                "id": segment_id,
            },
            "startOffset": base_offset,
            "endOffset": end_offset,
            "maxTimestampMs": max_timestamp,
            "segmentLeaderEpochs": {str(one): at for one, at in (epochs or {0: 0}).items()},
        },
    }
    if options.pair is not None:
        text = base64.b64encode(wrapped(options.pair, key)).decode()
        manifest["encryption"] = {
            "dataKey": f"{options.pair.id}:{text}",
            "aad": base64.b64encode(aad).decode(),
        }
    stem.with_suffix(".rsm-manifest").write_text(json.dumps(manifest))
    return stem.with_suffix(".log")


def _transformed(piece: bytes, options: Options, key: bytes, aad: bytes) -> bytes:
    if options.compresses:
        piece = pa.compress(piece, codec="zstd", asbytes=True)
    return _encrypted(piece, key, aad) if options.pair is not None else piece


def _encrypted(content: bytes, key: bytes, aad: bytes) -> bytes:
    nonce = os.urandom(12)
    return nonce + AESGCM(key).encrypt(nonce, content, aad)


def _fixed(sizes: list[int]) -> dict[str, Any]:
    return {
        "type": "fixed",
        "transformedChunkSize": sizes[0],
        "finalTransformedChunkSize": sizes[-1],
    }


def _variable(sizes: list[int]) -> dict[str, Any]:
    packed = pa.compress(packed_sizes(sizes), codec="zstd", asbytes=True)
    return {"type": "variable", "transformedChunks": base64.b64encode(packed).decode()}


def packed_sizes(sizes: Iterable[int]) -> bytes:
    """ChunkSizesBinaryCodec."""
    sizes = list(sizes)
    if len(sizes) < 2:
        return struct.pack(f">i{len(sizes)}i", len(sizes), *sizes)
    base = min(sizes[:-1])
    most = max(size - base for size in sizes[:-1])
    width = max(1, -(-most.bit_length() // 8))
    deltas = b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1])
    return struct.pack(">iiB", len(sizes), base, width) + deltas + struct.pack(">i", sizes[-1])
