"""What `asv publish` wrote, made to open without the internet: its scripts are put beside it.

asv's page loads jQuery, flot and Bootstrap from servers of their own, and shows an error where it
cannot. Here npm brings the same versions, and the page is told where they are.

  python -m asv_bench.offline asv_bench/.asv/html
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGES = [
    "jquery@3.3.1",
    "flot@0.8.3",
    "flot-orderbars@1.0.0",
    "stupid-table-plugin@1",
    "blueimp-md5@2.19.0",
    "bootstrap@3.1.1",
]
# A tag that loads from elsewhere, and the name of what it loads.
REMOTE = re.compile(r'(<(?:script|link) [^>]*?(?:src|href)=")https://[^"]*/([^"/]+)"[^>]*?(/?>)')


def bring_scripts(html: Path) -> list[str]:
    """The names of those that are now beside the page."""
    index = html / "index.html"
    page = index.read_text()
    names = [name for _, name, _ in REMOTE.findall(page)]
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run([*command, *PACKAGES], check=True, cwd=folder)
        for name in names:
            shutil.copy(_script(Path(folder), name), html / name)
    index.write_text(REMOTE.sub(r'\1\2"\3', page))
    return names


def _script(folder: Path, name: str) -> Path:
    """Where npm has put a script; not every package brings it shortened, too."""
    plain = re.sub(r"^jquery-[0-9.]+[0-9]", "jquery", name)
    for wanted in (plain, plain.replace(".min.", ".")):
        for path in sorted(folder.rglob(wanted)):
            if "examples" not in path.parts:
                return path
    raise FileNotFoundError(f"no package brings {name}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m asv_bench.offline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("html", type=Path, help="the folder that asv publish wrote")
    for name in bring_scripts(parser.parse_args().html):
        print(name)


if __name__ == "__main__":
    main()
