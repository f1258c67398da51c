-- title: Broken indexes
-- question: Which indexes are damaged or point to the wrong position?
-- answer: When a broker starts, it checks only the size and the last entry of an index. If an index
--   was copied while the log was written, or restored beside another log, it passes that check.
--   Fetches that use it then fail or read from the wrong position. This recipe compares every entry
--   with the log. To repair an index, stop the broker and delete the listed file: the broker builds
--   it again from the log. `problem` is the first of `problems`; `kafka_verify_index` returns all
--   of them.
-- reads: indexes (topic, partition, baseOffset, suffix, entries, problems, problem)
-- cost: reads indexes, and headers of batches.

SELECT topic, partition, baseOffset, suffix, entries, problems, problem
FROM indexes
WHERE problems > 0
ORDER BY topic, partition, baseOffset, suffix;

-- The number of indexes, and how many of them are sound.
SELECT suffix, count(*) AS files, sum(entries) AS entries, count_if(problems = 0) AS sound
FROM indexes
GROUP BY suffix
ORDER BY suffix;
