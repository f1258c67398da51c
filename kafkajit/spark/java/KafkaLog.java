package kafkajit;

import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The data source kafkaLog as Spark's planner sees it. The Python source of the same name knows the
 * columns, plans the tasks and reads the rows; this class asks it for one scan at a time.
 *
 * Janino compiles these sources: no lambdas, no diamonds, and erased types where a method overrides
 * a generic one.
 */
public class KafkaLog implements TableProvider, DataSourceRegister {
  static final String NAME = "kafkaLog";
  static final String ENABLED = "spark.kafkajit.bridge.enabled";

  /** Spark keeps a Python source's first plan in this object, so each scan gets its own. */
  static PythonDataSourceV2 python() {
    PythonDataSourceV2 source = new PythonDataSourceV2();
    source.setShortName(NAME);
    return source;
  }

  public String shortName() {
    return NAME;
  }

  public boolean supportsExternalMetadata() {
    return true;
  }

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return python().inferSchema(options);
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    Table table = python().getTable(schema, partitioning, properties);
    boolean isEnabled = SQLConf.get().getConfString(ENABLED, "true").equalsIgnoreCase("true");
    return isEnabled ? new LogTable(schema, table) : table;
  }

  /** Reads through the bridge; writes and streams are the Python source's. */
  static class LogTable implements Table, SupportsRead, SupportsWrite {
    private final StructType schema;
    private final Table python;

    LogTable(StructType schema, Table python) {
      this.schema = schema;
      this.python = python;
    }

    public String name() {
      return NAME;
    }

    public StructType schema() {
      return schema;
    }

    public Set capabilities() {
      Set all = EnumSet.copyOf(python.capabilities());
      all.add(TableCapability.OVERWRITE_DYNAMIC);
      return all;
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return new LogScanBuilder(schema, options);
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new LogWriteBuilder((SupportsWrite) python, info);
    }
  }

  /** A table that brings its options and is not written to, so the Python source has none for it. */
  static class ReadOnlyTable extends LogTable {
    private final String name;
    private final CaseInsensitiveStringMap options;

    ReadOnlyTable(String name, StructType schema, CaseInsensitiveStringMap options) {
      super(schema, null);
      this.name = name;
      this.options = options;
    }

    public String name() {
      return name;
    }

    public Set capabilities() {
      return EnumSet.of(TableCapability.BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
      Map all = new HashMap(options.asCaseSensitiveMap());
      all.putAll(given.asCaseSensitiveMap());
      return super.newScanBuilder(new CaseInsensitiveStringMap(all));
    }
  }
}
