import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.requests.ProduceResponse.RecordError;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogCleaningState;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Does with Kafka's own log, on partition folders and without a broker, what the lines of standard
 * input say, and answers each with a line: an object of JSON either way. Time stands still until a
 * line has another `now`; what Kafka schedules runs when its time has come, in the one thread.
 * tests/broker/log_operations.py sends the commands, and documents them.
 */
public class LogOperations {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int DEFAULT_MAX_TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000;
    static final int DEFAULT_PRODUCER_EXPIRATION_MS = 24 * 60 * 60 * 1000;
    static final int EXPIRATION_CHECK_INTERVAL_MS = 10 * 60 * 1000;
    static final int SMALLEST_SEGMENT_BYTES = 1 << 20; // of a topic; a test's may be smaller
    static final BrokerTopicStats STATS = new BrokerTopicStats();
    static final Clock CLOCK = new Clock();
    static final Map<String, Open> LOGS = new LinkedHashMap<>();

    /** A log that is open, and what Kafka will do to it later. */
    record Open(UnifiedLog log, Later later) { }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            JsonNode command = JSON.readTree(line);
            try {
                answer(command, answer);
            } catch (Exception e) {
                Throwable cause = e;
                String folder = command.path("folder").asText();
                answer.put("error", cause.getClass().getSimpleName());
                answer.put("message", String.valueOf(cause.getMessage()).replace(folder, "FOLDER"));
                ArrayNode trace = answer.putArray("trace");
                for (; cause != null; cause = cause.getCause()) {
                    trace.add(cause.toString());
                    for (int i = 0; i < Math.min(8, cause.getStackTrace().length); i++) {
                        trace.add("  " + cause.getStackTrace()[i]);
                    }
                }
            }
            answers.println(answer);
        }
    }

    static void answer(JsonNode command, ObjectNode answer) throws Exception {
        if (command.has("now")) {
            CLOCK.now = command.get("now").asLong();
            for (Open open : LOGS.values()) {
                open.later.run();
            }
        }
        String folder = command.path("folder").asText();
        switch (command.get("do").asText()) {
            case "clock":
                return;
            case "open":
                open(command, answer);
                return;
            case "recoverSegment":
                recoverSegment(command, answer);
                return;
            default:
                Open open = LOGS.get(folder);
                if (open == null) {
                    throw new IllegalStateException("not open: " + folder);
                }
                try {
                    answer(command, open.log, answer);
                } finally {
                    if (LOGS.containsValue(open)) {
                        open.later.run();
                    }
                }
        }
    }

    static void answer(JsonNode command, UnifiedLog log, ObjectNode answer) throws Exception {
        long offset = command.path("offset").asLong(-1);
        switch (command.get("do").asText()) {
            case "append":
                append(command, log, answer);
                updateHighWatermark(command, log);
                return;
            case "roll":
                answer.put("baseOffset", log.roll().baseOffset());
                return;
            case "becomeLeader":
                log.assignEpochStartOffset(command.get("leaderEpoch").asInt(), log.logEndOffset());
                return;
            case "updateConfig":
                log.updateConfig(config(command));
                return;
            case "updateHighWatermark":
                updateHighWatermark(command, log);
                return;
            case "truncateTo":
                truncateTo(log, offset, answer);
                return;
            case "truncateFullyAndStartAt":
                log.truncateFullyAndStartAt(offset, Optional.empty());
                return;
            case "deleteOldSegments":
                answer.put("deleted", log.deleteOldSegments());
                return;
            case "deleteRecords":
                answer.put("incremented", log.maybeIncrementLogStartOffset(
                    offset, LogStartOffsetIncrementReason.ClientRecordDeletion));
                return;
            case "takeProducerSnapshot":
                log.takeProducerSnapshot();
                return;
            case "flush":
                log.flush(true);
                return;
            case "clean":
                clean(command, log, answer);
                return;
            case "state":
                state(log, answer);
                return;
            case "close": // as a broker that ends
                log.flush(true);
                log.close();
                forget(log);
                return;
            case "crash": // nothing is trimmed, no snapshot is taken
                log.closeHandlers();
                forget(log);
                return;
            default:
                throw new IllegalArgumentException(command.get("do").asText());
        }
    }

    static void forget(UnifiedLog log) {
        log.producerExpireCheck().cancel(true);
        log.removeLogMetrics();
        LOGS.remove(log.dir().getPath());
    }

    static LogConfig config(JsonNode command) {
        Map<String, String> config = new HashMap<>();
        command.path("config").properties().forEach(
            field -> config.put(field.getKey(), field.getValue().asText()));
        String bytes = config.get("segment.bytes");
        if (bytes != null && Integer.parseInt(bytes) < SMALLEST_SEGMENT_BYTES) {
            config.put(LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG, config.remove("segment.bytes"));
        }
        return new LogConfig(config);
    }

    static ProducerStateManagerConfig producerConfig(JsonNode command) {
        int expiration =
            command.path("producerIdExpirationMs").asInt(DEFAULT_PRODUCER_EXPIRATION_MS);
        return new ProducerStateManagerConfig(expiration, false);
    }

    static void open(JsonNode command, ObjectNode answer) throws IOException {
        File folder = new File(command.get("folder").asText());
        if (LOGS.containsKey(folder.getPath())) {
            throw new IllegalStateException("open already: " + folder);
        }
        Later later = new Later();
        UnifiedLog log = UnifiedLog.create(
            folder,
            config(command),
            command.path("logStartOffset").asLong(0),
            command.path("recoveryPoint").asLong(0),
            later,
            STATS,
            CLOCK,
            DEFAULT_MAX_TRANSACTION_TIMEOUT_MS,
            producerConfig(command),
            EXPIRATION_CHECK_INTERVAL_MS,
            new LogDirFailureChannel(1),
            command.path("clean").asBoolean(true),
            Optional.ofNullable(command.get("topicId")).map(id -> Uuid.fromString(id.asText())));
        LOGS.put(folder.getPath(), new Open(log, later));
        updateHighWatermark(command, log);
        later.run();
        answer.put("logStartOffset", log.logStartOffset());
        answer.put("logEndOffset", log.logEndOffset());
        answer.put("recoveryPoint", log.recoveryPoint());
    }

    /** To the end of the log, unless the command says to where. */
    static void updateHighWatermark(JsonNode command, UnifiedLog log) throws IOException {
        long end = log.logEndOffset();
        log.updateHighWatermark(command.path("highWatermark").asLong(end));
    }

    /** One by one, or several batches at once: a follower appends all batches of a fetch. */
    static void append(JsonNode command, UnifiedLog log, ObjectNode answer) throws IOException {
        Path path = Path.of(command.get("file").asText());
        ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(path));
        int most = command.path("batchesAtOnce").asInt(1);
        boolean isLeader = command.path("as").asText("follower").equals("leader");
        AppendOrigin origin = AppendOrigin.valueOf(command.path("origin").asText("CLIENT"));
        int epoch = command.path("leaderEpoch").asInt(isLeader ? 0 : Integer.MAX_VALUE);
        ArrayNode appended = answer.putArray("appended");
        for (MemoryRecords records : atOnce(content, most)) {
            LogAppendInfo info = isLeader
                ? log.appendAsLeader(records, epoch, origin)
                : log.appendAsFollower(records, epoch);
            ObjectNode one = appended.addObject();
            one.put("firstOffset", info.firstOffset()).put("lastOffset", info.lastOffset());
            for (RecordError error : info.recordErrors()) {
                one.withArray("recordErrors").add(error.toString());
            }
            LOGS.get(log.dir().getPath()).later.run();
        }
    }

    static List<MemoryRecords> atOnce(ByteBuffer content, int most) {
        List<MemoryRecords> all = new ArrayList<>();
        if (most == 0) { // all of it, whatever it is
            all.add(MemoryRecords.readableRecords(content));
            return all;
        }
        int start = 0;
        int end = 0;
        int count = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(content).batches()) {
            end += batch.sizeInBytes();
            count++;
            if (count == most) {
                all.add(part(content, start, end));
                start = end;
                count = 0;
            }
        }
        if (start < content.limit()) {
            all.add(part(content, start, content.limit()));
        }
        return all;
    }

    static MemoryRecords part(ByteBuffer content, int start, int end) {
        return MemoryRecords.readableRecords(content.slice(start, end - start));
    }

    /** As LogManager does it: the cleaner forgets what it cleaned behind the active segment. */
    static void truncateTo(UnifiedLog log, long offset, ObjectNode answer) throws IOException {
        boolean isBeforeActive = offset < log.activeSegment().baseOffset();
        answer.put("truncated", log.truncateTo(offset));
        if (isBeforeActive) {
            LogCleanerManager manager = cleanerManager(log);
            manager.maybeTruncateCheckpoint(
                log.parentDirFile(), log.topicPartition(), log.activeSegment().baseOffset());
            manager.removeMetrics();
        }
    }

    /** Recover one segment of a folder that is not open, from nothing but its log. */
    static void recoverSegment(JsonNode command, ObjectNode answer) throws IOException {
        File folder = new File(command.get("folder").asText());
        TopicPartition partition = UnifiedLog.parseTopicPartitionName(folder);
        Later later = new Later();
        ProducerStateManager producers = new ProducerStateManager(partition, folder,
            DEFAULT_MAX_TRANSACTION_TIMEOUT_MS, producerConfig(command), CLOCK);
        LeaderEpochFileCache epochs = UnifiedLog.createLeaderEpochCache(
            folder, partition, new LogDirFailureChannel(1), Optional.empty(), later);
        try (LogSegment segment = LogSegment.open(folder, command.get("baseOffset").asLong(),
                config(command), CLOCK, true, 0, false, "")) {
            answer.put("bytesTruncated", segment.recover(producers, epochs));
            answer.put("nextOffset", segment.readNextOffset());
        }
        later.run();
    }

    /** A manager that knows of the logs beside this one: those that it does not, it forgets. */
    static LogCleanerManager cleanerManager(UnifiedLog log) {
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        for (Open other : LOGS.values()) {
            if (other.log.parentDir().equals(log.parentDir())) {
                logs.put(other.log.topicPartition(), other.log);
            }
        }
        LogCleanerManager manager = new LogCleanerManager(
            List.of(log.parentDirFile()), logs, new LogDirFailureChannel(1));
        for (TopicPartition partition : logs.keySet()) {
            if (!partition.equals(log.topicPartition())) {
                manager.setCleaningState(partition, LogCleaningState.logCleaningPaused(1));
            }
        }
        return manager;
    }

    /** What a thread of LogCleaner does, once, with this log. */
    static void clean(JsonNode command, UnifiedLog log, ObjectNode answer) throws Exception {
        int memory = command.path("dedupeBufferSize").asInt(4 << 20);
        int ioBuffer = command.path("ioBufferSize").asInt(512 << 10) / 2;
        double loadFactor = command.path("dedupeBufferLoadFactor").asDouble(0.9);
        LogCleanerManager manager = cleanerManager(log);
        Optional<LogToClean> grabbed = command.path("firstDirtyOffset").isNumber()
            || command.path("firstUncleanableOffset").isNumber()
            || command.path("evenIfClean").asBoolean()
            ? Optional.of(given(command, log, manager))
            : manager.grabFilthiestCompactedLog(CLOCK, new PreCleanStats());
        answer.put("cleaned", grabbed.isPresent());
        if (grabbed.isPresent()) {
            LogToClean cleanable = grabbed.get();
            answer.put("firstDirtyOffset", cleanable.firstDirtyOffset());
            answer.put("firstUncleanableOffset", cleanable.firstUncleanableOffset());
            answer.put("cleanableRatio", cleanable.cleanableRatio());
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(memory, "MD5"), ioBuffer,
                command.path("maxIoBufferSize").asInt(1048588), loadFactor,
                new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", CLOCK), CLOCK,
                manager::checkCleaningAborted);
            long end = cleanable.firstDirtyOffset();
            try {
                long start = System.nanoTime();
                Map.Entry<Long, CleanerStats> done = cleaner.clean(cleanable);
                answer.put("seconds", (System.nanoTime() - start) / 1e9);
                end = done.getKey();
                answer.put("endOffset", end);
                cleanerStats(done.getValue(), answer.putObject("stats"));
            } finally {
                manager.doneCleaning(log.topicPartition(), log.parentDirFile(), end);
            }
        }
        ObjectNode checkpoint = answer.putObject("checkpoint");
        manager.allCleanerCheckpoints().forEach(
            (partition, offset) -> checkpoint.put(partition.toString(), offset));
        manager.removeMetrics();
    }

    static LogToClean given(JsonNode command, UnifiedLog log, LogCleanerManager manager)
            throws IOException {
        Long last = manager.allCleanerCheckpoints().get(log.topicPartition());
        var offsets = LogCleanerManager.cleanableOffsets(log, Optional.ofNullable(last), CLOCK.now);
        manager.setCleaningState(log.topicPartition(), LogCleaningState.LOG_CLEANING_IN_PROGRESS);
        return new LogToClean(log,
            command.path("firstDirtyOffset").asLong(offsets.firstDirtyOffset()),
            command.path("firstUncleanableOffset").asLong(offsets.firstUncleanableDirtyOffset()),
            true);
    }

    static void cleanerStats(CleanerStats stats, ObjectNode answer) {
        answer.put("bytesRead", stats.bytesRead());
        answer.put("bytesWritten", stats.bytesWritten());
        answer.put("mapMessagesRead", stats.mapMessagesRead());
        answer.put("messagesRead", stats.messagesRead());
        answer.put("messagesWritten", stats.messagesWritten());
        answer.put("invalidMessagesRead", stats.invalidMessagesRead());
        answer.put("bufferUtilization", stats.bufferUtilization());
        answer.put("elapsedIndexSecs", stats.elapsedIndexSecs());
    }

    static void state(UnifiedLog log, ObjectNode answer) throws Exception {
        answer.put("logStartOffset", log.logStartOffset());
        answer.put("logEndOffset", log.logEndOffset());
        answer.put("highWatermark", log.highWatermark());
        answer.put("lastStableOffset", log.lastStableOffset());
        answer.put("recoveryPoint", log.recoveryPoint());
        answer.put("size", log.size());
        ArrayNode segments = answer.putArray("segments");
        for (LogSegment segment : log.logSegments()) {
            segment(segment, segments.addObject());
        }
        ArrayNode producers = answer.putArray("producers");
        for (ProducerStateEntry entry : log.producerStateManager().activeProducers().values()) {
            ObjectNode one = producers.addObject();
            one.put("producerId", entry.producerId());
            one.put("producerEpoch", entry.producerEpoch());
            one.put("lastSequence", entry.lastSeq());
            one.put("lastOffset", entry.lastDataOffset());
            one.put("offsetDelta", entry.lastOffsetDelta());
            one.put("timestamp", entry.lastTimestamp());
            one.put("coordinatorEpoch", entry.coordinatorEpoch());
            one.put("currentTxnFirstOffset", entry.currentTxnFirstOffset().orElse(-1));
        }
        ArrayNode epochs = answer.putArray("leaderEpochs");
        log.leaderEpochCache().epochEntries().forEach(
            entry -> epochs.addArray().add(entry.epoch).add(entry.startOffset));
    }

    /** Indexes that are not loaded stay so: closing would change them. */
    static void segment(LogSegment segment, ObjectNode answer) throws Exception {
        answer.put("baseOffset", segment.baseOffset());
        answer.put("nextOffset", segment.log().lastBatch().map(RecordBatch::nextOffset)
            .orElse(segment.baseOffset()));
        answer.put("size", segment.size());
        TimestampOffset largest = (TimestampOffset) field(segment, "maxTimestampAndOffsetSoFar");
        if (largest == TimestampOffset.UNKNOWN) {
            largest = lastEntry(segment);
        }
        answer.put("largestTimestamp", largest.timestamp);
        answer.put("offsetOfLargestTimestamp", largest.offset);
        answer.put("offsetIndexEntries", isLoaded(segment, "lazyOffsetIndex")
            ? segment.offsetIndex().entries() : segment.offsetIndexFile().length() / 8);
        answer.put("timeIndexEntries", isLoaded(segment, "lazyTimeIndex")
            ? segment.timeIndex().entries() : segment.timeIndexFile().length() / 12);
        ArrayNode aborted = answer.putArray("abortedTransactions");
        for (AbortedTxn transaction : segment.txnIndex().allAbortedTxns()) {
            aborted.addArray().add(transaction.producerId()).add(transaction.firstOffset())
                .add(transaction.lastOffset()).add(transaction.lastStableOffset());
        }
    }

    static TimestampOffset lastEntry(LogSegment segment) throws Exception {
        if (isLoaded(segment, "lazyTimeIndex")) {
            return segment.timeIndex().lastEntry();
        }
        Path path = segment.timeIndexFile().toPath(); // of a new segment it is not there yet
        byte[] bytes = Files.exists(path) ? Files.readAllBytes(path) : new byte[0];
        ByteBuffer content = ByteBuffer.wrap(bytes);
        int last = content.limit() / 12 - 1;
        return last < 0
            ? new TimestampOffset(RecordBatch.NO_TIMESTAMP, segment.baseOffset())
            : new TimestampOffset(
                content.getLong(12 * last), segment.baseOffset() + content.getInt(12 * last + 8));
    }

    static boolean isLoaded(LogSegment segment, String index) throws Exception {
        Object wrapper = field(field(segment, index), "indexWrapper");
        return wrapper.getClass().getSimpleName().equals("IndexValue");
    }

    static Object field(Object object, String name) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    /** Time that stands still. */
    static class Clock implements Time {
        long now = System.currentTimeMillis();

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            now += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** Runs tasks that are due, when the clock is set. */
    static class Later implements Scheduler {
        final List<Task> tasks = new ArrayList<>();

        void run() {
            List<Task> due = List.copyOf(tasks);
            for (Task task : due) {
                if (task.at <= CLOCK.now && tasks.remove(task)) {
                    task.what.run();
                    if (task.every > 0) {
                        schedule("", task.what, task.every, task.every);
                    }
                }
            }
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable what, long delay, long every) {
            Task task = new Task(this, what, CLOCK.now + Math.max(delay, 0), every);
            tasks.add(task);
            return task;
        }

        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public void resizeThreadPool(int size) { }
    }

    record Task(Later later, Runnable what, long at, long every) implements ScheduledFuture<Void> {
        @Override
        public boolean cancel(boolean mayInterrupt) {
            return later.tasks.removeIf(task -> task.what == what);
        }

        @Override
        public boolean isCancelled() {
            return !isDone();
        }

        @Override
        public boolean isDone() {
            return !later.tasks.contains(this);
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(at - CLOCK.now, TimeUnit.MILLISECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(at - CLOCK.now, other.getDelay(TimeUnit.MILLISECONDS));
        }

        @Override
        public Void get() {
            return null;
        }

        @Override
        public Void get(long timeout, TimeUnit unit) {
            return null;
        }
    }
}
