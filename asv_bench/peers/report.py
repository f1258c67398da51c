"""Measurements → tables: plain text while measuring, Markdown for the pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from asv_bench.peers.growth_report import tables, two_digits
from asv_bench.peers.record import KINDS, Record

US = "kafkajit"
VIEWS = "kafkajit binary_view"
DUMPER = "Java, DumpLogSegments"
# The steps that no reader of uncompressed records can leave out, each by itself.
FLOOR = ("crc32c", "memcpy", "varint floor")
CODEC = "bare codec"
CONNECTOR = "Kafka connector"
LIMIT = "limit"
READERS = (US, "Java, copy", "Java, touch", "franz-go", "aiokafka", "kafka-python", LIMIT)
WRITERS = (US, "Java", "aiokafka", LIMIT)
DUMPS = {
    "dump": "`--print-data-log`",
    "dump-headers": "batches only",
    "dump-commits": "`--offsets-decoder`",
}
SPARK_SUBJECTS = {
    "kafkaLog": "`kafkaLog`: five aggregates over key, value, offset, timestamp",
    "Parquet, none": "the same rows as Parquet, uncompressed",
    "Parquet, zstd": "the same rows as Parquet, zstd",
    "kafkaLog, Python source": "`kafkaLog` without the bridge, four columns in its schema",
    "ready-made": "limit without the bridge: a Python source that yields one prepared batch again",
    "kafka_log()": "`kafka_log(TABLE(SELECT path …))`, all columns, one task",
    CONNECTOR: "Spark's Kafka connector, from a broker on this machine",
    "kafkaLog, 2 columns": "`kafkaLog`: sum of offsets, latest timestamp",
    "Parquet, 2 columns": "the same, Parquet",
    "kafkaLog, counted": "`kafkaLog`: number of rows, first and last offset",
    "Parquet, counted": "the same, Parquet",
    "explode": "`explode(kafka_records(content))`",
    "explode, 2 columns": "`explode(kafka_records(content, 'offset,timestamp'))`",
    "batches": "batches counted, checksums checked",
    "noop": "rows read, none written",
    "kafkaLog by key": "`kafkaLog`, by key",
    "kafkaLog, zstd": "`kafkaLog`, by a column partition, zstd",
}
SPARK_WRITERS = SPARK_SUBJECTS | {
    "kafkaLog": "`kafkaLog`, by a column partition",
    "Parquet, none": "Parquet, uncompressed",
    "Parquet, zstd": "Parquet, zstd",
}
TWO_FIELDS = "kafkajit, two of ten fields"
TEN_SCHEMAS = "kafkajit, ten schemas by turns"
VALUES = {
    "avro": "Avro, ten fields",
    "avro-nested": "Avro, lists and maps",
    "protobuf": "Protobuf, ten fields",
    "json": "JSON, ten fields",
}
UPKEEP = {
    "index": "a segment whose indexes are gone",
    "compact": "compaction",
    "compact-lz4": "compaction, lz4",
}
EXPORTS = {"parquet": "uncompressed", "parquet-zstd": "zstd"}

GREP = "kafkajit grep -c"
SEARCHES = {"none": "uncompressed", "lz4": "lz4", "zstd": "zstd"}

Result = dict[str, Any]


def text(name: str, result: Result) -> str:
    """One comparison as plain text, printed while measuring."""
    lines = [f"\n{name}: {describe(result)}"]
    if name == "memory":
        above = result["peak"] - result["imported"]
        lines.append(f"  peak {_mb(result['peak'])}, {_mb(above)} above that of the import")
        return "\n".join(lines)
    rows = dict(result["seconds"])
    if set(FLOOR) <= rows.keys():
        parts = [rows[part] for part in FLOOR]
        rows["floor"] = {how: sum(part[how] for part in parts) for how in ("median", "best")}
    return "\n".join([*lines, ratios(result | {"seconds": rows})])


def ratios(result: Result) -> str:
    """A line for each subject: seconds, times the first one's, GB/s where that is known."""
    known = "plainBytes" in result
    lines = [f"  {'':36}{'median s':>9}{'best s':>9}{'ratio':>8}{'GB/s' * known:>8}".rstrip()]
    first = next(iter(result["seconds"].values()))["median"]
    for subject, seconds in result["seconds"].items():
        median, best = seconds["median"], seconds["best"]
        speed = f"{result['plainBytes'] / median / 1e9:8.2f}" if known else ""
        lines.append(f"  {subject:36}{median:9.3f}{best:9.3f}{median / first:8.2f}{speed}")
    return "\n".join(lines)


