// Adding and removing documents.

import { post, remove as erase } from "./api.js";
import { byId, count, h } from "./dom.js";
import { named } from "./results.js";

let facts;
let search;

/** Wires both forms. `search` has `ask`, `askAgain` and `showFilter`. */
export function setUpDocuments(served, searching) {
  facts = served;
  search = searching;
  if (!facts.writable) {
    byId("documents").hidden = true;
    byId("documents-note").textContent = "This service is read-only. Started with an API key (ADAWIDTH_API_KEY), it takes new documents here, and labels for results.";
    return;
  }
  if (!facts.text) {
    byId("add-text-label").textContent = `Vector of the encoder: ${facts.encoder_width} numbers`;
    byId("add-text").placeholder = "0.12, -0.05, …";
  }
  byId("add-id").required = !facts.numbered;
  byId("add").addEventListener("submit", (event) => {
    event.preventDefault();
    add();
  });
  byId("remove").addEventListener("submit", (event) => {
    event.preventDefault();
    removeDocument({ id: byId("remove-id").value.trim() }, say);
  });
}

async function add() {
  const id = byId("add-id").value.trim();
  const given = byId("add-text").value.trim();
  const title = byId("add-name").value.trim();
  const { metadata, trouble } = objectIn(byId("add-metadata").value);
  byId("add-metadata").setAttribute("aria-invalid", String(trouble !== undefined));
  if (trouble) {
    say(`The document was not added. ${trouble}`);
    byId("add-metadata").focus();
    return;
  }
  const document = { title, metadata, ...(id ? { id } : {}), ...(facts.text ? { text: given } : { vector: numbersIn(given) }) };
  try {
    const done = await post("/v1/documents", { documents: [document] });
    facts.documents = done.documents;
    const found = facts.text ? { text: `${title} ${given}`.trim() } : { vector: document.vector, name: title || id || "what was added" };
    const find = h("button", { type: "button", click: () => look(found) }, "Find it");
    say(done.replaced ? `Replaced ${id}.` : `Added ${title || id || "it"}: ${count(done.documents)} documents now.`, find);
    facts.fields = [...new Set([...facts.fields, ...Object.keys(metadata)])].sort();
    search.showFilter();
    byId("add").reset();
    byId("remove-id").value = id;
  } catch (error) {
    say(error.message);
  }
}

async function look(query) {
  await search.ask(query);
  byId("query").focus();
  byId("search-section").scrollIntoView();
}

/** The metadata that were written, or what is wrong with them. */
function objectIn(words) {
  if (!words.trim()) return { metadata: {} };
  let found;
  try {
    found = JSON.parse(words);
  } catch (error) {
    return { trouble: `The metadata are no JSON: ${error.message}` };
  }
  if (found !== null && typeof found === "object" && !Array.isArray(found)) return { metadata: found };
  const kind = found === null ? "null" : Array.isArray(found) ? "a list" : `a ${typeof found}`;
  return { trouble: `The metadata must be a JSON object, with names and values in braces: this is ${kind}.` };
}

const numbersIn = (words) => words.replace(/[[\]]/g, " ").split(/[\s,;]+/).filter(Boolean).map(Number);

/** Asks, removes, and searches again. `told` hears how it went. */
export async function removeDocument(hit, told) {
  if (!(await confirmed(`Remove ${named(hit)}? This can't be undone.`))) return;
  try {
    const done = await erase(`/v1/documents/${encodeURIComponent(hit.id)}`);
    facts.documents = done.documents;
    byId("remove").reset();
    await search.askAgain();
    told(`Removed ${named(hit)}: ${count(done.documents)} documents now.`);
  } catch (error) {
    told(error.message);
  }
}

function say(words, button) {
  byId("documents-status").replaceChildren(words, ...(button ? [" ", button] : []));
}

/** A modal question. Escape means no; the focus goes back to where it was. */
function confirmed(question) {
  const dialog = byId("confirm");
  byId("confirm-text").textContent = question;
  return new Promise((resolve) => {
    const close = (yes) => () => {
      dialog.close();
      resolve(yes);
    };
    byId("confirm-yes").onclick = close(true);
    byId("confirm-no").onclick = close(false);
    dialog.oncancel = () => resolve(false);
    dialog.showModal();
    byId("confirm-no").focus();
  });
}
