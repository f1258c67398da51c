package kafkajit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Collects what one scan needs: its columns, its conditions, or its aggregates. */
class LogScanBuilder
    implements ScanBuilder,
        SupportsPushDownRequiredColumns,
        SupportsPushDownV2Filters,
        SupportsPushDownAggregates,
        SupportsPushDownLimit {
  /** The option that hands the aggregates to the Python source, as JSON. */
  static final String AGGREGATES = "kafkajit.aggregates";

  /** The option that hands the limit to the Python source. */
  static final String LIMIT = "kafkajit.limit";

  /** The columns that all rows of a file share. */
  static final List PLACES = Arrays.asList(new String[] {"topic", "partition"});

  private static final String OPTIONS = "kafkaLog.options";
  private static final String CORRUPTION = "corruption";

  private final StructType schema;
  private final CaseInsensitiveStringMap options;
  private StructType columns;
  private StructType aggregates;
  private String aggregatesAsJson;
  private String shownAggregates;
  private Integer limit;
  private final List conditions = new ArrayList();
  private final List pushed = new ArrayList();

  LogScanBuilder(StructType schema, CaseInsensitiveStringMap options) {
    this.schema = schema;
    this.columns = schema;
    this.options = options;
  }

  /** Keeps the columns that are asked for, and of structs the parts that are asked for. */
  public void pruneColumns(StructType required) {
    columns = new StructType();
    for (int i = 0; i < required.length(); i++) {
      StructField part = required.apply(i);
      StructField whole = schema.apply(part.name()); // Spark drops the metadata of a part
      columns =
          columns.add(part.name(), part.dataType(), whole.nullable(), whole.metadata());
    }
  }

  /**
   * Keeps the conditions that can drop files, batches or rows. Spark judges these too, but for
   * conditions on the topic or partition, which all rows of a file share.
   */
  public Predicate[] pushPredicates(Predicate[] predicates) {
    List left = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      String condition = QueryJson.condition(predicates[i]);
      if (condition != null) {
        conditions.add(condition);
        pushed.add(predicates[i]);
      }
      if (condition == null || !isOfKindWithPlaces()
          || !PLACES.contains(QueryJson.tested(predicates[i]))) {
        left.add(predicates[i]);
      }
    }
    return (Predicate[]) left.toArray(new Predicate[left.size()]);
  }

  public Predicate[] pushedPredicates() {
    return (Predicate[]) pushed.toArray(new Predicate[pushed.size()]);
  }

  /** Lets each task return aggregates of its own rows, if Python aggregates as Spark does. */
  public boolean pushAggregation(Aggregation aggregation) {
    if (!isOfKindWithPlaces()) {
      return false;
    }
    StructType found = new StructType();
    List by = new ArrayList();
    Expression[] groups = aggregation.groupByExpressions();
    for (int i = 0; i < groups.length; i++) {
      String name = QueryJson.column(groups[i]);
      if (!PLACES.contains(name)) {
        return false;
      }
      by.add(QueryJson.quoted(name));
      found = found.add(schema.apply(name));
    }
    List of = new ArrayList();
    AggregateFunc[] functions = aggregation.aggregateExpressions();
    for (int i = 0; i < functions.length; i++) {
      DataType type = typeOf(functions[i]);
      if (type == null) {
        return false;
      }
      of.add(QueryJson.aggregate(functions[i]));
      found = found.add("aggregate" + i, type);
    }
    aggregates = found;
    shownAggregates =
        Arrays.asList(functions) + (groups.length > 0 ? " by " + Arrays.asList(groups) : "");
    aggregatesAsJson = "{\"by\": " + by + ", \"of\": " + of + "}";
    return true;
  }

  /** Lets each task end after so many rows; Spark takes as many of all tasks. */
  public boolean pushLimit(int rows) {
    limit = Integer.valueOf(rows);
    return true;
  }

  /** The type of an aggregate; null if it is left to Spark. */
  private DataType typeOf(AggregateFunc function) {
    String json = QueryJson.aggregate(function);
    if (json == null) {
      return null;
    }
    String column = QueryJson.aggregated(function);
    if (column == null) {
      return DataTypes.LongType; // a count of rows
    }
    DataType type = schema.apply(column).dataType();
    String name = QueryJson.name(function);
    if (name.equals("sum")) { // that of INTs cannot overflow
      return type.equals(DataTypes.IntegerType) ? DataTypes.LongType : null;
    }
    if (!type.equals(DataTypes.IntegerType) && !type.equals(DataTypes.LongType)
        && !type.equals(DataTypes.TimestampType) && !PLACES.contains(column)) {
      return null;
    }
    return name.equals("count") ? DataTypes.LongType : type;
  }

  /**
   * Whether the table has records or batches, whose topic and partition are those of their file. A
   * table made by CREATE TABLE has its kind in the metadata of its columns, and may be of any.
   */
  private boolean isOfKindWithPlaces() {
    String kind = (String) options.getOrDefault("kind", "records");
    boolean isCreated = schema.length() > 0 && schema.apply(0).metadata().contains(OPTIONS);
    return !isCreated && !options.containsKey(Explosion.FILES)
        && (kind.equals("records") || kind.equals("batches"));
  }

  public Scan build() {
    Map all = new HashMap(options.asCaseSensitiveMap());
    String shown = "conditions: " + pushed;
    if (aggregates != null) {
      all.put(AGGREGATES, aggregatesAsJson);
      shown += ", aggregates: " + shownAggregates;
    }
    if (limit != null) {
      all.put(LIMIT, limit.toString());
      shown += ", limit: " + limit;
    }
    CaseInsensitiveStringMap asked = new CaseInsensitiveStringMap(all);
    return aggregates != null
        ? new LogScan(aggregates, aggregates, asked, conditions, shown)
        : new LogScan(columns, read(), asked, conditions, shown);
  }

  /**
   * The columns that the Python source reads: for a count of rows the cheapest. Under PERMISSIVE
   * the table has a row for each damaged stretch, so the column that makes these rows is read too.
   */
  private StructType read() {
    StructType read = columns;
    if (read.length() == 0) {
      read = read.add(cheapest());
    }
    if (has(schema, CORRUPTION) && !has(read, CORRUPTION)) {
      read = read.add(schema.apply(CORRUPTION));
    }
    return read;
  }

  private StructField cheapest() {
    String[] names = {"offset", "baseOffset"};
    for (int i = 0; i < names.length; i++) {
      if (has(schema, names[i])) {
        return schema.apply(names[i]);
      }
    }
    return schema.apply(0);
  }

  private static boolean has(StructType schema, String name) {
    return Arrays.asList(schema.fieldNames()).contains(name);
  }
}
