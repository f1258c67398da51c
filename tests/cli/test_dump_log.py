"""dump-log against Kafka's own DumpLogSegments, over every file of the corpus."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus import DATA, NO_JIT, SOUND_LOGS, log_id
from dumping import DECODED, KINDS, LOG, PACKAGE, SEGMENTS, Dump, copied_segment, flags_of

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli.dump_names import SUFFIXES


def goldens() -> Iterator[tuple[Path, str]]:
    """(file, kind) for everything that the oracle printed."""
    for suffix in (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"):
        for path in sorted(DATA.glob(f"*/*/*{suffix}")):
            for kind in [*KINDS, *DECODED]:
                stem = f"{path.name}.{kind}"
                if any((path.parent / f"{stem}.{end}").exists() for end in ("out", "sha256")):
                    yield path, kind


GOLDENS = list(goldens())


@pytest.mark.parametrize(
    ("path", "kind"),
    GOLDENS,
    ids=[f"{path.parent.name}/{path.name.lstrip('0')}-{kind}" for path, kind in GOLDENS],
)
def test_prints_what_kafka_prints_and_exits_as_it_does(path: Path, kind: str, dump: Dump) -> None:
    run = dump("--files", path.name, *flags_of(path, kind), folder=path.parent)
    golden = path.parent / f"{path.name}.{kind}"
    text = Path(f"{golden}.out")
    if text.exists():
        assert run.out == text.read_bytes()
    else:
        assert hashlib.sha256(run.out).hexdigest() == Path(f"{golden}.sha256").read_text().strip()
    if Path(f"{golden}.exit").exists():
        assert run.code == 1
        assert run.err.count("\n") == 1
        assert run.err.startswith(f"kafkajit dump-log: {path.name}: ")
    else:
        assert run.code == 0
        error = Path(f"{golden}.err")
        expected = error.read_text("utf-8") if error.exists() else ""
        assert run.err.replace(f"{path.parent}/", "") == expected


# If Kafka throws an exception of Java's own, our message names the problem of the batch.
OUR_WORDS = {
    "codec-wrong": "gzip",
    "gzip-cut": "gzip",
    "gzip-noise": "gzip",
    "length-14": "the size 26 is smaller than the minimum allowed overhead 61",
    "length-48": "the size 60 is smaller than the minimum allowed overhead 61",
    "lz4-cut": "lz4",
    "lz4-header-checksum": "lz4",
    "lz4-noise": "lz4",
    "snappy-cut": "snappy",
    "snappy-noise": "snappy",
    "zstd-cut": "",
    "zstd-noise": "zstd",
    "no-key-size": "Found invalid message: its key and value do not fit",
    "key-past-end": "Found invalid message: its key and value do not fit",
    "zstd": "Message format v1 has no zstd",
    "control-version-negative": "Invalid key found for the control record with offset 5",
    "record-length-varint-6": "Varint is too long, the most significant bit in the 5th byte is set",
}
REFUSED = sorted(
    path.parent
    for part in ("damaged", "messages")
    for path in DATA.glob(f"{part}/*/{LOG}.data.exit")
)


@pytest.mark.parametrize("folder", REFUSED, ids=lambda folder: folder.name)
def test_prints_the_problems_that_kafka_prints(folder: Path, dump: Dump) -> None:
    run = dump("--files", LOG, "--print-data-log", folder=folder)
    (first, *_) = (folder / f"{LOG}.data.err").read_text("utf-8").splitlines()
    of_kafka = re.sub(r'^Exception in thread "main" [\w.$]+(: )?', "", first)
    of_kafka = re.sub(r" in file .*\.$", "", of_kafka)
    assert OUR_WORDS.get(folder.name, of_kafka) in run.err
    assert " at position " in run.err


def test_default_decoder_prints_hex_where_java_prints_an_address(dump: Dump) -> None:
    folder = DATA / "v2" / "numbers-0"
    flags = [f"--{side}-decoder-class={PACKAGE}.DefaultDecoder" for side in ("key", "value")]
    ours = dump("--files", LOG, *flags, folder=folder).out.decode().splitlines()
    kafkas = (folder / f"{LOG}.default.out").read_text("utf-8").splitlines()
    hexed = [re.sub(r"\[B@[0-9a-f]+", "HEX", line) for line in kafkas]
    assert [re.sub(r"(key|payload): [0-9a-f]+", r"\1: HEX", line) for line in ours] == hexed


def test_a_decoder_option_prints_the_data(dump: Dump) -> None:
    folder = DATA / "v2" / "none-0"
    run = dump("--files", LOG, "--value-decoder-class", folder=folder)
    assert run.out == (folder / f"{LOG}.data.out").read_bytes()


def test_an_unknown_decoder_is_named_with_those_there_are(dump: Dump) -> None:
    run = dump(
        "--files", LOG, "--key-decoder-class", "no.such.Decoder", folder=DATA / "v2" / "none-0"
    )
    assert run.code == 1
    assert "no.such.Decoder" in run.err
    assert f"{PACKAGE}.LongDecoder" in run.err


def test_goes_on_with_the_next_file_when_kafka_stops(dump: Dump) -> None:
    names = sorted(path.name for path in (DATA / "v2" / "preallocated-0").glob("*.log"))
    padded = next(name for name in names if int(name.split(".")[0]) == 96)
    run = dump("--files", f"{padded},{names[0]}", folder=DATA / "v2" / "preallocated-0")
    assert f"Dumping {names[0]}" in run.out.decode()
    assert run.out.decode().count("baseOffset: ") > 10
    assert run.code == 1


def test_several_files_are_printed_one_after_the_other(dump: Dump) -> None:
    folder = DATA / "v2" / "segments-0"
    names = sorted(path.name for path in folder.glob("*.log"))
    run = dump("--deep-iteration", "--files", ",".join(names), folder=folder)
    assert run.out == b"".join((folder / f"{name}.deep.out").read_bytes() for name in names)


LENIENT = ["dropmalformed", "PERMISSIVE"]
MODES = [*LENIENT, "FAILFAST"]


@pytest.mark.parametrize("path", SOUND_LOGS[:: 20 if NO_JIT else 1], ids=log_id)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_prints_the_same_for_a_sound_log(path: Path, mode: str, dump: Dump) -> None:
    arguments = ("--print-data-log", "--files", path.name)
    as_kafka = dump(*arguments, folder=path.parent)
    run = dump("--mode", mode, *arguments, folder=path.parent)
    if as_kafka.code == 0:
        assert run == as_kafka
    else:  # where Kafka's tool ends at the zeros behind a preallocated log
        assert re.fullmatch(
            re.escape(as_kafka.out) + rb"Found \d+ invalid bytes at the end of .*\n", run.out
        )


def test_a_mode_goes_on_past_damage_and_permissive_reports_its_position(
    dump: Dump, tmp_path: Path
) -> None:
    good = [kt.batch([kt.Record(value=b"v%d" % i)], base_offset=i) for i in range(3)]
    noise = b"not a batch, but between two of them, and longer than the header of one" * 2
    bad = kt.broken("wrong crc", base_offset=1)
    (tmp_path / LOG).write_bytes(good[0] + bad + good[1] + noise + good[2] + b"torn")
    gaps = [
        f"damaged position: {len(good[0])} size: {len(bad)} "
        "reason: CorruptRecordError: Record is corrupt (stored crc = 1, computed crc = 1289314127)",
        f"damaged position: {len(good[0] + bad + good[1])} size: {len(noise)} "
        "reason: CorruptRecordError: record size 1952671788 leads past the end of the log, but a "
        f"sound batch begins at {len(good[0] + bad + good[1] + noise)}",
    ]
    arguments = ("--deep-iteration", "--print-data-log", "--files", LOG)
    for mode, expected in (("DROPMALFORMED", []), ("PERMISSIVE", gaps)):
        run = dump("--mode", mode, *arguments, folder=tmp_path)
        lines = run.out.decode().splitlines()
        assert [line for line in lines if line.startswith("damaged")] == expected
        assert re.findall("payload: (v.)", run.out.decode()) == ["v0", "v1", "v2"]
        assert lines[-1] == f"Found 4 invalid bytes at the end of {LOG}"
        assert run.code == 0
    # A header that leads on is shown with its isvalid, as Kafka shows it.
    run = dump("--mode", "PERMISSIVE", "--files", LOG, folder=tmp_path)
    assert re.findall("isvalid: (.*)", run.out.decode()) == ["true", "false", "true", "true"]
    assert gaps[1] in run.out.decode().splitlines()


def test_a_mode_goes_on_past_damage_that_only_a_dump_finds(dump: Dump, tmp_path: Path) -> None:
    good = [kt.batch([kt.Record(value=b"v%d" % i)], base_offset=i) for i in range(3)]
    unknown = kt.batch([], base_offset=7, attributes=5)  # gzip with a bit turned over
    raft = kt.Record(key=b"\0\0\0\3", value=b"")  # a snapshot's header without one
    control = kt.batch([raft], base_offset=8, is_control=True)
    log = good[0] + unknown + good[1] + control + good[2]
    (tmp_path / LOG).write_bytes(log)
    for flags, kept in (((), 4), (("--print-data-log",), 4)):
        run = dump("--mode", "PERMISSIVE", *flags, "--files", LOG, folder=tmp_path)
        text = run.out.decode()
        assert run.code == 0
        assert text.count("isvalid: true") == kept, text
        assert "UnsupportedCompressionTypeError: Unknown compression type id: 5\n" in text
    assert re.findall("payload: (v.)", text) == ["v0", "v1", "v2"]
    assert f"damaged position: {len(good[0] + unknown + good[1])} size: {len(control)} " in text


def test_a_batch_may_grow_to_the_limit_that_is_given(dump: Dump, tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(kt.batch([kt.Record(value=bytes(10_000))], codec="zstd"))
    arguments = ("--deep-iteration", "--files", LOG)
    run = dump("--max-decompressed-bytes", "5000", *arguments, folder=tmp_path)
    assert "holds more than max_decompressed_bytes = 5000" in run.err
    assert run.code == 1
    assert dump("--max-decompressed-bytes", "20000", *arguments, folder=tmp_path).code == 0
    default = inspect.signature(kafkajit.read_records).parameters["max_decompressed_bytes"].default
    shown = " ".join(dump("--help", folder=tmp_path).out.decode().split())
    assert f"(default: {default >> 20}m)" in shown


def test_a_batch_that_max_bytes_cuts_is_not_damage(dump: Dump, tmp_path: Path) -> None:
    batch = kt.batch([kt.Record(value=b"v")])
    (tmp_path / LOG).write_bytes(batch * 3)
    limit = str(len(batch) + 10)
    arguments = ("--max-bytes", limit, "--deep-iteration", "--files", LOG)
    as_kafka = dump(*arguments, folder=tmp_path)
    assert as_kafka.out.count(b"baseOffset: ") == 1
    for mode in MODES:
        assert dump("--mode", mode, *arguments, folder=tmp_path) == as_kafka


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.log", "no such file"),
        ("00000000000000000001.log", "no such file"),
        ("missing", "no such file"),
        ("missing.txt", "no such file"),
        ("00000000000000000000.snapshot", "no such file"),
        ("there.log", "the file's name does not begin with an offset: 'there'"),
        (
            "there",
            f"the file's name has no suffix; there are: {', '.join(SUFFIXES)}",
        ),
        ("there.timeindex", "the file's name does not begin with an offset: 'there'"),
    ],
)
def test_a_file_that_cannot_be_dumped_is_one_line_and_exit_1(
    name: str, message: str, dump: Dump, tmp_path: Path
) -> None:
    if name.startswith("there"):
        (tmp_path / name).touch()
    run = dump("--files", name, folder=tmp_path)
    assert run.out.startswith(f"Dumping {name}\n".encode())
    assert run.err == f"kafkajit dump-log: {name}: {message}\n"
    assert run.code == 1


INDEX, TIME_INDEX = LOG.replace(".log", ".index"), LOG.replace(".log", ".timeindex")


def test_inconsistencies_are_printed_after_all_files_in_kafkas_order(
    dump: Dump, tmp_path: Path
) -> None:
    index = (SEGMENTS / INDEX).read_bytes()
    times = (SEGMENTS / TIME_INDEX).read_bytes()
    first, second, third = times[:12], times[12:24], times[24:36]
    later = (int.from_bytes(third[:8]) + 1).to_bytes(8) + third[8:]
    folder = copied_segment(
        tmp_path,
        index=index[:3] + b"\0" + index[4:],
        timeindex=second + first + later + times[36:40] + b"\0\0\0\x01\0\0\0\x01",
    )
    run = dump("--files", f"{TIME_INDEX},{INDEX}", "--verify-index-only", folder=folder)
    assert run.out.decode() == f"Dumping {TIME_INDEX}\nDumping {INDEX}\n"
    assert run.code == 0
    headings = [line for line in run.err.splitlines() if line[-1] in ".x"]
    assert headings == [
        f"Mismatches in :{folder / INDEX}",
        f"Found timestamp mismatch in :{folder / TIME_INDEX}",
        f"Found out of order timestamp in :{folder / TIME_INDEX}",
        "The following indexed offsets are not found in the log.",
    ]
    assert "  Index offset: 0, log offset: " in run.err


@pytest.mark.parametrize(
    ("changed", "name", "message"),
    [
        ({"index": b"\0\0\0\5\x7f\0\0\0"}, INDEX, "entry 0 names position 2130706432, where "),
        ({"index": b"\0\0\0\5\xff\0\0\0"}, INDEX, "entry 0 names position -16777216, where "),
        ({"index": b"\0\0\0\5" + bytes(4), "log": bytes(40)}, INDEX, "Found record size 0 smaller"),
        ({"timeindex": b"\1" * 12, "log": b"\0" * 40}, TIME_INDEX, "has 40 bytes"),
        (
            {"timeindex": b"\1" * 12, "index": b"", "log": b"\0" * 40},
            TIME_INDEX,
            "Found record size 0 smaller",
        ),
    ],
)
def test_an_entry_that_cannot_be_followed_ends_the_dump_of_its_file(
    changed: dict[str, bytes], name: str, message: str, dump: Dump, tmp_path: Path
) -> None:
    run = dump("--files", f"{name},{LOG}", folder=copied_segment(tmp_path, **changed))
    assert run.err.startswith(f"kafkajit dump-log: {name}: ")
    assert message in run.err.splitlines()[0]
    assert run.code == 1
    assert f"Dumping {LOG}\n".encode() in run.out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (INDEX, bytes(7), "is empty"),
        (INDEX, b"\xff" * 8, "the last offset is -1 which is less than the base offset 0"),
        (INDEX, b"\0\0\0\1" * 2 + b"\1", "found 9 bytes which is neither positive nor a multiple"),
        (TIME_INDEX, b"\0" * 13, "found 13 bytes which is neither positive nor a multiple of 12"),
    ],
)
def test_the_sanity_check_reports_an_index_of_a_wrong_size_or_end(
    name: str, content: bytes, message: str, dump: Dump, tmp_path: Path
) -> None:
    copied_segment(tmp_path)  # like Kafka's tool, it needs the log beside the index
    (tmp_path / name).write_bytes(content)
    run = dump("--files", name, "--index-sanity-check", folder=tmp_path)
    assert message in run.err + run.out.decode()


@pytest.mark.parametrize(
    ("name", "missing"), [(INDEX, LOG), (TIME_INDEX, LOG), (TIME_INDEX, INDEX)]
)
def test_an_index_is_compared_with_the_log_beside_it(
    name: str, missing: str, dump: Dump, tmp_path: Path
) -> None:
    (copied_segment(tmp_path) / missing).unlink()
    run = dump("--files", name, folder=tmp_path)
    assert f"there is no {missing} beside it to compare it with" in run.err
    assert (run.out, run.code) == (f"Dumping {name}\n".encode(), 1)


def test_of_a_folder_all_files_are_dumped(dump: Dump) -> None:
    run = dump("--files", "segments-0", folder=SEGMENTS.parent)
    names = re.findall(r"^Dumping segments-0/(.*)$", run.out.decode(), re.M)
    suffixes = (".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".checkpoint")
    assert names == sorted(path.name for path in SEGMENTS.iterdir() if path.suffix in suffixes)
    assert len(names) > 12
    assert (run.err, run.code) == ("", 0)


def test_an_entry_of_a_batch_larger_than_the_largest_message_is_rejected(dump: Dump) -> None:
    run = dump("--files", INDEX, "--max-message-size", "100", folder=SEGMENTS)
    assert "no whole batch of at most 100 bytes" in run.err
    assert run.code == 1


def test_a_corrupt_snapshot_is_reported_as_kafka_reports_it(dump: Dump, tmp_path: Path) -> None:
    name = LOG.replace(".log", ".snapshot")
    (tmp_path / name).write_bytes(b"\0\1" + bytes(8))
    run = dump("--files", name, folder=tmp_path)
    assert run.out == f"Dumping {name}\n".encode()
    assert run.err.startswith("Snapshot is corrupt (CRC is no longer valid). Stored crc: 0.")
    assert run.code == 0


def test_an_unknown_suffix_is_ignored_as_kafka_does(dump: Dump, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    run = dump("--files", "notes.txt", folder=tmp_path)
    golden = DATA / "usage" / "unknown-suffix"
    assert run.out == Path(f"{golden}.out").read_bytes()
    assert run.err == Path(f"{golden}.err").read_text()
    assert run.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no files to dump: name them, as in kafkajit dump-log"),
        (["--files"], "expected at least one argument"),
        (["--files", LOG, "--bogus"], "unknown option --bogus"),
        (
            ["--files", LOG, "--print-data"],
            "unknown option --print-data: did you mean --print-data-",
        ),
        (
            ["--files", LOG, "--max-bytes", "ten"],
            "such as 128m, not 'ten'",
        ),
    ],
)
def test_refuses_arguments_in_one_line_and_exits_1(
    arguments: list[str], message: str, dump: Dump, tmp_path: Path
) -> None:
    run = dump(*arguments, folder=tmp_path)
    assert message in run.err
    assert run.err.count("\n") == 1
    assert run.code == 1


def decoded(golden: Path) -> bytes:
    """The lines of a log's dump behind its name."""
    return golden.read_bytes().partition(b"\n")[2]


