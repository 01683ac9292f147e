// The way of a query: documents scanned, candidates that thin out as the width grows, scores at the start, bytes read.

import { figure, line, linear, logarithmic, path, powers, rect, rounds, text, ticksX, ticksY, titled, dot } from "./charts.js";
import { bytes, count, inNumbers, percent, s, score } from "./dom.js";

const LONGEST_CHAIN = 6;

/** How many were left, from all documents to the results: what the funnel draws. */
function stations(way, found) {
  const shortlist = way.steps[0]?.candidates ?? 0;
  const read = way.steps.slice(1).map((step) => ({ width: step.width, left: step.candidates }));
  return [
    { width: way.start_width, left: way.documents, name: "scanned" },
    { width: way.start_width, left: shortlist, name: "shortlist" },
    ...read,
    { width: null, left: found, name: "results" },
  ].filter((station) => station.left > 0);
}

/** 500 → 60 → 14 → 10: about evenly thinned, never more than a few. */
export function chain(way, found) {
  const all = stations(way, found)
    .slice(1)
    .map((station) => station.left)
    .filter((left, i, before) => i === 0 || left !== before[i - 1]);
  if (all.length <= LONGEST_CHAIN) return all;
  const inner = all.slice(1, -1);
  const scale = linear([0, LONGEST_CHAIN - 1], [Math.log(all[0]), Math.log(Math.max(1, all.at(-1)))]);
  const picked = new Set();
  for (let i = 1; i < LONGEST_CHAIN - 1; i++) {
    const near = inner.map((left) => Math.abs(Math.log(left) - scale(i)));
    picked.add(inner[near.indexOf(Math.min(...near))]);
  }
  return [all[0], ...[...picked].sort((a, b) => b - a), all.at(-1)];
}

/** The same in a few sentences. */
export function story(way, found) {
  if (!way.steps.length) return "There is nothing to search.";
  const all = `All ${count(way.documents)} documents were compared on their first ${way.start_width} of ${way.full_width} numbers.`;
  const left = chain(way, found);
  const thinned =
    way.steps.length > 1
      ? ` Of the best ${count(left[0])}, more was read only while a place was in doubt: ${left.map(count).join(" → ")}.`
      : ` The best ${count(found)} of them are the answer; nothing more was read.`;
  const saved =
    way.bytes < way.full_bytes
      ? ` That is ${bytes(way.bytes)} instead of ${bytes(way.full_bytes)}: ${percent(way.bytes / way.full_bytes)}.`
      : ` That is ${bytes(way.bytes)}; with so few documents full width would read no more.`;
  return all + thinned + saved;
}

/** All figures of a query's way. */
export function drawn(way, found) {
  if (!way.steps.length) return [];
  return [funnel(way, found), amount(way), curve(way, found), numbers(way)];
}

