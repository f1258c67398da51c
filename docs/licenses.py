"""The licences of what comes along with kafkajit, for docs/licenses.md.

The packages are those of pyproject.toml. Their licences are written here, as each project states
them. A dependency without a licence here is an error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

# The extras that users install. The others are for work on kafkajit.
EXTRAS = ("spark", "encryption", "report")
LICENSES = {
    "backports.zstd": "PSF-2.0",
    "cramjam": "MIT",
    "crc32c": "LGPL-2.1-or-later",
    "cryptography": "Apache-2.0 OR BSD-3-Clause",
    "deflate": "MIT",
    "isal": "PSF-2.0",
    "lz4": "BSD-3-Clause",
    "numba": "BSD-2-Clause",
    "numpy": "BSD-3-Clause",
    "pandas": "BSD-3-Clause",
    "pyarrow": "Apache-2.0",
    "pyspark": "Apache-2.0",
    "vl-convert-python": "BSD-3-Clause",
    "zstandard": "BSD-3-Clause",
}


def rows() -> Iterator[tuple[str, str, str]]:
    """A row for each package: its name, its licence, and what installs it."""
    path = Path(__file__).parent.parent / "pyproject.toml"
    project = tomllib.loads(path.read_text())["project"]
    for requirement in project["dependencies"]:
        yield _row(requirement, "kafkajit")
    for extra in EXTRAS:
        for requirement in project["optional-dependencies"][extra]:
            yield _row(requirement, f"kafkajit[{extra}]")


def _row(requirement: str, by: str) -> tuple[str, str, str]:
    name = re.split(r"[^\w.-]", requirement)[0]
    return f"`{name}`", LICENSES[name], f"`{by}`"
