// The width planner: how many numbers would a larger corpus need?

import { get } from "./api.js";
import { dot, figure, line, linear, logarithmic, path, powers, rounds, text, ticksX, ticksY, titled } from "./charts.js";
import { byId, bytes, compact, count, inNumbers } from "./dom.js";

const UNITS = { thousand: 1e3, k: 1e3, million: 1e6, m: 1e6, billion: 1e9, b: 1e9, bn: 1e9 };
const SIZES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/** Wires the form; the first question makes the service measure, which may take a while. */
export function setUpPlanner() {
  byId("planner").addEventListener("submit", (event) => {
    event.preventDefault();
    plan();
  });
}

/** 250,000, 1e8, 100 million. */
export function numberIn(words) {
  const match = /^([\d.,\s_]*\d[\d.,\s_]*(?:e\+?\d+)?)\s*([a-z]*)$/i.exec(words.trim());
  if (!match) return NaN;
  const unit = match[2] === "" ? 1 : (UNITS[match[2].toLowerCase()] ?? NaN);
  return Math.round(Number(match[1].replace(/[,\s_]/g, "")) * unit);
}

async function plan() {
  const documents = numberIn(byId("planner-documents").value);
  const k = Number(byId("planner-k").value);
  const answer = byId("planner-answer");
  if (!(documents >= 1 && documents <= 1e12)) {
    answer.textContent = "Give a number of documents between 1 and 1,000 billion, such as 100 million.";
    return;
  }
  answer.textContent = "Measuring on this index …";
  try {
    const asked = await get(`/v1/width?documents=${documents}&k=${k}`);
    const here = asked.measured.documents;
    const parts = asked.law ? [here / 4, here / 2, here].map(Math.round) : [];
    const sizes = [...new Set([...parts, ...SIZES, documents])].filter((size) => size >= 1).sort((a, b) => a - b);
    const plans = await Promise.all(sizes.map((size) => (size === documents ? asked : get(`/v1/width?documents=${size}&k=${k}`))));
    const now = plans[sizes.indexOf(here)];
    const today = documents !== here && now?.width ? ` The ${count(here)} documents that were measured here need ${width(now)}.` : "";
    answer.textContent = told(asked) + today;
    byId("planner-chart").replaceChildren(...(asked.law ? [chart(plans, asked), numbers(plans)] : []));
  } catch (error) {
    answer.textContent = error.message;
  }
}

function width(plan) {
  const sure = plan.interval && plan.interval[0] < plan.interval[1] ? ` (${count(plan.interval[0])} to ${count(plan.interval[1])})` : "";
  return `about ${count(plan.width)} of ${count(plan.full_width)} numbers${sure}`;
}

function told(plan) {
  if (plan.width === null) return `For ${compact(plan.documents)} documents this index can't say: ${plan.reason}.`;
  const far = plan.extrapolated ? " This is beyond what was measured." : "";
  const memory = plan.memory_bytes ? ` Their codes would take ${bytes(plan.memory_bytes)} of memory.` : "";
  return `${compact(plan.documents)} documents need ${width(plan)}.${memory}${far}`;
}

function chart(plans, asked) {
  const known = plans.filter((one) => one.width !== null);
  const draw = (width, height) => {
    const [left, right, top, bottom] = [40, 16, 14, 36];
    const x = logarithmic([plans[0].documents, plans.at(-1).documents], [left, width - right]);
    const y = linear([0, asked.full_width], [height - bottom, top]);
    const { documents } = asked.measured;
    return [
      ticksY(y, [...rounds(asked.full_width, 4)], left, width - right, count),
      line(left, y(asked.full_width), width - right, y(asked.full_width), "mark"),
      text(width - right, y(asked.full_width) + 14, "full width", "tick", "end"),
      line(left, height - bottom, width - right, height - bottom, "axis"),
      ticksX(x, powers(plans[0].documents, plans.at(-1).documents), height - bottom, compact, 40),
      path(known.map((one) => [x(one.documents), y(one.width)]), "stroke"),
      documents >= plans[0].documents && [line(x(documents), top, x(documents), height - bottom, "mark"), text(x(documents) + 5, top + 28, "measured here", "tick")],
      known.map((one) => [
        one.interval && line(x(one.documents), y(one.interval[0]), x(one.documents), y(one.interval[1]), "whisker"),
        titled(dot(x(one.documents), y(one.width), one === asked ? "dot big" : "dot", one === asked ? 6 : 4), `${count(one.width)} at ${compact(one.documents)}`),
      ]),
      plans.filter((one) => one.width === null).map((one) => text(x(one.documents), height - bottom - 8, "?", "value", "middle")),
      text(left, height - 2, "documents", "tick"),
    ];
  };
  const label = `Width by corpus size: ${plans.map((one) => `${compact(one.documents)} ${one.width === null ? "unknown" : one.width}`).join(", ")}.`;
  return figure(label, "Width that is enough for 9 of 10 queries, with its interval. A question mark: the data can't say.", 230, draw);
}

function numbers(plans) {
  return inNumbers(
    "Width by corpus size",
    ["Documents", "Width", "Interval", "Memory"],
    plans.map((one) => [count(one.documents), one.width === null ? "can't say" : count(one.width), one.interval ? one.interval.map(count).join(" to ") : "–", one.memory_bytes ? bytes(one.memory_bytes) : "–"]),
  );
}
