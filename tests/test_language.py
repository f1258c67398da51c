"""What people read is plain English: no phrase that docs/contributing.md's word list forbids.

The test reads prose, not code: pages without their code blocks, and of Python files docstrings,
comments and string literals with a blank in them. Texts that Kafka prints are Kafka's.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.whole

REPOSITORY = Path(__file__).parent.parent

SCANNED = (
    "README.md",
    "asv_bench/**/*.py",
    "docs/*.md",
    "docs/*.py",
    "kafkajit/**/*.py",
    "sql/**/*.sql",
    "tests/**/*.py",
    "tests/data/README.md",
)
EXEMPT = ("tests/test_language.py",)  # it spells the patterns


class Pattern(NamedTuple):
    """A phrase to avoid, and what to write."""

    name: str
    regex: re.Pattern[str]
    hint: str


def _pattern(name: str, regex: str, hint: str) -> Pattern:
    return Pattern(name, re.compile(regex), hint)


# A sentence begins a text, or follows a full stop, a colon, a dash of a list or a table's bar.
_BEGINS = r"(?:^|(?<=[.:!?|*-] )|(?<=\n\n))"
PATTERNS = (
    # "The result is None" is about Python's None.
    _pattern(
        "is none", r"\b(?:[Ii]s|[Aa]re|was|were) none\b", "has no …, there is no …, is missing"
    ),
    # "is no longer", "is no larger", "there is no" and "if there is no" are English.
    _pattern(
        "is no …",
        r"(?i)(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|\w+er\b)[a-z]+",
        "is not a …, or: has no …",
    ),
    _pattern("so many", r"(?i)\bso (?:many|much) (?!as\b|that\b)", "many, or a number"),
    _pattern(
        "Of a …",
        _BEGINS + r"Of (?:a|an|the|what|those|each|two|several|all|it|one)\b",
        "begin with the subject",
    ),
    _pattern(
        "is told",
        r"(?i)\b(?:is|are|was|were|be|being|been) (?:told|said)\b",
        "name who acts: reports, warns, raises, lists, prints",
    ),
    _pattern(
        "where it is not …",
        r"(?i)\bwhere (?:nobody|somebody|nothing|none|no one)\b"
        r"|\bwhere (?:it|they|this|that|those|there)(?: \w+)? (?:not|no|never|none|an?|too)\b"
        r"|\bwhere (?:it|that) fits\b",
        "if …: where is for places",
    ),
    _pattern(
        "what is not …",
        r"(?i)\bwhat is (?:not|no|damaged|local|remote|missing|sound)\b",
        "name the thing: remote files, damaged batches",
    ),
    _pattern(
        "who has …",
        _BEGINS + r"Who(?:ever)? (?!else\b)[a-z]+s\b[^?]*(?<!\?)$"
        r"|"
        + _BEGINS
        + r"Who(?:ever)? (?:has|is|does|knows|wants|reads|writes|needs)\b(?![^.]*\?)",
        "if you …, or name who acts",
    ),
    _pattern("amid that", r"(?i)\bamid (?:that|it|this)\b", "midway, during the change"),
    _pattern("has not got", r"(?i)\b(?:has|have) not got\b", "does not have"),
    _pattern(
        "says what …",
        r"(?i)\bsays? (?:what|which|how|where|whether|why)\b",
        "reports, names, lists, describes, sets",
    ),
)

# Texts that Kafka prints, or that quote the phrase; matched as whole sentences' parts.
KAFKAS = (
    re.compile(r"Record is corrupt"),
    re.compile(r"is no longer"),
)


class Piece(NamedTuple):
    """Some text, and the line on which it begins."""

    line: int
    text: str


class Slip(NamedTuple):
    """A phrase to avoid, and where it is."""

    place: str
    pattern: Pattern
    found: str

    def __str__(self) -> str:
        return f"{self.place}: {self.found!r} ({self.pattern.name}); write: {self.pattern.hint}"


def prose_of(path: Path) -> Iterator[Piece]:
    """What a person reads of a file."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from _paragraphs(_without_code(text))
    elif path.suffix == ".sql":
        yield from _runs_of_comments(text, "--")
    else:
        yield from _strings(text)
        yield from _comments(text)


def _without_code(page: str) -> str:
    """A page with its code blanked, line for line."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    page = re.sub(r"^(```+)[^\n]*\n.*?^\1$", blank, page, flags=re.DOTALL | re.MULTILINE)
    # Generated tables are read in the modules that they come from.
    page = re.sub(
        r"<!-- (?:speed )?([\w-]+):.*?<!-- /(?:speed )?\1 -->", blank, page, flags=re.DOTALL
    )
    page = re.sub(r"<!--.*?-->", blank, page, flags=re.DOTALL)
    page = re.sub(r"(?:^|(?<=\n\n))(?: {4}[^\n]*\n)+", blank, page)
    return re.sub(r"`[^`\n]*`", "`code`", page)


def _paragraphs(text: str) -> Iterator[Piece]:
    line = 1
    for part in re.split(r"(\n(?:[ \t]*\n)+|\n(?=[-*|] |\d+\. |#))", text):
        if part.strip():
            yield Piece(line, part)
        line += part.count("\n")


def _strings(source: str) -> Iterator[Piece]:
    """Docstrings without their examples, and other literals that are sentences."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            text = re.sub(r"^\s*(?:>>>|\.\.\.).*$", "", node.value, flags=re.MULTILINE)
            yield Piece(node.lineno, text)


