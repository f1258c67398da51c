package kafkajit;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.types.StructType;

/** A task of a micro-batch, and the columns that Python reads in it. */
class StreamTask implements InputPartition {
  final PythonInputPartition python;
  final StructType read;
  final byte[] function;

  /** The function is the pickled one that reads these columns. */
  StreamTask(PythonInputPartition python, StructType read, byte[] function) {
    this.python = python;
    this.read = read;
    this.function = function;
  }
}
