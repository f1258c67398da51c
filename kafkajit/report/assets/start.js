// Opens the document, and shows the overview or the topic that the address names.

async function inflated(id) {
  const binary = atob(document.getElementById(id).textContent.trim());
  const packed = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// Rows are stored as columns, which compress better.
function unpacked(value) {
  if (Array.isArray(value)) return value.map(unpacked);
  if (value === null || typeof value !== "object") return value;
  if (!("$rows" in value)) return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, unpacked(part)]));
  const columns = Object.entries(value.columns).map(([key, column]) => [key, unpacked(column)]);
  return Array.from({ length: value.$rows }, (_, row) => Object.fromEntries(columns.map(([key, column]) => [key, column[row]])));
}

// The report with empty parts where figures were not taken.
function completed(report) {
  const whole = { ...report, groups: report.groups ?? null };
  for (const name of ["paths", "folders", "topics", "trouble"]) whole[name] ??= [];
  for (const name of ["totals", "takenFrom", "sql"]) whole[name] ??= {};
  whole.topics = whole.topics.map((topic) => ({
    ...topic, eachPartition: topic.eachPartition ?? [], savings: topic.savings ?? null,
  }));
  return whole;
}

async function loadVega() {
  const text = await inflated("vega");
  document.head.append(el("script", {}, text)); // the policy names the hash of this text
}

function themeSwitch() {
  const set = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    try { localStorage.setItem("kafkajit-report-theme", theme); } catch { /* not allowed: it lasts as long as the page */ }
  };
  let theme = "";
  try { theme = localStorage.getItem("kafkajit-report-theme") ?? ""; } catch { /* as above */ }
  if (!["light", "dark"].includes(theme)) theme = "";
  set(theme);
  document.getElementById("theme").replaceWith(
    Object.assign(choice("Colours", [["", "Auto"], ["light", "Light"], ["dark", "Dark"]], theme, set), { id: "theme" }));
}

function navigation(report) {
  const links = [["overview", "Overview"], report.changes ? ["changes", "Changes"] : null, ["topics", "Topics"], ["savings", "Savings"], ["groups", "Groups"], ["trouble", "Trouble"]].filter(Boolean);
  document.getElementById("sections").replaceChildren(...links.map(([id, text]) => el("a", { href: `#${id}` }, text)));
  document.getElementById("jump-names").replaceChildren(...report.topics.map((topic) => el("option", { value: topic.topic })));
  const input = document.getElementById("jump-name");
  const jump = (event) => {
    event.preventDefault();
    const wanted = input.value.trim();
    const found = report.topics.find((topic) => topic.topic === wanted) ?? report.topics.find((topic) => topic.topic.includes(wanted));
    if (!wanted || !found) return say("There is no such topic");
    input.value = "";
    location.hash = topicLink(found.topic);
  };
  document.getElementById("jump").addEventListener("submit", jump);
  input.addEventListener("input", (event) => { // chosen from the list
    if (event.inputType === "insertReplacementText" || !event.inputType) jump(event);
  });
}

function show(report) {
  const main = document.getElementById("main");
  const hash = location.hash.slice(1);
  let name = null;
  if (hash.startsWith("topic=")) {
    try { name = decodeURIComponent(hash.slice(6)); } catch { name = hash.slice(6); }
  }
  const topic = name === null ? null : report.topics.find((each) => each.topic === name || topicLink(each.topic) === `#${hash}`);
  if (topic) {
    clearCharts();
    main.replaceChildren(...topicPage(report, topic));
    main.dataset.view = topic.topic;
    document.title = `${visible(topic.topic)} – Kafka logs`;
    window.scrollTo(0, 0);
    main.querySelector("h1").focus({ preventScroll: true });
  } else {
    if (main.dataset.view !== "") {
      clearCharts();
      main.replaceChildren(...overview(report));
      main.dataset.view = "";
      document.title = `Kafka logs – ${report.paths.map(visible).join(", ")}`;
    }
    if (name !== null) say(`There is no topic ${visible(name)} in this report`);
    const target = document.getElementById(hash);
    if (target?.classList.contains("part") && hash !== "overview") {
      target.scrollIntoView();
      target.focus({ preventScroll: true });
    } else window.scrollTo(0, 0);
  }
  for (const link of document.querySelectorAll("#sections a")) {
    const isHere = topic ? link.hash === "#topics" : link.hash === `#${hash || "overview"}`;
    if (isHere) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  drawCharts(main);
}

function printing() {
  let undo = [];
  window.addEventListener("beforeprint", () => {
    undo = [...document.querySelectorAll(".table")].map((table) => table.drawAll?.()).filter(Boolean);
  });
  window.addEventListener("afterprint", () => {
    undo.forEach((step) => step());
    undo = [];
  });
}

async function start() {
  themeSwitch();
  const main = document.getElementById("main");
  try {
    const report = completed(unpacked(JSON.parse(await inflated("document"))));
    vegaIsReady = loadVega();
    navigation(report);
    document.getElementById("footer").append(el("p", {}, `Made by ${visible(report.madeBy)} in ${secondsText(report.seconds ?? 0)}, `, time(report.madeAt),
      ". Times are UTC; 1 kB is 1,000 bytes. This file makes no request."));
    show(report);
    window.addEventListener("hashchange", () => show(report));
    printing();
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    main.replaceChildren(el("p", { role: "alert" }, `The report cannot be read: ${error.message}. It needs a browser of 2023 or newer.`));
    throw error;
  }
}

start();
