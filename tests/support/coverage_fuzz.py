"""Fuzz a reader with inputs that atheris makes: those that reach new code are mutated further.

    python tests/support/coverage_fuzz.py                      # lists the targets
    python tests/support/coverage_fuzz.py segment --seconds 600 --corpus build/fuzz/segment
    python tests/support/coverage_fuzz.py segment --input build/fuzz/crash-0123abcd
    python tests/support/coverage_fuzz.py --keep build/fuzz    # adds to tests/data/fuzz

Kernels run as plain Python, so that atheris sees which of their lines an input reaches. The first
input that a target refuses ends the run, and is written beside the corpus as crash-…; so does one
that takes 10 seconds or 1 GiB. Needs `pip install -e '.[dev,fuzz]'`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "support")]

SECONDS, MEBIBYTES = 10, 1024  # that an input may take
LONGEST = 4096  # input
_KEPT = 400  # bytes of an input that the tests keep


def main() -> None:
    """Fuzz one target, try one input, or keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="?", help="what to fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="how long (%(default)s)")
    parser.add_argument("--corpus", type=Path, help="a folder for inputs that reach new code")
    parser.add_argument("--input", type=Path, help="try only this input")
    parser.add_argument("--keep", type=Path, help="a folder of corpora: keep the smallest inputs")
    options = parser.parse_args()
    logging.getLogger("kafkajit").setLevel(logging.CRITICAL)
    if options.keep is not None:
        keep(options.keep)
    elif options.target is None:
        from fuzz_targets import TARGETS

        print(*TARGETS, sep="\n")  # noqa: T201 - for whoever runs it
    elif options.input is not None:
        from fuzz_targets import TARGETS

        TARGETS[options.target][0](options.input.read_bytes())
    else:
        corpus = options.corpus or TESTS.parent / "build" / "fuzz" / options.target
        fuzz(options.target, options.seconds, corpus)


def fuzz(name: str, seconds: int, corpus: Path) -> None:
    """Fuzz a target; does not return."""
    import atheris

    with atheris.instrument_imports(include=["kafkajit"], enable_loader_override=False):
        from fuzz_targets import JSON_TARGETS, TARGETS

        check, seeds = TARGETS[name]
        corpus.mkdir(parents=True, exist_ok=True)
        first = corpus.with_name(f"{corpus.name}.seeds")
        first.mkdir(exist_ok=True)
        from fuzz_corpus import kept

        for number, content in enumerate([*seeds(), *kept(name)]):
            if len(content) <= LONGEST:
                (first / f"{number:04}").write_bytes(content)
            # Most modules are imported when they are first needed.
            check(content)
    arguments = [
        *(f"-timeout={SECONDS}", f"-rss_limit_mb={MEBIBYTES}", f"-max_len={LONGEST}"),
        *(f"-max_total_time={seconds}", f"-artifact_prefix={corpus}.", "-print_final_stats=1"),
        "-len_control=10",
    ]
    from json_mutations import mutated_json

    def mutated(content: bytes, most: int, seed: int) -> bytes:
        """Mutate JSON as JSON two times of three, and everything else as bytes."""
        new = mutated_json(content, seed, most) if seed % 3 else None
        return atheris.Mutate(content, most) if new is None else new  # type: ignore[no-any-return]

    changes = {"custom_mutator": mutated} if name in JSON_TARGETS else {}
    atheris.Setup([sys.argv[0], *arguments, str(corpus), str(first)], check, **changes)
    atheris.Fuzz()


def keep(folder: Path) -> None:
    """Choose the inputs of each target that reach all lines of kafkajit which they reach together.

    Those that the tests have already come first, then the shortest.
    """
    from fuzz_corpus import kept, write
    from fuzz_targets import TARGETS

    chosen: dict[str, list[bytes]] = defaultdict(list)
    for name, (check, seeds) in TARGETS.items():
        reached: set[tuple[str, int]] = set()
        for content in seeds():
            reached |= lines_of(check, content)
        found = {path.read_bytes() for path in (folder / name).glob("*") if path.is_file()}
        old = kept(name)
        new = sorted((one for one in found if len(one) <= _KEPT and one not in old), key=len)
        for content in (*old, *new):
            lines = lines_of(check, content)
            if not lines <= reached or content in old:
                chosen[name].append(content)
                reached |= lines
        print(name, len(chosen[name]), "inputs,", len(reached), "lines")  # noqa: T201
    write(chosen)


def lines_of(check, content: bytes) -> set[tuple[str, int]]:  # type: ignore[no-untyped-def]
    """The lines of kafkajit that a check of an input reaches."""
    reached: set[tuple[str, int]] = set()
    package = str(TESTS.parent / "kafkajit")

    def trace(frame, event, _):  # type: ignore[no-untyped-def]
        if not frame.f_code.co_filename.startswith(package):
            return None
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        check(content)
    finally:
        sys.settrace(None)
    return reached


if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before numba is imported
    main()