def test_of_several_decoders_each_is_for_the_logs_of_its_topic(dump: Dump) -> None:
    payloads = DATA / "payloads"
    names = ("__share_group_state-0", "__cluster_metadata-0", "__transaction_state-0")
    files = [f"{name}/{LOG}" for name in names]
    flags = ("--share-group-state-decoder", "--cluster-metadata-decoder", "--offsets-decoder")
    run = dump("--files", ",".join(files), *flags, folder=payloads)
    assert run.code == 0
    for file in files[:2]:
        assert decoded(payloads / f"{file}.decoded.out") in run.out
    # no decoder of its topic: strings
    strings = dump("--files", files[2], "--print-data-log", folder=payloads)
    assert run.out.endswith(strings.out)


def test_of_several_decoders_that_of_cluster_metadata_is_for_checkpoints(dump: Dump) -> None:
    folder = DATA / "internal" / "log-dir"
    flags = ("--cluster-metadata-decoder", "--remote-log-metadata-decoder")
    run = dump("--files", "bootstrap.checkpoint", *flags, folder=folder)
    assert run.out == (folder / "bootstrap.checkpoint.decoded.out").read_bytes()


def test_one_decoder_alone_is_for_every_log_as_kafkas_is(dump: Dump, tmp_path: Path) -> None:
    folder = DATA / "payloads" / "__share_group_state-1"
    (tmp_path / LOG).write_bytes((folder / LOG).read_bytes())
    run = dump("--files", LOG, "--share-group-state-decoder", folder=tmp_path)
    assert run.out == (folder / f"{LOG}.decoded.out").read_bytes()


