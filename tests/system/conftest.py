from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from needs import need_root
from strangers import NOBODY, ROOTS, Places, folder_that_others_enter


@pytest.fixture
def places() -> Iterator[Places]:
    need_root()
    with folder_that_others_enter() as top:
        found = Places(top / "home", top / "root")
        found.home.mkdir()
        os.chown(found.home, NOBODY, NOBODY)
        found.root.mkdir(mode=0o700)
        (found.root / "secret").write_bytes(ROOTS)
        (found.root / "secret").chmod(0o600)
        yield found
        assert (found.root / "secret").read_bytes() == ROOTS
        status = (found.root / "secret").stat()
        assert (status.st_uid, status.st_mode & 0o777) == (0, 0o600)
