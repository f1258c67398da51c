"""Docstrings of the functions: in a checkout, in an installation, and without the .sql files."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from corpus import REPOSITORY

from kafkajit.spark import functions
from kafkajit.spark.catalogue import FUNCTIONS
from kafkajit.spark.descriptions import header, summary

PRINT_DOC = "import kafkajit.spark.functions as f; print(f.{}.__doc__)"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_has_the_sections_of_numpydoc(name: str) -> None:
    function = getattr(functions, name)
    doc = inspect.getdoc(function)
    assert doc is not None
    sections = ["Parameters", "Returns", "See Also", "Examples"]
    heads = [f"{head}\n{'-' * len(head)}\n" for head in sections]
    assert [doc.count(head) for head in heads] == [1] * len(heads)
    for parameter in inspect.signature(function).parameters:
        assert f"\n{parameter} : " in doc
    assert doc.startswith("Returns ")
    assert ".. versionadded:: " in doc


def test_a_signature_is_that_of_the_source() -> None:
    signature = inspect.signature(functions.try_kafka_records)
    assert str(signature) == (
        "(content: 'ColumnOrName', columns: 'str | None' = None, mode: 'str | None' = None)"
        " -> 'Column'"
    )
    assert functions.try_kafka_records.__name__ == "try_kafka_records"


def test_a_summary_is_the_first_sentence() -> None:
    assert summary("kafka_records") == "Returns the records of a log segment."
    assert header("kafka_no_such") is None


def installed(folder: Path) -> None:
    """What the wheel contains, by the words of pyproject.toml."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    ignored = shutil.ignore_patterns("__pycache__")
    for package in wheel["packages"]:
        shutil.copytree(REPOSITORY / package, folder / package, ignore=ignored)
    for source, target in wheel["force-include"].items():
        if (REPOSITORY / source).is_dir():
            shutil.copytree(REPOSITORY / source, folder / target)


def doc_of(name: str, path: Path, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PRINT_DOC.format(name)],
        env={"PYTHONPATH": str(path), "PATH": "/usr/bin:/bin", "HOME": str(cwd)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.rstrip("\n")


@pytest.mark.parametrize("kind", ["wheel", "zip"])
def test_an_installation_has_the_docstrings(kind: str, tmp_path: Path) -> None:
    installed(tmp_path / "site")
    path = tmp_path / "site"
    if kind == "zip":
        path = Path(shutil.make_archive(str(tmp_path / "kafkajit"), "zip", path))
        shutil.rmtree(tmp_path / "site")
    expected = functions.kafka_records.__doc__
    assert doc_of("kafka_records", path, tmp_path) == str(expected).rstrip("\n")


def test_without_the_files_functions_have_no_docstrings_and_work(tmp_path: Path) -> None:
    installed(tmp_path / "site")
    shutil.rmtree(tmp_path / "site" / "kafkajit" / "spark" / "sql")
    assert doc_of("kafka_records", tmp_path / "site", tmp_path) == "None"
