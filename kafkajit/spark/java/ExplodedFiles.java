package kafkajit;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Inline;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.PosExplode;
import org.apache.spark.sql.catalyst.optimizer.CollapseProject$;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.optimizer.SimplifyExtractValueOps$;
import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.V2ScanRelationPushDown$;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Turns explode(kafka_records(content)) over binaryFile into a scan of the same files by columns, at
 * the end of Spark's optimizer. A plan that it does not know in every part stays as it is.
 */
public class ExplodedFiles extends Rule {
  public TreeNode apply(TreeNode plan) {
    LogicalPlan given = (LogicalPlan) plan;
    SQLConf conf = SQLConf.get();
    boolean isEnabled = conf.getConfString(KafkaLog.ENABLED, "true").equalsIgnoreCase("true");
    if (!isEnabled || conf.ignoreMissingFiles() || conf.ignoreCorruptFiles()) {
      return plan;
    }
    try {
      LogicalPlan found = (LogicalPlan) given.transformDown(new Rewriting());
      return found == given || given.exists(new NamesFiles()) ? given : pruned(found);
    } catch (RuntimeException error) {
      return plan; // a plan that Spark has made in another way than this class expects
    }
  }

  private static LogicalPlan pruned(LogicalPlan plan) {
    LogicalPlan before = null;
    while (before == null || !before.fastEquals(plan)) {
      before = plan;
      plan = PushDownPredicates$.MODULE$.apply(plan);
      plan = CollapseProject$.MODULE$.apply(plan);
      plan = SimplifyExtractValueOps$.MODULE$.apply(plan);
      plan = ColumnPruning$.MODULE$.apply(plan);
    }
    return V2ScanRelationPushDown$.MODULE$.apply(plan);
  }

  /** Rewrites each plan of an explosion that is known in every part. */
  static class Rewriting extends AbstractPartialFunction {
    public boolean isDefinedAt(Object plan) {
      return plan instanceof Generate && rewritten((Generate) plan) != null;
    }

    /** What Spark calls: one look at each plan, because a look lists the files. */
    public Object applyOrElse(Object plan, Function1 otherwise) {
      LogicalPlan found = plan instanceof Generate ? rewritten((Generate) plan) : null;
      return found != null ? found : otherwise.apply(plan);
    }
  }

  /** Whether a node asks for the file that Spark's own readers read, which this scan does not set. */
  static class NamesFiles extends AbstractFunction1 {
    public Object apply(Object node) {
      List expressions = Explosion.list(((LogicalPlan) node).expressions());
      for (int i = 0; i < expressions.size(); i++) {
        if (((Expression) expressions.get(i)).exists(new NamesFile())) {
          return Boolean.TRUE;
        }
      }
      return Boolean.FALSE;
    }
  }

  static class NamesFile extends AbstractFunction1 {
    public Object apply(Object part) {
      return Boolean.valueOf(
          part instanceof InputFileName
              || part instanceof InputFileBlockStart
              || part instanceof InputFileBlockLength);
    }
  }

  private static LogicalPlan rewritten(Generate generate) {
    Object generator = generate.generator();
    boolean isKnown =
        generator instanceof Explode
            || generator instanceof PosExplode
            || generator instanceof Inline;
    if (generate.outer() || !isKnown) {
      return null;
    }
    List nodes = new ArrayList(); // between the generator and the files, from the files up
    LogicalPlan leaf = generate.child();
    while (leaf instanceof Project || leaf instanceof Filter || leaf instanceof ArrowEvalPython) {
      nodes.add(0, leaf);
      leaf = (LogicalPlan) leaf.children().head();
    }
    if (!(leaf instanceof LogicalRelation)) {
      return null;
    }
    Explosion explosion = Explosion.of((LogicalRelation) leaf, nodes);
    return explosion == null ? null : explosion.over(generate);
  }
}
