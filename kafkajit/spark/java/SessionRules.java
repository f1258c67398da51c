package kafkajit;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/** The rules that the optimizer of a session gets. */
public class SessionRules {
  /** Adds those that a session does not have. */
  public void addTo(SparkSession session) {
    Rule[] ours = {new ExplodedFiles(), new StreamColumns()};
    List rules = new ArrayList(Explosion.list(session.experimental().extraOptimizations()));
    for (int i = 0; i < ours.length; i++) {
      boolean isThere = false;
      for (int j = 0; j < rules.size(); j++) {
        isThere |= rules.get(j).getClass().getName().equals(ours[i].getClass().getName());
      }
      if (!isThere) {
        rules.add(ours[i]);
      }
    }
    session.experimental().extraOptimizations_$eq(Explosion.seq(rules));
  }
}
