package kafkajit;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.LogicalWriteInfoImpl;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The Python source writes; this class tells it which partitions an overwrite replaces. As in
 * Spark's file sources, the option of the write decides, and then the setting of the session.
 */
class LogWriteBuilder implements SupportsTruncate, SupportsDynamicOverwrite {
  private static final String MODE = "partitionOverwriteMode";

  private final SupportsWrite python;
  private final LogicalWriteInfo info;
  private String mode;

  LogWriteBuilder(SupportsWrite python, LogicalWriteInfo info) {
    this.python = python;
    this.info = info;
  }

  public WriteBuilder truncate() {
    mode = SQLConf.get().getConfString("spark.sql.sources." + MODE, "static");
    return this;
  }

  /** An INSERT OVERWRITE under the session's setting. */
  public WriteBuilder overwriteDynamicPartitions() {
    mode = "dynamic";
    return this;
  }

  public Write build() {
    if (mode == null) {
      return python.newWriteBuilder(info).build();
    }
    Map options = new HashMap(info.options().asCaseSensitiveMap());
    if (!info.options().containsKey(MODE)) {
      options.put(MODE, mode);
    }
    LogicalWriteInfo completed = new LogicalWriteInfoImpl(
        info.queryId(), info.schema(), new CaseInsensitiveStringMap(options), info.rowIdSchema(),
        info.metadataSchema());
    return ((SupportsTruncate) python.newWriteBuilder(completed)).truncate().build();
  }
}
