// The page: learns what is served, then wires its sections.

import { get, keep, takeKey } from "./api.js";
import { removeDocument, setUpDocuments } from "./documents.js";
import { byId, count } from "./dom.js";
import { setUpLive } from "./live.js";
import { setUpModel } from "./model.js";
import { setUpPlanner } from "./planner.js";
import { ask, askAgain, setUpSearch, showFilter } from "./search.js";

takeKey();
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keep(byId("key").value.trim());
  start();
});
start();

async function start() {
  let facts;
  try {
    facts = await get("/v1/index");
  } catch (error) {
    refused(error);
    return;
  }
  byId("key-form").hidden = true;
  byId("problem").hidden = true;
  introduce(facts);
  setUpDocuments(facts, { ask, askAgain, showFilter });
  setUpPlanner();
  setUpLive();
  const told = (words) => {
    byId("status").textContent = words;
    byId("results-note").textContent = words;
    byId("query").focus();
  };
  await Promise.all([setUpSearch(facts, (hit) => removeDocument(hit, told)), setUpModel(facts)]).catch(say);
}

/** A wrong or missing key is asked for; anything else is told. */
function refused(error) {
  const locked = error.status === 401;
  byId("key-form").hidden = !locked;
  byId("about").textContent = locked ? "" : "The index can't be shown.";
  if (locked) byId("key").focus();
  if (!locked || byId("key").value) say(locked ? new Error("The service does not take this key.") : error);
}

function say(error) {
  byId("problem").textContent = error.message;
  byId("problem").hidden = false;
}

function introduce(facts) {
  document.title = `${facts.name} · AdaWidth`;
  byId("index-name").textContent = facts.name;
  byId("about").textContent = !facts.documents
    ? "This index is empty. What you add below is found by the next search."
    : `Every one of these ${count(facts.documents)} documents is a list of ${count(facts.width)} numbers. AdaWidth compares all of them on the first ` +
    `${count(facts.start_width)}, and reads on only for the few whose place is still in doubt.`;
  byId("footer-facts").textContent = `AdaWidth ${facts.version} · ${facts.encoder || "vectors"} · ${facts.storage} storage`;
}
