// What could be saved: by other codecs, by retention and compaction, by topics that nobody uses.

function encodingText(row) {
  const level = isMissing(row.level) || row.codec === "none" ? "" : ` ${row.level}`;
  return `${row.codec === "none" ? "not compressed" : row.codec}${level}, ${binaryText(row.batchBytes)}`;
}

const encodingKey = (row) => `${row.codec} ${row.level} ${row.batchBytes}`;

// The encodings of all topics that have them: bytes and times as if the whole topic were a sample.
function addedEncodings(topics) {
  const added = new Map();
  const measured = topics.filter((topic) => topic.savings?.encodings?.length && topic.savings.now?.bytes);
  let now = 0;
  for (const topic of measured) {
    const factor = topic.bytes / topic.savings.now.bytes;
    now += topic.bytes;
    for (const row of topic.savings.encodings) {
      const sum = added.get(encodingKey(row)) ?? { ...row, bytes: 0, encodeSeconds: 0, decodeSeconds: 0, topics: 0 };
      for (const key of ["bytes", "encodeSeconds", "decodeSeconds"]) sum[key] += row[key] * factor;
      sum.topics += 1;
      added.set(encodingKey(row), sum);
    }
  }
  const most = Math.max(0, ...[...added.values()].map((row) => row.topics));
  const rows = [...added.values()].filter((row) => row.topics === most).map((row) => ({ ...row, bytes: Math.round(row.bytes) }));
  return { rows, now, measured };
}

function encodingsTable(rows, now) {
  return dataTable({
    caption: "Encodings", rows: rows.map((row) => ({ ...row, saved: now - row.bytes })), sorted: [3, false], limit: 10,
    columns: [
      { label: "Codec", value: (row) => row.codec, cell: (row) => (row.codec === "none" ? "not compressed" : row.codec) },
      { label: "Level", numeric: true, value: (row) => row.level, cell: (row) => (isMissing(row.level) ? missing() : String(row.level)) },
      { label: "batch.size", numeric: true, value: (row) => row.batchBytes, cell: (row) => quantity(row.batchBytes, binaryText, "bytes") },
      barColumn("Bytes", "bytes", rows),
      { label: "Saves", numeric: true, value: (row) => row.saved, cell: (row) => savedCell(row.saved, now) },
      { label: "Compress", numeric: true, secondary: true, value: (row) => row.encodeSeconds, cell: (row) => seconds(row.encodeSeconds) },
      { label: "Decompress", numeric: true, secondary: true, value: (row) => row.decodeSeconds, cell: (row) => seconds(row.decodeSeconds) },
    ],
  });
}

const savedCell = (saved, now) => el("data", { value: saved, title: `${exact(saved)} bytes` }, saved < 0 ? `− ${shareText(-saved, now)}` : shareText(saved, now));

function savingsSection(report) {
  const { topics } = report;
  const { rows, now, measured } = addedEncodings(topics);
  const parts = [];
  if (rows.length) parts.push(encodingsFigure(report, rows, now, measured), recodedFigure(report, rows, measured));
  const retained = addedRetention(topics);
  if (retained.length) parts.push(retentionFigure(isPlanned(topics) ? null : report.sql.retention, retentionFrom(topics, report.takenFrom), retained, report.totals.bytes));
  parts.push(compactionFigure(report), idleFigure(report));
  return section("savings", "What could be saved", ...parts);
}

function encodingsFigure(report, rows, now, measured) {
  const sampled = measured.reduce((sum, topic) => sum + topic.savings.sample.records, 0);
  const all = measured.reduce((sum, topic) => sum + topic.records, 0);
  const best = rows.reduce((least, row) => (row.bytes < least.bytes ? row : least));
  return figure({
    title: "Codec, level and batch size", size: "wide", sql: report.sql.encodings, from: fromRecords(sampled, all, sampled < all ? "sample" : "all"),
    lead: `Estimated for the ${bytesText(now)} of ${plural(measured.length, "topic")}, from a part of each. The smallest, ${encodingText(best)}, takes ${bytesText(best.bytes)}.`,
  }, encodingsChart(rows, now, "processor time to compress all of it"));
}

