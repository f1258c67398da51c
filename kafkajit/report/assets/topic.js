// One topic: its life, sizes, keys, producers, partitions, and what it could save.

function topicPage(report, topic) {
  const { sql } = report;
  const isKafkas = /^[\w.-]+$/.test(topic.topic ?? ""); // a folder may have any other name
  const ofTopic = (text) => (text && isKafkas ? `SELECT * FROM (\n${text}\n) WHERE topic = '${topic.topic}'` : text);
  const query = new Proxy(sql, { get: (all, name) => ofTopic(all[name]) });
  const from = fromHeaders(topic);
  const sampled = topic.sample ? fromRecords(topic.sample.records, topic.records, report.depth) : "";
  const idText = [topic.isInternal ? "internal" : null, topic.topicId].filter(Boolean).map(visible).join(", ");
  const groups = (report.groups ?? []).filter((row) => row.topic === topic.topic);
  const trouble = report.trouble.filter((row) => row.topic === topic.topic);
  return [
    el("div", { class: "title" }, el("p", { class: "back" }, el("a", { href: "#topics" }, "← All topics")),
      el("h1", { tabindex: "-1" }, named(topic.topic)), idText ? el("p", { class: "code" }, idText) : null),
    el("div", { class: "figures" },
      el("section", { class: "figure wide bare", "aria-label": "Head figures" }, topicTiles(report, topic)),
      trouble.length ? figure({ title: "Trouble", size: "wide", from, sql: query.trouble }, troubleTable(trouble)) : null,
      ...lifeFigures(topic, query, from),
      sizesFigure(topic, query, from, sampled),
      keysFigure(topic, query, sampled),
      hottestFigure(topic, query, sampled),
      producersFigure(topic, query, from), timestampsFigure(report, topic, query, from),
      shareFigure("Codecs", "codec", from, query.codecs, codecShares([topic])),
      shareFigure("Formats", "format", from, query.formats, batchShares([topic], "formats")),
      partitionsFigure(topic, query, from),
      ...topicSavings(topic, query, from),
      report.groups === null ? null : topicGroups(report, groups, query)),
  ];
}

function topicTiles(report, topic) {
  const ago = (ms) => (hasTime(ms) ? agoText(ms, report.madeAt) : null);
  return tiles(
    tile("Size", bytes(topic.bytes), `${shareText(topic.bytes, report.totals.bytes)} of all; + ${bytesText(topic.otherBytesOnDisk ?? topic.otherBytes ?? 0)} of indexes and others on the disk`),
    tile("Records", count(topic.records), `in ${plural(topic.batches, "batch", "batches")}`),
    tile("Partitions", count(topic.partitions), plural(topic.segments, "segment")),
    tile("Oldest record", time(topic.firstTimestamp), ago(topic.firstTimestamp)),
    tile("Newest record", time(topic.lastTimestamp), ago(topic.lastTimestamp)),
    tile("Groups", count(topic.groups), hasTime(topic.lastCommit) ? `last commit ${ago(topic.lastCommit)}` : null));
}

function lifeFigures(topic, sql, from) {
  if (!topic.life) return [el("p", { class: "empty figure wide" }, "There are no figures by time.")];
  const { before, after } = topic.life;
  const outside = [before && `${bytesText(before.bytes)} earlier`, after && `${bytesText(after.bytes)} later`].filter(Boolean);
  const lead = `In steps of ${secondsText(topic.life.step / 1000)}, by each batch's largest timestamp.${outside.length ? ` Far away lie ${outside.join(" and ")}.` : ""}`;
  return [
    figure({ title: "Bytes by time", size: "wide", sql: sql.life, from, lead }, lifeChart("Bytes", topic.life, "bytes", BYTES_AXIS, bytesText, "var(--series)")),
    figure({ title: "Records by time", size: "wide", sql: sql.life, from }, lifeChart("Records", topic.life, "records", COUNT_AXIS, countText, "var(--series-2)")),
  ];
}

const SPREAD = [["Mean", "mean"], ["Median", "p50"], ["90 %", "p90"], ["99 %", "p99"], ["Largest", "max"]];

