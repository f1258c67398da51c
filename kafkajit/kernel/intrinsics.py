"""Copies, loads and processor instructions for kernels: one machine instruction each, unchecked.

Each has a plain twin, `_NAME_plain`, for the modes that check every access. The caller guards what
it reads and writes; nothing here knows where an array ends.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kafkajit.kernel import PLAIN, inlined, kernel

# Bytes that `copy_wide` moves at once: readers and writers leave this much room behind.
WIDE = 32
HALF = 16
# Bytes of a cache line.
LINE = 64


@kernel
def _copy_wide_plain(target, t, source, s):
    for i in range(WIDE):
        target[t + i] = source[s + i]


@kernel
def _copy_half_plain(target, t, source, s):
    for i in range(HALF):
        target[t + i] = source[s + i]


def element_address(context, builder, signature, arguments, array_at, index_at):
    """The address of an array argument's element, in an intrinsic."""
    array = context.make_array(signature.args[array_at])(context, builder, arguments[array_at])
    return builder.gep(array.data, [arguments[index_at]])


def call_intrinsic(builder, name, result, *arguments):
    """Call an LLVM intrinsic."""
    function_type = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, arguments)


def _copy_of(size):
    @intrinsic
    def copy(typing_context, target, t, source, s):  # noqa: ARG001
        signature = types.void(target, types.int64, source, types.int64)

        def generate(context, builder, signature, arguments):
            block = ir.VectorType(ir.IntType(8), size).as_pointer()
            place = partial(element_address, context, builder, signature, arguments)
            loaded = builder.load(builder.bitcast(place(2, 3), block))
            loaded.align = 1
            stored = builder.store(loaded, builder.bitcast(place(0, 1), block))
            stored.align = 1
            return context.get_dummy_value()

        return signature, generate

    return copy


# copy_wide(target, t, source, s): WIDE bytes in one load and one store, unchecked. A slice
# assignment costs about 20 ns before it moves its first byte; most keys are shorter than that.
copy_wide = _copy_wide_plain if PLAIN else _copy_of(WIDE)
# copy_half(target, t, source, s): as copy_wide, HALF bytes.
copy_half = _copy_half_plain if PLAIN else _copy_of(HALF)


@inlined
def copy_bytes(target, t, source, s, size):
    """Copy `size` bytes. The caller keeps WIDE bytes of room behind the target's end."""
    if s + size + WIDE <= source.size:
        done = np.int64(0)
        while done < size:
            copy_wide(target, t + done, source, s + done)
            done += WIDE
    else:
        for i in range(size):
            target[t + i] = source[s + i]


@kernel
def _read_int64_plain(content, position):
    high, low = np.int64(0), np.int64(0)
    for i in range(4):
        high = high << 8 | np.int64(content[position + i])
        low = low << 8 | np.int64(content[position + 4 + i])
    return high << 32 | low


@kernel
def _read_int32_plain(content, position):
    number = np.int64(0)
    for i in range(4):
        number = number << 8 | np.int64(content[position + i])
    return (number ^ 0x80000000) - 0x80000000


def _load_big_endian(bits):
    @intrinsic
    def load(typing_context, content, position):  # noqa: ARG001
        signature = types.int64(content, types.int64)

        def generate(context, builder, signature, arguments):
            number = ir.IntType(bits)
            pointer = element_address(context, builder, signature, arguments, 0, 1)
            value = builder.load(builder.bitcast(pointer, number.as_pointer()))
            value.align = 1
            return builder.sext(builder.bswap(value), ir.IntType(64))

        return signature, generate

    return load


_load_int32 = _read_int32_plain if PLAIN else _load_big_endian(32)
_load_int64 = _read_int64_plain if PLAIN else _load_big_endian(64)


@inlined
def read_int32(content, position):
    """A big-endian int32, as an int64, in one load, unchecked."""
    return _load_int32(content, position)


@inlined
def read_int64(content, position):
    """A big-endian int64 in one load, unchecked."""
    return _load_int64(content, position)


