"""Private keys, which decrypt the keys of encrypted segments.

Aiven's plugin encrypts a segment's key with OAEP over SHA3-512, which few libraries have: the
padding is removed here.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kafkajit.errors import RemoteStorageError
from kafkajit.places.manifest import ENCRYPTION_BYTES, DataKey
from kafkajit.storage.named_file import read_named

_HASH_BYTES = 64
_DATA_KEY_BYTES = 32
_IV_BYTES = 12
_INSTALL = "pip install 'kafkajit[encryption]'"


class PrivateKeys(NamedTuple):
    """The files of private keys by their ids, as a broker's options name them."""

    files: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, files: Mapping[str, str] | None) -> PrivateKeys:
        return cls(tuple(sorted((files or {}).items())))

    def unwrap(self, key: DataKey, path: str) -> bytes:
        """The key of a segment; its object's path is for an error."""
        # Spark does not keep the case of options.
        files = {id_.lower(): file for id_, file in self.files} | dict(self.files)
        file = files.get(key.key_id, files.get(key.key_id.lower()))
        if file is None:
            raise RemoteStorageError(
                f"the segment is encrypted with the key {key.key_id!r}, which was not passed",
                path=path,
                advice="pass the option encryption.key.pairs."
                f"{key.key_id}.private.key.file, --private-key {key.key_id}=FILE of a command, or "
                "private_keys in Python",
            )
        try:
            return _unwrapped(key.wrapped, *_numbers(file))
        except ValueError as error:
            raise RemoteStorageError(
                f"the private key {file} does not decrypt the segment's key: {error}", path=path
            ) from None


NO_KEYS = PrivateKeys()


@lru_cache
def _numbers(file: str) -> tuple[int, int, int]:
    """(exponent, modulus, bytes of the modulus) of a private key in PEM."""
    serialization = _library().serialization
    try:
        key = serialization.load_pem_private_key(read_named(file), password=None)
        numbers = key.private_numbers()
        numbers.d  # noqa: B018  of RSA
    except (TypeError, AttributeError):
        raise ValueError("it must be an RSA key without a password") from None
    modulus = numbers.public_numbers.n
    return numbers.d, modulus, -(-modulus.bit_length() // 8)


@lru_cache(1024)
def _unwrapped(wrapped: bytes, exponent: int, modulus: int, size: int) -> bytes:
    if len(wrapped) != size or int.from_bytes(wrapped, "big") >= modulus:
        raise ValueError("it has another size")
    padded = pow(int.from_bytes(wrapped, "big"), exponent, modulus).to_bytes(size, "big")
    if size < 2 * _HASH_BYTES + 2:
        raise ValueError("it is too short")
    masked_seed, masked = padded[1 : 1 + _HASH_BYTES], padded[1 + _HASH_BYTES :]
    seed = _xor(masked_seed, _mask(masked, _HASH_BYTES))
    content = _xor(masked, _mask(seed, len(masked)))
    label, rest = content[:_HASH_BYTES], content[_HASH_BYTES:]
    zeros, one, data_key = rest.partition(b"\1")
    is_right = hmac.compare_digest(label, hashlib.sha3_512().digest()) and padded[0] == 0
    if not is_right or any(zeros) or not one or len(data_key) != _DATA_KEY_BYTES:
        raise ValueError("the padding is wrong")
    return data_key


def _mask(seed: bytes, size: int) -> bytes:
    """MGF1 of the seed."""
    count = -(-size // _HASH_BYTES)
    parts = (hashlib.sha3_512(seed + number.to_bytes(4, "big")).digest() for number in range(count))
    return b"".join(parts)[:size]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


class _Library(NamedTuple):
    serialization: Any
    aes_gcm: Any
    invalid_tag: type[Exception]


@lru_cache
def _library() -> _Library:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise RemoteStorageError(
            "the segment is encrypted, and the package cryptography is missing", advice=_INSTALL
        ) from None
    return _Library(serialization, AESGCM, InvalidTag)


class Decryption:
    """Decrypts the chunks of one segment."""

    def __init__(self, key: bytes, aad: bytes) -> None:
        library = _library()
        self._cipher = library.aes_gcm(key)
        self._invalid_tag = library.invalid_tag
        self._aad = aad

    def decrypt_into(self, chunk: memoryview, memory: memoryview) -> None:
        """Write the bytes of a chunk; a ValueError if it was changed, or has another key."""
        if len(chunk) != len(memory) + ENCRYPTION_BYTES:
            raise ValueError(f"it has {len(chunk)} bytes for {len(memory)}")
        iv, content = chunk[:_IV_BYTES], chunk[_IV_BYTES:]
        try:
            if hasattr(self._cipher, "decrypt_into"):
                self._cipher.decrypt_into(iv, content, self._aad, memory)
            else:
                memory[:] = self._cipher.decrypt(iv, content, self._aad)
        except self._invalid_tag:
            raise ValueError("it was changed, or is encrypted with another key") from None