function recodedFigure(report, encodings, measured) {
  const place = el("div");
  const sorted = [...encodings].sort((a, b) => a.bytes - b.bytes);
  const lay = (chosen) => {
    const rows = measured.flatMap((topic) => {
      const found = topic.savings.encodings.find((row) => encodingKey(row) === chosen);
      if (!found) return [];
      const after = Math.round((found.bytes * topic.bytes) / topic.savings.now.bytes);
      return [{ topic: topic.topic, codec: topic.savings.now.codec, bytes: topic.bytes, after, saved: topic.bytes - after, time: (found.encodeSeconds * topic.bytes) / topic.savings.now.bytes }];
    });
    place.replaceChildren(dataTable({
      caption: "Topics by what another encoding saves", rows, sorted: [4, true], limit: 10, filter: "Filter topics",
      columns: [topicColumn(), textColumn("Now", "codec", { secondary: true }), bytesColumn("Bytes", "bytes"), bytesColumn("After", "after", { secondary: true }),
        barColumn("Saves", "saved", rows.filter((row) => row.saved > 0)), { label: "Share", numeric: true, value: (row) => row.saved / row.bytes, cell: (row) => savedCell(row.saved, row.bytes) },
        { label: "Compress", numeric: true, secondary: true, value: (row) => row.time, cell: (row) => seconds(row.time) }],
    }));
  };
  lay(encodingKey(sorted[0]));
  return figure({ title: "Topics in another encoding", size: "wide", sql: report.sql.encodings, from: "Estimated from a part of each topic" },
    el("div", { class: "tools" }, selection("Encoding", sorted.map((row) => [encodingKey(row), encodingText(row)]), encodingKey(sorted[0]), lay)), place);
}

// What a topic's dry run of retention frees, or if there was none, what the headers let expect.
function retentionOf(topic) {
  const plans = topic.savings?.dryRuns;
  return plans ? (plans.retention?.limits ?? []) : (topic.savings?.retention ?? []);
}

const isPlanned = (topics) => topics.some((topic) => topic.savings?.dryRuns);

// What the plans were made of: partitions, and how many are left alone as the commands do.
function plansFrom(command, topics) {
  const plans = topics.map((topic) => topic.savings?.dryRuns).filter(Boolean);
  const left = plans.flatMap((plan) => plan.leftAlone).filter((row) => row.command === command).reduce((sum, row) => sum + row.partitions, 0);
  const planned = plans.reduce((sum, plan) => sum + plan.partitions, 0);
  return `From a dry run of kafkajit ${command} over ${plural(planned, "partition")}${left ? `, ${countText(left)} of which it leaves alone` : ""}`;
}

const retentionFrom = (topics, takenFrom) => (isPlanned(topics) ? plansFrom("retain", topics) : fromHeaders(takenFrom.headers));

function addedRetention(topics) {
  const added = new Map();
  for (const topic of topics) {
    for (const row of retentionOf(topic)) added.set(row.days, (added.get(row.days) ?? 0) + row.bytes);
  }
  return [...added].sort((a, b) => a[0] - b[0]).map(([days, freed]) => ({ days, name: plural(days, "day"), bytes: freed }));
}

function retentionFigure(sql, from, rows, total) {
  const { spec } = barsChart("Retention", rows, "name", "bytes", (value) => `${bytesText(value)}, ${shareText(value, total)}`);
  return figure({ title: "Retention", sql, from, lead: "Bytes of segments that are older: a retention of these days frees them." },
    chart("Bytes that a retention frees, by days", spec, () => dataTable({
      caption: "Bytes that a retention frees", rows, columns: [{ label: "Days", numeric: true, value: (row) => row.days, cell: (row) => countText(row.days) },
        bytesColumn("Frees", "bytes"), { label: "Share", numeric: true, value: (row) => row.bytes, cell: (row) => share(row.bytes, total) }],
    })));
}

