"""Instructions of x86 and ARM processors for checksums, unchecked like those of `intrinsics`.

Callers ask HAS_CRC32C and HAS_CRC32_FOLD first, and have a kernel without them for processors that
lack them.
"""

from __future__ import annotations

import platform

import numba
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kafkajit.kernel import PLAIN
from kafkajit.kernel.intrinsics import call_intrinsic, element_address

_IS_ARM = platform.machine().lower() in ("aarch64", "arm64")
_IS_X86 = platform.machine().lower() in ("x86_64", "amd64")


def _compiles_for(feature: str) -> bool:
    """Whether numba uses a feature of processors: NUMBA_CPU_NAME=generic has it use none."""
    if not (_IS_ARM or _IS_X86):
        return False
    features = numba.config.CPU_FEATURES  # type: ignore[attr-defined]
    if features is not None:
        return f"+{feature}" in features.split(",")
    return bool(get_host_cpu_features().get(feature))


# Whether crc32c_word and crc32c_byte work: not in the checked modes.
HAS_CRC32C = not PLAIN and _compiles_for("crc" if _IS_ARM else "crc32")


@intrinsic
def crc32c_word(typing_context, crc, content, position):  # noqa: ARG001
    """Take 8 bytes into a CRC-32C, unchecked, with the processor's instruction."""
    signature = types.uint64(types.uint64, content, types.int64)

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer = element_address(context, builder, signature, arguments, 1, 2)
        value = builder.load(builder.bitcast(pointer, word.as_pointer()))
        value.align = 1
        if _IS_ARM:
            crc = builder.trunc(arguments[0], ir.IntType(32))
            result = call_intrinsic(builder, "llvm.aarch64.crc32cx", ir.IntType(32), crc, value)
            return builder.zext(result, word)
        return call_intrinsic(builder, "llvm.x86.sse42.crc32.64.64", word, arguments[0], value)

    return signature, generate


@intrinsic
def crc32c_byte(typing_context, crc, byte):  # noqa: ARG001
    """Take one byte into a CRC-32C."""
    signature = types.uint64(types.uint64, types.uint8)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        crc = builder.trunc(arguments[0], ir.IntType(32))
        name, byte = "llvm.x86.sse42.crc32.32.8", arguments[1]
        if _IS_ARM:
            name, byte = "llvm.aarch64.crc32cb", builder.zext(byte, ir.IntType(32))
        result = call_intrinsic(builder, name, ir.IntType(32), crc, byte)
        return builder.zext(result, ir.IntType(64))

    return signature, generate


# Whether crc32_fold works: if the processor multiplies without carries. LLVM has ARM's instruction
# for that under "aes".
HAS_CRC32_FOLD = not PLAIN and _compiles_for("aes" if _IS_ARM else "pclmul")


def _multiply_halves(builder, vector, factors, half):
    """The product without carries of a half of one vector and the same half of another."""
    if not _IS_ARM:
        both = ir.IntType(8)(17 * half)
        return call_intrinsic(builder, "llvm.x86.pclmulqdq", vector.type, vector, factors, both)
    at = ir.IntType(32)(half)
    words = [builder.extract_element(operand, at) for operand in (vector, factors)]
    sixteen = ir.VectorType(ir.IntType(8), 16)
    product = call_intrinsic(builder, "llvm.aarch64.neon.pmull64", sixteen, *words)
    return builder.bitcast(product, vector.type)


@intrinsic
def crc32_fold(typing_context, content, position, blocks, head, row, low_over, high_over):  # noqa: ARG001
    """Fold blocks of sixteen bytes, two at least, into one block with the same CRC-32.

    Returns the block as two words in read_int64's order, unchecked. `low_over` and `high_over` are
    the factors that move a block's halves over the next block. At `head[row]` are the masks of the
    first block, and the bits to flip in the first two, two words each.
    """
    pair = types.UniTuple(types.uint64, 2)
    number = types.int64
    word = types.uint64
    signature = pair(content, number, number, head, number, word, word)

    def generate(context, builder, signature, arguments):
        _, position, blocks, _, row, low_over, high_over = arguments
        number = ir.IntType(64)
        halves = ir.VectorType(number, 2)

        def load(array_at, index):
            array = context.make_array(signature.args[array_at])
            pointer = builder.gep(array(context, builder, arguments[array_at]).data, [index])
            loaded = builder.load(builder.bitcast(pointer, halves.as_pointer()))
            loaded.align = 1
            return loaded

        def block(i):
            return load(0, builder.add(position, builder.mul(i, number(16))))

        def of_head(i):
            return load(3, builder.add(row, number(2 * i)))

        def moved(vector):
            return builder.xor(*(_multiply_halves(builder, vector, over, half) for half in (0, 1)))

        over = ir.Constant(halves, None)
        for half, value in enumerate((low_over, high_over)):
            over = builder.insert_element(over, value, ir.IntType(32)(half))
        first = builder.xor(builder.and_(block(number(0)), of_head(0)), of_head(1))
        second = builder.xor(block(number(1)), of_head(2))
        folded = cgutils.alloca_once_value(builder, builder.xor(moved(first), second))
        with cgutils.for_range_slice(builder, number(2), blocks, number(1)) as (i, _):
            builder.store(builder.xor(moved(builder.load(folded)), block(i)), folded)
        result = builder.load(folded)
        words = [builder.extract_element(result, ir.IntType(32)(half)) for half in (0, 1)]
        return context.make_tuple(builder, pair, [builder.bswap(word) for word in words])

    return signature, generate
