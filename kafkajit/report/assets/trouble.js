// Groups with their lag, trouble with its place, and what changed since an earlier report.

const SEVERITIES = ["damage", "warning", "note"];
const SEVERITY_MARKS = { damage: "✖", warning: "▲", note: "●" };

const severityMark = (severity, text) =>
  el("span", { class: `severity ${SEVERITIES.includes(severity) ? severity : "note"}` }, el("i", { "aria-hidden": "true" }, SEVERITY_MARKS[severity] ?? "●"), text ?? visible(severity));

const MEMBERS = new Map([[true, "yes"], [false, "no"]]);
const membersColumn = { label: "Members", value: (row) => MEMBERS.get(row.hasMembers) ?? null, cell: (row) => MEMBERS.get(row.hasMembers) ?? missing() };

const GROUPS_FROM = "From __consumer_offsets, __share_group_state and the ends of the logs";
// A broker of a larger cluster has the commits of some groups only.
const commitsText = (report) => `The commits are those in ${plural(new Set(report.topics.find((topic) => topic.topic === "__consumer_offsets")?.eachPartition.map((one) => one.partition)).size, "partition")} of __consumer_offsets.`;
const groupColumn = { label: "Group", value: (row) => row.group, cell: (row) => el("span", {}, named(row.group), row.kind === "share" ? el("small", {}, "share group") : null) };

function groupsSection(report) {
  if (report.groups === null) return section("groups", "Groups", el("p", { class: "empty figure wide" }, "Groups were not read: their offsets are in the topics __consumer_offsets and __share_group_state."));
  const added = new Map();
  for (const row of report.groups) {
    const key = JSON.stringify([row.group, row.kind, row.topic]);
    const sum = added.get(key) ?? { group: row.group, kind: row.kind, topic: row.topic, partitions: 0, unknown: 0, lag: null, most: null, committedAt: null, hasMembers: row.hasMembers };
    sum.partitions += 1;
    if (isMissing(row.lag)) {
      sum.unknown += 1;
    } else {
      // A commit behind the end of one partition makes up for no record of another.
      sum.lag = (sum.lag ?? 0) + Math.max(row.lag, 0);
      sum.most = Math.max(sum.most ?? 0, row.lag);
    }
    if (hasTime(row.committedAt)) sum.committedAt = Math.max(sum.committedAt ?? 0, row.committedAt);
    added.set(key, sum);
  }
  const rows = [...added.values()];
  return section("groups", "Groups", figure({ title: "Lag", size: "wide", sql: report.sql.groups, from: GROUPS_FROM, lead: `Records between a group's commits and the ends of the partitions. ${commitsText(report)}` }, dataTable({
    caption: "Groups by lag", rows, sorted: [3, true], filter: "Filter groups", empty: "No group has committed offsets.",
    columns: [groupColumn, topicColumn(), countColumn("Partitions", "partitions", { secondary: true }), barColumn("Lag", "lag", rows, count),
      rows.some((row) => row.unknown) ? countColumn("Partitions without lag", "unknown") : null,
      countColumn("Of one partition", "most", { secondary: true }), timeColumn("Last commit", "committedAt", { secondary: true }), { ...membersColumn, secondary: true }].filter(Boolean),
  })));
}

const place = (row) => el("span", { class: "place" }, named(row.path ?? "", { class: "code" }),
  isMissing(row.position) ? null : el("small", {}, `at ${exact(row.position)}${isMissing(row.length) ? "" : `, ${plural(row.length, "byte")}`}`));

function troubleTable(rows) {
  const columns = [
    { label: "Severity", value: (row) => SEVERITIES.indexOf(row.severity), cell: (row) => severityMark(row.severity) },
    { label: "Partition", secondary: true, value: (row) => `${row.topic ?? ""} ${row.partition ?? ""}`, cell: (row) => (isMissing(row.topic) ? missing() : el("span", {}, topicName(row.topic), isMissing(row.partition) ? null : el("small", {}, `partition ${row.partition}`))) },
    { label: "Problem", value: (row) => `${row.problem} ${row.kind} ${row.path} ${row.advice ?? ""}`, cell: (row) => el("div", { class: "problem" },
      el("p", {}, el("b", {}, visible(row.kind)), ": ", named(row.problem)), place(row), row.advice ? el("p", { class: "advice" }, named(row.advice)) : null) },
  ];
  return dataTable({ caption: "Trouble by severity", rows, sorted: [0, false], columns, filter: "Filter trouble", empty: "No trouble was found." });
}

