"""Segments and indexes out of objects in tiered storage: the slow twin, in plain Python.

In: the path of an object's `.log`, and RSA private keys in PEM, by the ids that manifests have.
Out: the bytes that the broker copied. Of Aiven's plugin (a `.rsm-manifest` lies beside the object)
and of LocalTieredStorage, whose objects are the files themselves.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import zstandard
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_private_key

IV_BYTES = 12
HASH = hashlib.sha3_512
# Aiven's names of indexes, and what their files in LocalTieredStorage end in.
INDEXES = {
    "offset": ".index",
    "timestamp": ".timeindex",
    "producerSnapshot": ".snapshot",
    "leaderEpoch": ".leader_epoch_checkpoint",
    "transaction": ".txnindex",
}
Keys = Mapping[str, bytes]


def read_keys(folder: Path) -> Keys:
    """The private keys `ID.private.pem` of a folder, by id."""
    return {
        path.name.removesuffix(".private.pem"): path.read_bytes()
        for path in folder.glob("*.private.pem")
    }


def segment_bytes(path: Path, keys: Keys | None = None) -> bytes:
    """The segment that an object holds."""
    stored = path.read_bytes()
    manifest = read_manifest(path)
    if manifest is None:
        return stored
    segment, position = b"", 0
    for original, transformed in chunks(manifest["chunkIndex"]):
        chunk = decrypted(stored[position : position + transformed], manifest, keys or {})
        position += transformed
        if manifest["compression"]:
            chunk = zstandard.ZstdDecompressor().decompress(chunk)
        assert len(chunk) == original
        segment += chunk
    assert position == len(stored)
    assert len(segment) == manifest["chunkIndex"]["originalFileSize"]
    return segment


def index_bytes(path: Path, index: str, keys: Keys | None = None) -> bytes | None:
    """An index of the segment in an object, by its name in INDEXES; None if it has none."""
    manifest = read_manifest(path)
    if manifest is None:
        file = path.with_suffix(INDEXES[index])
        return file.read_bytes() if file.exists() else None
    place = manifest["segmentIndexes"][index]
    if place is None:
        return None
    start, size = place["position"], place["size"]
    stored = path.with_suffix(".indexes").read_bytes()[start : start + size]
    assert len(stored) == size
    return decrypted(stored, manifest, keys or {}) if stored else b""


def read_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest of an object of Aiven's plugin."""
    file = path.with_suffix(".rsm-manifest")
    if not file.exists():
        return None
    manifest = json.loads(file.read_bytes())
    assert manifest["version"] == "1"
    return manifest


def chunks(index: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The size of each chunk in the segment, and in the object."""
    whole, size = index["originalFileSize"], index["originalChunkSize"]
    count = max(1, -(-whole // size))
    if index["type"] == "fixed":
        transformed = [index["transformedChunkSize"]] * (count - 1)
        transformed.append(index["finalTransformedChunkSize"])
    else:
        assert index["type"] == "variable"
        frame = base64.b64decode(index["transformedChunks"])
        transformed = chunk_sizes(zstandard.ZstdDecompressor().decompress(frame))
    assert len(transformed) == count
    for number in range(count):
        yield min(size, whole - number * size), transformed[number]


def chunk_sizes(coded: bytes) -> list[int]:
    """Sizes as differences to the smallest, in as few bytes as the largest difference takes.

    The last one is coded in full and does not count among them.
    """
    count = int.from_bytes(coded[:4])
    if count < 2:
        sizes = [int.from_bytes(coded[4:8])][:count]
        assert len(coded) == 4 + 4 * count
        return sizes
    base, width = int.from_bytes(coded[4:8]), coded[8]
    sizes, position = [], 9
    for _ in range(count - 1):
        sizes.append(base + int.from_bytes(coded[position : position + width]))
        position += width
    sizes.append(int.from_bytes(coded[position : position + 4]))
    assert len(coded) == position + 4
    return sizes


def decrypted(stored: bytes, manifest: Mapping[str, Any], keys: Keys) -> bytes:
    """What was encrypted at once: the IV in front, the tag at the end."""
    encryption = manifest.get("encryption")
    if encryption is None:
        return stored
    key_id, wrapped = encryption["dataKey"].split(":")
    data_key = unwrapped(base64.b64decode(wrapped), keys[key_id])
    aad = base64.b64decode(encryption["aad"])
    assert (len(data_key), len(aad)) == (32, 32)
    return AESGCM(data_key).decrypt(stored[:IV_BYTES], stored[IV_BYTES:], aad)


def unwrapped(wrapped: bytes, private_key: bytes) -> bytes:
    """RSAES-OAEP of RFC 8017, with SHA3-512 in both places, and an empty label."""
    key = load_pem_private_key(private_key, password=None)
    assert isinstance(key, RSAPrivateKey)
    numbers = key.private_numbers()
    modulus = numbers.public_numbers.n
    size = (modulus.bit_length() + 7) // 8
    assert len(wrapped) == size
    block = pow(int.from_bytes(wrapped), numbers.d, modulus).to_bytes(size)
    digest = HASH().digest_size
    zero, seed, data = block[:1], block[1 : 1 + digest], block[1 + digest :]
    seed = xor(seed, mask(data, digest))
    data = xor(data, mask(seed, len(data)))
    label, rest = data[:digest], data[digest:]
    padding, one, message = rest.partition(b"\1")
    assert zero == b"\0"
    assert label == HASH(b"").digest()
    assert not padding.strip(b"\0")
    assert one
    return message


def mask(seed: bytes, size: int) -> bytes:
    """MGF1 of RFC 8017."""
    masked = b""
    for counter in range(-(-size // HASH().digest_size)):
        masked += HASH(seed + counter.to_bytes(4)).digest()
    return masked[:size]


def xor(first: bytes, second: bytes) -> bytes:
    """Two strings of the same length, bit by bit."""
    return bytes(one ^ other for one, other in zip(first, second, strict=True))
