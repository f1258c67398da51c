package kafkajit;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportOrdering;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamWithTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One scan of a table: these columns, under these conditions. */
class LogScan
    implements Scan,
        Batch,
        SupportsReportStatistics,
        SupportsReportPartitioning,
        SupportsReportOrdering,
        SupportsRuntimeV2Filtering {
  /** The option that hands the conditions to the Python source, as JSON. */
  static final String CONDITIONS = "kafkajit.conditions";

  /** The option that makes one task of each partition. */
  private static final String ONE_TASK = "oneTaskPerPartition";

  /** The option by which the Python source knows that these classes are of its version. */
  private static final String SOURCES = "kafkajit.sources";

  /** The option that says how many tasks run at once. */
  private static final String PARALLELISM = "kafkajit.parallelism";

  /** Reading a rest of so many bytes takes less time than starting a worker. */
  private static final long SMALL = 4 << 20;

  /** Begins the plan's totals in the first task of the Python source: the bytes, and a text. */
  private static final String TOTALS = "kafkajit reads ";

  /** Begins the note in a task that reads a partition as a whole: the partition, and the topic. */
  private static final String WHOLE = "kafkajit keeps together ";

  private final StructType columns;
  private final StructType read;
  private final CaseInsensitiveStringMap options;
  private final List conditions;
  private final String description;
  private Batch batch;
  private InputPartition[] tasks;
  private boolean isStream;
  private byte[] function; // by which tasks of a stream read, pickled
  private String totals; // of the planned tasks, "12345: 3 files, 12,345 bytes", if there are any

  LogScan(
      StructType columns,
      StructType read,
      CaseInsensitiveStringMap options,
      List conditions,
      String description) {
    this.columns = columns;
    this.read = read;
    this.options = options;
    this.conditions = new ArrayList(conditions);
    this.description = description;
  }

  /** A scan of the same rows by the Python source. */
  private Scan python() {
    return new PythonScanBuilder(KafkaLog.python(), KafkaLog.NAME, read, given()).build();
  }

  /** The options of the Python source. */
  private CaseInsensitiveStringMap given() {
    Map all = new HashMap(options.asCaseSensitiveMap());
    all.put(CONDITIONS, conditions.toString());
    all.put(PARALLELISM, parallelism());
    all.put(SOURCES, Version.SOURCES);
    return new CaseInsensitiveStringMap(all);
  }

  /** The number of tasks that Spark itself would make of data without a size of its own. */
  private static String parallelism() {
    SparkSession session = SparkSession.active();
    return session.conf().get("spark.sql.leafNodeDefaultParallelism",
        String.valueOf(session.sparkContext().defaultParallelism()));
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
    return "kafkaLog by columns, " + description
        + (totals == null ? "" : ", reads: " + totals.substring(totals.indexOf(':') + 2));
  }

  public Batch toBatch() {
    return this;
  }

  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    isStream = true;
    MicroBatchStream stream = python().toMicroBatchStream(checkpointLocation);
    // One that only reports an error is of another class.
    return stream instanceof PythonMicroBatchStreamWithTriggerAvailableNow
        ? new LogStream((PythonMicroBatchStreamWithTriggerAvailableNow) stream, columns, options)
        : stream;
  }

  /** A task of a micro-batch that reads the columns of this scan. */
  StreamTask task(int index, byte[] pickled) {
    if (function == null) {
      function =
          KafkaLog.python().getOrCreateReadInfo(KafkaLog.NAME, given(), read, true).func();
    }
    return new StreamTask(new PythonInputPartition(index, pickled), read, function);
  }

  public CustomMetric[] supportedCustomMetrics() {
    return new CustomMetric[0];
  }

  public synchronized InputPartition[] planInputPartitions() {
    if (tasks == null) {
      tasks = batch().planInputPartitions();
      totals = tasks.length == 0 ? null : noted(tasks[0], TOTALS);
      if (isByPartition()) {
        tasks = byPartition(tasks);
      }
    }
    return tasks;
  }

  /** Tasks with their partitions; none in place of one that reads nothing. */
  private static InputPartition[] byPartition(InputPartition[] tasks) {
    List found = new ArrayList();
    for (int i = 0; i < tasks.length; i++) {
      String of = noted(tasks[i], WHOLE);
      if (of != null) {
        found.add(new PartitionTask(tasks[i], of));
      }
    }
    return (InputPartition[]) found.toArray(new InputPartition[found.size()]);
  }

  /** The note of the Python source in one of its tasks, without its first words; or null. */
  private static String noted(InputPartition task, String words) {
    byte[] pickled = ((PythonInputPartition) task).pickedPartition();
    String text = new String(pickled, StandardCharsets.ISO_8859_1);
    int start = text.lastIndexOf(words); // the note is the last part
    return start < 0 ? null : text.substring(start + words.length(), text.indexOf(';', start));
  }

  /** Whether each task reads a partition as a whole. Python refuses other texts by name. */
  private boolean isByPartition() {
    return !isStream && "true".equalsIgnoreCase(options.get(ONE_TASK));
  }

  /** Whether it does, and rows have the partition's name. */
  private boolean hasWholePartitions() {
    List names = Arrays.asList(columns.fieldNames());
    return isByPartition() && names.containsAll(LogScanBuilder.PLACES);
  }

  public Partitioning outputPartitioning() {
    if (!hasWholePartitions()) {
      return new UnknownPartitioning(0);
    }
    Expression[] keys = new Expression[LogScanBuilder.PLACES.size()];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = Expressions.identity((String) LogScanBuilder.PLACES.get(i));
    }
    return new KeyGroupedPartitioning(keys, planInputPartitions().length);
  }

  /**
   * The order of a partition's rows, which Python checks while it reads them. Under PERMISSIVE the
   * rows that report damage have no offset.
   */
  public SortOrder[] outputOrdering() {
    List names = Arrays.asList(columns.fieldNames());
    String offset = names.contains("offset") ? "offset" : "baseOffset";
    boolean isPermissive = "PERMISSIVE".equalsIgnoreCase(options.get("mode"));
    if (!names.contains(offset) || isPermissive || !hasWholePartitions()) {
      return new SortOrder[0];
    }
    SortOrder[] order = new SortOrder[LogScanBuilder.PLACES.size() + 1];
    for (int i = 0; i < order.length; i++) {
      String name = i == order.length - 1 ? offset : (String) LogScanBuilder.PLACES.get(i);
      order[i] = Expressions.sort(Expressions.column(name), SortDirection.ASCENDING);
    }
    return order;
  }

  public PartitionReaderFactory createReaderFactory() {
    return new ColumnReaderFactory(
        (PythonPartitionReaderFactory) batch().createReaderFactory(),
        columns.length(),
        options.getLong(LogScanBuilder.LIMIT, Long.MAX_VALUE),
        estimateStatistics().sizeInBytes().orElse(Long.MAX_VALUE) < SMALL);
  }

  /**
   * The size of the scan is that of the bytes to read; a small one is broadcast to a join. Spark asks
   * for the size of a stream's micro-batches, too, before it has one.
   */
  public Statistics estimateStatistics() {
    if (!isStream) {
      planInputPartitions();
    }
    return new Size(
        totals == null
            ? OptionalLong.empty()
            : OptionalLong.of(Long.parseLong(totals.substring(0, totals.indexOf(':')))));
  }

  /** The columns whose values, once the other side of a join is known, can drop files. */
  public NamedReference[] filterAttributes() {
    List found = new ArrayList();
    for (int i = 0; i < LogScanBuilder.PLACES.size(); i++) {
      String name = (String) LogScanBuilder.PLACES.get(i);
      if (Arrays.asList(columns.fieldNames()).contains(name)) {
        found.add(Expressions.column(name));
      }
    }
    return (NamedReference[]) found.toArray(new NamedReference[found.size()]);
  }

  /** Plans anew under conditions that the rest of the query has found while it ran. */
  public synchronized void filter(Predicate[] predicates) {
    for (int i = 0; i < predicates.length; i++) {
      String condition = QueryJson.condition(predicates[i]);
      if (condition != null) {
        conditions.add(condition);
        batch = null;
        tasks = null;
        totals = null;
      }
    }
  }

  /** Scans that read the same rows may share a result. */
  public boolean equals(Object other) {
    if (!(other instanceof LogScan)) {
      return false;
    }
    LogScan that = (LogScan) other;
    return columns.equals(that.columns)
        && options.equals(that.options)
        && conditions.equals(that.conditions);
  }

  public int hashCode() {
    return columns.hashCode() * 31 + options.hashCode();
  }

  /** The size of a scan, without a number of rows. */
  static class Size implements Statistics {
    private final OptionalLong bytes;

    Size(OptionalLong bytes) {
      this.bytes = bytes;
    }

    public OptionalLong sizeInBytes() {
      return bytes;
    }

    public OptionalLong numRows() {
      return OptionalLong.empty();
    }
  }
}
