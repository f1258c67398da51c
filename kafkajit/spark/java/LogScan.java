package kafkajit;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One scan of a table: these columns, under these conditions. */
class LogScan implements Scan, Batch {
  private final StructType columns;
  private final StructType read;
  private final String pushed;
  private final CaseInsensitiveStringMap options;
  private Scan python;
  private Batch batch;

  LogScan(
      StructType columns, StructType read, String pushed, CaseInsensitiveStringMap options) {
    this.columns = columns;
    this.read = read;
    this.pushed = pushed;
    this.options = options;
  }

  /** The Python source's scan of the same rows. */
  private synchronized Scan python() {
    if (python == null) {
      python = new PythonScanBuilder(KafkaLog.python(), KafkaLog.NAME, read, options).build();
    }
    return python;
  }

  private synchronized Batch batch() {
    if (batch == null) {
      batch = python().toBatch();
    }
    return batch;
  }

  public StructType readSchema() {
    return columns;
  }

  public String description() {
    return "kafkaLog by columns, conditions: " + pushed;
  }

  public Batch toBatch() {
    return this;
  }

  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    return python().toMicroBatchStream(checkpointLocation);
  }

  public CustomMetric[] supportedCustomMetrics() {
    return new CustomMetric[0];
  }

  public InputPartition[] planInputPartitions() {
    return batch().planInputPartitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    return new ColumnReaderFactory(
        (PythonPartitionReaderFactory) batch().createReaderFactory(), columns.length());
  }

  /** Scans that read the same rows may share a result. */
  public boolean equals(Object other) {
    if (!(other instanceof LogScan)) {
      return false;
    }
    LogScan that = (LogScan) other;
    return columns.equals(that.columns) && options.equals(that.options);
  }

  public int hashCode() {
    return columns.hashCode() * 31 + options.hashCode();
  }
}