def test_a_missing_key_is_reported_in_kafkas_words_where_the_line_breaks_off(dump: Dump) -> None:
    folder = DATA / "payloads" / "__consumer_offsets-2"
    run = dump("--files", LOG, "--offsets-decoder", folder=folder)
    assert run.out.endswith(
        b"| offset: 1 CreateTime: 1700000000000 keySize: -1 valueSize: 20 "
        b"sequence: -1 headerKeys: []"
    )
    assert "Failed to decode message at offset 1 using the specified decoder" in run.err
    assert run.code == 1


@pytest.mark.skipif(NO_JIT, reason="megabytes")
def test_json_larger_than_the_text_buffer_is_printed_whole(dump: Dump, tmp_path: Path) -> None:
    """Subtopologies are printed at 25 times their size; one more batch follows."""
    empty = b"\1" * 7 + b"\0"
    value = b"\0\0" + bytes(4) + b"\xc1\xb8\x02" + empty * 40_000 + b"\0"
    key = b"\0\x17" + b"\0\1g"
    log = kt.batch([kt.Record(key=key, value=value)], codec="zstd")
    (tmp_path / LOG).write_bytes(log + kt.batch([kt.Record(key=key)], base_offset=1))
    run = dump("--files", LOG, "--offsets-decoder", folder=tmp_path)
    assert run.out.count(b'{"subtopologyId":""') == 40_000
    assert run.out.endswith(b'key: {"type":"23","data":{"groupId":"g"}} payload: <DELETE>\n')


