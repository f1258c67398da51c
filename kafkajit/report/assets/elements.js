// Elements of the page. Text is always a text node: names of topics, keys and paths are hostile.

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

const LONGEST = 160;

function named(text, attributes) {
  const whole = visible(text);
  const short = whole.length > LONGEST ? `${whole.slice(0, LONGEST)}…` : whole;
  return el("bdi", { title: short === whole ? null : whole.slice(0, 4000), ...attributes }, short || "(empty)");
}

const missing = () => el("span", { class: "missing", title: "not taken" }, MISSING);
const isMissing = (value) => value === null || value === undefined;
const quantity = (value, text, unit) =>
  isMissing(value) ? missing() : el("data", { value, title: unit ? `${exact(value)} ${unit}` : exact(value) }, text(value));
const bytes = (value) => quantity(value, bytesText, "bytes");
const count = (value) => quantity(value, countText);
const seconds = (value) =>
  isMissing(value) ? missing() : el("data", { value, title: `${value} seconds` }, secondsText(value));
const time = (ms) =>
  hasTime(ms) ? el("time", { datetime: isoText(ms), title: isoText(ms) }, timeText(ms)) : missing();
const share = (part, whole) =>
  isMissing(part) ? missing() : el("data", { value: part, title: `${exact(part)} of ${exact(whole)}` }, shareText(part, whole));
const topicName = (name) => el("a", { href: topicLink(name), class: "name" }, named(name));

// A number with a thin bar below it, as long as its share of the largest.
function barred(cell, value, largest) {
  const bar = el("i", { "aria-hidden": "true" });
  bar.style.setProperty("--share", largest > 0 ? Math.max(0, value / largest) : 0);
  return el("span", { class: "barred" }, cell, el("span", { class: "bar" }, bar));
}

function tile(label, value, note) {
  return el("div", { class: "tile" }, el("dt", {}, label), el("dd", {}, value, note ? el("small", {}, note) : null));
}

const tiles = (...all) => el("dl", { class: "tiles" }, ...all);

// A list of facts: pairs of a label and a value.
const facts = (pairs) =>
  el("dl", { class: "facts" }, pairs.filter(Boolean).map(([label, value, note]) =>
    el("div", {}, el("dt", {}, label), el("dd", {}, value, note ? el("small", {}, note) : null))));

let ids = 0;
const freshId = (stem) => `${stem}-${(ids += 1)}`;

// One figure: its heading, its content, what it was taken from, and the SQL that gives it.
function figure({ title, from, sql, lead, size }, ...content) {
  const heading = freshId("figure");
  const box = el("section", { class: size ? `figure ${size}` : "figure", "aria-labelledby": heading },
    el("h3", { id: heading }, title), lead ? el("p", { class: "lead" }, lead) : null, ...content);
  const foot = el("div", { class: "foot" }, el("p", { class: "from" }, from));
  if (sql) {
    const place = freshId("sql");
    const block = el("div", { id: place, class: "sql", hidden: true },
      el("pre", { tabindex: "0", role: "region", "aria-label": `SQL of ${title}` }, el("code", {}, sql)), copyButton(sql));
    foot.append(el("button", { type: "button", class: "quiet", "aria-expanded": "false", "aria-controls": place,
      "aria-label": `SQL of ${title}`, click: (event) => {
        block.hidden = !block.hidden;
        event.currentTarget.setAttribute("aria-expanded", String(!block.hidden));
      } }, "SQL"));
    box.append(foot, block);
  } else if (from) {
    box.append(foot);
  }
  return box;
}

function copyButton(text) {
  const button = el("button", { type: "button", class: "quiet copy", click: async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = el("textarea", { class: "offscreen", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy"); // where a file may not use the clipboard's interface
      area.remove();
      button.focus();
    }
    say("SQL copied");
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return button;
}

// A word to those who do not see what changed.
function say(text) {
  let region = document.getElementById("said");
  if (!region) {
    region = el("div", { id: "said", class: "offscreen", role: "status" });
    document.body.append(region);
  }
  region.textContent = text;
}

// Buttons of which one is pressed.
function choice(label, options, chosen, onChoice) {
  const buttons = options.map(([value, text]) =>
    el("button", { type: "button", "aria-pressed": String(value === chosen), click: () => {
      buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(options[place][0] === value)));
      onChoice(value);
    } }, text));
  return el("div", { class: "switch", role: "group", "aria-label": label }, buttons);
}

function selection(label, options, chosen, onChoice) {
  const id = freshId("choose");
  const select = el("select", { id, change: () => onChoice(options[select.selectedIndex][0]) },
    options.map(([value, text]) => el("option", { selected: value === chosen }, text)));
  return el("span", { class: "field" }, el("label", { for: id }, label), select);
}
