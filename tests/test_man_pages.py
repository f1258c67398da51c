"""The manual pages of the commands, as man(1) shows them."""

from __future__ import annotations

import re
import subprocess

import pytest
from corpus import REPOSITORY
from needs import need

from docs.man_pages import _text
from kafkajit.cli import new_parser

PAGES = REPOSITORY / "docs" / "man"
COMMANDS = new_parser()[1]


def shown(name: str) -> str:
    """The page as text; a warning of groff is an error."""
    need("groff")
    words = ["groff", "-man", "-ww", "-Tascii", "-P-cbou", str(PAGES / f"{name}.1")]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.whole
def test_a_page_has_all_of_the_help(name: str) -> None:
    text = shown(f"kafkajit-{name}")
    headings = re.findall(r"(?m)^[A-Z].*$", text)[1:]  # without the header
    assert headings[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
    assert {"OPTIONS", "SEE ALSO"} < {*headings}
    assert {"EXAMPLE", "EXAMPLES"} & {*headings}
    parser = COMMANDS[name]
    assert [option for option in parser._option_string_actions if option not in text] == []
    for line in (parser.epilog or "").splitlines():
        if line.startswith("  kafkajit "):
            assert line.strip() in text  # an example is printed as it is typed


def test_the_first_page_names_all_commands() -> None:
    text = shown("kafkajit")
    assert [name for name in COMMANDS if f"kafkajit-{name}(1)" not in text] == []


def test_no_character_is_lost_to_troff() -> None:
    assert _text(".a\\b 'c' `d` ^e~ -f") == "\\&.a\\eb \\(aqc\\(aq \\(gad\\(ga \\(hae\\(ti \\-f"
