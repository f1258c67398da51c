"""What SQL gets from us, by name. Nothing of Spark is imported here: that takes a second."""

from __future__ import annotations

import pyarrow as pa

from kafkajit.schema import BATCHES_TYPE, CORRUPTIONS_TYPE, LOG_PATH_TYPE, RECORDS_TYPE

# function: what it returns
FUNCTIONS: dict[str, pa.DataType] = {
    "kafka_records": RECORDS_TYPE,
    "try_kafka_records": RECORDS_TYPE,
    "kafka_record_batches": BATCHES_TYPE,
    "try_kafka_record_batches": BATCHES_TYPE,
    "kafka_corruption": CORRUPTIONS_TYPE,
    "kafka_valid_bytes": pa.int64(),
    "try_kafka_valid_bytes": pa.int64(),
    "kafka_log_path": LOG_PATH_TYPE,
}

TABLE_FUNCTION = "kafka_log"
