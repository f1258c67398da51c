// Charts by Vega, as SVG. Their colours are names of CSS variables, so that a change of colours and
// the printer need no new drawing. No expression is compiled by eval: Vega interprets it.

const CODEC_SHAPES = { none: "square", snappy: "diamond", lz4: "triangle-up", gzip: "cross", zstd: "circle" };
const CODECS = Object.keys(CODEC_SHAPES);
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
const BYTES_AXIS = { labelExpr: "datum.value == 0 ? '0' : replace(format(datum.value, '~s'), regexp('([a-zA-Z]?)$'), ' $1') + 'B'", tickCount: 4 };
const COUNT_AXIS = { labelExpr: "replace(format(datum.value, '~s'), 'G', 'bn')", tickCount: 4 };

const TIME_LABEL = "utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') : utcFormat(datum.value, '%Y-%m-%d')";

const CONFIG = {
  background: "transparent",
  font: FONT,
  view: { stroke: null },
  axis: {
    labelColor: "var(--muted)", titleColor: "var(--muted)", gridColor: "var(--line)", domainColor: "var(--line-strong)",
    tickColor: "var(--line-strong)", labelFontSize: 11, titleFontSize: 11, titleFontWeight: "normal", labelPadding: 5, titlePadding: 8,
  },
  axisX: { grid: false, tickSize: 4 },
  axisY: { domain: false, ticks: false, minExtent: 44 },
  legend: { labelColor: "var(--text)", titleColor: "var(--muted)", titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 11, symbolStrokeWidth: 1.5, titleOrient: "left", columnPadding: 14, layout: { top: { direction: "horizontal", anchor: "start", margin: 28 } } },
};

const tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });

function showTip(handler, event, item, value) {
  tip.hidden = isMissing(value) || value === "";
  if (tip.hidden) return;
  const rows = typeof value === "object" ? Object.entries(value) : [["", String(value)]];
  tip.replaceChildren(...rows.map(([key, text]) => el("div", {}, key ? el("span", {}, visible(key)) : null, el("b", {}, visible(text)))));
  if (!tip.isConnected) document.body.append(tip);
  const { clientX: x, clientY: y } = event;
  tip.style.left = `${Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${y + tip.offsetHeight + 24 > window.innerHeight ? y - tip.offsetHeight - 12 : y + 16}px`;
}

const EMBEDDING = { renderer: "svg", actions: false, ast: true, defaultStyle: false, hover: false, tooltip: showTip };

let vegaIsReady; // a promise: the charts come after the tables
let drawn = []; // views of the page that is shown

function clearCharts() {
  for (const result of drawn) result.finalize();
  drawn = [];
  tip.hidden = true;
}

// A chart with its numbers in a table below, which is made when it is opened.
function chart(description, spec, makeTable) {
  const plot = el("div", { class: "plot" });
  const numbers = el("details", { class: "numbers", toggle: () => {
    if (numbers.open && numbers.childElementCount === 1) numbers.append(makeTable());
  } }, el("summary", {}, "Numbers as a table"));
  plot.draw = async () => {
    await vegaIsReady;
    if (!plot.isConnected) return;
    const result = await vegaEmbed(plot,
      { ...spec, description, width: "container", autosize: { type: "fit-x", contains: "padding" }, config: CONFIG },
      { ...EMBEDDING, mode: "vega-lite" });
    if (!plot.isConnected) result.finalize();
    else drawn.push(result);
  };
  return el("div", { class: "chart" }, plot, numbers);
}

async function drawCharts(within) {
  for (const plot of within.querySelectorAll(".plot")) {
    await new Promise((shown) => setTimeout(shown)); // the tables are there before the charts
    if (plot.draw && plot.isConnected && !plot.childElementCount) await plot.draw();
  }
}

