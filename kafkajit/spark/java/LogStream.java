package kafkajit;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
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
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceOffset;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The Python source's stream, with metrics and read by columns, which Spark does not ask a Python
 * source for. The metrics come with the latest offsets, for which Spark asks as soon as it has the end
 * of a micro-batch. StreamColumns asks for columns.
 */
class LogStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final PythonMicroBatchStreamWithTriggerAvailableNow python;
  private final StructType columns;
  private final CaseInsensitiveStringMap options;
  private final Map scans = new HashMap(); // by the names of their columns
  private Offset planned; // the end of the newest micro-batch
  private Map metrics = Collections.emptyMap(); // of a stream that has read up to there

  LogStream(
      PythonMicroBatchStreamWithTriggerAvailableNow python,
      StructType columns,
      CaseInsensitiveStringMap options) {
    this.python = python;
    this.columns = columns;
    this.options = options;
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
    boolean isAsked = end instanceof AskedOffset;
    List asked = isAsked ? ((AskedOffset) end).columns : Arrays.asList(columns.fieldNames());
    InputPartition[] tasks =
        python.planInputPartitions(start, isAsked ? ((AskedOffset) end).offset : end);
    InputPartition[] found = new InputPartition[tasks.length];
    for (int i = 0; i < tasks.length; i++) {
      PythonStreamingInputPartition task = (PythonStreamingInputPartition) tasks[i];
      found[i] = scanOf(asked).task(task.index(), task.pickedPartition());
    }
    return found;
  }

  /** A scan of these columns, whose read function Python pickles once. */
  private synchronized LogScan scanOf(List names) {
    LogScan found = (LogScan) scans.get(names);
    if (found == null) {
      StructType asked = new StructType();
      for (int i = 0; i < names.size(); i++) {
        asked = asked.add(columns.apply((String) names.get(i)));
      }
      LogScanBuilder builder = new LogScanBuilder(columns, options);
      builder.pruneColumns(asked);
      found = (LogScan) builder.build();
      scans.put(names, found);
    }
    return found;
  }

  public PartitionReaderFactory createReaderFactory() {
    return new StreamReaderFactory(
        (PythonStreamingPartitionReaderFactory) python.createReaderFactory(), columns);
  }

  public void commit(Offset end) {
    python.commit(end);
  }

  public void stop() {
    python.stop();
  }
}