def test_max_bytes_below_zero_is_refused_as_kafka_does(dump: Dump) -> None:
    run = dump("--files", LOG, "--max-bytes", "-1", folder=DATA / "v2" / "none-0")
    assert run.out.decode() == f"Dumping {LOG}\nLog starting offset: 0\n"
    assert "Invalid size: -1" in run.err
    assert run.code == 1


def test_numbers_of_every_length_are_printed_in_full(dump: Dump, tmp_path: Path) -> None:
    numbers = [0, 9, 10, 99, 100, 10**18 - 1, 10**18, 2**63 - 1, -1, -10, -(2**63)]
    records = [
        kt.Record(key=n.to_bytes(8, signed=True), offset_delta=0, timestamp=n) for n in numbers
    ]
    (tmp_path / LOG).write_bytes(kt.batch(records, base_timestamp=0, max_timestamp=-(2**63)))
    flag = f"--key-decoder-class={PACKAGE}.LongDecoder"
    run = dump("--files", LOG, flag, folder=tmp_path)
    assert [int(n) for n in re.findall(rb"CreateTime: (-?\d+) keySize", run.out)] == numbers
    assert [int(n) for n in re.findall(rb" key: (-?\d+)", run.out)] == numbers
    assert b" CreateTime: -9223372036854775808 size: " in run.out