// More trouble than a table shows at first, added up.
function kindsFigure(report) {
  if (report.trouble.length <= ROWS) return null;
  const added = new Map();
  for (const row of report.trouble) {
    const key = JSON.stringify([row.severity, row.kind]);
    const sum = added.get(key) ?? { severity: row.severity, kind: row.kind, times: 0, names: new Set() };
    sum.times += 1;
    sum.names.add(row.topic);
    added.set(key, sum);
  }
  const rows = [...added.values()].map((row) => ({ ...row, topics: row.names.size }));
  return figure({ title: "By kind", size: "wide", from: fromHeaders(report.takenFrom.headers) }, dataTable({
    caption: "Kinds of trouble", rows, sorted: [0, false],
    columns: [{ label: "Severity", value: (row) => SEVERITIES.indexOf(row.severity), cell: (row) => severityMark(row.severity) },
      textColumn("Kind", "kind"), barColumn("Times", "times", rows, count), countColumn("Topics", "topics")],
  }));
}

function troubleSection(report) {
  return section("trouble", "Trouble", kindsFigure(report), figure({ title: "By severity", size: "wide", sql: report.sql.trouble, from: fromHeaders(report.takenFrom.headers) }, troubleTable(report.trouble)));
}

function changesSection(report) {
  const { changes, totals } = report;
  const changed = (key, draw) => el("span", {}, signed(totals[key] - changes.totals[key], draw));
  const listed = (title, names) => figure({ title: `${title}: ${countText(names.length)}` }, dataTable({
    caption: title, rows: names.map((topic) => ({ topic })), limit: 10, empty: "None.",
    columns: [title === "Topics gone" ? textColumn("Topic", "topic") : topicColumn()],
  }));
  const troubled = (title, rows) => (rows.length ? figure({ title: `${title}: ${countText(rows.length)}`, size: "wide" }, troubleTable(rows)) : null);
  return section("changes", "Changes",
    el("section", { class: "figure wide bare", "aria-label": "Changes of the head figures" },
      el("p", { class: "lead" }, "Since the report of ", time(changes.madeAt), ", ", secondsText(Math.max(0, report.madeAt - changes.madeAt) / 1000), " earlier."),
      ...changes.unlike.map((text) => el("p", { class: "lead" }, text)),
      tiles(...[["Size of the logs", "bytes", bytesText], ["Records", "records", countText], ["Topics", "topics", countText], ["Partitions", "partitions", countText]]
        .map(([label, key, draw]) => tile(label, changed(key, draw), `${draw(changes.totals[key])} → ${draw(totals[key])}`)))),
    figure({ title: "Topics that changed", size: "wide", from: "From both reports" }, dataTable({
      caption: "Topics by change", rows: changes.topics, sorted: [2, true], limit: 15, filter: "Filter topics", empty: "No topic changed.",
      columns: [topicColumn(), bytesColumn("Bytes", "bytes", { secondary: true }), changeColumn("Change of bytes", "bytesChange", bytesText),
        countColumn("Records", "records", { secondary: true }), changeColumn("Change of records", "recordsChange", countText)],
    })),
    listed("New topics", changes.newTopics), listed("Topics gone", changes.goneTopics),
    troubled("New trouble", changes.newTrouble), troubled("Trouble gone", changes.goneTrouble),
    troubled("Trouble that this report does not look for", changes.unknownTrouble));
}

const signed = (value, draw) => (value ? el("data", { value, title: exact(value) }, `${value > 0 ? "+" : "−"} ${draw(Math.abs(value))}`) : "unchanged");
const changeColumn = (label, key, draw) => ({ label, numeric: true, value: (row) => row[key], cell: (row) => signed(row[key], draw) });