def median_of(result: Result, subject: str) -> float | None:
    """The seconds that a subject, or the limit, takes; None if it did not take part."""
    seconds = result["seconds"]
    if subject == LIMIT:
        parts = FLOOR if set(FLOOR) <= seconds.keys() else (CODEC,)
    else:
        parts = (subject,)
    if not set(parts) <= seconds.keys():
        return None
    return float(sum(seconds[part]["median"] for part in parts))


def gigabytes_a_second(result: Result, subject: str) -> float | None:
    """The speed in GB/s of uncompressed log."""
    median = median_of(result, subject)
    return None if median is None else result["plainBytes"] / median / 1e9


def reads(record: Record) -> dict[str, dict[str, Any]]:
    """The comparisons that read records."""
    return {
        name: result
        for name, result in record["comparisons"].items()
        if name != "memory" and not name.startswith(("dump", "encode"))
    }


def writes(record: Record) -> dict[str, dict[str, Any]]:
    """The comparisons that write records."""
    return {
        name: result for name, result in record["comparisons"].items() if name.startswith("encode")
    }


class _Headline(NamedTuple):
    """One row of the summary: two subjects of a comparison in one kind of the record."""

    task: str
    kind: str
    comparison: str
    ours: str
    theirs: str
    called: str


HEADLINES = (
    _Headline("read records", "comparisons", "p100", US, "Java, copy", "Kafka's Java reader"),
    _Headline("read records, zstd", "comparisons", "zstd", US, "Java, copy", "Kafka's Java reader"),
    _Headline("write batches", "comparisons", "encode", US, "Java", "Kafka's MemoryRecordsBuilder"),
    _Headline("print keys and values", "comparisons", "dump", US, DUMPER, "kafka-dump-log.sh"),
    _Headline(
        "compact a log",
        "upkeep",
        "compact",
        "kafkajit.compact, written and synced",
        "Kafka's Cleaner",
        "Kafka's Cleaner",
    ),
    _Headline(
        "query in Spark, local[2]",
        "spark",
        "table",
        "kafkaLog",
        CONNECTOR,
        "Spark's Kafka connector",
    ),
)


def _summary(record: Record) -> str:
    """The first table of the README: seconds of kafkajit and of its peer."""
    rows = []
    for line in HEADLINES:
        result = record[line.kind].get(line.comparison, {"seconds": {}})  # type: ignore[literal-required]
        if {line.ours, line.theirs} <= result["seconds"].keys():
            ours, theirs = (float(median_of(result, who) or 0) for who in (line.ours, line.theirs))
            rows.append(
                [
                    f"{line.task}, {_mb(result.get('plainBytes') or result['bytes'])}",
                    f"**{ours:.2f} s**",
                    f"{line.called}: {theirs:.2f} s",
                    _times(theirs / ours),
                ]
            )
    return _table(["", US, "compared with", ""], rows)


def _versus(record: Record) -> str:
    """The alternatives to kafkajit, with the two figures that matter."""
    found = []
    dump = record["comparisons"].get("dump")
    if dump and DUMPER in dump["seconds"]:
        times = _times(dump["seconds"][DUMPER]["median"] / dump["seconds"][US]["median"])
        found.append(
            "- **kafka-dump-log.sh** prints text. kafkajit prints the same text byte for byte, "
            f"{times} as fast and without a JVM, and also gives you columns and SQL."
        )
    table = record["spark"].get("table")
    if table and CONNECTOR in table["seconds"]:
        seconds = table["seconds"]
        times = _times(seconds[CONNECTOR]["median"] / seconds["kafkaLog"]["median"])
        found.append(
            "- **Spark's Kafka connector** needs a running broker and reads through a consumer. "
            f"kafkajit reads the files, {times} as fast, and puts no load on the cluster."
        )
    return "\n".join(found)


def _reading(record: Record) -> str:
    found = {name: result for name, result in reads(record).items() if name != "headers-as-values"}
    return _speeds("Reading records, one core, GB/s", found, READERS)


def _writing(record: Record) -> str:
    return _speeds("Writing records, one core, batches of 16 KB, GB/s", writes(record), WRITERS)


