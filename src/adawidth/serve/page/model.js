// The model card: quality against width, of one width for all queries and of the taper.

import { get } from "./api.js";
import { dot, figure, line, linear, path, rounds, text, ticksX, ticksY, titled } from "./charts.js";
import { byId, count, decimal, h, inNumbers, percent } from "./dom.js";

const K = 10;

/** Draws the card of the served model. */
export async function setUpModel(facts) {
  const card = await get("/v1/index/card");
  const fixed = Object.entries(card.fixed).map(([width, share]) => ({ width: Number(width), share }));
  const curve = card.taper.find((one) => one.k === K && one.start_width === facts.start_width) ?? card.taper[0];
  const taper = (curve?.points ?? []).map((point) => ({ width: point.mean_width, share: point.quality })).filter((point) => point.width <= card.target_width);
  const measured = card.labels ? `${card.measure} on ${count(card.dev_queries)} labelled queries` : `top ${K} on ${card.dev_queries ? `${count(card.dev_queries)} queries` : "documents in place of queries"}`;
  byId("model-note").textContent = `Share of full quality kept (${measured}), by how many numbers are read per candidate.`;
  if (!fixed.length) {
    byId("model").replaceChildren(h("p", { class: "empty" }, "This model was made without a calibration, so there is no curve."));
    return;
  }
  const enough = (points) => points.filter((point) => point.share >= 0.99).sort((a, b) => a.width - b.width)[0];
  const words = [enough(taper) && `adaptive keeps 99 % with ${decimal(enough(taper).width)} numbers`, enough(fixed) && `one width for all needs ${count(enough(fixed).width)}`].filter(Boolean).join("; ");
  byId("model").replaceChildren(
    figure(`Quality against width: ${words}.`, words && `${words[0].toUpperCase()}${words.slice(1)}.`, 260, (width, height) => chart(fixed, taper, width, height)),
    inNumbers(
      "Share of full quality by width",
      ["Numbers per candidate", "Kept", "How"],
      [...fixed.map((one) => ({ ...one, how: "one width" })), ...taper.map((one) => ({ ...one, how: "adaptive" }))]
        .sort((a, b) => a.width - b.width)
        .map((one) => [decimal(one.width), percent(one.share), one.how]),
    ),
    h("details", null, h("summary", null, "The model card"), h("pre", { tabindex: 0 }, card.card)),
  );
}

function chart(fixed, taper, width, height) {
  const [left, right, top, bottom] = [48, 12, 12, 36];
  const lowest = Math.min(...fixed.map((one) => one.share), ...taper.map((one) => one.share));
  const low = Math.max(0, Math.floor(lowest * 10) / 10);
  const x = linear([0, fixed.at(-1).width], [left, width - right]);
  const y = linear([low, 1], [height - bottom, top]);
  const at = (points) => points.map((one) => [x(one.width), y(one.share)]);
  const shares = Array.from({ length: Math.round((1 - low) * 10) + 1 }, (_, i) => low + i / 10);
  const mark = (points, kind) => points.map((one) => titled(dot(x(one.width), y(one.share), kind, 3), `${percent(one.share)} at ${decimal(one.width)}`));
  const wide = fixed[Math.min(fixed.length - 1, Math.ceil(fixed.length / 2))];
  return [
    ticksY(y, shares, left, width - right, percent),
    line(left, height - bottom, width - right, height - bottom, "axis"),
    ticksX(x, rounds(fixed.at(-1).width, 6), height - bottom, count),
    path(at(fixed), "stroke muted"),
    mark(fixed, "dot muted"),
    taper.length > 0 && [path(at(taper), "stroke"), mark(taper, "dot")],
    text(x(wide.width) + 6, y(wide.share) + 20, "one width for all", "value"),
    taper.length > 0 && text(x(taper[0].width) - 9, y(taper[0].share) - 6, "adaptive", "value accent", "end"),
    text(left, height - 2, "numbers per candidate, on average", "tick"),
  ];
}
