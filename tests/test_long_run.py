from __future__ import annotations

import pytest
from long_run import GROWTH, Held, growing, watch

FLAT = Held(resident=300 << 20, arrow_pool=0, descriptors=6, threads=3, maps=900)


def run(**leaks: int) -> list[Held]:
    """What thirty rounds hold, each a little more than the round before."""
    return [
        FLAT._replace(**{name: getattr(FLAT, name) + n * step for name, step in leaks.items()})
        for n in range(30)
    ]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("resident", 2 << 20),
        ("arrow_pool", 64),
        ("descriptors", 1),
        ("threads", 1),
        ("maps", 4),
    ],
)
def test_a_long_run_reports_what_grows(name: str, step: int) -> None:
    (found,) = growing(run(**{name: step}))
    assert found.startswith(f"{name} grew from at most ")


def test_a_long_run_that_rises_and_falls_is_flat() -> None:
    rises = FLAT._replace(resident=FLAT.resident + 50 * GROWTH.resident, descriptors=60)
    assert growing([FLAT, rises, FLAT] * 10) == []


def test_a_long_run_counts_a_file_that_stays_open() -> None:
    opened = []

    def leaks(number: int) -> int:
        opened.append(open(__file__))  # noqa: SIM115, PTH123
        return 1

    try:
        samples = watch(leaks, seconds=2, warm_up=0)
    finally:
        for file in opened:
            file.close()
    first = samples[0].descriptors
    assert [held.descriptors - first for held in samples] == list(range(len(opened)))
