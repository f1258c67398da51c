// The overview: all topics together.

const DAY = 86_400_000;

// What figures were taken from, in words.
const fromHeaders = (taken) => (taken?.batches ? `From the headers of all ${plural(taken.batches, "batch", "batches")}` : "");
function fromRecords(read, all, depth) {
  if (!read) return "";
  return depth === "all" || read >= all ? `From all ${plural(read, "record")}` : `From a sample of ${countText(read)} of ${plural(all, "record")}`;
}

function section(id, title, ...content) {
  const heading = el("h2", { id: `${id}-title` }, title);
  return el("section", { id, class: "part", "aria-labelledby": `${id}-title`, tabindex: "-1" }, heading, el("div", { class: "figures" }, ...content));
}

function headFigures(report) {
  const { totals, takenFrom } = report;
  const brokers = new Set(report.folders.map((folder) => folder.brokerId).filter((id) => !isMissing(id)));
  const spoken = [brokers.size ? plural(brokers.size, "broker") : null, plural(report.folders.length, "folder")].filter(Boolean).join(", ");
  return tiles(
    tile("Size of the logs", bytes(totals.bytes), totals.otherBytes ? `+ ${bytesText(totals.otherBytesOnDisk ?? totals.otherBytes)} of indexes and others on the disk` : null),
    tile("Records", count(totals.records), `in ${plural(totals.batches, "batch", "batches")}`),
    tile("Topics", count(totals.topics), spoken),
    tile("Partitions", count(totals.partitions), plural(totals.segments, "segment")),
    tile("Oldest record", time(totals.firstTimestamp), hasTime(totals.firstTimestamp) ? agoText(totals.firstTimestamp, report.madeAt) : null),
    tile("Newest record", time(totals.lastTimestamp), hasTime(totals.lastTimestamp) ? agoText(totals.lastTimestamp, report.madeAt) : null),
    troubleTile(report),
    tile("Taken from", takenFrom.sample ? (report.depth === "all" ? "all records" : "a sample") : "headers",
      takenFrom.sample ? `${countText(takenFrom.sample.records)} of ${plural(takenFrom.sample.ofRecords, "record")}` : plural(takenFrom.headers?.batches ?? 0, "batch", "batches")),
  );
}

function troubleTile(report) {
  const found = SEVERITIES.map((severity) => [severity, report.trouble.filter((row) => row.severity === severity).length]).filter(([, n]) => n);
  if (!found.length) return tile("Trouble", "none found");
  const [[worst, n], ...rest] = found;
  return tile("Trouble", el("a", { href: "#trouble", class: "plain" }, severityMark(worst, `${countText(n)} ${n === 1 || worst === "damage" ? worst : `${worst}s`}`)),
    rest.map(([severity, n]) => plural(n, severity)).join(", ") || null);
}

const skewOf = (topic) => {
  const sizes = topic.eachPartition.map((row) => row.bytes);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  return sizes.length > 1 && total ? (Math.max(...sizes) * sizes.length) / total : null;
};

const skewCell = (skew) => (isMissing(skew) ? missing() : el("data", { value: skew, title: "the largest partition, by the mean of all" }, `${skew.toFixed(skew < 10 ? 2 : 0)}×`));

// The partitions of a topic as small bars.
function partitionBars(each) {
  const largest = Math.max(1, ...each.map((row) => row.bytes));
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const shown = each.length > 120 ? [...each].sort((a, b) => b.bytes - a.bytes).slice(0, 120) : each;
  svg.setAttribute("viewBox", `0 0 ${shown.length * 6} 24`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "bars");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `bytes of ${plural(each.length, "partition")}, the largest ${bytesText(largest)}`);
  svg.style.width = `${Math.min(shown.length * 6, 150)}px`;
  shown.forEach((row, place) => {
    const height = Math.max(0.75, (24 * row.bytes) / largest);
    const bar = document.createElementNS(space, "rect");
    for (const [name, value] of Object.entries({ x: place * 6, y: 24 - height, width: 4.5, height })) bar.setAttribute(name, value);
    svg.append(bar);
  });
  return svg;
}

function overview(report) {
  const { topics, takenFrom, sql } = report;
  const from = fromHeaders(takenFrom.headers);
  const page = [el("div", { class: "title" }, el("h1", {}, "Kafka logs"), el("p", {}, paths(report), ", ", time(report.madeAt)))];
  const life = addedLife(topics.map((topic) => topic.life).filter(Boolean));
  page.push(section("overview", "Overview", el("section", { class: "figure wide bare", "aria-label": "Head figures" }, headFigures(report)),
    life ? figure({ title: "Bytes by time", size: "wide", sql: sql.life, from, lead: `All topics, in steps of ${secondsText(life.step / 1000)}, by each batch's largest timestamp.` },
      lifeChart("Bytes", life, "bytes", BYTES_AXIS, bytesText, "var(--series)")) : null,
    foldersFigure(report, from)));
  if (report.changes) page.push(changesSection(report));
  page.push(topicsSection(report, from), savingsSection(report), groupsSection(report), troubleSection(report));
  return page;
}

