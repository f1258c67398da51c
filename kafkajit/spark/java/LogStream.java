package kafkajit;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamWithTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceOffset;

/**
 * The Python source's stream, with metrics, which Spark does not ask a Python source for. They come
 * with the latest offsets, which Spark asks for as soon as it has the end of a micro-batch.
 */
class LogStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final PythonMicroBatchStreamWithTriggerAvailableNow python;
  private Offset planned; // the end of the newest micro-batch
  private Map metrics = Collections.emptyMap(); // of a stream that has read up to there

  LogStream(PythonMicroBatchStreamWithTriggerAvailableNow python) {
    this.python = python;
  }

  public Offset latestOffset() {
    return python.latestOffset();
  }

  public Offset latestOffset(Offset start, ReadLimit limit) {
    metrics = Collections.emptyMap();
    planned = python.latestOffset(start, limit);
    return planned;
  }

  /** The offsets of the report that Python makes for this class. */
  public Offset reportLatestOffset() {
    Offset reported = python.reportLatestOffset();
    if (reported == null) {
      return null;
    }
    try {
      Map report = (Map) JSON.readValue(reported.json(), Map.class);
      metrics = (Map) report.get("metrics");
      return new PythonStreamingSourceOffset(JSON.writeValueAsString(report.get("offsets")));
    } catch (JsonProcessingException error) {
      throw new IllegalStateException(reported.json(), error);
    }
  }

  /** There are none of a micro-batch that an earlier run of the query has planned. */
  public Map metrics(Optional consumed) {
    boolean isNewest = planned != null && consumed.isPresent() && planned.equals(consumed.get());
    return isNewest ? metrics : Collections.emptyMap();
  }

  public void prepareForTriggerAvailableNow() {
    python.prepareForTriggerAvailableNow();
  }

  public ReadLimit getDefaultReadLimit() {
    return python.getDefaultReadLimit();
  }

  public Offset initialOffset() {
    return python.initialOffset();
  }

  public Offset deserializeOffset(String json) {
    return python.deserializeOffset(json);
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return python.planInputPartitions(start, end);
  }

  public PartitionReaderFactory createReaderFactory() {
    return python.createReaderFactory();
  }

  public void commit(Offset end) {
    python.commit(end);
  }

  public void stop() {
    python.stop();
  }
}
