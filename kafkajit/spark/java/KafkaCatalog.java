package kafkajit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/**
 * A catalog whose tables are topics, spark.sql.catalog.NAME = kafkajit.KafkaCatalog: NAME.orders has
 * the records of a topic, NAME.orders.batches and the like its other kinds. It is read-only.
 */
public class KafkaCatalog implements TableCatalog, SupportsNamespaces {
  /** Options of the Python source: what to list as the names of a schema, and the table's topic. */
  private static final String LIST = "kafkajit.list";
  private static final String TOPIC = "kafkajit.topic";
  private static final String NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND";
  private static final Option NONE = Option.apply(null);
  /** How many names an error has. */
  private static final int MOST_NAMES = 10;

  private String name;
  private Map options;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.options = options.asCaseSensitiveMap();
    if (!options.containsKey("path") && !options.containsKey("paths")) {
      throw new IllegalArgumentException(
          "the catalog " + name + " has no path: set spark.sql.catalog." + name
              + ".path to a log.dirs folder, such as /var/kafka");
    }
  }

  public String name() {
    return name;
  }

  private CaseInsensitiveStringMap with(String key, String value, String kind) {
    Map all = new HashMap(options);
    all.put(key, value);
    if (kind != null) {
      all.put("kind", kind);
    }
    return new CaseInsensitiveStringMap(all);
  }

  /** The names of all topics, or of all kinds, as the Python source knows them. */
  private List listed(String what) {
    return Arrays.asList(KafkaLog.python().inferSchema(with(LIST, what, null)).fieldNames());
  }

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    check(namespace);
    List names = listed(namespace.length == 0 ? "topics" : "kinds");
    Identifier[] found = new Identifier[names.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = Identifier.of(namespace, (String) names.get(i));
    }
    return found;
  }

  public boolean tableExists(Identifier identifier) {
    String[] namespace = identifier.namespace();
    return namespace.length == 0
        ? listed("topics").contains(identifier.name())
        : namespaceExists(namespace) && listed("kinds").contains(identifier.name());
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    if (!tableExists(identifier)) {
      Platform.throwException(notFound(identifier));
    }
    String[] namespace = identifier.namespace();
    boolean isTopic = namespace.length == 0;
    String topic = isTopic ? identifier.name() : namespace[0];
    String kind = isTopic ? "records" : identifier.name();
    CaseInsensitiveStringMap given = with(TOPIC, topic, camelCase(kind));
    StructType schema = KafkaLog.python().inferSchema(given);
    String shown = name + "." + topic + (isTopic ? "" : "." + kind);
    return new KafkaLog.ReadOnlyTable(shown, schema, given);
  }

  /**
   * A NoSuchTableException would not do: Spark then takes the catalog's name for that of a data
   * source, and says of a catalog called kafka that its Kafka connector is not installed.
   */
  private AnalysisException notFound(Identifier identifier) {
    String[] namespace = identifier.namespace();
    boolean isTopic = namespace.length == 0 || !namespaceExists(namespace);
    String missing = namespace.length == 0 ? identifier.name() : String.join(".", namespace);
    String text = isTopic
        ? "the catalog " + name + " has no topic " + missing + nearest(missing, listed("topics"))
        : "the topic " + namespace[0] + " has no table " + identifier.name()
            + nearest(identifier.name(), listed("kinds"));
    scala.collection.immutable.Map relation = new scala.collection.immutable.Map.Map1(
        "relationName", name + "." + identifier);
    return new AnalysisException(
        "[" + NOT_FOUND + "] " + text, NONE, NONE, NONE, Option.apply(NOT_FOUND), relation,
        new QueryContext[0]);
  }

  /** The names most like one that is missing. */
  private static String nearest(String missing, List names) {
    final UTF8String text = UTF8String.fromString(missing);
    List sorted = new ArrayList(names);
    sorted.sort(new Comparator() {
      public int compare(Object left, Object right) {
        return distance(left) - distance(right);
      }

      private int distance(Object name) {
        return text.levenshteinDistance(UTF8String.fromString((String) name));
      }
    });
    int more = sorted.size() - MOST_NAMES;
    String shown = String.join(", ", more > 0 ? sorted.subList(0, MOST_NAMES) : sorted);
    return sorted.isEmpty() ? "" : "; there are: " + shown + (more > 0 ? " and " + more + " more" : "");
  }

  public Table loadTable(Identifier identifier, String version) {
    throw noVersions();
  }

  public Table loadTable(Identifier identifier, long timestamp) {
    throw noVersions();
  }

  private UnsupportedOperationException noVersions() {
    return new UnsupportedOperationException(
        "the catalog " + name + " has no versions of a table: read a part of a log with a condition "
            + "on offset or timestamp");
  }

  /** The data source's name of a kind: offset_index is offsetIndex. */
  private static String camelCase(String kind) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < kind.length(); i++) {
      char c = kind.charAt(i);
      if (c != '_') {
        boolean isBegun = i > 0 && kind.charAt(i - 1) == '_';
        out.append(isBegun ? Character.toUpperCase(c) : c);
      }
    }
    return out.toString();
  }

  private void check(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
  }

  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 0
        || (namespace.length == 1 && listed("topics").contains(namespace[0]));
  }

  public String[][] listNamespaces() {
    List topics = listed("topics");
    String[][] found = new String[topics.size()][];
    for (int i = 0; i < found.length; i++) {
      found[i] = new String[] {(String) topics.get(i)};
    }
    return found;
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    check(namespace);
    return namespace.length == 0 ? listNamespaces() : new String[0][];
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    check(namespace);
    return Collections.emptyMap();
  }

  public void createNamespace(String[] namespace, Map metadata) {
    throw readOnly();
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    throw readOnly();
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw readOnly();
  }

  public Table createTable(
      Identifier identifier, StructType schema, Transform[] partitions, Map properties) {
    throw readOnly();
  }

  public Table alterTable(Identifier identifier, TableChange[] changes) {
    throw readOnly();
  }

  public boolean dropTable(Identifier identifier) {
    throw readOnly();
  }

  public void renameTable(Identifier from, Identifier to) {
    throw readOnly();
  }

  private UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException(
        "the catalog " + name + " is read-only: write logs with df.write.format('kafkaLog')");
  }
}