function sizesFigure(topic, sql, from, sampled) {
  const rows = [["Records of a batch", topic.recordsPerBatch, count], ["Bytes of a batch", topic.bytesPerBatch, bytes],
    ["Bytes of a key", topic.sample?.keyBytes, bytes], ["Bytes of a value", topic.sample?.valueBytes, bytes]]
    .filter(([, spread]) => spread).map(([name, spread, draw]) => ({ name, draw, ...spread }));
  return figure({ title: "Sizes", size: "wide", sql: sql.sizes, from: [from, rows.some((row) => row.name.includes("key")) ? `keys and values: ${sampled.replace(/^F/, "f")}` : ""].filter(Boolean).join("; ") }, dataTable({
    caption: "Sizes of batches and records", rows, empty: "Sizes were not taken.",
    columns: [{ label: "Size", cell: (row) => row.name }, ...SPREAD.map(([label, key]) => ({ label, numeric: true, secondary: key === "mean", cell: (row) => row.draw(key === "mean" && row.mean < 100 ? row.mean : Math.round(row[key])) })),
      { label: "Median to largest", secondary: true, cell: spreadBars }],
  }));
}

// A box from the median to 90 %, a line to the largest, on a scale of powers of ten.
function spreadBars(row) {
  const at = (value) => (100 * Math.log10(Math.max(1, value))) / Math.max(1, Math.ceil(Math.log10(Math.max(10, row.max))));
  const box = el("span", { class: "spread", role: "img", "aria-label": `from ${countText(row.p50)} to ${countText(row.max)}, in powers of ten` });
  for (const [name, from, to] of [["line", row.p50, row.max], ["box", row.p50, row.p90], ["end", row.p99, row.p99]]) {
    const part = el("i", { class: name });
    part.style.left = `${at(from)}%`;
    part.style.width = `${Math.max(0, at(to) - at(from))}%`;
    box.append(part);
  }
  return box;
}

function keysFigure(topic, sql, sampled) {
  const { sample } = topic;
  if (!sample) return figure({ title: "Keys and values" }, el("p", { class: "empty" }, "No record was read: only headers were."));
  const part = (value) => shareText(value, sample.records);
  return figure({ title: "Keys and values", sql: sql.keys, from: sampled }, facts([
    ["Without a key", count(sample.nullKeys), part(sample.nullKeys)],
    ["Distinct keys", isMissing(sample.distinctKeys) ? missing() : el("span", {}, sample.distinctKeysError ? "≈ " : "", count(sample.distinctKeys)), sample.distinctKeysError ? `± ${shareText(sample.distinctKeysError, 1)}` : null],
    ["Tombstones", count(sample.tombstones), part(sample.tombstones)],
    ["With headers", count(sample.withHeaders), part(sample.withHeaders)],
  ]));
}

function hottestFigure(topic, sql, sampled) {
  if (!topic.sample?.hottestKeys?.length) return null;
  const rows = topic.sample.hottestKeys;
  return figure({ title: "Hottest keys", sql: sql.hottestKeys, from: sampled }, dataTable({
    caption: "Keys with the most records", rows, sorted: [1, true], limit: 8,
    columns: [{ label: "Key", value: (row) => row.key, cell: (row) => named(row.key, { class: "code" }) }, barColumn("Records", "records", rows, count),
      { label: "Share", numeric: true, value: (row) => row.records, cell: (row) => share(row.records, topic.sample.records) }],
  }));
}

function producersFigure(topic, sql, from) {
  return figure({ title: "Producers", sql: sql.producers, from }, facts([
    ["Idempotent producers", count(topic.producers)],
    ["Leader epochs", count(topic.leaderEpochs)],
    ["Transactional batches", count(topic.transactionalBatches), shareText(topic.transactionalBatches, topic.batches)],
    ["Control batches", count(topic.controlBatches)],
    ["Aborted transactions", count(topic.abortedTransactions)],
    ["Missing offsets", count(topic.missingOffsets), "between batches: compacted away, or lost"],
  ]));
}

function timestampsFigure(report, topic, sql, from) {
  const types = Object.entries(topic.timestampTypes ?? {});
  return figure({ title: "Timestamps", sql: sql.timestamps, from }, facts([
    ...types.map(([name, batches]) => [visible(name), count(batches), `batches, ${shareText(batches, topic.batches)}`]),
    ["Back in time", count(topic.batchesBack), "batches older than an earlier one"],
    ["Ahead of time", count(topic.batchesAhead), "batches newer than this report"],
    ["Last change of a file", time(topic.lastModified)],
  ]));
}

