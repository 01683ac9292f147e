// Elements and numbers. Text becomes text nodes only: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; a function as an attribute listens to that event. */
export const h = (name, attributes, ...children) => filled(document.createElement(name), attributes, children);

/** The same for SVG. */
export const s = (name, attributes, ...children) => filled(document.createElementNS(SVG, name), attributes, children);

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const LOCALE = "en";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });
const share = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumFractionDigits: 1 });

export const count = (value) => whole.format(value);
export const decimal = (value) => tenth.format(value);
export const compact = (value) => short.format(value);
export const score = (value) => value.toFixed(3);

export function percent(value) {
  if (!Number.isFinite(value)) return "–";
  return value > 0 && value < 0.01 ? "under 1\u00a0%" : share.format(value).replace("%", "\u00a0%");
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let place = 0;
  for (; value >= 1000 && place < units.length - 1; place++) value /= 1000;
  return `${value >= 100 || place === 0 ? whole.format(value) : tenth.format(value)}\u00a0${units[place]}`;
}

export function duration(seconds) {
  if (seconds === 0) return "0";
  return seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)}\u00a0ms` : `${seconds.toFixed(1)}\u00a0s`;
}

/** Puts new children in place of old ones: details that were open stay open, and the focus stays where it was. */
export function refill(holder, ...children) {
  const all = () => [...holder.querySelectorAll("details, summary, [tabindex]")];
  const before = all();
  const focused = before.indexOf(document.activeElement);
  const open = before.map((one) => one.open);
  holder.replaceChildren(...children);
  all().forEach((one, place) => {
    if (open[place]) one.open = true;
    if (place === focused) one.focus({ preventScroll: true });
  });
}

/** A name that may be broken after its dots, slashes and underscores. */
export const breakable = (name) => name.split(/(?<=[._/])/).flatMap((part, place) => (place ? [h("wbr"), part] : [part]));

/** A table with a caption; the first column heads its rows, numbers are aligned. */
export function table(caption, columns, rows) {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      null,
      h("caption", null, caption),
      h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        null,
        rows.map((row) => h("tr", null, row.map((cell, place) => h(place ? "td" : "th", place ? null : { scope: "row" }, cell)))),
      ),
    ),
  );
}

/** A table that opens on demand: what a chart shows, in numbers. */
export const inNumbers = (caption, columns, rows) => h("details", null, h("summary", null, "In numbers"), table(caption, columns, rows));