function funnel(way, found) {
  const all = stations(way, found);
  const draw = (width, height) => {
    const [left, right, top, bottom] = [4, 4, 22, 36];
    const middle = top + (height - top - bottom) / 2;
    const half = logarithmic([Math.max(0.8, found / 2), Math.max(way.documents, found)], [1, (height - top - bottom) / 2]);
    const place = (width - left - right) / all.length;
    const thick = Math.min(place * 0.62, 40);
    const at = (i) => left + place * (i + 0.5);
    const kind = (station) => (station.name === "scanned" ? "whole" : station.name === "results" ? "fill strong" : "fill");
    const between = all.slice(1).map((station, i) => {
      const [a, b] = [half(all[i].left), half(station.left)];
      const [x, y] = [at(i) + thick / 2, at(i + 1) - thick / 2];
      return s("polygon", { class: "wash", points: `${x},${middle - a} ${y},${middle - b} ${y},${middle + b} ${x},${middle + a}` });
    });
    const blocks = all.map((station, i) => {
      const size = half(station.left);
      const words = `${count(station.left)} ${station.width === null ? "results" : `at ${station.width} numbers${station.name ? ` (${station.name})` : ""}`}`;
      return titled(rect(at(i) - thick / 2, middle - size, thick, 2 * size, kind(station)), words);
    });
    const ends = [0, 1, all.length - 1]; // always labelled, the others where there is room
    const roomy = (words, size) => {
      const kept = new Set(ends);
      for (let i = 2; i < all.length - 1; i++) {
        const near = [...kept].filter((other) => other > 0).every((other) => Math.abs(at(other) - at(i)) >= (size * (words[other].length + words[i].length)) / 2 + 4);
        if (near) kept.add(i);
      }
      return kept;
    };
    const counts = all.map((station) => count(station.left));
    const widths = all.map((station, i) => (i === 0 ? "all" : (station.width ?? "top")));
    const [told, ticked] = [roomy(counts, 7), roomy(widths.map(String), 7)];
    return [
      between,
      blocks,
      all.map((station, i) => told.has(i) && text(at(i), middle - half(station.left) - 6, counts[i], ends.includes(i) ? "value bold" : "value", "middle")),
      all.map((station, i) => ticked.has(i) && text(at(i), height - 18, widths[i], "tick", "middle")),
      text(left, height - 2, `numbers read of each candidate, out of ${way.full_width}`, "tick"),
    ];
  };
  const label = `Candidates thin out as the width grows: ${all.map((one) => `${count(one.left)} ${one.width === null ? "results" : `at ${one.width}`}`).join(", ")}.`;
  return figure(label, "Documents still in the race. Heights are on a log scale.", 236, draw);
}

function amount(way) {
  const part = Math.min(1, way.bytes / way.full_bytes);
  const draw = (width) => [
    rect(0.5, 0.5, width - 1, 15, "frame"),
    rect(0.5, 0.5, Math.max(2, (width - 1) * part), 15, "fill strong"),
    text(0, 33, `${bytes(way.bytes)} read`, "value bold"),
    text(width, 33, `${bytes(way.full_bytes)} at full width`, "value", "end"),
  ];
  return figure(`${bytes(way.bytes)} read, ${bytes(way.full_bytes)} at full width: ${percent(way.bytes / way.full_bytes)}.`, null, 38, draw);
}

function curve(way, found) {
  const scores = way.curve;
  const low = Math.min(0, ...scores);
  const draw = (width, height) => {
    const [left, right, top, bottom] = [34, 8, 10, 36];
    const x = logarithmic([1, Math.max(2, scores.length)], [left, width - right]);
    const y = linear([low, Math.max(...scores)], [height - bottom, top]);
    const points = scores.map((value, i) => [x(i + 1), y(value)]);
    const survivors = way.steps[0].survivors;
    const marked = way.steps.length > 1 && survivors < scores.length && survivors > 0;
    return [
      ticksY(y, rounds(Math.max(...scores), 3), left, width - right, (value) => value.toFixed(2)),
      path([[x(1), y(low)], ...points, [x(scores.length), y(low)]], "wash"),
      path(points, "stroke"),
      marked && [
        line(x(survivors), top, x(survivors), height - bottom, "mark"),
        text(x(survivors) - 5, top + 10, `${count(survivors)} read on`, "value", "end"),
      ],
      found > 0 && scores.length >= found && dot(x(found), y(scores[found - 1])),
      ticksX(x, [1, 2, 5, ...powers(10, scores.length).flatMap((p) => [p, 2 * p, 5 * p])].filter((r) => r <= scores.length), height - bottom, count, 30),
      text(left, height - 2, `rank at ${way.start_width} numbers`, "tick"),
    ];
  };
  const label = `Scores at the start width ${way.start_width}: best ${score(scores[0])}, rank ${found} ${score(scores[Math.max(0, found - 1)])}, rank ${scores.length} ${score(scores.at(-1))}.`;
  return figure(label, `Scores of the shortlist at the start width. The flatter the curve, the more is in doubt.`, 170, draw);
}

function numbers(way) {
  return inNumbers(
    "The way of this query, step by step",
    ["Width", "Candidates read", "Kept after it", "Numbers read so far", "Bytes so far"],
    way.steps.map((step) => [step.width, step.candidates, step.survivors, step.coordinates, step.bytes].map(count)),
  );
}
