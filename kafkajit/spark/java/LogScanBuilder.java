package kafkajit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Collects what one scan needs: its columns, and the conditions that its rows must meet. */
class LogScanBuilder
    implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
  /** The option that hands the conditions to the Python source, as JSON. */
  static final String CONDITIONS = "kafkajit.conditions";

  private static final String CORRUPTION = "corruption";
  private static final Map TESTS = new HashMap();

  static {
    TESTS.put("=", "=");
    TESTS.put("<", "<");
    TESTS.put("<=", "<=");
    TESTS.put(">", ">");
    TESTS.put(">=", ">=");
    TESTS.put("IN", "in");
    TESTS.put("STARTS_WITH", "startswith");
    TESTS.put("ENDS_WITH", "endswith");
    TESTS.put("CONTAINS", "contains");
  }

  private final StructType schema;
  private final CaseInsensitiveStringMap options;
  private StructType columns;
  private final List conditions = new ArrayList();
  private final List pushed = new ArrayList();

  LogScanBuilder(StructType schema, CaseInsensitiveStringMap options) {
    this.schema = schema;
    this.columns = schema;
    this.options = options;
  }

  /** Keeps the columns that are asked for, whole: Spark may ask for a part of a struct. */
  public void pruneColumns(StructType required) {
    columns = new StructType();
    String[] names = required.fieldNames();
    for (int i = 0; i < names.length; i++) {
      columns = columns.add(schema.apply(names[i]));
    }
  }

  /** Keeps the conditions that can drop files, batches or rows; Spark judges all of them too. */
  public Predicate[] pushPredicates(Predicate[] predicates) {
    for (int i = 0; i < predicates.length; i++) {
      String condition = asJson(predicates[i], false);
      if (condition != null) {
        conditions.add(condition);
        pushed.add(predicates[i]);
      }
    }
    return predicates;
  }

  public Predicate[] pushedPredicates() {
    return (Predicate[]) pushed.toArray(new Predicate[pushed.size()]);
  }

  public Scan build() {
    Map all = new HashMap(options.asCaseSensitiveMap());
    all.put(CONDITIONS, conditions.toString());
    return new LogScan(columns, read(), pushed.toString(), new CaseInsensitiveStringMap(all));
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

  /** A condition as [column, test, value, negated]; null if only Spark can judge it. */
  private static String asJson(Predicate predicate, boolean negated) {
    Expression[] children = predicate.children();
    if (predicate.name().equals("NOT") && !negated && children[0] instanceof Predicate) {
      return asJson((Predicate) children[0], true);
    }
    String test = (String) TESTS.get(predicate.name());
    boolean isList = "in".equals(test);
    if (test == null || children.length < 2 || (children.length > 2 && !isList)
        || !(children[0] instanceof NamedReference)) {
      return null;
    }
    String[] names = ((NamedReference) children[0]).fieldNames();
    List values = new ArrayList();
    for (int i = 1; i < children.length; i++) {
      String value = children[i] instanceof Literal ? asJson((Literal) children[i]) : null;
      if (value == null) {
        return null;
      }
      values.add(value);
    }
    // Fields of a struct are left to Spark.
    return names.length != 1 ? null
        : "[" + quoted(names[0]) + ", " + quoted(test) + ", "
            + (isList ? values.toString() : (String) values.get(0)) + ", " + negated + "]";
  }

  /** A value in JSON, a timestamp as an object with its microseconds; null for other types. */
  private static String asJson(Literal literal) {
    DataType type = literal.dataType();
    Object value = literal.value();
    if (value == null) {
      return null;
    }
    if (type instanceof LongType || type instanceof IntegerType) {
      return value.toString();
    }
    if (type instanceof TimestampType) {
      return "{\"microseconds\": " + value + "}";
    }
    return type instanceof StringType ? quoted(value.toString()) : null;
  }

  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
        out.append(c);
      } else {
        out.append(String.format("\\u%04x", new Object[] {Integer.valueOf(c)}));
      }
    }
    return out.append('"').toString();
  }
}
