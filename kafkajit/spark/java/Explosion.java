package kafkajit;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetArrayStructFields;
import org.apache.spark.sql.catalyst.expressions.Inline;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PosExplode;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.binaryfile.BinaryFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** The plan below a generator while it is rebuilt over a scan of the files. */
class Explosion {
  /** The option that hands the files to the Python source, as JSON. */
  static final String FILES = "kafkajit.files";

  /** The columns of binaryFile that a scan of its files can have, too. */
  private static final StructType FILE_COLUMNS =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("modificationTime", DataTypes.TimestampType, false)
          .add("length", DataTypes.LongType, false);

  /** Parts of the pickled function: the module that makes it, and its name as pickle has it. */
  private static final String MODULE = "kafkajit.spark.columns";
  private static final String FUNCTION = "kafka_records";
  private static final String PICKLED = "\u008c" + (char) FUNCTION.length() + FUNCTION;

  private final Set contents = new HashSet(); // the expression ids that stand for the content
  private final Map arrays = new HashMap(); // those that stand for its records, or one field
  private final List fields = new ArrayList(); // the columns of the record
  private final Attribute place; // of the record in its file
  private LogicalPlan plan;

  static Explosion of(LogicalRelation leaf, List nodes) {
    PythonUDF function = null;
    for (int i = 0; i < nodes.size(); i++) {
      if (nodes.get(i) instanceof ArrowEvalPython) {
        Seq udfs = ((ArrowEvalPython) nodes.get(i)).udfs();
        if (function != null || udfs.length() != 1) {
          return null;
        }
        function = (PythonUDF) udfs.head();
      }
    }
    if (function == null || !isOurs(function) || leaf.isStreaming()) {
      return null;
    }
    Map options = optionsOf(function);
    String files = options == null ? null : filesOf(leaf);
    if (files == null) {
      return null;
    }
    options.put(FILES, files);
    Explosion explosion = new Explosion(leaf, function, options);
    for (int i = 0; i < nodes.size(); i++) {
      if (!explosion.add((LogicalPlan) nodes.get(i))) {
        return null;
      }
    }
    return explosion;
  }

  private Explosion(LogicalRelation leaf, PythonUDF function, Map options) {
    StructType record = (StructType) ((ArrayType) function.dataType()).elementType();
    StructType schema = record;
    for (int i = 0; i < FILE_COLUMNS.length(); i++) {
      schema = schema.add(FILE_COLUMNS.apply(i));
    }
    schema = schema.add("pos", DataTypes.IntegerType, false);
    String asked = (String) options.remove("columns");
    CaseInsensitiveStringMap given = new CaseInsensitiveStringMap(options);
    Table table = new KafkaLog.ReadOnlyTable(KafkaLog.NAME, schema, given);
    plan =
        DataSourceV2Relation$.MODULE$.create(
            table, Option.empty(), Option.empty(), given, Option.empty());
    List output = list(plan.output());
    List columns = new ArrayList();
    for (int i = 0; i < record.length(); i++) {
      StructField field = record.apply(i);
      boolean isAsked = asked == null || asked.contains("," + field.name() + ",");
      Expression value =
          isAsked ? (Expression) output.get(i) : Literal.create(null, field.dataType());
      Alias column = alias(value, field.name(), NamedExpression$.MODULE$.newExprId());
      columns.add(column);
      fields.add(column.toAttribute());
    }
    place = (Attribute) output.get(schema.length() - 1);
    columns.add(place);
    List known = list(leaf.output());
    for (int i = 0; i < known.size(); i++) {
      Attribute attribute = (Attribute) known.get(i);
      if (attribute.name().equals("content")) {
        contents.add(attribute.exprId());
      }
      Option place = FILE_COLUMNS.getFieldIndex(attribute.name());
      if (place.isDefined()) {
        int at = record.length() + ((Integer) place.get()).intValue();
        columns.add(alias((Expression) output.get(at), attribute.name(), attribute.exprId()));
      }
    }
    plan = new Project(seq(columns), plan);
  }

