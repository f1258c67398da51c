package kafkajit;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.unsafe.types.UTF8String;

/** A task that reads a partition as a whole, so that Spark need not bring its rows together. */
class PartitionTask implements InputPartition, HasPartitionKey {
  private final InputPartition python;
  private final int partition;
  private final String topic;

  /** The partition is given as its number, a space, and the topic, quoted as in a URL. */
  PartitionTask(InputPartition python, String of) {
    this.python = python;
    int space = of.indexOf(' ');
    this.partition = Integer.parseInt(of.substring(0, space));
    this.topic = URLDecoder.decode(of.substring(space + 1), StandardCharsets.UTF_8);
  }

  /** What the Python source has planned, of its own task or of such one. */
  static InputPartition python(InputPartition task) {
    return task instanceof PartitionTask ? ((PartitionTask) task).python : task;
  }

  /** The values of LogScanBuilder.PLACES. */
  public InternalRow partitionKey() {
    return new GenericInternalRow(
        new Object[] {UTF8String.fromString(topic), Integer.valueOf(partition)});
  }
}
