"""Every figure of random folders is that of a decoder that shares nothing with kafkajit's."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import NO_JIT
from report_twin import differences, write_folder


def test_figures_are_those_of_an_independent_decoder(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = 2 if NO_JIT else 100 if request.config.getoption("--thorough") else 8
    for seed in range(count):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_folder(folder, seed)
        assert differences(folder) == [], f"seed {seed}"
