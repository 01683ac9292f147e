"use strict";
document.getElementById("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = document.getElementById("query").value;
  const answer = await fetch("/v1/search", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text, explain: true }),
  });
  const found = await answer.json();
  const items = answer.ok ? found.results[0].hits.map((hit) => `${hit.score.toFixed(3)} ${hit.title || hit.id}`) : [found.detail];
  document.getElementById("hits").replaceChildren(
    ...items.map((line) => {
      const item = document.createElement("li");
      item.textContent = line;
      return item;
    }),
  );
});
