"""The intrinsics become machine code of every kind of processor, each with its own instructions."""

from __future__ import annotations

import ast
import json

import pytest
from corpus import NO_JIT, REPOSITORY, run_python

from kafkajit.kernel import PLAIN

pytestmark = pytest.mark.skipif(NO_JIT or PLAIN, reason="nothing is compiled by these intrinsics")

# Builds a function of each intrinsic alone, and has LLVM write it for another processor: the code
# cannot run here. LLVM ends the process at an instruction that a processor does not have.
COMPILES = """
import json, sys
import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target

from kafkajit.kernel import checksum_instructions, intrinsics

triple, features, kind = sys.argv[1:]
checksum_instructions._IS_ARM = kind == "arm"
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple(triple).create_target_machine(features=features, opt=3)

BYTES, CONST = types.Array(types.uint8, 1, "C"), types.Array(types.uint8, 1, "C", readonly=True)
HEAD = types.Array(types.uint64, 2, "C")
I, U, B, T = types.int64, types.uint64, types.uint8, types.boolean
EVERYWHERE = {
    "copy_wide": (BYTES, I, CONST, I),
    "copy_half": (BYTES, I, CONST, I),
    "_load_int32": (CONST, I),
    "_load_int64": (CONST, I),
    "write_word": (BYTES, I, U),
    "write_half_word": (BYTES, I, I),
    "read_word": (CONST, I),
    "trailing_zeros": (I,),
    "address_of": (CONST, I),
    "call_c": (I,) * 8,
    "choose": (T, I, I),
    "multiply_high": (U, U),
    "prefetch": (CONST, I),
    "equal_bytes": (CONST, I, B, B),
}
SUMS = {
    "crc32c_word": (U, CONST, I),
    "crc32c_byte": (U, B),
    "crc32_fold": (CONST, I, I, HEAD, I, U, U),
}


def assembly(intrinsic, arguments):
    context = cpu_target.target_context
    signature, generate = intrinsic._defn(None, *arguments)
    result = context.get_value_type(signature.return_type)
    module = ir.Module()
    module.triple, module.data_layout = triple, str(machine.target_data)
    parameters = [context.get_value_type(argument) for argument in signature.args]
    type_ = ir.FunctionType(ir.VoidType() if result == ir.VoidType() else result, parameters)
    function = ir.Function(module, type_, "compiled")
    builder = ir.IRBuilder(function.append_basic_block())
    found = generate(context, builder, signature, list(function.args))
    builder.ret(found if found.type == result else ir.Constant(result, None))
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    return machine.emit_assembly(parsed)


wanted = [(intrinsics, EVERYWHERE)]
if kind in ("arm", "x86"):
    wanted.append((checksum_instructions, SUMS))
print(json.dumps({
    name: assembly(getattr(module, name), arguments)
    for module, names in wanted
    for name, arguments in names.items()
}))
"""

X86 = ("x86_64-unknown-linux-gnu", "+sse4.2,+crc32,+pclmul", "x86")
ARM = ("aarch64-unknown-linux-gnu", "+neon,+crc,+aes", "arm")
APPLE = ("arm64-apple-macosx14", "+neon,+crc,+aes", "arm")
RISC_V = ("riscv64-unknown-linux-gnu", "+m,+d", "other")
POWER = ("powerpc64le-unknown-linux-gnu", "", "other")

# The instructions that an intrinsic exists for; `other` processors have tables for sums.
INSTRUCTIONS = {
    "x86": {
        "copy_wide": ("movups",),
        "prefetch": ("prefetcht0",),
        "_load_int64": ("bswap",),
        "multiply_high": ("mul",),
        "choose": ("cmov",),
        "crc32c_word": ("crc32q",),
        "crc32c_byte": ("crc32b",),
        "crc32_fold": ("pclmulqdq $17,", "pclmulqdq $0,"),
    },
    "arm": {
        "copy_wide": ("ldp q", "stp q"),
        "prefetch": ("prfm pldl1keep",),
        "_load_int64": ("rev",),
        "multiply_high": ("umulh",),
        "choose": ("csel",),
        "crc32c_word": ("crc32cx",),
        "crc32c_byte": ("crc32cb",),
        "crc32_fold": ("pmull", "pmull2"),
    },
    "other": {},
}


@pytest.mark.parametrize("target", [X86, ARM, APPLE, RISC_V, POWER], ids=lambda target: target[0])
def test_each_processor_gets_instructions_that_it_has(target: tuple[str, str, str]) -> None:
    found: dict[str, str] = json.loads(run_python(COMPILES, *target))
    assert len(found) == (14 if target is RISC_V or target is POWER else 17)
    for name, instructions in INSTRUCTIONS[target[2]].items():
        lines = [" ".join(line.split()) for line in found[name].splitlines()]
        for instruction in instructions:
            assert any(line.startswith(instruction) for line in lines), (name, lines)


def test_only_checksums_have_instructions_of_one_kind_of_processor() -> None:
    kinds = {
        path.name: {
            node.value.split(".")[1]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("llvm.")
        }
        for path in sorted((REPOSITORY / "kafkajit" / "kernel").glob("*.py"))
    }
    assert kinds.pop("checksum_instructions.py") == {"x86", "aarch64"}
    assert kinds.pop("intrinsics.py") == {"cttz", "prefetch"}
    assert not any(kinds.values())