// Bars over time: of each step the values of a topic, or of all. A single step is a sentence.
function lifeChart(title, life, key, axis, text, color) {
  if (life[key].length === 1) return el("p", { class: "empty" }, `All are from ${timeText(life.from)} to ${timeText(life.from + life.step)}.`);
  const values = life[key].map((value, step) => ({ from: life.from + step * life.step, to: life.from + (step + 1) * life.step, value }));
  for (const row of values) row.tip = { Time: `${timeText(row.from)}, ${secondsText(life.step / 1000)}`, [title]: text(row.value), Exact: exact(row.value) };
  const spec = {
    height: 130,
    data: { values },
    mark: { type: "bar", orient: "vertical", color, binSpacing: values.length > 90 ? 0.5 : 1 },
    encoding: {
      x: { field: "from", type: "temporal", scale: { type: "utc" }, axis: { title: null, labelOverlap: true, labelSeparation: 10, labelFlush: true, tickCount: { expr: "width / 90" }, labelExpr: TIME_LABEL } },
      x2: { field: "to" },
      y: { field: "value", type: "quantitative", axis: { ...axis, title: null } },
      y2: { datum: 0 },
      description: { field: "label" },
      tooltip: { field: "tip" },
      // Bars thinner than a pixel fade: a line around those that are not empty keeps them visible.
      ...(values.length > window.innerWidth / 4 && { stroke: { value: color }, strokeWidth: { condition: { test: "datum.value > 0", value: 1 }, value: 0 } }),
    },
  };
  for (const row of values) row.label = `${isoText(row.from)}: ${row.value} ${key}`;
  return chart(`${title} by time, in steps of ${secondsText(life.step / 1000)}`, spec, () => dataTable({
    caption: `${title} by time`, limit: 50, rows: values,
    columns: [timeColumn("From", "from", { numeric: false }), { label: title, numeric: true, value: (row) => row.value, cell: (row) => (key === "bytes" ? bytes : count)(row.value) }],
  }));
}

// One life of many, in steps that hold the longest step of any: hours, days, weeks, months or years.
const MOST_STEPS = 400;

function addedLife(lives) {
  if (!lives.length) return null;
  const longest = lives.reduce((most, life) => Math.max(most, life.step), 0);
  const start = lives.reduce((least, life) => Math.min(least, life.from), Infinity);
  const end = lives.reduce((most, life) => Math.max(most, life.from + life.step * life.bytes.length), -Infinity);
  const step = [1, 6, 24, 168, 720, 8760].map((hours) => Math.max(longest, hours * 3_600_000)).find((each) => (end - start) / each <= MOST_STEPS);
  if (!step) return null; // timestamps of another century
  const floor = (ms) => Math.floor(ms / step) * step;
  const from = floor(start);
  const steps = Math.ceil((end - from) / step);
  const whole = { step, from, bytes: new Array(steps).fill(0), records: new Array(steps).fill(0) };
  for (const life of lives) {
    life.bytes.forEach((value, place) => {
      const at = Math.floor((life.from + place * life.step - from) / step);
      whole.bytes[at] += value;
      whole.records[at] += life.records[place];
    });
  }
  return whole;
}

const DURATIONS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 36_000, 360_000, 3_600_000];
const MORE_DURATIONS = [...DURATIONS, 3e-6, 3e-5, 3e-4, 3e-3, 3e-2, 0.3, 3, 30, 180, 1800, 10_800].sort((a, b) => a - b);
const FINE_DURATIONS = DURATIONS.flatMap((each) => [1, 1.5, 2, 3, 4, 5, 7].map((times) => each * times));
const DURATION_UNITS = [[1e-3, "µs", "* 1e6"], [1, "ms", "* 1e3"], [60, "s", "* 1"], [3600, "min", "/ 60"], [1e99, "h", "/ 3600"]];
const DURATION_LABEL = DURATION_UNITS.map(([end, unit, factor]) => `datum.value < ${end} * 0.999 ? format(datum.value ${factor}, ',.3~r') + ' ${unit}' : `).join("") + "''";

