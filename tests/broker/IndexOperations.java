import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AbstractIndex;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/**
 * Does to Kafka's own indexes what the lines of standard input say, and prints each line again with
 * the answer: a value, or the exception. A line `index KIND BASE_OFFSET MAX_SIZE BYTES` begins with
 * a new file; `-` is a missing file. The file's bytes are printed when it is closed.
 */
public class IndexOperations {
    static final HexFormat HEX = HexFormat.of();
    static File file;
    static String kind;
    static long baseOffset;
    static int maxSize;
    static AbstractIndex index;
    static TransactionIndex transactions;

    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0]);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = String.valueOf(answer(line.split(" "), folder));
            } catch (Exception e) {
                String message = String.valueOf(e.getMessage());
                message = message.replace(file.getAbsolutePath(), "FILE");
                answer = e.getClass().getSimpleName() + ": " + message;
            }
            answers.append(line).append(" => ").append(answer).append('\n');
        }
        System.out.print(answers);
    }

    static Object answer(String[] words, Path folder) throws IOException {
        if (words[0].equals("index")) {
            kind = words[1];
            baseOffset = Long.parseLong(words[2]);
            maxSize = Integer.parseInt(words[3]);
            file = folder.resolve("index").toFile();
            index = null;
            transactions = null;
            Files.deleteIfExists(file.toPath());
            if (!words[4].equals("-")) {
                Files.write(file.toPath(), HEX.parseHex(words[4].substring(1)));
            }
            return open();
        }
        long[] n = new long[words.length];
        for (int i = 1; i < words.length; i++) {
            n[i] = Long.parseLong(words[i]);
        }
        switch (words[0]) {
            case "close":
                if (index != null) {
                    index.close();
                } else {
                    transactions.close();
                }
                return bytes();
            case "open":
                return open();
            default:
                return kind.equals("transaction") ? ofTransactions(words[0], n) : ofIndex(words[0], n);
        }
    }

    static String bytes() throws IOException {
        return file.exists() ? "x" + HEX.formatHex(Files.readAllBytes(file.toPath())) : "-";
    }

    static String open() throws IOException {
        switch (kind) {
            case "offset":
                index = new OffsetIndex(file, baseOffset, maxSize);
                return state();
            case "time":
                index = new TimeIndex(file, baseOffset, maxSize);
                return state();
            default:
                transactions = new TransactionIndex(baseOffset, file);
                return "ok";
        }
    }

    static String state() {
        return index.entries() + " of " + index.maxEntries() + (index.isFull() ? ", full" : "") + ", "
            + index.length() + " bytes";
    }

    static Object ofIndex(String word, long[] n) throws IOException {
        OffsetIndex offsets = index instanceof OffsetIndex i ? i : null;
        TimeIndex times = index instanceof TimeIndex i ? i : null;
        switch (word) {
            case "append":
                if (offsets != null) {
                    offsets.append(n[1], Math.toIntExact(n[2]));
                } else {
                    times.maybeAppend(n[1], n[2], n[3] == 1);
                }
                return state();
            case "truncateTo":
                index.truncateTo(n[1]);
                return state();
            case "truncate":
                if (offsets != null) {
                    offsets.truncate();
                } else {
                    times.truncate();
                }
                return state();
            case "resize":
                return index.resize((int) n[1]) + ", " + state();
            case "trim":
                index.trimToValidSize();
                return state();
            case "lookup":
                return offsets != null ? offsets.lookup(n[1]) : times.lookup(n[1]);
            case "entry":
                return offsets != null ? offsets.entry((int) n[1]) : times.entry((int) n[1]);
            case "upper":
                OffsetPosition fetch = new OffsetPosition(n[1], (int) n[2]);
                return offsets.fetchUpperBoundOffset(fetch, (int) n[3]).map(Object::toString).orElse("-");
            case "last":
                return offsets != null ? offsets.lastOffset() : times.lastEntry();
            case "sanityCheck":
                index.sanityCheck();
                return "ok";
            default:
                throw new IllegalStateException(word);
        }
    }

    static Object ofTransactions(String word, long[] n) throws IOException {
        switch (word) {
            case "append":
                transactions.append(new AbortedTxn(n[1], n[2], n[3], n[4]));
                return transactions.allAbortedTxns().size();
            case "truncateTo":
                transactions.truncateTo(n[1]);
                return transactions.allAbortedTxns().size();
            case "collect":
                var found = transactions.collectAbortedTxns(n[1], n[2]);
                return found.abortedTransactions + " " + found.isComplete;
            case "all":
                return transactions.allAbortedTxns();
            case "sanityCheck":
                transactions.sanityCheck();
                return "ok";
            default:
                throw new IllegalStateException(word);
        }
    }
}
