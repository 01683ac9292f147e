// Scales, axes and frames of the charts. A chart is drawn at the width it has on the page, and again when that changes.

import { h, s } from "./dom.js";

export const linear = ([from, to], [low, high]) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);

export function logarithmic([from, to], range) {
  const scale = linear([Math.log(from), Math.log(to)], range);
  return (value) => scale(Math.log(Math.max(value, from)));
}

/** A figure whose `draw(width)` gives SVG elements; `label` says in words what it shows. */
export function figure(label, caption, height, draw) {
  const svg = s("svg", { role: "img", "aria-label": label });
  const holder = h("div", { class: "chart" }, svg);
  const redraw = (width) => {
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    svg.replaceChildren(...draw(width, height).flat(3).filter(Boolean));
  };
  new ResizeObserver(([entry]) => entry.contentRect.width > 0 && redraw(Math.round(entry.contentRect.width))).observe(holder);
  return h("figure", null, holder, caption && h("figcaption", null, caption));
}

export const text = (x, y, content, kind = "", anchor = "start") => s("text", { x, y, class: kind, "text-anchor": anchor }, content);
export const line = (x1, y1, x2, y2, kind = "") => s("line", { x1, y1, x2, y2, class: kind });
export const rect = (x, y, width, height, kind = "") =>
  s("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), class: kind });
export const path = (points, kind) => s("path", { d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""), class: kind });
export const dot = (x, y, kind = "dot", r = 3.5) => s("circle", { cx: x, cy: y, r, class: kind });
export const titled = (element, words) => {
  element.append(s("title", null, words));
  return element;
};

/** Ticks of a horizontal axis with labels below; those that would touch the one before are left out. */
export function ticksX(scale, values, y, worded, apart = 34) {
  let last = -Infinity;
  return values
    .filter((value) => {
      const fits = scale(value) - last >= apart;
      if (fits) last = scale(value);
      return fits;
    })
    .map((value) => [line(scale(value), y, scale(value), y + 4, "axis"), text(scale(value), y + 17, worded(value), "tick", "middle")]);
}

/** Ticks of a vertical axis with grid lines. */
export function ticksY(scale, values, from, to, worded) {
  return values.map((value) => [line(from, scale(value), to, scale(value), "grid"), text(from - 6, scale(value) + 4, worded(value), "tick", "end")]);
}

/** About `most` round numbers from 0 to a value. */
export function rounds(to, most = 4) {
  if (!(to > 0)) return [0];
  const rough = to / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((one) => one >= rough);
  return Array.from({ length: Math.floor(to / step + 1e-9) + 1 }, (_, i) => i * step);
}

export const powers = (from, to) => {
  const first = Math.ceil(Math.log10(from) - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(Math.log10(to) + 1e-9) - first + 1) }, (_, i) => 10 ** (first + i));
};