function partitionsFigure(topic, sql, from) {
  const rows = topic.eachPartition;
  const skew = skewOf(topic);
  return figure({ title: "Partitions", size: "wide", sql: sql.partitions, from, lead: isMissing(skew) ? null : `The largest partition has ${skew.toFixed(2)} times the mean.` }, dataTable({
    caption: "Partitions", rows, sorted: [0, false],
    columns: [{ label: "Partition", numeric: true, value: (row) => row.partition, cell: (row) => (isMissing(row.partition) ? missing() : String(row.partition)) }, barColumn("Bytes", "bytes", rows), barColumn("Records", "records", rows, count),
      countColumn("Segments", "segments", { secondary: true }), offsetColumn("Start offset", "startOffset"), offsetColumn("End offset", "endOffset"),
      timeColumn("Oldest", "firstTimestamp", { secondary: true }), timeColumn("Newest", "lastTimestamp", { secondary: true }), textColumn("Folder", "folder", { secondary: true })],
  }));
}

const offsetColumn = (label, key, more) => ({ label, numeric: true, secondary: true, value: (row) => row[key], cell: (row) => (isMissing(row[key]) ? missing() : exact(row[key])), ...more });

function topicSavings(topic, sql, from) {
  const { savings } = topic;
  if (!savings) return [];
  const parts = [];
  const sampled = topic.sample ? fromRecords(topic.sample.records, topic.records, "sample") : "";
  if (savings.encodings?.length && savings.sample && savings.now) {
    parts.push(figure({ title: "Codec, level and batch size", size: "wide", sql: sql.encodings, from: fromRecords(savings.sample.records, topic.records, "sample"), lead: `These records take ${bytesText(savings.now.bytes)} now (${savings.now.codec}).` },
      encodingsChart(savings.encodings, savings.now.bytes, "processor time to compress")));
  }
  const retained = retentionOf(topic);
  if (retained.length) {
    parts.push(retentionFigure(savings.dryRuns ? null : sql.retention, savings.dryRuns ? plansFrom("retain", [topic]) : from, retained.map((row) => ({ ...row, name: plural(row.days, "day") })), topic.bytes));
  }
  const planned = savings.dryRuns?.compaction;
  if (planned) {
    parts.push(figure({ title: "Compaction", from: plansFrom("compact", [topic]), lead: `What a compaction of all closed segments frees${planned.isCompacted ? "" : ", if the topic were compacted"}.` }, facts([
      ["Bytes", bytes(planned.bytes), `${shareText(planned.bytes, topic.bytes)} of the topic`],
      ["Records", count(planned.records), `of ${countText(planned.ofRecords)} in closed segments`],
      ["Records without a key", count(planned.recordsWithoutKey), "compaction removes them"],
    ])));
  } else if (savings.compaction) {
    parts.push(figure({ title: "Compaction", sql: sql.compaction, from: sampled, lead: "Records that a newer record of the same key supersedes." }, facts([
      ["Superseded records", count(savings.compaction.records), `${savings.compaction.recordsError ? `± ${countText(savings.compaction.recordsError)}, ` : ""}${shareText(savings.compaction.records, savings.compaction.ofRecords)} of those with a key`],
      ["Of the topic", supersededText(savings.compaction)],
      ["Their bytes", bytes(savings.compaction.bytes)],
    ])));
  }
  return parts;
}

function topicGroups(report, rows, sql) {
  return figure({ title: "Groups", size: "wide", sql: sql.groups, from: GROUPS_FROM }, dataTable({
    caption: "Groups by partition", rows, sorted: [2, true], filter: "Filter groups", empty: `No commit of this topic is known. ${commitsText(report)}`,
    columns: [groupColumn, { label: "Partition", numeric: true, value: (row) => row.partition, cell: (row) => String(row.partition) }, barColumn("Lag", "lag", rows, count),
      offsetColumn("Offset", "offset"), offsetColumn("End offset", "endOffset"), timeColumn("Committed", "committedAt", { secondary: true }), membersColumn],
  }));
}