@inlined
def write_int32(target, t, value):
    """Write an int64's lower half, big-endian, unchecked."""
    for i in range(4):
        target[t + i] = np.uint8(value >> np.int64(24 - 8 * i) & np.int64(0xFF))


@inlined
def write_int64(target, t, value):
    """Write an int64, big-endian, unchecked."""
    for i in range(8):
        target[t + i] = np.uint8(value >> np.int64(56 - 8 * i) & np.int64(0xFF))


@kernel
def _write_word_plain(target, t, word):
    for i in range(8):
        target[t + i] = np.uint8(word >> np.uint64(8 * i) & np.uint64(0xFF))


@intrinsic
def _store_word(typing_context, target, t, word):  # noqa: ARG001
    signature = types.void(target, types.int64, types.uint64)

    def generate(context, builder, signature, arguments):
        pointer = element_address(context, builder, signature, arguments, 0, 1)
        word = builder.bitcast(pointer, ir.IntType(64).as_pointer())
        builder.store(arguments[2], word).align = 1
        return context.get_dummy_value()

    return signature, generate


@kernel
def _write_half_word_plain(target, t, number):
    for i in range(4):
        target[t + i] = np.uint8(number >> 8 * i & 0xFF)


@intrinsic
def _store_half_word(typing_context, target, t, number):  # noqa: ARG001
    signature = types.void(target, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        pointer = element_address(context, builder, signature, arguments, 0, 1)
        half = ir.IntType(32)
        number = builder.trunc(arguments[2], half)
        builder.store(number, builder.bitcast(pointer, half.as_pointer())).align = 1
        return context.get_dummy_value()

    return signature, generate


# write_half_word(target, t, number): the lower 4 bytes of an int64, the lowest first, unchecked.
write_half_word = _write_half_word_plain if PLAIN else _store_half_word
# write_word(target, t, word): 8 bytes, the lowest first, in one store, unchecked.
write_word = _write_word_plain if PLAIN else _store_word


@kernel
def _read_word_plain(content, position):
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(content[position + i]) << np.uint64(8 * i)
    return np.int64(word)


@intrinsic
def _load_word(typing_context, content, position):  # noqa: ARG001
    signature = types.int64(content, types.int64)

    def generate(context, builder, signature, arguments):
        pointer = element_address(context, builder, signature, arguments, 0, 1)
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return signature, generate


# read_word(content, position): 8 bytes, the lowest first, as an int64, in one load, unchecked.
read_word = _read_word_plain if PLAIN else _load_word


@kernel
def _trailing_zeros_plain(word):
    zeros = np.int64(0)
    while word & 1 == 0:
        word >>= 1
        zeros += 1
    return zeros


@intrinsic
def _count_trailing_zeros(typing_context, word):  # noqa: ARG001
    signature = types.int64(types.int64)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        number, zero_is_poison = ir.IntType(64), ir.IntType(1)(1)
        return call_intrinsic(builder, "llvm.cttz.i64", number, arguments[0], zero_is_poison)

    return signature, generate


# trailing_zeros(word): the zero bits below the lowest one of an int64 that is not 0.
trailing_zeros = _trailing_zeros_plain if PLAIN else _count_trailing_zeros


@kernel
def read_little_endian(content, position, size):
    """A number of `size` bytes, seven at most, the lowest first, as an int64.

    Pass np.int64(4), not 4: a literal is a type of its own, and numba compiles a kernel for each.
    """
    number = np.int64(0)
    for i in range(size):
        number |= np.int64(content[position + i]) << (8 * i)
    return number


# Whether kernels may call C; not in the checked modes, which cannot check what C does.
HAS_C = not PLAIN


@intrinsic
def address_of(typing_context, array, index):  # noqa: ARG001
    """The address of an element in memory."""
    signature = types.int64(array, types.int64)

    def generate(context, builder, signature, arguments):
        pointer = element_address(context, builder, signature, arguments, 0, 1)
        return builder.ptrtoint(pointer, ir.IntType(64))

    return signature, generate


@intrinsic
def call_c(typing_context, function, a, b, c, d, e, f, g):  # noqa: ARG001
    """Call the C function at an address with integers and addresses; returns its result, 64 bits.

    A function with fewer parameters ignores the rest, which are zeros. If it returns an int, only
    the lower half counts.
    """
    signature = types.int64(*[types.int64] * 8)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        number = ir.IntType(64)
        type_ = ir.FunctionType(number, [number] * 7).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], type_), arguments[1:])

    return signature, generate