// Round durations on a logarithmic scale.
function durationTicks(rows) {
  const times = rows.map((row) => row.time);
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const within = (all) => all.filter((each) => each >= least && each <= most);
  const ticks = [DURATIONS, MORE_DURATIONS, FINE_DURATIONS].map(within);
  return ticks.find((each) => each.length > 3) ?? ticks.at(-1);
}

// Encodings: processor time against bytes. A codec has its colour and its shape.
function encodingsChart(rows, now, timeTitle) {
  const codecs = CODECS.filter((codec) => rows.some((row) => row.codec === codec));
  const batches = [...new Set(rows.map((row) => row.batchBytes))].sort((a, b) => a - b);
  const values = rows.map((row) => ({
    ...row, time: Math.max(row.encodeSeconds, 1e-6), batch: binaryText(row.batchBytes),
    label: `${encodingText(row)}: ${row.bytes} bytes, ${row.encodeSeconds} seconds to compress`,
    tip: { Encoding: encodingText(row), Bytes: bytesText(row.bytes), Compress: secondsText(row.encodeSeconds), Decompress: secondsText(row.decodeSeconds) },
  }));
  const spec = {
    height: 240,
    layer: [
      {
        data: { values },
        mark: { type: "point", filled: true, opacity: 0.9, stroke: "var(--surface)", strokeWidth: 1 },
        encoding: {
          x: { field: "time", type: "quantitative", scale: { type: "log", nice: false, padding: 14 }, axis: { title: timeTitle, labelExpr: DURATION_LABEL, values: durationTicks(values), labelOverlap: true, labelFlush: true } },
          y: { field: "bytes", type: "quantitative", axis: { ...BYTES_AXIS, title: "bytes" } },
          color: { field: "codec", type: "nominal", scale: { domain: codecs, range: codecs.map((codec) => `var(--codec-${codec})`) }, legend: { orient: "top", title: null } },
          shape: { field: "codec", type: "nominal", scale: { domain: codecs, range: codecs.map((codec) => CODEC_SHAPES[codec]) } },
          size: { field: "batch", type: "ordinal", sort: batches.map(binaryText), scale: { range: [50, 200] }, legend: { orient: "top", title: "batch.size", symbolFillColor: "var(--muted)", symbolStrokeColor: "transparent" } },
          description: { field: "label" },
          tooltip: { field: "tip" },
        },
      },
      {
        data: { values: [{ bytes: now, text: `now ${bytesText(now)}` }] },
        encoding: { y: { field: "bytes", type: "quantitative" } },
        layer: [
          { mark: { type: "rule", color: "var(--text)", strokeDash: [4, 3], description: `now: ${now} bytes` } },
          { mark: { type: "text", align: "right", baseline: "bottom", dy: -3, x: "width", color: "var(--text)", fontSize: 11 }, encoding: { text: { field: "text" } } },
        ],
      },
    ],
  };
  return chart("Bytes and processor time by codec, level and batch size", spec, () => encodingsTable(rows, now));
}

// Horizontal bars with their values beside them.
function barsChart(title, rows, labelKey, valueKey, text) {
  const values = rows.map((row) => ({ name: row[labelKey], value: row[valueKey], shown: text(row[valueKey]), label: `${row[labelKey]}: ${row[valueKey]}` }));
  const spec = {
    height: 26 * values.length,
    data: { values },
    encoding: {
      y: { field: "name", type: "nominal", sort: null, axis: { title: null, labelColor: "var(--text)", labelLimit: 140 } },
      x: { field: "value", type: "quantitative", axis: null, scale: { domainMax: 1.5 * Math.max(1, ...values.map((row) => row.value)) } },
    },
    layer: [
      { mark: { type: "bar", height: 14, color: "var(--series)" }, encoding: { description: { field: "label" } } },
      { mark: { type: "text", align: "left", dx: 5, color: "var(--text)", fontSize: 11 }, encoding: { text: { field: "shown" } } },
    ],
  };
  return { spec, title };
}
