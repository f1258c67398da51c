package kafkajit;

import java.util.List;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * The end of a micro-batch in one scan of it, with the names of the columns that are asked for. Spark
 * hands a stream nothing else of a scan.
 */
class AskedOffset extends Offset {
  final Offset offset;
  final List columns;

  AskedOffset(Offset offset, List columns) {
    this.offset = offset;
    this.columns = columns;
  }

  /** Another text than that of the offset: Spark compares offsets, and so plans, by it. */
  public String json() {
    return offset.json() + " of " + columns;
  }
}
