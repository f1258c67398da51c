"""Files that root names in another user's folder: no more is read than that user may read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from partitions import data, make_partition
from strangers import NOBODY, Places

from kafkajit.cli import main
from kafkajit.places.private_keys import _numbers
from kafkajit.storage.named_file import read_named
from kafkajit.values.schema_files import schemas_at

SCHEMA = {
    "type": "record",
    "name": "Secret",
    "fields": [{"name": "topsecret", "type": ["null", "string"]}],
}
# Words of commands that read {file}, which a user may have put there.
COMMANDS = [
    "report sample: -o {out}.html --compare {file}.json",
    "export sample: -o {out}.parquet --value-schema {file}.avsc",
    "export sample: -o {out}.parquet --key-schema {file}.avsc",
    "export sample: -o {out}.parquet --schemas {file}.avsc",
    "export sample: -o {out}.parquet --schemas {folder}",
    "sql --file {file}.avsc -o {out}.csv",
]


def filled(line: str, places: Places) -> list[str]:
    folder = places.home / "named"
    names = {"file": folder / "a", "folder": folder, "out": places.home / "out"}
    return [word.format(**names) for word in line.split()]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_file_of_roots_that_a_user_links_to_is_not_read(
    line: str, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = places.root / "a.avsc"
    secret.write_text(json.dumps(SCHEMA))
    for suffix in ("avsc", "json"):
        places.link(f"named/a.{suffix}", secret)
    assert main(filled(line, places)) == 1
    printed = "".join(capsys.readouterr())
    assert "Permission denied for user" in printed
    assert "topsecret" not in printed
    left = [path.read_bytes() for path in places.home.rglob("out*") if path.is_file()]
    assert not any(b"topsecret" in content for content in left)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_fifo_that_a_user_puts_there_is_not_waited_for(
    line: str, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    places.make(places.home / "named")
    for suffix in ("avsc", "json"):
        pipe = places.home / "named" / f"a.{suffix}"
        os.mkfifo(pipe)
        os.chown(pipe, NOBODY, NOBODY)
    assert main(filled(line, places)) == 1
    # A FIFO is not among a folder's files.
    assert re.search(r"is a FIFO|there are no \.avsc", capsys.readouterr().err)


def test_a_private_key_is_read_in_the_same_way(places: Places) -> None:
    link = places.link("key.pem", places.root / "secret")
    with pytest.raises(PermissionError):
        _numbers(str(link))


def test_a_registrys_log_that_leads_to_roots_is_not_read(places: Places) -> None:
    make_partition(places.root / "_schemas-0", {0: [data(0, 1)]})
    for path in (places.root / "_schemas-0").iterdir():
        path.chmod(0o600)
        places.link(f"_schemas-0/{path.name}", path)
    with pytest.raises(PermissionError):
        schemas_at(str(places.home / "_schemas-0"))


def test_a_users_own_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "a.avsc"
    os.mkfifo(pipe)
    with subprocess.Popen(["/bin/sh", "-c", f"printf 12 > {pipe}"]):
        assert read_named(pipe) == b"12"
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(b"34")
    assert read_named(f"/dev/fd/{read}") == b"34"
    os.close(read)


def test_statements_come_from_a_shells_substitution() -> None:
    code = f"{sys.executable} -m kafkajit.cli sql --file <(printf 'SELECT 40 + 2') --format csv"
    done = subprocess.run(["/bin/bash", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["42"]), done.stderr
