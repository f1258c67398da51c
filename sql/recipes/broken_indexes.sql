-- title: Broken indexes
-- question: Which indexes are damaged, or lead elsewhere than they say?
-- answer: A broker looks at little of an index when it starts: its size and its last entry. One that
--   was copied while the log was written, or restored beside another log, passes, and fetches from
--   its offsets read the wrong place or fail. Here every entry is held against the log beside it. Stop
--   the broker, delete what is listed, and it builds the index again from the log. `problem` is the
--   first of `problems`; `kafka_verify_index` has them all.
-- reads: indexes (topic, partition, baseOffset, suffix, entries, problems, problem)
-- cost: indexes and headers of batches.

SELECT topic, partition, baseOffset, suffix, entries, problems, problem
FROM indexes
WHERE problems > 0
ORDER BY topic, partition, baseOffset, suffix;

-- How many there are, and how many of them are sound.
SELECT suffix, count(*) AS files, sum(entries) AS entries, count_if(problems = 0) AS sound
FROM indexes
GROUP BY suffix
ORDER BY suffix;
