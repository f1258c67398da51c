package kafkajit;

import java.util.Collections;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.python.ArrowPythonRunner;
import org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Runs the Python source's read function in Spark's Python worker, and hands its Arrow columns to
 * Spark as they are. Spark's own factory makes a row of each.
 */
class ColumnReaderFactory implements PartitionReaderFactory {
  private final PythonPartitionReaderFactory python;
  private final int columns;
  private final long limit;
  private final boolean isSmall;

  /** Python ends after `limit` rows, which is Long.MAX_VALUE without a limit; a small scan soon. */
  ColumnReaderFactory(
      PythonPartitionReaderFactory python, int columns, long limit, boolean isSmall) {
    this.python = python;
    this.columns = columns;
    this.limit = limit;
    this.isSmall = isSmall;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    return python.createReader(PartitionTask.python(partition));
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    MapInBatchEvaluatorFactory evaluator =
        python.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$source
            .createMapInBatchEvaluatorFactory(
                python.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$pickledReadFunc,
                "read_from_data_source",
                UserDefinedPythonDataSource.readInputSchema(),
                python.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$outputSchema,
                (scala.collection.immutable.Map) PythonCustomMetric.pythonMetrics(),
                python.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$jobArtifactUUID,
                python.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$sessionUUID);
    StructType input =
        new StructType()
            .add(
                "struct",
                evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$inputSchema);
    ArrowPythonRunner runner =
        new ArrowPythonRunner(
            (scala.collection.immutable.Seq)
                evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$chainedFunc,
            evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$pythonEvalType,
            new int[][] {{0}},
            input,
            evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$sessionLocalTimeZone,
            evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$largeVarTypes,
            evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$pythonRunnerConf,
            evaluator.pythonMetrics(),
            evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$jobArtifactUUID,
            evaluator.org$apache$spark$sql$execution$python$MapInBatchEvaluatorFactory$$sessionUUID);
    TaskContext task = TaskContext.get();
    InputPartition planned = PartitionTask.python(partition);
    byte[] pickled = ((PythonInputPartition) planned).pickedPartition();
    InternalRow row =
        new GenericInternalRow(
            new Object[] {new GenericInternalRow(new Object[] {pickled})});
    Iterator rows = only(row);
    Iterator batches = (Iterator) runner.compute(only(rows), task.partitionId(), task);
    ColumnReader reader = new ColumnReader(batches, columns, limit, isSmall);
    task.addTaskCompletionListener(reader); // called before the runner's own
    return reader;
  }

  private static Iterator only(Object item) {
    return CollectionConverters.asScala(Collections.singletonList(item).iterator());
  }

  /**
   * The first columns of a task's batches. The runner closes the worker's connection and its memory
   * when the task ends.
   */
  static class ColumnReader implements PartitionReader, TaskCompletionListener {
    /** How many batches to read at most: a small log may decompress to a large one. */
    private static final int MOST_LEFT = 32;

    private final Iterator batches;
    private final int columns;
    private final boolean isSmall;
    private long left;

    ColumnReader(Iterator batches, int columns, long limit, boolean isSmall) {
      this.batches = batches;
      this.columns = columns;
      this.left = limit;
      this.isSmall = isSmall;
    }

    public boolean next() {
      return batches.hasNext();
    }

    public Object get() {
      ColumnarBatch batch = (ColumnarBatch) batches.next();
      left -= batch.numRows();
      ArrowColumnVector struct = (ArrowColumnVector) batch.column(0);
      ColumnVector[] vectors = new ColumnVector[columns];
      for (int i = 0; i < columns; i++) {
        vectors[i] = struct.getChild(i);
      }
      return new LentBatch(vectors, batch.numRows());
    }

    /**
     * Reads a short rest to the end, which Spark does not if it has enough rows: it would end the
     * worker, and starting another takes a second.
     */
    public void onTaskCompletion(TaskContext task) {
      boolean isShort = (left == 0 || isSmall) && !task.isInterrupted() && !task.isFailed();
      for (int i = 0; i < MOST_LEFT && isShort && batches.hasNext(); i++) {
        batches.next();
      }
    }

    public void close() {}
  }

  /**
   * A batch whose columns the runner reads the next one into. Spark closes the columns of a batch
   * when it has used them; a closed struct has no fields anymore.
   */
  static class LentBatch extends ColumnarBatch {
    LentBatch(ColumnVector[] columns, int rows) {
      super(columns, rows);
    }

    public void close() {}

    public void closeIfFreeable() {}
  }
}
