"""How tests are handed out to processes."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one process")
def test_pytest_xdist_sees_the_groups(request: pytest.FixtureRequest) -> None:
    # Otherwise each process would start a Spark session and a cluster of its own.
    assert "@" in request.node.nodeid
