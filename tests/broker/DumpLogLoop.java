import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs kafka.tools.DumpLogSegments many times in one JVM.
 *
 * In: a line of arguments, separated by tabs, for each run. Out: for each run the exit code and the
 * sizes of both outputs as three ints, then standard output and standard error. An exception of the
 * tool ends a run as it ends a JVM: its trace on standard error, and exit code 1.
 */
public class DumpLogLoop {
    private static final int RUNS_PER_COLLECTION = 500; // the tool leaves files open

    /** What the tool throws when it asks to end the process. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final int code;

        Exited(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] arguments) throws IOException {
        var answers = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        var out = new ByteArrayOutputStream();
        var err = new ByteArrayOutputStream();
        // Scala's Console keeps the streams of its first use, so these two serve every run.
        System.setOut(new PrintStream(out, false, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, false, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> {
            throw new Exited(code);
        });
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int runs = 0;
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            int code = run(line.split("\t", -1));
            System.out.flush();
            System.err.flush();
            answers.writeInt(code);
            answers.writeInt(out.size());
            answers.writeInt(err.size());
            out.writeTo(answers);
            err.writeTo(answers);
            answers.flush();
            out.reset();
            err.reset();
            if (++runs % RUNS_PER_COLLECTION == 0) {
                System.gc();
            }
        }
    }

    private static int run(String[] arguments) {
        try {
            kafka.tools.DumpLogSegments.main(arguments);
            return 0;
        } catch (Exited exited) {
            return exited.code;
        } catch (Throwable thrown) {
            System.err.print("Exception in thread \"main\" ");
            thrown.printStackTrace();
            return 1;
        }
    }
}
