// Side by side: the start width alone, the policy's own way, and full width; what differs from full width is marked.

import { breakable, byId, bytes, count, decimal, h, percent, score } from "./dom.js";
import { named } from "./results.js";

/** `answers` has fixed, adaptive and full, each an entry of the service's results; full may be missing yet. */
export function showCompare(answers, way, facts) {
  const { fixed, adaptive, full } = answers;
  byId("compare-note").hidden = true;
  const everything = facts.documents <= facts.limits.shortlist;
  byId("compare").replaceChildren(
    column("Start width", `first ${facts.start_width} numbers only`, fixed, full, fixed.explain.bytes, way),
    column("Adaptive", "as many as the query needs", adaptive, full, way.bytes, way),
    column("Full width", everything ? "every number of every document" : `${count(facts.limits.shortlist)} candidates, every number`, full, full, way.full_bytes, way),
  );
}

function column(title, how, answer, full, read, way) {
  const at = new Map(full.hits.map((hit, place) => [String(hit.id), place]));
  const own = new Set(answer.hits.map((hit) => String(hit.id)));
  const same = answer.hits.filter((hit) => at.has(String(hit.id))).length;
  const missing = full.hits.filter((hit) => !own.has(String(hit.id)));
  const reference = answer === full;
  return h(
    "section",
    { class: "card", "aria-label": title },
    h("h3", null, title),
    h("p", { class: "hint" }, how),
    h(
      "dl",
      null,
      pair("numbers per candidate", decimal(answer.mean_width)),
      pair("read", `${bytes(read)} · ${percent(read / way.full_bytes)}`),
      pair("as at full width", reference ? "—" : `${same} of ${full.hits.length}`),
    ),
    h("ol", null, answer.hits.map((hit, place) => row(hit, place, at, reference))),
    missing.length > 0 && h("p", { class: "missing" }, h("strong", null, "Missing: "), missing.map(named).join(", ")),
  );
}

const pair = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));

function row(hit, place, at, reference) {
  const before = at.get(String(hit.id));
  const only = before === undefined;
  const moved = only ? 0 : before - place;
  const [sign, words] = only ? ["new", "not in the answer at full width"] : moved > 0 ? [`↑${moved}`, `${moved} higher than at full width`] : moved < 0 ? [`↓${-moved}`, `${-moved} lower than at full width`] : ["", ""];
  const marked = !reference && sign;
  return h(
    "li",
    { class: only ? "differs" : moved ? "moved" : null },
    h("span", { class: "name" }, breakable(named(hit))),
    marked ? h("span", { class: "sign", title: words }, h("span", { "aria-hidden": "true" }, sign), h("span", { class: "sr" }, ` (${words})`)) : h("span", { class: "sign" }),
    h("span", { class: "number" }, score(hit.score)),
  );
}