def _speeds(title: str, found: Mapping[str, Result], subjects: Sequence[str]) -> str:
    columns = [
        subject
        for subject in subjects
        if any(median_of(result, subject) is not None for result in found.values())
    ]
    rows = [
        [describe(result), *(_speed(result, subject) for subject in columns)]
        for result in found.values()
    ]
    return _table([title, *columns], rows)


def _speed(result: Result, subject: str) -> str:
    speed = gigabytes_a_second(result, subject)
    if speed is None:
        return ""
    if subject == US:
        return f"**{speed:.2f}**"
    return f"{speed:.2f} ({_times(median_of(result, subject) / median_of(result, US))})"


def _limits(record: Record) -> str:
    """Milliseconds, so that the parts add up."""
    rows = []
    for result in reads(record).values():
        limit = median_of(result, LIMIT)
        if limit is None or CODEC in result["seconds"]:
            continue
        parts = [median_of(result, subject) for subject in (US, VIEWS, *FLOOR)]
        shown = ["" if part is None else f"{part * 1e3:.1f}" for part in (*parts, limit)]
        rows.append([describe(result), *shown, f"{median_of(result, US) / limit:.2f}"])
    heads = ["ms", US, "binary_view", *FLOOR, "floor", "ours ÷ floor"]
    return _table(heads, rows)


def _headers(record: Record) -> str:
    known = record["comparisons"]
    if not {"headers", "headers-as-values"} <= known.keys():
        return ""
    with_headers, as_values = known["headers"], known["headers-as-values"]
    ours = [result["seconds"][US]["median"] for result in (with_headers, as_values)]
    each = (ours[0] - ours[1]) / with_headers["records"] * 1e9
    return (
        f"{with_headers['headers']} headers a record take kafkajit {_times(ours[0] / ours[1])} as "
        f"long as the same bytes as values: {ours[0] * 1e3:.0f} ms and {ours[1] * 1e3:.0f} ms, "
        f"{each:.0f} ns a record more."
    )


def _dumping(record: Record) -> str:
    known = record["comparisons"]
    rows = [
        [
            f"{flags}, {describe(known[name])}",
            *(f"{known[name]['seconds'][who]['median']:.2f}" for who in (US, DUMPER)),
            _times(median_of(known[name], DUMPER) / median_of(known[name], US)),
        ]
        for name, flags in DUMPS.items()
        if name in known and DUMPER in known[name]["seconds"]
    ]
    return _table(["Dumping text, start to end, s", US, "DumpLogSegments", ""], rows)


def _memory(record: Record) -> str:
    memory = record["comparisons"].get("memory")
    if memory is None:
        return ""
    return (
        f"Peak memory of `iter_records` over a file of {_mb(memory['bytes'])}: "
        f"{_mb(memory['peak'] - memory['imported'])} above the import's."
    )


def _spark(record: Record) -> str:
    """Every comparison but that of writing."""
    rows = [
        [label, _mb(result["bytes"]), *seconds]
        for name, result in record["spark"].items()
        if name != "write"
        for label, *seconds in _spark_rows(result, SPARK_SUBJECTS)
    ]
    versions = {result["with"].get("Spark", "") for result in record["spark"].values()} - {""}
    spark = " and ".join(["Spark", *sorted(versions)]).replace(" and ", " ", 1)
    return _table([f"In {spark}, local[2], warm, s", "of", "median", "best"], rows)


def _spark_writing(record: Record) -> str:
    result = record["spark"].get("write")
    if result is None:
        return ""
    title = f"Writing {result['records'] / 1e6:.3g} M rows in Spark, local[2], warm, s"
    return _table([title, "median", "best"], _spark_rows(result, SPARK_WRITERS))


def _spark_rows(result: Result, names: Mapping[str, str]) -> list[list[str]]:
    """Rows with a readable name, median and best, in the order of the names."""
    order = [*names, *result["seconds"]]
    connector = result["with"].get("Spark of the connector")
    if connector:
        names = {**names, CONNECTOR: f"{names[CONNECTOR]}, in Spark {connector}"}
    return [
        [names.get(subject, subject), *(f"{seconds[how]:.2f}" for how in ("median", "best"))]
        for subject, seconds in sorted(
            result["seconds"].items(), key=lambda item: order.index(item[0])
        )
    ]