def _comments(source: str) -> Iterator[Piece]:
    """Runs of comments."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    yield from _joined((line, text.lstrip("# ")) for line, text in lines)


def _runs_of_comments(source: str, mark: str) -> Iterator[Piece]:
    lines = enumerate(source.splitlines(), 1)
    yield from _joined(
        (at, line[len(mark) :].strip()) for at, line in lines if line.startswith(mark)
    )


def _joined(lines: Iterable[tuple[int, str]]) -> Iterator[Piece]:
    begun, last, words = 0, -1, [""]
    for line, text in lines:
        if line != last + 1:
            if begun:
                yield Piece(begun, "\n".join(words))
            begun, words = line, []
        words.append(text)
        last = line
    if begun:
        yield Piece(begun, "\n".join(words))


def slips_in(place: str, piece: Piece) -> Iterator[Slip]:
    """What should be written in another way in a text."""
    text = re.sub(r"[ \t]*\n[ \t]*(?!\n)", lambda found: found[0].strip(" \t"), piece.text)
    flat = text.replace("\n", " ")
    for pattern in PATTERNS:
        for found in pattern.regex.finditer(flat):
            around = flat[max(0, found.start() - 40) : found.end() + 40]
            if not any(kafkas.search(around) for kafkas in KAFKAS):
                line = piece.line + text[: found.start()].count("\n")
                yield Slip(f"{place}:{line}", pattern, found[0].strip())


def files_of(globs: Iterable[str]) -> list[Path]:
    """The files of these globs, without those that are exempt."""
    found = {
        path
        for glob in globs
        for path in REPOSITORY.glob(glob)
        if ".asv" not in path.parts  # the environments that asv makes
    }
    exempt = {REPOSITORY / name for name in EXEMPT}
    return sorted(
        path for path in found - exempt if "data" not in path.parts or path.suffix == ".md"
    )


@pytest.mark.parametrize("path", files_of(SCANNED), ids=lambda path: path.name)
def test_prose_is_plain_english(path: Path) -> None:
    name = str(path.relative_to(REPOSITORY))
    slips = [str(slip) for piece in prose_of(path) for slip in slips_in(name, piece)]
    assert not slips, "\n".join(["see docs/contributing.md, Language:", *slips])


def test_what_is_scanned_exists() -> None:
    for glob in (*SCANNED, *EXEMPT):
        assert any(REPOSITORY.glob(glob)), glob


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The headers are none.", ["is none"]),
        ("A name that is no offset.", ["is no …"]),
        ("There is no broker. It is no longer there, and is no larger.", []),
        ("After so many batches it stops.", ["so many"]),
        ("It ends. Of a file that is remote, windows are read.", ["Of a …"]),
        ("The first of a pair, of the two.", []),
        ("The user is told so.", ["is told"]),
        ("Read it where it fits.", ["where it is not …"]),
        ("The folder where segments lie.", []),
        ("Read what is not local.", ["what is not …"]),
        ("Who has waited longer compiles for himself.", ["who has …"]),
        ("Who has committed?", []),
    ],
)
def test_a_slip_is_found_and_good_english_is_not(text: str, names: list[str]) -> None:
    assert [slip.pattern.name for slip in slips_in("x.md", Piece(1, text))] == names


def test_a_slip_over_two_lines_is_named_with_its_line() -> None:
    (slip,) = slips_in("page.md", Piece(10, "Fine.\nHeaders that are\nnone."))
    assert str(slip).startswith("page.md:11: 'are none' (is none); write: ")


def test_code_is_not_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Fine.\n\n```sql\n-- where it is none\n```\n\n`where it` and\n\n    so many x\n\nEnd.\n"
    )
    assert [piece for piece in prose_of(page) if [*slips_in("p", piece)]] == []
    module = tmp_path / "module.py"
    module.write_text(
        '"""Of a log.\n\n>>> print("so many ")\n"""\nis_none = "so many"  # are none\n'
    )
    found = [slip for piece in prose_of(module) for slip in slips_in("m.py", piece)]
    assert [(slip.place, slip.pattern.name) for slip in found] == [
        ("m.py:1", "Of a …"),
        ("m.py:5", "is none"),
    ]


def test_a_docstring_begins_with_its_subject_or_its_verb() -> None:
    """A noun or a verb, not "What the kernel needs" or "Where the logs are"."""
    for path in files_of(["kafkajit/**/*.py", "asv_bench/**/*.py"]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                assert text.partition(" ")[0] not in ("What", "Where", "Which", "How"), path