  /** Puts a node of the old plan on top of the new one; false if it is not known. */
  private boolean add(LogicalPlan node) {
    if (node instanceof ArrowEvalPython) {
      ArrowEvalPython evaluation = (ArrowEvalPython) node;
      Object content = ((PythonUDF) evaluation.udfs().head()).children().head();
      if (!(content instanceof Attribute) || !contents.contains(id(content))) {
        return false;
      }
      arrays.put(id(evaluation.resultAttrs().head()), "");
      return true;
    }
    if (node instanceof Filter) {
      Expression condition = ((Filter) node).condition();
      plan = new Filter(condition, plan);
      return isKnown(condition);
    }
    List columns = new ArrayList();
    List listed = list(((Project) node).projectList());
    for (int i = 0; i < listed.size(); i++) {
      NamedExpression column = (NamedExpression) listed.get(i);
      Object value = column instanceof Alias ? ((Alias) column).child() : column;
      if (value instanceof Attribute && contents.contains(id(value))) {
        contents.add(column.exprId());
      } else if (fieldOf(value) != null) {
        arrays.put(column.exprId(), fieldOf(value));
      } else if (isKnown((Expression) column)) {
        columns.add(column);
      } else {
        return false;
      }
    }
    columns.addAll(fields);
    columns.add(place);
    plan = new Project(seq(columns), plan);
    return true;
  }

  /** The field that an expression takes out of all records, "" for whole records, or null. */
  private String fieldOf(Object expression) {
    if (expression instanceof Attribute) {
      return (String) arrays.get(id(expression));
    }
    if (expression instanceof GetArrayStructFields) {
      GetArrayStructFields taken = (GetArrayStructFields) expression;
      return "".equals(fieldOf(taken.child())) ? taken.field().name() : null;
    }
    return null;
  }

  private boolean isKnown(Expression expression) {
    return expression.deterministic()
        && !expression.exists(new IsPlan())
        && expression.references().subsetOf((AttributeSet) plan.outputSet());
  }

  /** The new plan in place of the generator, with the same columns. */
  LogicalPlan over(Generate generate) {
    Object array = ((Expression) generate.generator()).children().head();
    String field = fieldOf(array);
    if (field == null) {
      return null;
    }
    List columns = new ArrayList();
    List required = list(generate.requiredChildOutput());
    for (int i = 0; i < required.size(); i++) {
      if (!isKnown((Expression) required.get(i))) {
        return null;
      }
      columns.add(required.get(i));
    }
    List made = new ArrayList(list(generate.generatorOutput()));
    if (generate.generator() instanceof PosExplode) {
      columns.add(renamed(place, made.remove(0)));
    }
    if (generate.generator() instanceof Inline) {
      if (!field.isEmpty() || made.size() != fields.size()) {
        return null;
      }
      for (int i = 0; i < made.size(); i++) {
        columns.add(renamed((Expression) fields.get(i), made.get(i)));
      }
      return new Project(seq(columns), plan);
    }
    List parts = new ArrayList();
    Expression taken = null;
    for (int i = 0; i < fields.size(); i++) {
      Attribute part = (Attribute) fields.get(i);
      parts.add(Literal.create(part.name(), DataTypes.StringType));
      parts.add(part);
      taken = part.name().equals(field) ? part : taken;
    }
    Expression element = field.isEmpty() ? new CreateNamedStruct(seq(parts)) : taken;
    if (element == null || made.size() != 1) {
      return null;
    }
    columns.add(renamed(element, made.get(0)));
    return new Project(seq(columns), plan);
  }

  private static Alias renamed(Expression value, Object as) {
    return alias(value, ((Attribute) as).name(), id(as));
  }

  static class IsPlan extends AbstractFunction1 {
    public Object apply(Object part) {
      return Boolean.valueOf(part instanceof PlanExpression);
    }
  }

