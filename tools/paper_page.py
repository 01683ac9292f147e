"""Writes docs/paper.md from the JSON files in benchmarks/results: python tools/paper_page.py"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from adawidth.experiments.base import Outcome
from adawidth.experiments.verdicts import above, together

HOME = Path(__file__).parents[1]
PAGE, RESULTS = HOME / "docs/paper.md", HOME / "benchmarks/results"
TABLES = {  # file in results/paper -> what it is about
    "curves": "Quality at equal width",
    "new": "Quality at equal width, wider encoders and larger collections",
    "shortlist": "Quality at equal width, by the paper's own protocol",
    "capacity": "The number of reflections",
    "ablation": "Rotation alone, router alone, both",
    "large": "The same on more than 10⁵ documents",
    "sweep": "Loss weights and temperatures",
    "scaling": "Required width over corpus size and depth",
    "stable-widths": "Required width of single queries",
    "routers": "The router",
    "rates": "Information rates",
}
Row = tuple[str, str, str, str, Outcome, str]  # the claim, the paper's figure, ours, data, verdict, file

OPENING = """# Does the paper hold?

Claim by claim: what the paper says, what was measured here on other data, and the verdict. This page is generated: `make paper` measures
what benchmarks/paper.toml lists and writes tables and page, `make paper-check` says what is missing or stale, and
`python tools/paper.py write` makes every figure and interval again from the committed values of single queries.

- Verdicts are rules in code (`adawidth.experiments.verdicts`). A claim holds where both ends of its 95 % interval say so, does not hold
  where both deny it, and is *not shown* where they disagree. A claim of several parts holds in part where some of them do.
- Verdicts read *unseen* queries alone: those none of whose relevant documents was named by a label of train or dev. On the others a
  method may remember documents.
- An interval is over queries: one is drawn with all its encoders, seeds and widths, as one.
- A rival that never reaches a quality reads more than its widest point, one whose narrowest point is already there at most that:
  width ratios are bounds. Dimensions saved are charged the full width where the quality is never reached.
- `paper` is the paper's own configuration: 64 reflections from the frozen axes, its three losses, its router. Every choice is made on
  dev, with at most 4,000 train queries.
"""


def written(results: Path = RESULTS) -> str:
    """The page."""
    found = {name: _read(results / "paper" / f"{name}.json") for name in TABLES}
    rows = [*_fixed(), *(row for name in TABLES for row in _claims(name, found[name])), *_rates(results), *_transfer(results)]
    header = ["the paper says", "its figure", "here", "data", "verdict", "from"]
    parts = [OPENING, _table(header, [[*row[:4], f"**{row[4]}**", row[5]] for row in rows])]
    for name in ("curves", "new"):
        parts += _means(name, found[name])
    return "\n".join(parts)


def _read(file: Path) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return found if found is not None and found.get("claims") else None


def _claims(name: str, found: dict[str, Any] | None) -> list[Row]:
    if found is None:
        earlier = RESULTS / "paper" / f"{name}.md"
        link = f"[0.1.0's, one seed, all queries](../benchmarks/results/paper/{name}.md)" if earlier.exists() else "–"
        return [(TABLES[name], "–", "not measured yet", "–", "not shown", link)]
    link = f"[{name}.json](../benchmarks/results/paper/{name}.json)"
    return [(f"{TABLES[name]}: {c['says']}", c["paper"], c["here"], c["data"], c["verdict"], link) for c in found["claims"]]


def _fixed() -> list[Row]:
    test = "[test](../tests/unit/test_householder.py)"
    return [
        ("A rotation changes no full-width score", "by construction", "equal to 1e-10 in float64", "random vectors", "holds", test),
        ("Images and questions", "+.023 to +.167", "no such collection here; `adawidth reproduce vqa` takes one", "–", "not shown", "–"),
    ]


def _rates(results: Path) -> list[Row]:
    """Whether a learned rotation raises the rate at which overtakers vanish, pair by pair."""
    cells = json.loads((results / "width_law.json").read_text(encoding="utf-8"))["cells"]
    changes = {name.rpartition("/")[0]: cell["learned"]["rate_change"] for name, cell in cells.items() if "learned" in cell}
    shown = "; ".join(f"{name} {c['difference']:+.4f} ({c['low']:+.4f} to {c['high']:+.4f})" for name, c in changes.items())
    outcome = together([above(change["low"], change["high"]) for change in changes.values()])
    data = f"{len(changes)} pairs, dev queries, `adawidth`'s rotation, 1 seed"
    link = "[width_law.json](../benchmarks/results/width_law.json)"
    return [("The adapter raises the information rate γ", "a higher rate", shown, data, outcome, link)]


def _transfer(results: Path) -> list[Row]:
    """A router of scale-free features on a collection that it was not trained on."""
    found = json.loads((results / "router.json").read_text(encoding="utf-8"))
    entries = [entry for entry in found["leave_one_out"] if entry["features"] == "scale-free"]
    outcomes = [above(entry["low"], entry["high"]) for entry in entries]
    counts = f"above 0 in {outcomes.count('holds')} of {len(outcomes)} cells, below in {outcomes.count('does not hold')}"
    shown = f"{mean(entry['credit'] for entry in entries):+.4f} over the fixed width of the same mean; {counts}"
    says, link = "Scale-free features carry a router to other collections", "[router.json](../benchmarks/results/router.json)"
    return [(says, "said, not measured", shown, "6 pairs, each left out once, 1 seed", together(outcomes), link)]


def _means(name: str, found: dict[str, Any] | None) -> list[str]:
    """Every method at every width, on unseen queries and on all."""
    if found is None:
        return []
    every, unseen = found["means"], found["unseen"]["means"]
    widths = list(next(iter(every.values())))
    ordered = sorted(every, key=lambda method: -sum(unseen[method].values()))
    rows = [[f"`{m}`", *(f"{_short(unseen[m].get(w))} / {_short(every[m][w])}" for w in widths)] for m in ordered]
    over = f"nDCG@10 on unseen queries / on all, mean over {', '.join(found['pairs'])}.\n"
    picture = f"![{TABLES[name]}](../benchmarks/results/paper/{name}.svg)\n"
    return [f"\n## {TABLES[name]}\n", over, _table(["method", *widths], rows), picture]


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".lstrip("0")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