function compactionFigure(report) {
  if (isPlanned(report.topics)) return plannedCompaction(report.topics);
  const rows = report.topics.filter((topic) => topic.savings?.compaction).map((topic) => {
    const { compaction } = topic.savings;
    return { topic: topic.topic, ...compaction, share: compaction.leastShare ?? compaction.records / compaction.ofRecords };
  });
  if (!rows.length) return null;
  return figure({ title: "Compaction", sql: report.sql.compaction, from: "From the sample of each topic", lead: "Records that a newer record of the same key supersedes." }, dataTable({
    caption: "Topics by superseded records", rows, sorted: [3, true], limit: 8,
    columns: [topicColumn(), countColumn("Records", "records"), bytesColumn("Bytes", "bytes", { secondary: true }),
      { label: "Of the sample", numeric: true, secondary: true, value: (row) => row.records / row.ofRecords, cell: (row) => share(row.records, row.ofRecords) },
      { label: "Of the topic", numeric: true, value: (row) => row.share, cell: (row) => supersededText(row) }],
  }));
}

// The share of a topic's records with a key that newer ones supersede, as far as a sample tells.
function supersededText(row) {
  const [least, most] = [row.leastShare, row.mostShare];
  if (isMissing(least)) return missing();
  return most - least < 0.01 ? shareText(least, 1) : `${shareText(least, 1)} to ${shareText(most, 1)}`;
}

function plannedCompaction(topics) {
  const rows = topics.filter((topic) => topic.savings?.dryRuns?.compaction)
    .map((topic) => ({ topic: topic.topic, all: topic.bytes, ...topic.savings.dryRuns.compaction }));
  if (!rows.length) return null;
  return figure({
    title: "Compaction", size: "wide", from: plansFrom("compact", topics),
    lead: "Bytes that a compaction of all closed segments frees, if the topic is compacted or were. It removes records without a key.",
  }, dataTable({
    caption: "Topics by what compaction frees", rows, sorted: [1, true], limit: 8, filter: "Filter topics",
    columns: [topicColumn(), barColumn("Frees", "bytes", rows), { label: "Share", numeric: true, value: (row) => row.bytes / (row.all || 1), cell: (row) => share(row.bytes, row.all) },
      countColumn("Records", "records"), countColumn("Without key", "recordsWithoutKey", { secondary: true }),
      { label: "Compacted", secondary: true, value: (row) => (row.isCompacted ? "yes" : "no"), cell: (row) => (row.isCompacted ? "yes" : "no") }],
  }));
}

function idleFigure(report) {
  const place = el("div");
  const knowsCommits = report.groups !== null;
  const all = report.topics.map((topic) => ({ ...topic, lastWrite: hasTime(topic.lastTimestamp) ? topic.lastTimestamp : topic.lastModified }));
  const since = (key) => (row) => (hasTime(row[key]) ? el("time", { datetime: isoText(row[key]), title: isoText(row[key]) }, agoText(row[key], report.madeAt)) : "none known");
  const lay = (days) => {
    const before = report.madeAt - days * DAY;
    const isOld = (ms) => !hasTime(ms) || ms < before;
    const rows = all.filter((row) => isOld(row.lastWrite) || (knowsCommits && !row.isInternal && isOld(row.lastCommit)));
    place.replaceChildren(dataTable({
      caption: "Topics that are not used", rows, sorted: [1, true], limit: 10, empty: "Each topic is written and read.",
      columns: [topicColumn(), barColumn("Bytes", "bytes", rows), { label: "Last write", numeric: true, value: (row) => row.lastWrite, cell: since("lastWrite") },
        knowsCommits ? { label: "Last commit", numeric: true, value: (row) => (hasTime(row.lastCommit) ? row.lastCommit : 0), cell: since("lastCommit") } : null].filter(Boolean),
    }));
  };
  lay(30);
  return figure({
    title: "Topics without use", size: "wide", sql: report.sql.idle, from: `${fromHeaders(report.takenFrom.headers)}${knowsCommits ? ", and from __consumer_offsets" : "; commits were not read"}`,
    lead: knowsCommits ? `Topics without a record or a commit that is newer. ${commitsText(report)}` : "Topics that nobody has written to since then.",
  }, el("div", { class: "tools" }, choice("Not for", [[1, "1 day"], [7, "7 days"], [30, "30 days"], [90, "90 days"]], 30, lay)), place);
}
