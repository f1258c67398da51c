package kafkajit;

import java.io.IOException;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingPartitionReaderFactory;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;

/** Reads the columns that a task names; the others of the stream are NULL, and nobody reads them. */
class StreamReaderFactory implements PartitionReaderFactory {
  private final PythonStreamingPartitionReaderFactory python;
  private final StructType columns;

  /** The columns are all of the stream's. */
  StreamReaderFactory(PythonStreamingPartitionReaderFactory python, StructType columns) {
    this.python = python;
    this.columns = columns;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    throw new UnsupportedOperationException("kafkaLog reads streams by columns");
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    StreamTask task = (StreamTask) partition;
    PythonPartitionReaderFactory reading =
        new PythonPartitionReaderFactory(
            python.org$apache$spark$sql$execution$datasources$v2$python$PythonStreamingPartitionReaderFactory$$source,
            task.function,
            task.read,
            python.org$apache$spark$sql$execution$datasources$v2$python$PythonStreamingPartitionReaderFactory$$jobArtifactUUID,
            python.org$apache$spark$sql$execution$datasources$v2$python$PythonStreamingPartitionReaderFactory$$sessionUUID);
    PartitionReader reader =
        new ColumnReaderFactory(reading, task.read.length(), Long.MAX_VALUE, false)
            .createColumnarReader(task.python);
    return new WideReader(reader, columns, task.read);
  }

  /** Puts the columns that are read to their places among all. */
  static class WideReader implements PartitionReader {
    private final PartitionReader reader;
    private final StructType columns;
    private final StructType read;

    WideReader(PartitionReader reader, StructType columns, StructType read) {
      this.reader = reader;
      this.columns = columns;
      this.read = read;
    }

    public boolean next() throws IOException {
      return reader.next();
    }

    public Object get() {
      ColumnarBatch batch = (ColumnarBatch) reader.get();
      ColumnVector[] vectors = new ColumnVector[columns.length()];
      for (int i = 0; i < vectors.length; i++) {
        Option place = read.getFieldIndex(columns.apply(i).name());
        if (place.isDefined()) {
          vectors[i] = batch.column(((Integer) place.get()).intValue());
        } else {
          ConstantColumnVector none =
              new ConstantColumnVector(batch.numRows(), columns.apply(i).dataType());
          none.setNull();
          vectors[i] = none;
        }
      }
      return new ColumnReaderFactory.LentBatch(vectors, batch.numRows());
    }

    public void close() throws IOException {
      reader.close();
    }
  }
}
