// Numbers, times and names as a person reads them; the exact value is in the title.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const TWO = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });
const MISSING = "–";
const FARTHEST = 8.64e15; // of the milliseconds that a Date can be

const exact = (value) => WHOLE.format(value);

function scaled(value, step, units) {
  let number = value;
  let unit = 0;
  while (Math.abs(number) >= step * 0.9995 && unit < units.length - 1) {
    number /= step;
    unit += 1;
  }
  const text = Math.abs(number) >= 100 ? WHOLE.format(number) : SHORT.format(number);
  return units[unit] ? `${text} ${units[unit]}` : text;
}

const bytesText = (value) => scaled(value, 1000, ["B", "kB", "MB", "GB", "TB", "PB", "EB"]);
const countText = (value) =>
  Math.abs(value) < 100_000 ? exact(value) : scaled(value, 1000, ["", "k", "M", "bn", "trillion"]);
const binaryText = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB"]);

function secondsText(value) {
  if (value === 0) return "0 s";
  if (value < 1e-3) return `${SHORT.format(value * 1e6)} µs`;
  if (value < 1) return `${SHORT.format(value * 1e3)} ms`;
  if (value < 100) return `${SHORT.format(value)} s`;
  if (value < 3600) return `${TWO.format(value / 60)} min`;
  if (value < 86_400) return `${TWO.format(value / 3600)} h`;
  return plural(value < 864_000 ? Number(TWO.format(value / 86_400)) : Math.round(value / 86_400), "day");
}

function shareText(part, whole) {
  if (!whole || part === null || part === undefined) return MISSING;
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.1) return "< 0.1 %";
  if (share < 100 && share > 99.9) return "> 99.9 %";
  return `${share < 10 || share > 99 ? Number(share.toFixed(1)) : Math.round(share)} %`;
}

const plural = (count, one, many = `${one}s`) => `${countText(count ?? 0)} ${count === 1 ? one : many}`;
const hasTime = (ms) => ms !== null && ms !== undefined && ms >= 0;
const isoText = (ms) => (Math.abs(ms) <= FARTHEST ? new Date(ms).toISOString() : String(ms));

function timeText(ms) {
  if (Math.abs(ms) > FARTHEST) return String(ms); // such a timestamp is a broken producer's
  const iso = new Date(ms).toISOString();
  return `${iso.slice(0, iso.indexOf("T"))} ${iso.slice(iso.indexOf("T") + 1, -8)}Z`;
}

const agoText = (ms, now) =>
  ms > now ? `${secondsText((ms - now) / 1000)} ahead` : `${secondsText((now - ms) / 1000)} ago`;

// Names come from files that anybody may have written: no control character and no override of
// the reading direction gets through.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/g;
const DIRECTIONS = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const wellFormed = (text) => (text.toWellFormed ? text.toWellFormed() : text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
const visible = (text) =>
  wellFormed(String(text))
    .replace(CONTROLS, (c) => (c < "\u0020" ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd"))
    .replace(DIRECTIONS, "\ufffd");

const topicLink = (name) => `#topic=${encodeURIComponent(wellFormed(name))}`;