def _upkeep(record: Record) -> str:
    rows = []
    for name, result in record["upkeep"].items():
        first = next(iter(result["seconds"].values()))["median"]
        rows += [
            [
                f"{UPKEEP[name]}, {_mb(result['bytes'])}: {subject}",
                *(f"{seconds[how]:.2f}" for how in ("median", "best")),
                _times(seconds["median"] / first),
            ]
            for subject, seconds in result["seconds"].items()
        ]
    return _table(["Changing logs, one core, s", "median", "best", ""], rows)


def _export(record: Record) -> str:
    rows = []
    for name, result in record["export"].items():
        first = next(iter(result["seconds"].values()))["median"]
        rows += [
            [
                f"{EXPORTS[name]}, {_mb(result['bytes'])} of log: {subject}",
                *(f"{seconds[how]:.2f}" for how in ("median", "best")),
                _times(seconds["median"] / first),
            ]
            for subject, seconds in result["seconds"].items()
        ]
    return _table(["Writing Parquet, one core, s", "median", "best", ""], rows)


def _grep(record: Record) -> str:
    rows = []
    for result in record["grep"].values():
        first = result["seconds"][GREP]["median"]
        for subject, seconds in result["seconds"].items():
            speed = result["plainBytes"] / seconds["median"] / 1e9
            name = f"{describe(result)}: `{subject}`".replace(", start to end`", "`, start to end")
            numbers = [f"{seconds['median']:.2f}", f"{speed:.2f}"]
            rows.append([name, *numbers, _times(seconds["median"] / first)])
    return _table(["Searching for a key, one core", "s", "GB/s before compression", ""], rows)


def _growth(record: Record) -> str:
    if not record["growth"]:
        return ""
    chart = "![Time against size, batches, records, files and splits](performance/growth.svg)"
    return f"{chart}\n\n{tables(record['growth'])}"


def _values(record: Record) -> str:
    return values_table(record["values"])


def values_table(results: Mapping[str, Result]) -> str:
    """A row for each reader of each format."""
    rows = []
    for name, title in VALUES.items():
        if name not in results:
            continue
        result = results[name]
        ours = result["seconds"][US]["median"]
        for subject, seconds in result["seconds"].items():
            median = seconds["median"]
            speed = f"{result['bytes'] / median:,.0f}"
            ratio = "" if subject == US else _times(median / ours)
            rows.append([f"{title}: {subject}", f"{median * 1e3:,.0f}", speed, ratio])
    return _table(("", "ns a value", "MB/s", "of kafkajit's time"), rows)


def values_speed(result: Result, subject: str) -> float:
    """MB/s of encoded values."""
    return float(result["bytes"] / result["seconds"][subject]["median"])


def _machine(record: Record) -> str:
    """The versions of all measurements; several values if parts are of different days."""
    found: dict[str, dict[str, None]] = {}
    for kind in KINDS:
        for result in record[kind].values():
            for name, value in result["with"].items():
                found.setdefault(name, {})[value] = None
    parts = [f"{name} {' and '.join(values)}" for name, values in found.items()]
    return f"Measured with: {', '.join(parts)}."


SECTIONS: dict[str, Callable[[Record], str]] = {
    "versus": _versus,
    "summary": _summary,
    "reading": _reading,
    "limits": _limits,
    "headers": _headers,
    "writing": _writing,
    "dumping": _dumping,
    "memory": _memory,
    "spark": _spark,
    "spark-writing": _spark_writing,
    "upkeep": _upkeep,
    "export": _export,
    "grep": _grep,
    "growth": _growth,
    "values": _values,
    "machine": _machine,
}


def sections(record: Record) -> dict[str, str]:
    """The text of each section that a page may contain."""
    return {name: write(record) or "*Not recorded yet.*" for name, write in SECTIONS.items()}


def describe(result: Result) -> str:
    """Describe what is read or written, for a table's first column."""
    codec = "" if result["codec"] == "none" else f", {result['codec']}"
    headers = f" + {result['headers']} headers" if result.get("headers") else ""
    magic = f"v{result['magic']}, " if result.get("magic", 2) < 2 else ""
    size = f"{result['records'] / 1e6:.3g} M × {result['valueSize']} B{headers}"
    return f"{magic}{size}{codec}, {_mb(result['bytes'])}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; empty without rows."""
    if not rows:
        return ""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _times(ratio: float) -> str:
    return f"{two_digits(ratio)}×"


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