@kernel
def _multiply_high_plain(a, b):
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    middle = (a >> half) * (b & low) + ((a & low) * (b & low) >> half)
    crossed = (a & low) * (b >> half) + (middle & low)
    return (a >> half) * (b >> half) + (middle >> half) + (crossed >> half)


@kernel
def _choose_plain(condition, a, b):
    return a if condition else b


@intrinsic
def _select(typing_context, condition, a, b):  # noqa: ARG001
    signature = types.int64(types.boolean, types.int64, types.int64)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.select(builder.trunc(arguments[0], ir.IntType(1)), *arguments[1:])

    return signature, generate


# choose(condition, a, b): one of two int64, without a branch for the processor to guess.
choose = _choose_plain if PLAIN else _select


@intrinsic
def _multiply_high(typing_context, a, b):  # noqa: ARG001
    signature = types.uint64(types.uint64, types.uint64)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return signature, generate


# multiply_high(a, b): the upper 64 bits of the product of two uint64, in one instruction.
multiply_high = _multiply_high_plain if PLAIN else _multiply_high


@kernel
def _prefetch_plain(content, position):
    pass


@intrinsic
def _prefetch(typing_context, content, position):  # noqa: ARG001
    signature = types.void(content, types.int64)

    def generate(context, builder, signature, arguments):
        number = ir.IntType(32)
        pointer = element_address(context, builder, signature, arguments, 0, 1)
        read, keep, data = number(0), number(3), number(1)
        call_intrinsic(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, read, keep, data)
        return context.get_dummy_value()

    return signature, generate


# prefetch(content, position): load a cache line; any position is allowed, even outside the array.
prefetch = _prefetch_plain if PLAIN else _prefetch


# The bytes that `equal_bytes` compares at once.
BLOCK = 64


@kernel
def _equal_bytes_plain(content, position, mask, byte):
    bits = np.uint64(0)
    for i in range(BLOCK):
        if content[position + i] & mask == byte:
            bits |= np.uint64(1) << np.uint64(i)
    return np.int64(bits)


@intrinsic
def _equal_bytes(typing_context, content, position, mask, byte):  # noqa: ARG001
    signature = types.int64(content, types.int64, types.uint8, types.uint8)

    def generate(context, builder, signature, arguments):
        block = ir.VectorType(ir.IntType(8), BLOCK)
        number = ir.IntType(32)

        def in_all(value):
            one = builder.insert_element(ir.Constant(block, ir.Undefined), value, number(0))
            lanes = ir.Constant(ir.VectorType(number, BLOCK), [0] * BLOCK)
            return builder.shuffle_vector(one, ir.Constant(block, ir.Undefined), lanes)

        pointer = element_address(context, builder, signature, arguments, 0, 1)
        loaded = builder.load(builder.bitcast(pointer, block.as_pointer()))
        loaded.align = 1
        masked = builder.and_(loaded, in_all(arguments[2]))
        equal = builder.icmp_unsigned("==", masked, in_all(arguments[3]))
        return builder.bitcast(equal, ir.IntType(64))

    return signature, generate


# equal_bytes(content, position, mask, byte): a bit for each of the next BLOCK bytes that is `byte`
# under the mask, the first one's lowest, as an int64, unchecked.
equal_bytes = _equal_bytes_plain if PLAIN else _equal_bytes
