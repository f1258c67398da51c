package kafkajit;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Tells each scan of a micro-batch which columns the query needs, at the end of Spark's optimizer:
 * Spark itself prunes no columns of streams. The scan still has all columns, of which those that are
 * not needed are NULL. So plans remain equal or different as Spark has made them: Spark compares two
 * scans of a stream by nothing but the stream.
 */
public class StreamColumns extends Rule {
  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).transformDown(new Asking());
  }

  static class Asking extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      return plan instanceof Project && asked((Project) plan) != null;
    }

    public Object applyOrElse(Object plan, Function1 otherwise) {
      LogicalPlan found = plan instanceof Project ? asked((Project) plan) : null;
      return found != null ? found : otherwise.apply(plan);
    }
  }

  /** A projection of a stream that asks for its columns; null if it is not such, or does already. */
  private static LogicalPlan asked(Project project) {
    AttributeSet needed = project.references();
    List filters = new ArrayList(); // from the projection down
    LogicalPlan leaf = project.child();
    while (leaf instanceof Filter) {
      filters.add(leaf);
      needed = needed.$plus$plus(leaf.references());
      leaf = ((Filter) leaf).child();
    }
    if (!(leaf instanceof StreamingDataSourceV2ScanRelation)) {
      return null;
    }
    StreamingDataSourceV2ScanRelation scan = (StreamingDataSourceV2ScanRelation) leaf;
    if (!(scan.stream() instanceof LogStream) || scan.endOffset().isEmpty()
        || scan.endOffset().get() instanceof AskedOffset) {
      return null;
    }
    List columns = new ArrayList();
    List output = Explosion.list(scan.output());
    for (int i = 0; i < output.size(); i++) {
      if (needed.contains((Attribute) output.get(i))) {
        columns.add(((Attribute) output.get(i)).name());
      }
    }
    LogicalPlan found =
        scan.copy(
            scan.relation(),
            scan.scan(),
            scan.output(),
            scan.stream(),
            scan.startOffset(),
            Option.apply(new AskedOffset((Offset) scan.endOffset().get(), columns)));
    for (int i = filters.size() - 1; i >= 0; i--) {
      found = new Filter(((Filter) filters.get(i)).condition(), found);
    }
    return new Project(project.projectList(), found);
  }
}
