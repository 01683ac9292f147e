// The search box: a query, its answer, its way, and the same again when the budget moves.

import { get, post } from "./api.js";
import { showCompare } from "./compare.js";
import { byId, count, decimal, duration, h, refill } from "./dom.js";
import { named, showResults } from "./results.js";
import { drawn, story } from "./way.js";

const K = 10;
const EXAMPLES = 5;
const FIELDS = 8; // of metadata that are named
const PATIENCE = 700; // milliseconds until a search is said to take long

let facts;
let actions;
let asked = null; // {text}, {document} or {vector}, with the vector once it is known
let budget = null; // null: as the index was calibrated
let sides = null; // the answers at the start width and at full width
let turn = 0; // of the newest query: answers to older ones are dropped
let shown = 0; // the turn whose answer is seen
let moving = false; // a search for a new budget is running
let moved = false; // and another waits

/** Wires the search form to an index; `remove` asks and removes a document. */
export async function setUpSearch(served, remove) {
  facts = served;
  actions = { like: (hit) => ask({ document: hit.id, name: named(hit) }), remove };
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = byId("query").value.trim();
    if (given) ask(facts.text ? { text: given } : { document: given });
  });
  setUpBudget();
  setUpNarrow();
  if (!facts.text) {
    byId("query-label").textContent = "Find documents like the one with this id";
    byId("query").placeholder = "document id";
  } else byId("query").placeholder = "what are you looking for?";
  await showExamples();
}

/** Asks the last query again: the index has changed. */
export async function askAgain() {
  if (asked) await ask(asked);
}

/** Answers a query, then compares it. */
export async function ask(query) {
  const mine = ++turn;
  asked = { ...query };
  byId("query").value = query.text ?? (facts.text ? "" : (query.document ?? ""));
  byId("answer").setAttribute("aria-busy", "true");
  const waiting = setTimeout(() => (byId("waiting").textContent = "Searching … The first search loads the encoder, which takes a while."), PATIENCE);
  try {
    if (asked.document !== undefined) asked.vector = (await post("/v1/vectors", { document: asked.document })).vector;
    const answer = await search({ explain: true, ...limit() });
    clearTimeout(waiting);
    if (mine !== turn) return;
    byId("waiting").textContent = "";
    show(answer);
    asked.vector ??= (await post("/v1/vectors", { text: asked.text })).vector;
    const [fixed, full] = await Promise.all([
      search({ width: facts.start_width, explain: true }),
      search({ width: "full", shortlist: Math.max(1, Math.min(facts.documents, facts.limits.shortlist)) }),
    ]);
    if (mine !== turn) return;
    sides = { fixed: fixed.results[0], full: full.results[0] };
    showCompare({ ...sides, adaptive: answer.results[0] }, answer.results[0].explain, facts);
  } catch (error) {
    if (mine === turn) fail(error);
  } finally {
    clearTimeout(waiting);
    if (mine === turn) {
      byId("waiting").textContent = "";
      byId("answer").removeAttribute("aria-busy");
    }
  }
}

const limit = () => (budget === null ? {} : { budget });

/** Words are compared with words: a query that is a document has none. */
const worded = () => byId("hybrid").checked && asked.text !== undefined;

function search(options) {
  const query = asked.vector && !worded() ? { vector: asked.vector } : { text: asked.text };
  return post("/v1/search", { ...query, k: K, ...narrowed(), ...options });
}

/** What the fields below the search box ask for. */
function narrowed() {
  const [filter, task] = [byId("filter").value.trim(), byId("task").value];
  return { ...(filter && { filter }), ...(task && { task }), ...(worded() && { hybrid: true }) };
}

function show(answer) {
  const [result] = answer.results;
  const way = result.explain;
  shown = turn;
  byId("problem").hidden = true;
  byId("filter").removeAttribute("aria-invalid");
  byId("answer").hidden = false;
  if (budget === null) {
    place(result.mean_width);
    byId("budget-value").textContent = count(result.mean_width);
  }
  const like = asked.text === undefined ? `Like ${asked.name ?? asked.document}. ` : "";
  byId("results-note").textContent = `${like}${decimal(result.mean_width)} numbers per candidate · ${spent(way.seconds)}`;
  showResults(result.hits, asked, facts, actions);
  byId("way-story").textContent = !way.steps.length && narrowed().filter ? "No document meets the filter." : story(way, result.hits.length);
  refill(byId("way"), ...drawn(way, result.hits.length));
  byId("status").textContent = `${result.hits.length} results. ${byId("way-story").textContent}`;
}

