"""The search for stretches of bytes that contain a needle."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import BLOCK, equal_bytes
from kafkajit.records.search import Needle, all_holders, holders
from kafkajit.storage.source import Bytes, Int64s, as_bytes


@kernel
def _equal_bytes(content, at, mask, byte):  # type: ignore[no-untyped-def]  # a kernel
    return equal_bytes(content, at, mask, byte)


# Few letters, so that needles are found, and nearly found, often.
WORDS = st.binary(max_size=150).map(lambda word: bytes(b"aAbB,\xe1"[byte % 6] for byte in word))
NEEDLES = st.one_of(WORDS.map(lambda word: word[:4]), WORDS).filter(len)


def laid_out(stretches: list[bytes], between: bytes = b"") -> tuple[Bytes, Int64s, Int64s]:
    """The stretches one behind the other, and where they begin and end."""
    sizes = [len(stretch) for stretch in stretches]
    ends = np.cumsum([size + len(between) for size in sizes], dtype=np.int64)
    return as_bytes(b"".join(between + stretch for stretch in stretches)), ends - sizes, ends


def found(stretches: list[bytes], needle: bytes, between: bytes = b"", **how: bool) -> list[bool]:
    return holders(*laid_out(stretches, between), Needle.of(needle, **how)).tolist()  # type: ignore[no-any-return]


@given(st.lists(WORDS, max_size=12), NEEDLES, st.sampled_from([b"", b"a", b"aB,"]), st.booleans())
@example([b"a", b"b"], b"ab", b"", False)
@example([b"", b"ab", b"", b"a", b"b"], b"ab", b"", True)
@example([b"a" * BLOCK + b"b"], b"b", b"", False)
def test_the_stretches_with_a_needle_are_found(
    stretches: list[bytes], needle: bytes, between: bytes, ignores_case: bool
) -> None:
    expected = reference.holders(stretches, needle, ignores_case=ignores_case)
    assert found(stretches, needle, between, ignores_case=ignores_case) == expected


@pytest.mark.parametrize("size", [1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 200])
@pytest.mark.parametrize("before", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_needle_may_be_anywhere_up_to_the_last_byte(size: int, before: int) -> None:
    needle = bytes(range(1, size + 1))
    for behind in (0, 1, BLOCK - 1, BLOCK):
        assert found([bytes(before) + needle + bytes(behind)], needle) == [True]
    assert found([bytes(before) + needle[:-1]], needle) == [False]
    assert found([bytes(before) + needle[:-1], needle[-1:]], needle) == [False, size == 1]


@pytest.mark.parametrize("size", [1, 5, BLOCK - 1, BLOCK, 3 * BLOCK])
def test_nothing_behind_the_last_stretch_is_searched(size: int) -> None:
    content = as_bytes(bytes(size) + b"ab" + bytes(BLOCK))
    for end in (size, size + 1):
        places = np.array([0], dtype=np.int64), np.array([end], dtype=np.int64)
        assert holders(content, *places, Needle.of(b"ab")).tolist() == [False]
        assert holders(content, *places, Needle.of(b"a")).tolist() == [end > size]


def test_only_the_case_of_ascii_letters_is_ignored() -> None:
    words = [b"Order", "ORDÉR".encode(), b"ord@r", b"ordar", "ordér".encode()]
    assert found(words, b"orDEr", ignores_case=True) == [True, False, False, False, False]
    # @ and `, [ and { differ as letters do.
    assert found([b"@[", b"`{"], b"`{", ignores_case=True) == [False, True]
    assert found(words, "ordÉr".encode(), ignores_case=True) == [False, True, False, False, False]


def test_any_of_several_needles_counts() -> None:
    needles = [Needle.of(b"x"), Needle.of(b"y")]
    assert all_holders(*laid_out([b"ax", b"b", b"y"]), needles).tolist() == [True, False, True]
    assert not all_holders(*laid_out([b"a"]), []).any()


def test_a_needle_is_found_by_its_rarest_bytes() -> None:
    needle = Needle.of(b'"id": Q7')
    assert needle.bytes_[[needle.first, needle.second]].tobytes() == b"Q7"
    assert Needle.of(b"e")[2:] == (0, 0)
    with pytest.raises(ValueError, match="at least one byte"):
        Needle.of(b"")


@given(st.binary(min_size=BLOCK, max_size=2 * BLOCK), st.integers(0, 255), st.integers(0, 255))
def test_equal_bytes_are_bits(content: bytes, mask: int, byte: int) -> None:
    at = len(content) - BLOCK
    expected = sum((content[at + bit] & mask == byte) << bit for bit in range(BLOCK))
    bits = _equal_bytes(as_bytes(content), at, np.uint8(mask), np.uint8(byte))
    assert int(bits) % 2**64 == expected