@pytest.mark.skipif(NO_JIT, reason="megabytes")
def test_a_value_larger_than_the_text_buffer_is_printed_whole(dump: Dump, tmp_path: Path) -> None:
    value = b"\xff" * (6 << 20)
    (tmp_path / LOG).write_bytes(
        kt.batch([kt.Record(value=b"before"), kt.Record(value=value)], codec="zstd")
    )
    run = dump("--files", LOG, "--print-data-log", folder=tmp_path)
    assert run.out.count(b"payload: before\n") == 1
    assert run.out.count("\N{REPLACEMENT CHARACTER}".encode()) == len(value)


@pytest.mark.skipif(NO_JIT, reason="megabytes")
def test_many_header_keys_larger_than_the_text_buffer_are_printed_whole(
    dump: Dump, tmp_path: Path
) -> None:
    headers: list[tuple[str | bytes, bytes | None]] = [(f"{i:0>1000}", None) for i in range(6000)]
    records = [kt.Record(value=b"v", headers=headers)]
    (tmp_path / LOG).write_bytes(kt.batch(records, codec="zstd"))
    run = dump("--files", LOG, "--deep-iteration", folder=tmp_path)
    keys = ",".join(str(key) for key, _ in headers)
    assert f"headerKeys: [{keys}]\n".encode() in run.out


