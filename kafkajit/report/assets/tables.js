// A table that sorts by its headings' buttons, filters by text, and draws as many rows as are asked for.
//
// A column: {label, value: row → number or text to sort by, cell: row → node, numeric, secondary}.
// The first column is the row's heading. Secondary columns are left out on a narrow screen.

const ROWS = 25;
const compareText = new Intl.Collator("en", { numeric: true }).compare;

function dataTable({ caption, columns, rows, sorted, filter, limit = ROWS, empty = "None." }) {
  if (!rows.length) return el("p", { class: "empty" }, empty);
  const state = { column: sorted?.[0] ?? null, down: sorted?.[1] ?? false, text: "", limit };
  const texts = new Map();
  const body = el("tbody");
  const counted = el("p", { class: "counted", role: "status" });
  const more = el("button", { type: "button", class: "quiet", click: () => {
    const first = state.limit;
    state.limit = Infinity;
    draw();
    body.rows[first]?.querySelector("a, button")?.focus();
  } });
  const headings = columns.map((column, place) => {
    const mark = el("span", { class: "mark", "aria-hidden": "true" });
    const button = el("button", { type: "button", click: () => {
      state.down = state.column === place ? !state.down : Boolean(column.numeric);
      state.column = place;
      draw();
    } }, column.label, mark);
    return el("th", { scope: "col", class: classOf(column) }, column.value ? button : column.label);
  });
  const table = el("table", {}, el("caption", { class: "offscreen" }, caption),
    el("thead", {}, el("tr", {}, headings)), body);

  function matches(row) {
    if (!texts.has(row)) texts.set(row, columns.map((column) => column.value?.(row) ?? "").join("\n").toLowerCase());
    return texts.get(row).includes(state.text);
  }

  function chosen() {
    const found = state.text ? rows.filter(matches) : [...rows];
    const value = columns[state.column]?.value;
    if (!value) return found;
    const sign = state.down ? -1 : 1;
    return found.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y); // the missing come last
      return sign * (typeof x === "string" ? compareText(x, y) : x - y);
    });
  }

  function draw() {
    const found = chosen();
    body.replaceChildren(...found.slice(0, state.limit).map(rowOf));
    headings.forEach((heading, place) => {
      const isSorted = place === state.column;
      heading.setAttribute("aria-sort", isSorted ? (state.down ? "descending" : "ascending") : "none");
      if (!columns[place].value) heading.removeAttribute("aria-sort");
    });
    const shown = Math.min(found.length, state.limit);
    counted.textContent = found.length < rows.length || shown < found.length
      ? `${exact(shown)} of ${exact(rows.length)} shown${state.text ? `, ${exact(found.length)} match` : ""}` : "";
    more.hidden = shown === found.length;
    more.textContent = `Show all ${exact(found.length)}`;
  }

  const rowOf = (row) => el("tr", {}, columns.map((column, place) =>
    el(place ? "td" : "th", { scope: place ? null : "row", class: classOf(column) }, column.cell(row))));

  let tools = null;
  if (filter && rows.length > 5) {
    const input = el("input", { type: "search", "aria-label": filter, placeholder: filter, spellcheck: "false", input: () => {
      state.text = input.value.trim().toLowerCase();
      draw();
    } });
    tools = el("div", { class: "tools" }, input);
  }
  draw();
  const box = el("div", { class: "table" }, tools,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table),
    el("div", { class: "tools" }, counted, more));
  box.drawAll = () => { // of the overview, when it is printed
    const before = state.limit;
    state.limit = Infinity;
    draw();
    return () => { state.limit = before; draw(); };
  };
  return box;
}

const classOf = (column) => [column.numeric ? "number" : null, column.secondary ? "secondary" : null]
  .filter(Boolean).join(" ") || null;

// Columns that many tables have.
const textColumn = (label, key, more) => ({ label, value: (row) => row[key], cell: (row) => (isMissing(row[key]) ? missing() : named(row[key])), ...more });
const bytesColumn = (label, key, more) => ({ label, numeric: true, value: (row) => row[key], cell: (row) => bytes(row[key]), ...more });
const countColumn = (label, key, more) => ({ label, numeric: true, value: (row) => row[key], cell: (row) => count(row[key]), ...more });
const timeColumn = (label, key, more) => ({ label, numeric: true, value: (row) => (hasTime(row[key]) ? row[key] : null), cell: (row) => time(row[key]), ...more });
const topicColumn = (more) => ({ label: "Topic", value: (row) => row.topic, cell: (row) => (isMissing(row.topic) ? missing() : topicName(row.topic)), ...more });

function barColumn(label, key, rows, draw = bytes, more = {}) {
  const largest = rows.reduce((most, row) => Math.max(most, row[key] ?? 0), 0);
  return { label, numeric: true, value: (row) => row[key], cell: (row) => (isMissing(row[key]) ? missing() : barred(draw(row[key]), row[key], largest)), ...more };
}
