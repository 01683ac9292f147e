"""Writes the measured figures of README.md and of pages in docs/ from benchmarks/results: python tools/figures_in_docs.py"""

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("home", "index", "performance", "service"))]
COLLECTIONS = ("scifact", "medquad", "nl2bash")
FULL = 384
LABELLED, FREE = 48, 64  # widths that AdaWidth is given, with labels and without
PLACE = re.compile(r"<!-- (?P<name>headline|figures|speed|rivals|service) -->\n.*?<!-- end of (?P=name) -->", re.DOTALL)


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def measured(collection: str, method: str, width: int | str) -> dict[str, float]:
    """A method's mean width and test nDCG@10 under all-MiniLM-L6-v2 at a width it was given: means over its seeds."""
    wanted = {"dataset": collection, "encoder": "minilm", "method": method}
    cells = [cell for cell in read("paper/curves")["cells"] if wanted.items() <= cell.items()]
    points = [point for cell in cells for point in cell["points"] if point["width"] == width]
    return {name: statistics.mean(point[name] for point in points) for name in ("mean_width", "nDCG@10", "unseen")}


def headline() -> str:
    """The least that is kept over the collections, and the most that is read."""
    free = [measured(collection, "adawidth:unlabelled", FREE) for collection in COLLECTIONS]
    whole = [measured(collection, "truncation", "full") for collection in COLLECTIONS]
    share = min(part["nDCG@10"] / all_of_it["nDCG@10"] for part, all_of_it in zip(free, whole, strict=True))
    most = max(point["mean_width"] for point in free)
    said = f"**Reads {most:.0f} of {FULL} coordinates and keeps {100 * share:.1f} % of the ranking quality, without a single label**"
    return f"{said} (nDCG@10 of all-MiniLM-L6-v2, the least of three collections).\n"


def figures() -> str:
    """nDCG@10 by collection, and of unseen queries where they are others."""
    columns: dict[str, tuple[str, int | str]] = {
        f"frozen encoder, all {FULL}": ("truncation", "full"), "truncated to 64": ("truncation", 64), "PCA at 64": ("pca", 64),
        "AdaWidth, with labels, mean width {}": ("adawidth", LABELLED), "without labels, mean width {}": ("adawidth:unlabelled", FREE),
    }  # fmt: skip
    cells = {name: {collection: measured(collection, *which) for collection in COLLECTIONS} for name, which in columns.items()}
    head = [name.format(f"{max(point['mean_width'] for point in points.values()):.0f}") for name, points in cells.items()]
    lines = [["", *head], ["---"] * (len(head) + 1)]
    for collection in COLLECTIONS:
        of_it = [points[collection] for points in cells.values()]
        for value, beside in (("nDCG@10", ""), ("unseen", ", unseen")):
            line = [_short(point[value]) for point in of_it]
            line[3] = f"**{line[3]}**" if value == "nDCG@10" else line[3]
            if not beside or any(point["unseen"] != point["nDCG@10"] for point in of_it):
                lines.append([f"{collection}{beside}", *line])
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


RIVALS = {
    "ours_graph": "our `graph`",
    "scann": "ScaNN",
    "faiss_ivf": "faiss IVF",
    "faiss_hnsw": "faiss HNSW",
    "symphony": "SymphonyQG",
    "vamana": "Vamana",
}
PREFIXED = {"scann": "scann_prefix", "faiss_ivf": "faiss_prefix"}  # the same rivals on a prefix
VECTORS = {
    "minilm": "MiniLM", "wordllama": "WordLlama", "clues": "ada-002", "synthetic": "synthetic",
    "synthetic_prefix": "synthetic, rivals on 256 coordinates",
}  # fmt: skip


def rivals() -> str:
    """Our quickest codes for a single query at each recall, and how many times their time others take, also in batches."""
    lines = [["vectors", "recall@10", "our codes, µs a query", *RIVALS.values()]]
    lines.append(["---"] * len(lines[0]))
    for name, cell in read("real")["cells"].items():
        for wanted, at in cell["recalls"].items():
            both = (at["single"], at["batch"])
            ours = min((way for way in at["recall"] if way.startswith("ours") and way not in RIVALS), key=lambda way: both[0][f"{way}_us"])
            _, storage, *held = ours.split("_")
            way = f"`{storage}`" + (f" of {held[0]} bytes" if held else "")
            single, batch = (part[f"{ours}_us"] for part in both)
            line = [
                f"{VECTORS[name]}, {cell['documents']:,} × {cell['width']:,}",
                wanted.lstrip("0"),
                f"{way}: {single:,.0f} ({batch:,.0f})",
            ]
            for column in RIVALS:
                rival = column if column in at["recall"] else PREFIXED.get(column, column)
                times = (part[f"{rival}_us"] / part[f"{ours}_us"] for part in both if f"{rival}_us" in part)
                line.append("{:.1f} × ({:.1f})".format(*times) if rival in at["recall"] else "–")
            lines.append(line)
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
    makers: dict[str, Callable[[], str]] = {"headline": headline, "figures": figures, "speed": speed, "rivals": rivals, "service": service}
    return PLACE.sub(lambda found: f"<!-- {found['name']} -->\n{makers[found['name']]()}<!-- end of {found['name']} -->", page)


def _short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def _table(lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