def test_debug_shows_the_traceback(dump: Dump, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        dump("--files", LOG, "--debug", folder=tmp_path)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kafkajit.cli", *arguments]


def test_a_reader_that_leaves_early_ends_it_quietly() -> None:
    path = DATA / "v2" / "large-batch-0" / LOG
    with subprocess.Popen(
        command("dump-log", "--print-data-log", "--files", ",".join([str(path)] * 50)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize("arguments", [["--help"], ["dump-log", "--help"]], ids=" ".join)
def test_help_fits_80_columns_and_shows_an_example(arguments: list[str]) -> None:
    environment = os.environ | {"COLUMNS": "80"}
    run = subprocess.run(
        command(*arguments), capture_output=True, text=True, check=True, env=environment
    )
    assert all(len(line) <= 80 for line in run.stdout.splitlines())
    assert "dump-log" in run.stdout


@pytest.mark.thorough
def test_progress_shows_on_a_terminals_stderr_only(tmp_path: Path) -> None:
    """A log of 70 MB in a pipe, stderr a terminal."""
    path = tmp_path / LOG
    with path.open("wb") as file:
        for offset in range(70):
            file.write(kt.batch([kt.Record(value=bytes(1 << 20))], base_offset=offset))
    arguments = command("dump-log", "--print-data-log", "--files", str(path))
    leader, follower = pty.openpty()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        assert process.stdout is not None
        size = len(process.stdout.read(1 << 20))
        time.sleep(1.5)  # a slow reader makes the work long enough to show progress
        size += sum(len(piece) for piece in iter(lambda: process.stdout.read(1 << 20), b""))
    assert process.returncode == 0
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while piece := os.read(leader, 10_000):
            shown += piece
    os.close(leader)
    assert size > 70 << 20
    assert LOG.encode() in shown
    assert shown.endswith(b" \r")  # the progress is cleared at the end
    piped = subprocess.run(arguments, capture_output=True, check=True)
    assert piped.stderr == b""


def test_files_are_named_by_commas_words_folders_and_globs_alike(
    dump: Dump, tmp_path: Path
) -> None:
    for name in ("a-0", "b,c-0"):
        copied_segment_in = tmp_path / name
        copied_segment_in.mkdir()
        copied_segment(copied_segment_in)
        (copied_segment_in / "leader-epoch-checkpoint").touch()
    logs = [f"a-0/{LOG}", f"b,c-0/{LOG}"]

    def dumped(*words: str) -> list[str]:
        run = dump(*words, folder=tmp_path)
        assert (run.err, run.code) == ("", 0)
        return re.findall(r"^Dumping (.*)$", run.out.decode(), re.MULTILINE)

    both = [f"a-0/{INDEX}", logs[0]]
    assert dumped("--files", ",".join(both)) == both
    assert dumped("--files", *both) == both
    assert dumped(*both) == both
    assert dumped(both[0], "--deep-iteration", both[1]) == both
    assert dumped("--files", both[0], "--print-data-log", "--files", both[1]) == both
    assert dumped(*logs) == logs  # no file has a comma for two names
    assert dumped("*-0/*.log") == logs
    assert dumped("{a,x}-0/*.log") == logs[:1]
    assert dumped("--files", "{a,x}-0/*.log,a-0/*.index") == both[::-1]
    assert dumped("a-0/*") == dumped("a-0") == [*both, f"a-0/{TIME_INDEX}"]
    assert dumped("b\\,c-0/*.log") == logs[1:]
    assert dumped("[^b]-0/*.log") == logs[:1]
    assert (
        dump("--files", "a\\*0/*.log", folder=tmp_path).err
        == "kafkajit dump-log: nothing matches: a\\*0/*.log\n"
    )
    assert (
        dump("--files", "[x]*.log", folder=tmp_path).err
        == "kafkajit dump-log: nothing matches: [x]*.log\n"
    )


def piped(content: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command("dump-log", *arguments), input=content, capture_output=True, check=False
    )


def test_a_dash_is_standard_input(dump: Dump, tmp_path: Path) -> None:
    log = (SEGMENTS / LOG).read_bytes()
    as_file = dump("--print-data-log", LOG, folder=SEGMENTS).out
    run = piped(log + b"torn", "-", "--print-data-log")
    assert run.stdout == as_file.replace(f"Dumping {LOG}".encode(), b"Dumping -") + (
        f"Found 4 invalid bytes at the end of {LOG}\n".encode()
    )
    assert (run.stderr, run.returncode) == (b"", 0)
    run = piped(log, "--files", "-", "--stdin-name", f"{48:020}.log")
    assert run.stdout.startswith(b"Dumping -\nLog starting offset: 48\nbaseOffset: ")
    assert piped(b"", "-").stdout == b"Dumping -\nLog starting offset: 0\n"
    # A file as standard input gives the same, and other files than logs are known by their names.
    with (DATA / "v2" / "segments-0" / f"{48:020}.snapshot").open("rb") as file:
        name = f"{48:020}.snapshot"
        words = command("dump-log", "-", "--stdin-name", name)
        from_file = subprocess.run(words, stdin=file, capture_output=True, check=True).stdout
    assert from_file == b"Dumping -\n" + dump(name, folder=SEGMENTS).out.partition(b"\n")[2]
    index = piped((SEGMENTS / INDEX).read_bytes(), "-", "--stdin-name", INDEX)
    assert index.returncode == 1
    assert b"an index is compared with the .log file beside it, and - has no folder" in index.stderr
    payloads = DATA / "internal" / "__consumer_offsets-0" / LOG
    if payloads.exists():
        flags = ["--offsets-decoder", "--transaction-log-decoder"]
        named = f"__consumer_offsets-0/{LOG}"
        run = piped(payloads.read_bytes(), "-", *flags, "--stdin-name", named)
        decoded = dump(*flags, str(payloads), folder=tmp_path).out
        assert run.stdout.partition(b"\n")[2] == decoded.partition(b"\n")[2]


def test_a_terminal_is_not_read(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    words = command("dump-log", "-")
    run = subprocess.run(words, stdin=follower, capture_output=True, check=False)
    os.close(leader)
    os.close(follower)
    assert b"nothing is piped in: - is standard input" in run.stderr
    assert run.returncode == 1


def test_a_bad_checksum_of_a_batch_is_reported_in_every_mode(dump: Dump, tmp_path: Path) -> None:
    good = [kt.batch([kt.Record(value=b"v%d" % i)], base_offset=2 * i) for i in range(3)]
    bad = kt.broken("wrong crc", base_offset=1)
    (tmp_path / LOG).write_bytes(good[0] + bad + good[1] + bad + good[2])
    as_kafka = dump(LOG, folder=tmp_path)
    assert as_kafka.code == 0
    lines = as_kafka.out.decode().splitlines()
    valid = [line.endswith("true") for line in lines[2:]]
    assert valid == [True, False, True, False, True]
    run = dump("--mode", "failfast", LOG, folder=tmp_path)
    assert run.code == 1
    assert run.out.decode().splitlines() == lines[:4]
    assert run.err.startswith(f"kafkajit dump-log: {LOG}: CorruptRecordError: Record is corrupt (")
    assert run.err.endswith(f" at position {len(good[0])}, base offset 1\n")
    run = dump("--mode", "permissive", LOG, folder=tmp_path)
    assert run.code == 0
    stated = run.out.decode().splitlines()
    assert [line for line in stated if not line.startswith("damaged")] == lines
    assert [stated.index(line) for line in stated if line.startswith("damaged")] == [4, 7]
    assert stated[4].startswith(
        f"damaged position: {len(good[0])} size: {len(bad)} reason: Corrupt"
    )
    run = dump("--mode", "permissive", "--format", "json", LOG, folder=tmp_path)
    assert run.out.count(b'{"kind":"gap","position":') == 2


@pytest.mark.parametrize("flag", ["--print-data-log", "--deep-iteration"])
def test_a_mode_of_failfast_ends_before_the_records_that_are_not_sound(
    flag: str, dump: Dump, tmp_path: Path
) -> None:
    good = kt.batch([kt.Record(value=b"v0")])
    (tmp_path / LOG).write_bytes(good + kt.broken("wrong crc", base_offset=1))
    run = dump("--mode", "FAILFAST", flag, LOG, folder=tmp_path)
    assert run.code == 1
    assert run.out.count(b"baseOffset: ") == 1
    assert "Record is corrupt (" in run.err


def test_damage_at_the_end_is_kafkas_invalid_bytes_unless_a_mode_is_given(
    dump: Dump, tmp_path: Path
) -> None:
    good = [kt.batch([kt.Record(value=b"v")], base_offset=i) for i in range(3)]
    bad = good[1][:8] + b"\x7f" + good[1][9:]
    for log, error in (
        (good[0] + bad + good[2], "CorruptRecordError: record size 2130706489 leads past the end"),
        (b"\x1f\x8b\x08\x00" * 9, "NotALogError: no record batch begins here"),
    ):
        (tmp_path / LOG).write_bytes(log)
        as_kafka = dump("--files", LOG, folder=tmp_path)
        assert (as_kafka.code, as_kafka.err) == (0, "")
        left = len(log) - as_kafka.out.count(b"baseOffset: ") * len(good[0])
        assert as_kafka.out.endswith(
            b"Found %d invalid bytes at the end of %s\n" % (left, LOG.encode())
        )
        run = dump("--mode", "FAILFAST", "--files", LOG, folder=tmp_path)
        assert run.code == 1
        assert run.out == as_kafka.out[: as_kafka.out.rindex(b"Found ")]
        assert error in run.err
        run = dump("--mode", "PERMISSIVE", "--files", LOG, folder=tmp_path)
        assert run.code == 0
        assert f"reason: {error}" in run.out.decode()
