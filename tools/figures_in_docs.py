"""Writes the measured figures of README.md and of pages in docs/ from benchmarks/results: python tools/figures_in_docs.py"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", ROOT / "docs" / "home.md", ROOT / "docs" / "performance.md", ROOT / "docs" / "service.md"]
COLLECTIONS = ("scifact", "medquad", "nl2bash")
FULL = 384
PLACE = re.compile(r"<!-- (?P<name>headline|figures|speed|service) -->\n.*?<!-- end of (?P=name) -->", re.DOTALL)


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def tapered(collection: str, rotation: str, start: int, budget: int) -> dict[str, Any]:
    """What the taper reached on test queries under all-MiniLM-L6-v2."""
    wanted = {"collection": collection, "encoder": "minilm", "rotation": rotation, "policy": "taper", "start": start, "budget": budget}
    (row,) = [r for r in read("taper") if wanted.items() <= r.items() and r["shortlist"] == 500 and not {"note", "quality"} & r.keys()]
    return dict(row)


def fixed(collection: str, method: str, width: int, queries: str = "all") -> float:
    return float(read("rotations")["cells"][f"{collection}/minilm/{method}/0"][queries][str(width)])


def headline() -> str:
    """The least that is kept over the collections, and the most that is read."""
    points = [tapered(collection, "pca", 64, 80) for collection in COLLECTIONS]
    share, most = min(point["share"] for point in points), max(point["mean_width"] for point in points)
    said = f"**Reads {most:.0f} of {FULL} coordinates and keeps {100 * share:.1f} % of the ranking quality, without a single label**"
    return f"{said} (nDCG@10 of all-MiniLM-L6-v2, the least of three collections).\n"


def figures() -> str:
    """nDCG@10 by collection; the unseen queries of scifact beside all of them."""
    head = ["", f"frozen encoder, all {FULL}", "truncated to 64", "PCA at 64"]
    points = {c: (tapered(c, "learned", 32, 40), tapered(c, "pca", 64, 80)) for c in COLLECTIONS}
    means = [f"{max(pair[place]['mean_width'] for pair in points.values()):.0f}" for place in (0, 1)]
    head += [f"AdaWidth, with labels, mean width {means[0]}", f"without labels, mean width {means[1]}"]
    lines = [head, ["---"] * len(head)]
    for collection, (labelled, free) in points.items():
        unseen = labelled.get("unseen")
        beside = (
            f" (unseen {_short(unseen['nDCG@10'])}, frozen {_short(fixed(collection, 'truncation', FULL, 'unseen'))})" if unseen else ""
        )
        cells = [fixed(collection, "truncation", FULL), fixed(collection, "truncation", 64), fixed(collection, "pca", 64)]
        lines.append([collection, *map(_short, cells), f"**{_short(labelled['nDCG@10'])}**{beside}", _short(free["nDCG@10"])])
    return _table(lines)


def speed() -> str:
    """One thread against faiss' exact scan."""
    lines = [["documents × width", "storage", "recall@10", "ms a query", "times faster than faiss' exact scan", "in batches of 256"]]
    lines.append(["---"] * len(lines[0]))
    found = read("latency")
    for place in ("200000/1.0/pq4", "1000000/1.0/ivf"):
        cell = found["cells"][place]
        single, batch = cell["single"], cell["batch"]
        size = f"{cell['documents']:,} × {found['width']:,}"
        times = [f"{part['faiss_over_ours']:.0f}" for part in (single, batch)]
        lines.append([size, f"`{cell['storage']}`", _short(cell["recall"]), f"{single['ours_us'] / 1e3:.1f}", *times])
    return _table(lines)


def service() -> str:
    """The service under load, and beside Chroma's server."""
    found = read("serve")
    rates, steady, restart = (found[part] for part in ("rates", "steady", "restart"))
    rate, rounds = {name: f"{value:,.0f} per second" for name, value in rates["queries_per_second"].items()}, steady["rounds"]
    lost = steady["writes_lost"]

    def span(name: str) -> str:
        """The least and the greatest of all rounds."""
        each = [one["search"][name] for one in rounds]
        return f"{min(each):,.0f} to {max(each):,.0f}"

    memory = f"{rounds[0]['resident_mb']:.0f} MB after the first, {rounds[-1]['resident_mb']:.0f} after the last"
    lines = [
        ["", "measured"],
        ["---"] * 2,
        ["one query per request", f"{rate['ids']}: {_short(rates['ids_over_nothing'])} of an endpoint that does nothing"],
        ["the same with titles and texts", f"{rate['search']}: {_short(rates['search_over_nothing'])} of it"],
        [
            "32 queries per request",
            f"{rate['batch']}: {rates['batch_over_in_process']:.2f} times one thread of a process that holds the index",
        ],
        [f"with two writers, {len(rounds)} × {steady['seconds']:.0f} s", f"{steady['errors']} errors, {lost} writes lost, {memory}"],
        ["searches beside them, minute by minute", f"half within {span('p50_ms')} ms, 99 % within {span('p99_ms')} ms"],
        ["killed with requests in flight", f"{restart['writes_lost']} of {restart['writes_answered']} answered writes lost"],
        ["started again", f"ready in {restart['ready_over_open']:.2f} times what a process takes to open the index"],
    ]
    if (RESULTS / "serve_chroma.json").exists():
        lines += _beside_chroma()
    where = f"On {found['machine']['cpus']} cores, which the load shared with the service"
    return f"{_table(lines)}\n{where}; load average before it began: {found['machine']['load']:.1f}.\n"


def _beside_chroma() -> list[list[str]]:
    """Rows of the table: AdaWidth as it is, beside Chroma at equal nDCG@10 and as it comes."""
    found, lines = read("serve_chroma"), []
    rates = found["queries_per_second"]
    for kind, what in (("single", "one query"), ("batch", f"{found['queries_per_batch']} queries")):
        ours = rates[found["at_equal_ndcg"]["adawidth"]]
        beside = []
        for name in ("at_equal_ndcg", "as_it_comes"):
            theirs, setting = rates[found[name]["chroma"]], found[name]["chroma"].capitalize()
            figures = f"nDCG@10 {_short(theirs['nDCG@10'])}, {theirs[kind]:,.0f} per second"
            beside.append(f"{found[name][kind]:.1f} times {setting} ({figures})")
        told = f"{ours[kind]:,.0f} per second at nDCG@10 {_short(ours['nDCG@10'])}: {', '.join(dict.fromkeys(beside))}"
        lines.append([f"{found['documents']:,} documents × {found['width']}, {what} per request", told])
    return lines


def written(page: str) -> str:
    """The page with every figure as the results have it now."""
    makers: dict[str, Callable[[], str]] = {"headline": headline, "figures": figures, "speed": speed, "service": service}
    return PLACE.sub(lambda found: f"<!-- {found['name']} -->\n{makers[found['name']]()}<!-- end of {found['name']} -->", page)


def _short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def _table(lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