  /** Whether a function is kafkajit's kafka_records, and not another of that name. */
  private static boolean isOurs(PythonUDF function) {
    Object pickled = function.func().command().toArray(ClassTag$.MODULE$.Byte());
    String text = new String((byte[]) pickled, StandardCharsets.ISO_8859_1);
    return function.name().equals(FUNCTION) && text.contains(MODULE) && text.contains(PICKLED);
  }

  /** The options in the literals of a call: columns as ",a,b,", and the mode; null if not known. */
  private static Map optionsOf(PythonUDF function) {
    StructType record = (StructType) ((ArrayType) function.dataType()).elementType();
    String[] names = {"content", "columns", "mode"};
    Map options = new HashMap();
    List arguments = list(function.children());
    for (int i = 1; i < arguments.size(); i++) {
      Object argument = arguments.get(i);
      String name = i < names.length ? names[i] : "";
      if (argument instanceof NamedArgumentExpression) {
        name = ((NamedArgumentExpression) argument).key();
        argument = ((NamedArgumentExpression) argument).value();
      }
      if (!(argument instanceof Literal)) {
        return null;
      }
      Object value = ((Literal) argument).value();
      if (value == null) {
        continue;
      }
      String text = value.toString();
      if (name.equals("mode")) {
        String mode = text.toUpperCase();
        if (!mode.equals("FAILFAST") && !mode.equals("DROPMALFORMED")) {
          return null;
        }
        options.put("mode", mode);
      } else if (name.equals("columns")) {
        String[] columns = text.split(",", -1);
        StringBuilder known = new StringBuilder(",");
        for (int j = 0; j < columns.length; j++) {
          String column = columns[j].trim();
          if (record.getFieldIndex(column).isEmpty() || known.indexOf("," + column + ",") >= 0) {
            return null;
          }
          known.append(column).append(",");
        }
        options.put("columns", known.toString());
      } else {
        return null;
      }
    }
    return options;
  }

  /** The local files of a relation as JSON, [path, local path, size, milliseconds]; or null. */
  private static String filesOf(LogicalRelation leaf) {
    if (!(leaf.relation() instanceof HadoopFsRelation)) {
      return null;
    }
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    if (!(relation.fileFormat() instanceof BinaryFileFormat)
        || relation.partitionSchema().length() > 0
        || relation.options().contains("ignoreMissingFiles")
        || relation.options().contains("ignoreCorruptFiles")) {
      return null;
    }
    StringBuilder json = new StringBuilder("[");
    Seq none = seq(new ArrayList());
    List folders =
        list(relation.location().listFiles(
            (scala.collection.immutable.Seq) none, (scala.collection.immutable.Seq) none));
    for (int i = 0; i < folders.size(); i++) {
      List files = list(((PartitionDirectory) folders.get(i)).files());
      for (int j = 0; j < files.size(); j++) {
        FileStatusWithMetadata file = (FileStatusWithMetadata) files.get(j);
        if (!"file".equals(file.getPath().toUri().getScheme())) {
          return null; // pyarrow may not have the access that Hadoop's file system has
        }
        json.append(json.length() > 1 ? ", [" : "[")
            .append(QueryJson.quoted(file.getPath().toString())).append(", ")
            .append(QueryJson.quoted(file.getPath().toUri().getPath())).append(", ")
            .append(file.getLen()).append(", ")
            .append(file.getModificationTime()).append("]");
      }
    }
    return json.append("]").toString();
  }

  private static Alias alias(Expression value, String name, ExprId id) {
    scala.collection.immutable.Seq none = seq(Collections.emptyList());
    return new Alias(value, name, id, none, Option.empty(), none);
  }

  private static ExprId id(Object attribute) {
    return ((NamedExpression) attribute).exprId();
  }

  static List list(Seq found) {
    return CollectionConverters.asJava(found);
  }

  static scala.collection.immutable.Seq seq(List found) {
    return CollectionConverters.asScala(found).toSeq();
  }
}
