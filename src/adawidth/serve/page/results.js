// The list of results, with what can be done to each: label it, find others like it, remove it.

import { post } from "./api.js";
import { breakable, byId, h, s, score } from "./dom.js";

const SNIPPET = 180; // characters

const THUMB = "M2 10h3v10H2zM7 20h9.5a2 2 0 0 0 2-1.6l1.4-6.5A2 2 0 0 0 18 9.5h-4.6l.8-4.2A2 2 0 0 0 12.3 3L7 9.8z";
const thumb = (down) =>
  s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: down ? "icon down" : "icon" }, s("path", { d: THUMB }));

export const named = (hit) => hit.title || String(hit.id);

/** Fills the list. `asked` is the query as feedback has it; `actions` are the callbacks `like` and `remove`. */
export function showResults(hits, asked, facts, actions) {
  byId("results").replaceChildren(...hits.map((hit, place) => item(hit, place, hits, asked, facts, actions)));
}

function item(hit, place, hits, asked, facts, actions) {
  const title = named(hit);
  const text = hit.text ?? "";
  const cut = text.length > SNIPPET;
  const short = cut ? `${text.slice(0, SNIPPET).trimEnd()} …` : text;
  const snippet = text && h("p", { class: "snippet" }, short);
  const own = asked.document !== undefined && String(asked.document) === String(hit.id);
  return h(
    "li",
    { "data-id": hit.id },
    h("p", { class: "score" }, h("span", { class: "sr" }, "Score "), score(hit.score), bar(hit.score / Math.max(hits[0].score, 1e-9))),
    h(
      "div",
      { class: "body" },
      h("h3", null, breakable(title), own && h("span", { class: "tag" }, "this document")),
      snippet,
      hit.title && String(hit.id) !== hit.title && h("p", { class: "hint" }, "id ", h("code", null, String(hit.id))),
      h(
        "div",
        { class: "actions" },
        facts.writable && thumbs(hit, asked),
        cut && unfolding(snippet, short, text, title),
        h("button", { type: "button", class: "quiet", click: () => actions.like(hit) }, "More like this", h("span", { class: "sr" }, `: ${title}`)),
        facts.writable &&
          h("button", { type: "button", class: "quiet", click: () => actions.remove(hit) }, "Remove", h("span", { class: "sr" }, ` ${title}`)),
      ),
    ),
  );
}

function unfolding(snippet, short, text, title) {
  const button = h("button", { type: "button", class: "quiet", "aria-expanded": "false" }, "Whole text", h("span", { class: "sr" }, ` of ${title}`));
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", String(open));
    snippet.classList.toggle("whole", open);
    snippet.textContent = open ? text : short;
  });
  return button;
}

function bar(part) {
  const width = Math.max(0, Math.min(1, part)) * 48;
  return s("svg", { viewBox: "0 0 48 4", class: "score-bar", "aria-hidden": "true" }, s("rect", { width: 48, height: 4, class: "rail" }), s("rect", { width, height: 4, class: "fill" }));
}

function thumbs(hit, asked) {
  const note = h("span", { class: "hint", role: "status" });
  const button = (grade, words) =>
    h(
      "button",
      { type: "button", class: "thumb", "aria-pressed": "false", "aria-label": `${words}: ${named(hit)}`, title: words, "data-grade": grade },
      thumb(grade === 0),
    );
  const both = [button(1, "Relevant"), button(0, "Not relevant")];
  for (const one of both)
    one.addEventListener("click", async () => {
      try {
        await post("/v1/feedback", { query: asked.text ?? asked.vector, document: hit.id, grade: Number(one.dataset.grade) });
        for (const other of both) other.setAttribute("aria-pressed", String(other === one));
        note.textContent = "Noted";
      } catch (error) {
        note.textContent = error.message;
      }
    });
  return h("span", { class: "thumbs" }, both, note);
}
