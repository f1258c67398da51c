package kafkajit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;

/** Parts of a query as JSON for the Python source; null for those that only Spark can judge. */
class QueryJson {
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

  private QueryJson() {}

  /** A condition as [column, test, value, negated]. */
  static String condition(Predicate predicate) {
    return condition(predicate, false);
  }

  private static String condition(Predicate predicate, boolean negated) {
    Expression[] children = predicate.children();
    if (predicate.name().equals("NOT") && !negated && children[0] instanceof Predicate) {
      return condition((Predicate) children[0], true);
    }
    if (predicate.name().equals("IS_NOT_NULL") && !negated) {
      // Spark adds it to every test of a column. No file is dropped by that of another column.
      String tested = column(children[0]);
      return LogScanBuilder.PLACES.contains(tested)
          ? "[" + quoted(tested) + ", \"isnotnull\", null, false]" : null;
    }
    String test = (String) TESTS.get(predicate.name());
    boolean isList = "in".equals(test);
    if (test == null || children.length < 2 || (children.length > 2 && !isList)) {
      return null;
    }
    String column = column(children[0]);
    List values = new ArrayList();
    for (int i = 1; i < children.length; i++) {
      String value = children[i] instanceof Literal ? value((Literal) children[i]) : null;
      if (value == null) {
        return null;
      }
      values.add(value);
    }
    return column == null ? null
        : "[" + quoted(column) + ", " + quoted(test) + ", "
            + (isList ? values.toString() : (String) values.get(0)) + ", " + negated + "]";
  }

  /** The name of the column that a condition tests. */
  static String tested(Predicate predicate) {
    Expression child = predicate.children()[0];
    return child instanceof Predicate ? tested((Predicate) child) : column(child);
  }

  /** An aggregate as [function, column]; the column is null for a count of rows. */
  static String aggregate(AggregateFunc function) {
    if (function instanceof CountStar) {
      return "[\"count\", null]";
    }
    String column = aggregated(function);
    return column == null ? null : "[" + quoted(name(function)) + ", " + quoted(column) + "]";
  }

  /** The column that an aggregate is made of. */
  static String aggregated(AggregateFunc function) {
    return name(function) == null || function.children().length != 1 ? null
        : column(function.children()[0]);
  }

  /** The name of a function whose results Spark can combine. */
  static String name(AggregateFunc function) {
    if (function instanceof Min) {
      return "min";
    }
    if (function instanceof Max) {
      return "max";
    }
    if (function instanceof Count && !((Count) function).isDistinct()) {
      return "count";
    }
    return function instanceof Sum && !((Sum) function).isDistinct() ? "sum" : null;
  }

  /** The name of a column; null for a field of a struct and for any other expression. */
  static String column(Expression expression) {
    if (!(expression instanceof NamedReference)) {
      return null;
    }
    String[] names = ((NamedReference) expression).fieldNames();
    return names.length == 1 ? names[0] : null;
  }

  /** A literal; a timestamp is an object with its microseconds. */
  private static String value(Literal literal) {
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

  static String quoted(String text) {
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
