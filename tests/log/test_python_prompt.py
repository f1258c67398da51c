"""How plans, logs and segments show themselves in a Python prompt, and times as datetimes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import kafkajit
import kafkajit.testing as kt

ORDERS, PAYMENTS = f"{kt.SAMPLE}/orders-0", f"{kt.SAMPLE}/payments-0"
LOG = f"{0:020}.log"


def test_plans_are_one_line() -> None:
    plan = kafkajit.repair(ORDERS)
    assert repr(plan) == "<RepairPlan orders-0: 5 files to repair; print() shows all of it>"
    assert repr(plan.partitions[0]) == "<PartitionRepair orders-0: 5 files to repair>"
    several = kafkajit.repair(kt.SAMPLE)
    assert repr(several).startswith("<RepairPlan 3 partitions, something to do in 3;")
    retention = kafkajit.retain(PAYMENTS, config={"retention.bytes": 1})
    assert repr(retention).startswith("<RetentionPlan payments-0: 1 of 2 segments to delete;")
    compaction = kafkajit.compact(PAYMENTS, config={"cleanup.policy": "compact"})
    assert repr(compaction).startswith("<CompactionPlan payments-0: 100% of it dirty")


def test_logs_and_segments_are_one_line() -> None:
    log = kafkajit.Log(PAYMENTS)
    assert repr(log) == f"Log({PAYMENTS!r})"
    assert repr(log.segments[0]) == f"<Segment {PAYMENTS}/{LOG}, 539 bytes>"


def test_a_timestamp_may_be_a_datetime() -> None:
    log = kafkajit.Log(PAYMENTS)
    second = log.offset_for_timestamp(1762300800001)
    assert second is not None
    moment = datetime.fromtimestamp(second.timestamp / 1000, UTC)
    for same in (
        moment,
        moment.replace(tzinfo=None),
        moment.astimezone(timezone(timedelta(hours=5))),
    ):
        assert log.offset_for_timestamp(same) == second
    # A part of a millisecond later it is too late for that record.
    assert log.offset_for_timestamp(moment + timedelta(microseconds=1)) != second


def test_modes_may_be_in_any_case() -> None:
    log = kt.batch([kt.Record(value=b"v")]) + kt.broken("wrong crc", base_offset=1)
    table = kafkajit.read_records(log, mode="permissive")
    assert table.num_rows == 2
    assert "corruption" in table.column_names
    assert kafkajit.Log(PAYMENTS, mode="dropMalformed").end_offset == 27
    with pytest.raises(ValueError, match="unknown mode 'lenient'; there are: FAILFAST"):
        kafkajit.read_records(log, mode="lenient")


def test_a_folder_is_for_log_and_a_uri_is_a_path() -> None:
    for read in (kafkajit.read_records, kafkajit.iter_records, kafkajit.find_corruption):
        with pytest.raises(
            IsADirectoryError, match=r"is a folder.*: kafkajit.Log reads a partition"
        ):
            read(ORDERS)
        with pytest.raises(IsADirectoryError, match=r"kafkajit.Log reads a partition"):
            read("sample:orders-0")
    uri = f"file://{Path(ORDERS).absolute()}/{LOG}"
    assert kafkajit.read_records(uri).num_rows == kafkajit.read_records(f"{ORDERS}/{LOG}").num_rows
    for error, scheme in ((ValueError, "s3"), (FileNotFoundError, "hdfs")):
        with pytest.raises(error, match="a Path drops a slash of a URI"):
            kafkajit.read_records(Path(f"{scheme}://logs/orders-0") / LOG)
