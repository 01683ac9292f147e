// Charts that follow the service: at which width recent queries ended, and how long each stage took.

import { get } from "./api.js";
import { figure, line, linear, rect, rounds, text, ticksX, ticksY, titled } from "./charts.js";
import { byId, count, decimal, duration, h, inNumbers, refill } from "./dom.js";

const EVERY = 2000; // milliseconds
const LAST = 200; // queries
const SHOWN = 60; // of them in the chart of stages
const STAGES = [
  ["encode", "encoding the text"],
  ["wait", "waiting for a scan"],
  ["scan", "scan at the start width"],
  ["rescoring", "reading on"],
  ["search", "scan and reading on, not told apart"],
];

let seen = -1;

/** Looks at the service every few seconds, while the page is seen. */
export function setUpLive() {
  const look = async () => {
    if (!document.hidden) await refresh();
    setTimeout(look, EVERY);
  };
  look();
}

async function refresh() {
  let stats;
  try {
    stats = await get(`/v1/stats?last=${LAST}`);
  } catch {
    byId("live-note").textContent = "The service does not answer just now.";
    return;
  }
  if (stats.queries === seen) return;
  seen = stats.queries;
  byId("live-note").textContent = stats.queries
    ? `${count(stats.queries)} queries since this worker started, those of the side-by-side lists included.`
    : "No queries yet: the charts begin with the first.";
  refill(byId("live"), ...(stats.recent.length ? [ends(stats.recent), stages(stats.recent)] : []));
}

/** The width after which no more candidates were left than asked for, of queries that were explained: each of this page's is. */
function ends(recent) {
  const counts = new Map();
  const adaptive = recent.filter((query) => query.policy !== "fixed" && query.settled_width !== null);
  for (const query of adaptive) counts.set(query.settled_width, (counts.get(query.settled_width) ?? 0) + 1);
  if (!counts.size) return h("p", { class: "empty" }, "Of the recent queries none tells at which width it ended.");
  const widths = [...counts.keys()].sort((a, b) => a - b);
  const most = Math.max(...counts.values());
  const mean = adaptive.reduce((sum, query) => sum + query.mean_width, 0) / adaptive.length;
  const draw = (width, height) => {
    const [left, top, bottom] = [30, 10, 36];
    const place = (width - left) / widths.length;
    const y = linear([0, most], [height - bottom, top]);
    const thick = Math.min(28, place * 0.7);
    const at = (i) => left + place * (i + 0.5);
    return [
      ticksY(y, rounds(most, 3).filter(Number.isInteger), left, width, count),
      widths.map((one, i) => titled(rect(at(i) - thick / 2, y(counts.get(one)), thick, height - bottom - y(counts.get(one)), "fill"), `${counts.get(one)} at ${one}`)),
      line(left, height - bottom, width, height - bottom, "axis"),
      ticksX((one) => at(widths.indexOf(one)), widths, height - bottom, String, 30),
      text(left, height - 2, "width after which no more candidates were left than asked for", "tick"),
    ];
  };
  const rows = widths.map((one) => [count(one), count(counts.get(one))]);
  const label = `Of the last ${adaptive.length} adaptive queries: ${widths.map((one) => `${counts.get(one)} ended at ${one}`).join(", ")}.`;
  return h(
    "section",
    { "aria-labelledby": "ends-title" },
    h("h3", { id: "ends-title" }, "Where queries ended"),
    figure(label, `${count(adaptive.length)} adaptive queries; ${decimal(mean)} numbers per candidate on average.`, 190, draw),
    inNumbers("Queries by the width at which they ended", ["Width", "Queries"], rows),
  );
}

/** Seconds of each stage of a query; scan and rescoring are parts of search where they are known. */
function spent(query) {
  const { encode = 0, wait = 0, scan, rescoring = 0, search = 0 } = query.seconds;
  return scan === undefined ? { encode, wait, scan: 0, rescoring: 0, search } : { encode, wait, scan, rescoring, search: 0 };
}

function stages(recent) {
  const all = recent.map(spent);
  const last = all.slice(-SHOWN);
  const total = (one) => STAGES.reduce((sum, [stage]) => sum + one[stage], 0);
  const sorted = last.map(total).sort((a, b) => a - b);
  const most = sorted[Math.floor(0.95 * (sorted.length - 1))] * 1.15 || 1e-6; // a first, slow query would flatten all others
  const draw = (width, height) => {
    const [left, top, bottom] = [52, 10, 36];
    const place = (width - left) / Math.max(last.length, 20);
    const y = linear([0, most], [height - bottom, top]);
    const bars = last.map((one, i) => {
      let floor = 0;
      return STAGES.map(([stage]) => {
        const from = floor;
        floor = Math.min(most, floor + one[stage]);
        return rect(left + place * i + 0.5, y(floor), Math.max(1, Math.min(14, place - 1)), y(from) - y(floor), `stage ${stage}`);
      });
    });
    return [
      ticksY(y, rounds(most, 3), left, width, duration),
      bars,
      line(left, height - bottom, width, height - bottom, "axis"),
      text(left, height - 2, "queries, newest on the right", "tick"),
    ];
  };
  const median = (stage) => {
    const values = all.map((one) => one[stage]).filter((value) => value > 0).sort((a, b) => a - b);
    return values.length ? values[Math.floor((values.length - 1) / 2)] : null;
  };
  const known = STAGES.map(([stage, words]) => [stage, words, median(stage)]).filter(([, , value]) => value !== null);
  const label = `Median time per stage: ${known.map(([, words, value]) => `${words} ${duration(value)}`).join(", ")}.`;
  return h(
    "section",
    { "aria-labelledby": "stages-title" },
    h("h3", { id: "stages-title" }, "Time per stage"),
    figure(label, null, 190, draw),
    h("ul", { class: "legend" }, known.map(([stage, words, value]) => h("li", null, h("span", { class: `swatch ${stage}`, "aria-hidden": "true" }), words, " ", h("b", null, duration(value))))),
    h("p", { class: "hint" }, "Medians of recent queries. A bar that is cut off took longer than nearly all others."),
  );
}
