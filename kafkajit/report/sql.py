"""For each group of figures the SQL that gives them: statements for `kafkajit sql --path PATH`.

That of groups counts commits of aborted transactions, too, without --isolation-level
read_committed.
"""

from __future__ import annotations

QUERIES = {
    "topics": (
        "SELECT topic, count(DISTINCT partition) AS partitions, sum(sizeInBytes) AS bytes, "
        "sum(recordsCount) FILTER (WHERE NOT isControlBatch) AS records, count(*) AS batches "
        "FROM batches GROUP BY topic ORDER BY bytes DESC"
    ),
    "skew": (
        "SELECT topic, max(bytes) / avg(bytes) AS skew FROM (SELECT topic, partition, "
        "sum(sizeInBytes) AS bytes FROM batches GROUP BY topic, partition) GROUP BY topic"
    ),
    "partitions": (
        "SELECT topic, partition, sum(sizeInBytes) AS bytes, coalesce(min(try_cast(left("
        "element_at(split(path, '/'), -1), 20) AS BIGINT)), min(baseOffset)) AS startOffset, "
        "max(lastOffset) + 1 AS endOffset, "
        "max(maxTimestamp) FILTER (WHERE NOT isControlBatch) AS lastTimestamp FROM batches "
        "GROUP BY topic, partition ORDER BY topic, partition"
    ),
    "life": (
        "SELECT topic, date_trunc('HOUR', maxTimestamp) AS hour, sum(sizeInBytes) AS bytes, "
        "sum(recordsCount) FILTER (WHERE NOT isControlBatch) AS records FROM batches "
        "GROUP BY topic, hour ORDER BY topic, hour"
    ),
    "codecs": (
        "SELECT topic, compressionType, count(*) AS batches, sum(recordsCount) AS records, "
        "sum(sizeInBytes) AS bytes FROM batches GROUP BY topic, compressionType"
    ),
    "formats": "SELECT topic, magic, count(*) AS batches FROM batches GROUP BY topic, magic",
    "sizes": (
        "SELECT topic, percentile(recordsCount, array(0.5, 0.9, 0.99)) AS records, "
        "percentile(sizeInBytes, array(0.5, 0.9, 0.99)) AS bytes FROM batches "
        "WHERE NOT isControlBatch GROUP BY topic"
    ),
    "producers": (
        "SELECT topic, count(DISTINCT producerId) FILTER (WHERE producerId >= 0) AS producers, "
        "count_if(isTransactional AND NOT isControlBatch) AS transactionalBatches, "
        "count_if(isControlBatch) AS controlBatches, "
        "count(DISTINCT partitionLeaderEpoch) AS leaderEpochs FROM batches GROUP BY topic"
    ),
    "timestamps": (
        "SELECT topic, count_if(maxTimestamp < earlier) AS batchesBack, "
        "count_if(maxTimestamp > now()) AS batchesAhead FROM (SELECT topic, maxTimestamp, "
        "max(maxTimestamp) OVER (PARTITION BY topic, partition ORDER BY baseOffset "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier FROM batches) GROUP BY topic"
    ),
    "retention": (
        "SELECT topic, sum(bytes) AS bytes FROM (SELECT topic, path, sum(sizeInBytes) AS bytes "
        "FROM batches GROUP BY topic, partition, path "
        "HAVING max(maxTimestamp) < now() - INTERVAL 7 DAYS) GROUP BY topic"
    ),
    "compaction": (
        "SELECT topic, sum(records - 1) AS records FROM (SELECT topic, partition, key, "
        "count(*) AS records FROM records WHERE key IS NOT NULL AND controlType IS NULL "
        "GROUP BY topic, partition, key) GROUP BY topic"
    ),
    "idle": (
        "SELECT topic, max(maxTimestamp) FILTER (WHERE NOT isControlBatch) AS lastTimestamp "
        "FROM batches GROUP BY topic ORDER BY lastTimestamp"
    ),
    "keys": (
        "SELECT topic, count(*) AS records, count_if(key IS NULL) AS nullKeys, "
        "count_if(value IS NULL) AS tombstones, approx_count_distinct(key) AS distinctKeys "
        "FROM records WHERE controlType IS NULL GROUP BY topic"
    ),
    "groups": (
        "SELECT groupId, topic, partition, max_by(committedOffset, recordOffset) AS offset, "
        "max_by(commitTimestamp, recordOffset) AS committedAt FROM consumer_offsets "
        "GROUP BY groupId, topic, partition HAVING NOT max_by(isDeleted, recordOffset)"
    ),
    "trouble": "SELECT * FROM corruption",
    "indexes": "SELECT path, problem FROM indexes WHERE problems > 0",
}