function spent(seconds) {
  const stages = Object.entries({ encode: seconds.encode, scan: seconds.scan, "read on": seconds.rescoring });
  return stages.filter(([, value]) => value > 0).map(([stage, value]) => `${stage} ${duration(value)}`).join(" · ");
}

function fail(error) {
  byId("filter").setAttribute("aria-invalid", String(error.code === "invalid_option" && byId("filter").value.trim() !== ""));
  byId("problem").textContent = error.message;
  byId("problem").hidden = false;
  byId("answer").hidden = shown !== turn;
}

/** Filter, task and words, where this index has metadata, query maps and words; each acts at once. */
function setUpNarrow() {
  const shownIf = { task: facts.tasks.length > 0, hybrid: facts.hybrid && facts.text };
  for (const [name, useful] of Object.entries(shownIf)) byId(`${name}-field`).hidden = !useful;
  for (const name of ["filter", "task", "hybrid"]) byId(name).addEventListener("change", askAgain);
  byId("narrow").hidden = !Object.values(shownIf).some(Boolean);
  byId("filter").maxLength = facts.limits.filter;
  showFilter();
  const tasks = facts.tasks.length ? [...facts.tasks, "none"] : [];
  const usual = tasks.includes("default") ? "default" : "none";
  byId("task").replaceChildren(...tasks.map((name) => h("option", { value: name, selected: name === usual }, name)));
}

/** Shows the filter, once documents have metadata. */
export function showFilter() {
  if (!facts.fields.length) return;
  const listed = facts.fields.slice(0, FIELDS).join(", ") + (facts.fields.length > FIELDS ? ", …" : "");
  byId("filter-hint").replaceChildren("Such as ", h("code", null, `${facts.fields[0]} = 'x'`), `. Fields: ${listed}.`);
  byId("filter-field").hidden = byId("narrow").hidden = false;
}

function setUpBudget() {
  const slider = byId("budget");
  slider.addEventListener("input", () => {
    budget = Math.round(facts.start_width * reach() ** (Number(slider.value) / 100));
    showBudget();
    move();
  });
  byId("automatic").addEventListener("click", () => {
    budget = null;
    showBudget();
    move();
  });
  place(facts.start_width);
  showBudget();
}

/** The slider is logarithmic: from the start width to the target width, most happens early. */
const reach = () => Math.max(1.01, facts.target_width / facts.start_width);

function place(width) {
  byId("budget").value = Math.round((100 * Math.log(width / facts.start_width)) / Math.log(reach()));
}

function showBudget() {
  const automatic = budget === null;
  byId("budget-value").textContent = automatic ? "" : count(budget);
  byId("budget").setAttribute("aria-valuetext", automatic ? "automatic" : `${budget} numbers per candidate`);
  byId("automatic").setAttribute("aria-pressed", String(automatic));
  byId("budget-hint").textContent = automatic
    ? "Automatic reads what keeps 99 % of full quality: the slider follows the query. Move it to spend less, or more."
    : `At most ${budget} numbers per candidate, on average over queries.`;
}

/** The answer at the new budget; while one is on its way, only the newest position waits. */
async function move() {
  if (!asked) return;
  moved = true;
  if (moving) return;
  moving = true;
  try {
    while (moved) {
      moved = false;
      const mine = turn;
      asked.vector ??= (await post("/v1/vectors", { text: asked.text })).vector;
      const answer = await search({ explain: true, ...limit() });
      if (mine !== turn) continue;
      show(answer);
      if (sides) showCompare({ ...sides, adaptive: answer.results[0] }, answer.results[0].explain, facts);
    }
  } catch (error) {
    fail(error);
  } finally {
    moving = false;
  }
}

async function showExamples() {
  const all = facts.text ? (await get(`/v1/index/examples?count=${4 * EXAMPLES}`)).examples : [];
  const found = all.sort((a, b) => a.text.length - b.text.length).slice(0, EXAMPLES);
  const queries = found.length ? found.map((one) => ({ text: one.text })) : await someDocuments();
  byId("examples").hidden = !queries.length;
  byId("examples-list").replaceChildren(
    ...queries.map((query) => h("li", null, h("button", { type: "button", class: "chip", click: () => ask(query) }, query.text ?? query.name))),
  );
  byId("examples-label").textContent = queries[0]?.text ? "Try" : "More like";
}

/** Documents from all over the index, to find others like them. */
async function someDocuments() {
  const places = Array.from({ length: EXAMPLES }, (_, i) => Math.floor((facts.documents * i) / EXAMPLES));
  const pages = await Promise.all([...new Set(places)].map((offset) => get(`/v1/documents?limit=1&offset=${offset}`)));
  return pages.flatMap((page) => page.documents).map((one) => ({ document: one.id, name: named(one) }));
}
