// The topics as a map: links whose areas are their sizes. Vega computes the places.

// Topics that have a place of their own: as many as leave room for a name in most places.
const MAPPED = 60;
const MAPPED_IF_NARROW = 20;
const NARROW = 600; // pixels

function treemap(report) {
  const box = el("div", { class: "treemap plot", role: "group", "aria-label": "Topics by size: each area is a link to a topic" });
  const others = el("p", { class: "others" });
  const legend = el("ul", { class: "legend" });
  let key = "bytes";
  let ratio = 0;
  const host = el("div", {}, choice("Area", [["bytes", "Bytes"], ["records", "Records"]], key, (chosen) => {
    key = chosen;
    lay();
  }), box, others, legend);
  const sizeText = (size) => (key === "bytes" ? bytesText(size) : plural(size, "record"));

  async function lay() {
    const width = box.clientWidth || 1000;
    const height = box.clientHeight || 340;
    ratio = width / height;
    const most = width < NARROW ? MAPPED_IF_NARROW : MAPPED;
    const sorted = report.topics.filter((topic) => topic[key] > 0).sort((a, b) => b[key] - a[key]);
    const values = sorted.slice(0, most).map((topic) => ({ topic, parent: "all", size: topic[key] }));
    const rest = sorted.slice(most);
    const left = rest.reduce((sum, topic) => sum + topic[key], 0);
    others.replaceChildren(rest.length ? `${plural(rest.length, "smaller topic")} with ${sizeText(left)} ${rest.length === 1 ? "is" : "are"} not on the map.` : "");
    legend.replaceChildren(...codecsOf(sorted.slice(0, most)));
    values.forEach((value, place) => { value.id = String(place); });
    const places = await cells(values, width, height);
    box.replaceChildren(...(places.length ? places.map((cell) => cellOf(cell, width, height)) : [el("p", { class: "empty" }, "All topics are empty.")]));
  }

  async function cells(values, width, height) {
    if (!values.length) return [];
    const spec = { data: [{ name: "tree", values: [{ id: "all" }, ...values], transform: [
      { type: "stratify", key: "id", parentKey: "parent" },
      { type: "treemap", field: "size", sort: { field: "value", order: "descending" }, ratio: 1.6, size: [width, height] } ] }] };
    const { view, finalize } = await vegaEmbed(el("div"), spec, { ...EMBEDDING, mode: "vega" });
    const found = view.data("tree").filter((cell) => cell.parent);
    finalize();
    return found;
  }

  function cellOf(cell, width, height) {
    const text = sizeText(cell.size);
    const node = el("a", { href: topicLink(cell.topic.topic), class: "cell", title: `${visible(cell.topic.topic).slice(0, LONGEST)}: ${text}`, "data-size": cell.size },
      el("span", {}, named(cell.topic.topic, { title: null }), el("small", {}, text)));
    const codec = mainCodec(cell.topic);
    if (codec) node.style.setProperty("--codec", `var(--codec-${CODECS.includes(codec) ? codec : "none"})`);
    const place = { left: cell.x0 / width, top: cell.y0 / height, width: (cell.x1 - cell.x0) / width, height: (cell.y1 - cell.y0) / height };
    for (const [name, value] of Object.entries(place)) node.style[name] = `${100 * value}%`;
    return node;
  }

  box.draw = async () => {
    await vegaIsReady;
    await lay();
    new ResizeObserver(() => {
      const now = box.clientWidth / box.clientHeight;
      if (box.isConnected && Math.abs(now / ratio - 1) > 0.2) lay();
    }).observe(box);
  };
  return host;
}

function mainCodec(topic) {
  const sorted = Object.entries(topic.codecs ?? {}).sort((a, b) => b[1].bytes - a[1].bytes);
  return sorted.length ? sorted[0][0] : null;
}

function codecsOf(topics) {
  const used = new Set(topics.map(mainCodec));
  return CODECS.filter((codec) => used.has(codec)).map((codec) => {
    const swatch = el("i", { "aria-hidden": "true" });
    swatch.style.setProperty("--codec", `var(--codec-${codec})`);
    return el("li", {}, swatch, codec === "none" ? "not compressed" : codec);
  });
}