const paths = (report) => report.paths.flatMap((path, place) => [place ? ", " : "", named(path, { class: "code" })]);

function foldersFigure(report, from) {
  const rows = report.folders;
  return figure({ title: "Folders", size: "wide", sql: report.sql.folders, from }, dataTable({
    caption: "Folders of brokers", rows, empty: "There is no folder with logs.",
    columns: [textColumn("Folder", "path"), { label: "Broker", numeric: true, value: (row) => row.brokerId, cell: (row) => (isMissing(row.brokerId) ? missing() : String(row.brokerId)) },
      textColumn("Cluster", "clusterId", { secondary: true }), countColumn("Topics", "topics"), countColumn("Partitions", "partitions", { secondary: true }), barColumn("Bytes", "bytes", rows)],
  }));
}

function topicsSection(report, from) {
  const { topics, sql } = report;
  if (!topics.length) return section("topics", "Topics", el("p", { class: "empty figure wide" }, "There is no topic in this folder."));
  return section("topics", "Topics",
    figure({ title: "Map of the topics", size: "wide", sql: sql.topics, from, lead: "The colour is the codec of most of a topic's bytes." }, treemap(report)),
    figure({ title: "All topics", size: "wide", sql: sql.topics, from }, topicsTable(report)),
    skewFigure(report, from),
    shareFigure("Codecs", "codec", from, sql.codecs, codecShares(topics), "third"),
    shareFigure("Formats", "format", from, sql.formats, batchShares(topics, "formats"), "third"),
    shareFigure("Timestamps", "type", from, sql.timestampTypes, batchShares(topics, "timestampTypes"), "third"));
}

function topicsTable(report) {
  const { topics } = report;
  return dataTable({
    caption: "Topics by size", rows: topics, sorted: [1, true], filter: "Filter topics",
    columns: [
      topicColumn(), barColumn("Bytes", "bytes", topics), barColumn("Records", "records", topics, count), countColumn("Partitions", "partitions", { secondary: true }),
      { label: "Skew", numeric: true, secondary: true, value: skewOf, cell: (row) => skewCell(skewOf(row)) },
      { label: "Codec", secondary: true, value: (row) => mainCodec(row), cell: (row) => codecText(row) },
      timeColumn("Oldest", "firstTimestamp", { secondary: true }), timeColumn("Newest", "lastTimestamp", { secondary: true }),
      countColumn("Groups", "groups", { secondary: true }),
    ],
  });
}

function codecText(topic) {
  const codec = mainCodec(topic);
  if (!codec) return missing();
  const others = Object.keys(topic.codecs).length - 1;
  return el("span", { title: Object.entries(topic.codecs).map(([name, row]) => `${name}: ${bytesText(row.bytes)}`).join(", ") }, others ? `${codec} + ${others}` : codec);
}

function skewFigure(report, from) {
  const rows = report.topics.map((topic) => ({ ...topic, skew: skewOf(topic), largest: Math.max(0, ...topic.eachPartition.map((row) => row.bytes)) }))
    .filter((row) => row.skew > 1.2);
  return figure({ title: "Skew of partitions", size: "wide", sql: report.sql.skew, from, lead: "Topics whose largest partition has more than 1.2 times the mean." }, dataTable({
    caption: "Topics by skew", rows, sorted: [2, true], limit: 8, empty: "The partitions of each topic are about equal.",
    columns: [topicColumn(), { label: "Bytes of each partition", cell: (row) => partitionBars(row.eachPartition) },
      { label: "Skew", numeric: true, value: (row) => row.skew, cell: (row) => skewCell(row.skew) },
      bytesColumn("Largest", "largest", { secondary: true }), countColumn("Partitions", "partitions", { secondary: true })],
  }));
}

function codecShares(topics) {
  const added = {};
  for (const topic of topics) {
    for (const [name, part] of Object.entries(topic.codecs ?? {})) {
      const row = (added[name] ??= { name, batches: 0, records: 0, bytes: 0 });
      for (const key of ["batches", "records", "bytes"]) row[key] += part[key] ?? 0;
    }
  }
  return Object.values(added);
}

function batchShares(topics, key) {
  const added = {};
  for (const topic of topics) {
    for (const [name, batches] of Object.entries(topic[key] ?? {})) (added[name] ??= { name, batches: 0 }).batches += batches;
  }
  return Object.values(added);
}

function shareFigure(title, label, from, sql, rows, size) {
  const key = rows.some((row) => "bytes" in row) ? "bytes" : "batches";
  const total = rows.reduce((sum, row) => sum + row[key], 0);
  const columns = [textColumn(label[0].toUpperCase() + label.slice(1), "name")];
  if (key === "bytes") columns.push(barColumn("Bytes", "bytes", rows), ...(size === "third" ? [] : [countColumn("Records", "records")]));
  else columns.push(barColumn("Batches", "batches", rows, count));
  columns.push({ label: "Share", numeric: true, value: (row) => row[key], cell: (row) => share(row[key], total) });
  return figure({ title, sql, from, size }, dataTable({ caption: title, rows, sorted: [1, true], columns, empty: "There are no figures." }));
}
